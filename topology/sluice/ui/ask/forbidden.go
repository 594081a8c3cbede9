package ask

import (
	"fmt"
	"regexp"
	"strings"
)

// Words that no statement may have, not even in a text. Grants keep statements from table
// functions, but no grant is asked for a function of values: file(path) reads whatever the
// engine's process may where the engine is the embedded one, and the ai… functions speak
// to servers elsewhere. They can be called without brackets too (APPLY file, arrayMap(file,
// …)), so it is the word that is looked for and no call. Identifier would make a name of
// a text.
var forbidden = regexp.MustCompile(`(?i)(?:^|[^a-z0-9_])(file|ai(?:classify|generate|embed|extract|translate)|identifier)(?:[^a-z0-9_]|$)`)

// escaped is a way to write a name with other letters than its own: a backslash where
// something is quoted as a name is.
func escaped(sql string) bool {
	return strings.Contains(sql, `\`) && strings.ContainsAny(sql, "`\"\u201c\u201d\u2018\u2019")
}

// permitted says why a statement may not run, nil if it may.
func permitted(sql string) error {
	if m := forbidden.FindStringSubmatch(sql); m != nil {
		return fmt.Errorf("%w: the word %s may stand nowhere in a statement, since a function of that name reaches out of the database; in a pattern write %s_ for it", ErrRefused, m[1], m[1][:len(m[1])-1])
	}
	if escaped(sql) {
		return fmt.Errorf("%w: a statement with names in quotes may have no backslash: write char(10) for a newline, char(92) for a backslash", ErrRefused)
	}
	return nil
}
