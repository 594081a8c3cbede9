package rewardfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// at is an error with its line in the file.
func at(line int, err error) error { return fmt.Errorf("%w: line %d: %w", ErrFile, line, err) }

// document reads the one document of a file, nil if there is none.
func document(content []byte) (*yaml.Node, error) {
	d, err := yaml.NewLoader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	var doc, more yaml.Node
	switch err := d.Load(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntax(content, err)
	}
	switch err := d.Load(&more); {
	case err == nil:
		return nil, at(more.Line, errors.New("a second document begins, want one"))
	case !errors.Is(err, io.EOF):
		return nil, syntax(content, err)
	}
	return doc.Content[0], nil
}

// syntax gives an error of the YAML library its line. Where the file ended too early it
// is the last one, not the one behind it.
func syntax(content []byte, err error) error {
	var e *yaml.LoadError
	if !errors.As(err, &e) {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	newline := []byte("\n")
	line := e.Mark.Line
	if line == 0 { // of bytes that are no text there is only the offset
		line = 1 + bytes.Count(content[:min(e.Mark.Index, len(content))], newline)
	}
	if hint := unquoted(content, line); hint != "" {
		return at(line, errors.New(e.Message+hint))
	}
	last := 1 + bytes.Count(bytes.TrimSuffix(content, newline), newline)
	return at(min(line, last), errors.New(e.Message))
}

// unquoted is what to do where the text at fault is an expression that YAML takes for
// something else: ": " begins a mapping in it, " #" a comment.
func unquoted(content []byte, line int) string {
	lines := strings.Split(string(content), "\n")
	for i := min(line, len(lines)) - 1; i >= 0; i-- {
		text := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(lines[i]), "- "))
		if rest, ok := strings.CutPrefix(text, "expression:"); ok {
			if rest = strings.TrimSpace(rest); rest != "" && !strings.ContainsAny(rest[:1], `|>'"`) {
				return expressionHint
			}
			return ""
		}
		if key, _, ok := strings.Cut(text, ":"); ok && !strings.ContainsAny(key, " ?()\"'") && i+1 < line {
			return "" // another field stands between
		}
	}
	return ""
}

const expressionHint = " (quote the expression, or write it below \"expression: |\": unquoted, YAML reads its \": \", \" #\", {, [ and leading ! or & as its own)"

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
			hint := ""
			if key.Value == "expression" && value.Kind != yaml.ScalarNode {
				hint = expressionHint
			}
			return at(key.Line, fmt.Errorf("%s%s %s, want %s%s", key.Value, of, describe(value), kindOf(field), hint))
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
