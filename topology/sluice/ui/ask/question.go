package ask

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

//go:embed queries/*.sql
var files embed.FS

// question is a file of queries/.
type question struct {
	name, sql string
	// types of the parameters, and values of those that may be left out.
	types, defaults map[string]string
}

var (
	parameter = regexp.MustCompile(`\{([a-z_]+):([A-Za-z0-9()]+)\}`)
	// standard is a line such as "-- default step=-1 mode=train text=".
	standard = regexp.MustCompile(`(?m)^-- default(( [a-z_]+=\S*)+)$`)
)

func load() (map[string]question, error) {
	names, err := fs.Glob(files, "queries/*.sql")
	if err != nil {
		return nil, err
	}
	all := map[string]question{}
	for _, name := range names {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		q := question{
			name: strings.TrimSuffix(path.Base(name), ".sql"), sql: strings.TrimSuffix(strings.TrimSpace(string(b)), ";"),
			types: map[string]string{}, defaults: map[string]string{},
		}
		for _, m := range parameter.FindAllStringSubmatch(q.sql, -1) {
			if was := q.types[m[1]]; was != "" && was != m[2] {
				return nil, fmt.Errorf("%s: %s is %s and %s", name, m[1], was, m[2])
			}
			q.types[m[1]] = m[2]
		}
		for _, line := range standard.FindAllStringSubmatch(q.sql, -1) {
			for _, pair := range strings.Fields(line[1]) {
				key, value, _ := strings.Cut(pair, "=")
				if q.types[key] == "" {
					return nil, fmt.Errorf("%s: a default for %s, which it does not ask for", name, key)
				}
				q.defaults[key] = value
			}
		}
		all[q.name] = q
	}
	return all, nil
}

// arguments are the values of all parameters; others than these are refused, since a
// filter that does nothing would show what was not meant.
func (q question) arguments(values map[string][]string) ([]any, error) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if q.types[name] == "" {
			return nil, fmt.Errorf("%w: %s does not ask for %q", ErrUnknown, q.name, name)
		}
	}
	var args []any
	for _, name := range slices.Sorted(maps.Keys(q.types)) {
		given := values[name]
		switch standard, ok := q.defaults[name]; {
		case len(given) > 1:
			return nil, fmt.Errorf("%w: %s wants one value for %q", ErrUnknown, q.name, name)
		case len(given) == 1:
			args = append(args, ch.Named(name, given[0]))
			continue
		case ok:
			args = append(args, ch.Named(name, standard))
			continue
		}
		return nil, fmt.Errorf("%w: %s wants a value for %q", ErrUnknown, q.name, name)
	}
	return args, nil
}
