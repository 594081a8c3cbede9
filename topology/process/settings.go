package process

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"
)

// EnvName is the environment variable of a flag: --ready-file is SLUICE_READY_FILE.
func EnvName(flag string) string {
	return "SLUICE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// settle gives flags that the command line left alone their value: from the environment,
// else from the configuration file.
func settle(fs *pflag.FlagSet, environ func(string) (string, bool)) error {
	if err := setFromEnv(fs, environ); err != nil {
		return err
	}
	if file := fs.Lookup("config").Value.String(); file != "" {
		if err := setFromFile(fs, file); err != nil {
			return err
		}
	}
	return resolveSecrets(fs, environ)
}

// onlyFlag says that neither variable nor file set a flag.
func onlyFlag(name string) bool { return name == "version" || name == "help" }

// setFromEnv gives flags that the command line left alone their variable's value.
func setFromEnv(fs *pflag.FlagSet, environ func(string) (string, bool)) error {
	var errs []error
	fs.VisitAll(func(f *pflag.Flag) {
		value, ok := environ(EnvName(f.Name))
		if !ok || f.Changed || onlyFlag(f.Name) {
			return
		}
		if err := fs.Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("environment variable %s: %w", EnvName(f.Name), err))
		}
	})
	return errors.Join(errs...)
}

// setFromFile gives flags that are still at their default the file's value. Every key
// must be the name of a flag.
func setFromFile(fs *pflag.FlagSet, path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null" {
		return nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return fmt.Errorf("%s: line %d: want keys and values, such as log-level: debug", path, root.Line)
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, node := root.Content[i], root.Content[i+1]
		if line, again := lines[key.Value]; again {
			return fmt.Errorf("%s: line %d: %s is given on line %d already", path, key.Line, key.Value, line)
		}
		lines[key.Value] = key.Line
		f := fs.Lookup(key.Value)
		if f == nil || key.Value == "config" || onlyFlag(key.Value) {
			return fmt.Errorf("%s: line %d: unknown key %q: keys are the names of the flags, see --help", path, key.Line, key.Value)
		}
		value, err := scalar(node)
		if err != nil {
			return fmt.Errorf("%s: line %d: %s: %w", path, node.Line, key.Value, err)
		}
		if f.Changed {
			continue
		}
		if err := fs.Set(key.Value, value); err != nil {
			return fmt.Errorf("%s: line %d: %w", path, node.Line, err)
		}
	}
	return nil
}

// scalar is a value as a flag would be given it; a list becomes comma-separated.
func scalar(n *yaml.Node) (string, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
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
