package stage

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"
)

// EnvName is the environment variable of a flag: --ready-file is SLUICE_READY_FILE.
func EnvName(flag string) string {
	return "SLUICE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// setFromEnv gives flags that the command line left alone their variable's value,
// and returns the names it set.
func setFromEnv(fs *pflag.FlagSet, environ func(string) (string, bool)) (map[string]bool, error) {
	set := map[string]bool{}
	var errs []error
	fs.VisitAll(func(f *pflag.Flag) {
		value, ok := environ(EnvName(f.Name))
		if !ok || f.Changed || f.Name == "version" {
			return
		}
		if err := fs.Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("environment variable %s: %w", EnvName(f.Name), err))
			return
		}
		set[f.Name] = true
	})
	return set, errors.Join(errs...)
}

// setFromFile gives flags that are still at their default the file's value. Every
// key must be the name of a flag.
func setFromFile(fs *pflag.FlagSet, path string, fromEnv map[string]bool) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	var doc map[string]yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, key := range slices.Sorted(keys(doc)) {
		node := doc[key]
		f := fs.Lookup(key)
		if f == nil || key == "config" || key == "version" {
			return fmt.Errorf("%s: line %d: unknown key %q: keys are the names of the flags, see --help", path, node.Line, key)
		}
		value, err := scalar(&node)
		if err != nil {
			return fmt.Errorf("%s: line %d: %s: %w", path, node.Line, key, err)
		}
		if f.Changed || fromEnv[key] {
			continue
		}
		if err := fs.Set(key, value); err != nil {
			return fmt.Errorf("%s: line %d: %w", path, node.Line, err)
		}
	}
	return nil
}

func keys(m map[string]yaml.Node) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// scalar is a value as a flag would be given it; a list becomes comma-separated.
func scalar(n *yaml.Node) (string, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return n.Value, nil
	case yaml.SequenceNode:
		var parts []string
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return "", errors.New("want a list of plain values")
			}
			parts = append(parts, item.Value)
		}
		return strings.Join(parts, ","), nil
	}
	return "", errors.New("want a plain value or a list of them")
}
