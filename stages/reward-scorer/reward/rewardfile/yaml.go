package rewardfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// at is an error with its line in the file.
func at(line int, err error) error { return fmt.Errorf("%w: line %d: %w", ErrFile, line, err) }

// document reads the one document of a file, nil if there is none.
func document(content []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(content))
	var doc, more yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntax(content, err)
	}
	switch err := d.Decode(&more); {
	case err == nil:
		return nil, at(more.Line, errors.New("a second document begins, want one"))
	case !errors.Is(err, io.EOF):
		return nil, syntax(content, err)
	}
	return doc.Content[0], nil
}

var (
	hasLine = regexp.MustCompile(`^line (\d+): `)
	// ofParser are errors in which the library counts lines from 0.
	ofParser = regexp.MustCompile(`^did not find expected (node content|key|'-' indicator|',' or|<)`)
)

// syntax gives an error of the YAML library its right line.
func syntax(content []byte, err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	lines := bytes.SplitAfter(bytes.TrimSuffix(content, []byte("\n")), []byte("\n"))
	found := hasLine.FindStringSubmatch(text)
	if found == nil {
		// The first line with which the file is refused for this reason.
		n := sort.Search(len(lines)-1, func(i int) bool {
			var n yaml.Node
			e := yaml.Unmarshal(bytes.Join(lines[:i+1], nil), &n)
			return e != nil && e.Error() == err.Error()
		})
		return at(n+1, errors.New(text))
	}
	text = strings.TrimPrefix(text, found[0])
	n, _ := strconv.Atoi(found[1]) // digits
	if ofParser.MatchString(text) {
		n++
	}
	return at(min(n, len(lines)), errors.New(text))
}

// read fills fields, by key, from a mapping; of, if not empty, is the key that it is the
// value of. A key that is unknown or comes twice is refused, and a value that is missing or
// of another kind than its field.
func read(n *yaml.Node, of string, fields map[string]any) error {
	if of != "" {
		of = " of " + of
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		field, known := fields[key.Value]
		if !known || key.Kind != yaml.ScalarNode {
			return at(key.Line, fmt.Errorf("unknown field %q%s; want %s", key.Value, of, strings.Join(slices.Sorted(maps.Keys(fields)), ", ")))
		}
		if line, again := seen[key.Value]; again {
			return at(key.Line, fmt.Errorf("%s%s is given on line %d already", key.Value, of, line))
		}
		seen[key.Value] = key.Line
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		inner, isMapping := field.(map[string]any)
		if isMapping && value.Kind == yaml.MappingNode {
			if err := read(value, key.Value, inner); err != nil {
				return err
			}
			continue
		}
		if isMapping || !fits(value, field) || value.Decode(field) != nil {
			return at(key.Line, fmt.Errorf("%s%s %s, want %s", key.Value, of, describe(value), kindOf(field)))
		}
	}
	return nil
}

// fits refuses what the library would bend: no value into any, a fraction into a whole number.
func fits(value *yaml.Node, field any) bool {
	switch field.(type) {
	case *int, *uint64:
		return value.ShortTag() == "!!int"
	}
	return value.ShortTag() != "!!null"
}

// describe says what a value is, in words of YAML.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.SequenceNode:
		return "is a list"
	case n.Kind == yaml.MappingNode:
		return "is a mapping"
	case n.ShortTag() == "!!null":
		return "has no value"
	}
	return fmt.Sprintf("is %.40q", n.Value)
}

// kindOf says what a field takes, in words of YAML.
func kindOf(field any) string {
	switch field.(type) {
	case *string:
		return "a text"
	case *bool:
		return "true or false"
	case *int:
		return "a whole number"
	case *uint64:
		return "a whole number, 0 or more"
	case **float64:
		return "a number"
	case *[]yaml.Node:
		return "a list"
	}
	return "a mapping"
}

func valueOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// lineOf is the line of a key's value; without the key, of what should have it.
func lineOf(n *yaml.Node, key string) int {
	if v := valueOf(n, key); v != nil {
		return v.Line
	}
	return n.Line
}
