package ask

import (
	"context"
	"fmt"
	"regexp"
)

// reading is a grant that only lets its user read one database, which it names.
var reading = regexp.MustCompile("^GRANT SELECT(?:\\([^)]*\\))? ON `?([A-Za-z0-9_]+)`?\\.(?:\\*|`?[A-Za-z0-9_.]+`?) TO [^ ]+$")

// bounded are the settings that must have bounds which no query can raise.
const bounded = `
SELECT count() FROM system.settings
WHERE name IN ('max_execution_time', 'max_memory_usage') AND toInt64OrZero(ifNull(max, '0')) > 0 AND toInt64OrZero(ifNull(min, '0')) > 0`

// Own says whether the user is one of the pages' own: it may read our database and
// nothing else, and its limits of time and memory hold whatever a statement says. Where
// it is not, why says what is missing.
func (a *Asker) Own(ctx context.Context) (own bool, why string) {
	granted, err := a.run(ctx, a.turn, Pages, "SHOW GRANTS", nil)
	if err != nil {
		return false, err.Error()
	}
	for _, row := range granted.Rows {
		grant := fmt.Sprint(row[0])
		if m := reading.FindStringSubmatch(grant); m == nil || m[1] != a.database {
			return false, fmt.Sprintf("its user may do more than read one database (%s); statements run only for one that may not: see sluice ui --help", grant)
		}
	}
	only, err := a.run(ctx, a.turn, Pages, "SELECT toInt64(getSetting('readonly') > 0)", nil)
	if err != nil || len(only.Rows) != 1 || fmt.Sprint(only.Rows[0][0]) != "1" {
		return false, fmt.Sprintf("its user is not read-only (%v): see sluice ui --help", err)
	}
	limits, err := a.run(ctx, a.turn, Pages, bounded, nil)
	if err != nil {
		return false, err.Error()
	}
	if len(limits.Rows) != 1 || fmt.Sprint(limits.Rows[0][0]) != "2" {
		return false, "its user has no limits of max_execution_time and max_memory_usage that a statement could not raise: see sluice ui --help"
	}
	return true, ""
}
