package rewardfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/sluice-rl/sluice/stages/internal/boxed"
	"github.com/sluice-rl/sluice/stages/internal/mathverify"
	"github.com/sluice-rl/sluice/stages/internal/reward"
	"github.com/sluice-rl/sluice/stages/internal/reward/expression"
	"github.com/sluice-rl/sluice/stages/internal/reward/remote"
	"gopkg.in/yaml.v3"
)

// ErrFile is wrapped by every error about a file's content.
var ErrFile = errors.New("reward file")

// maxEntries bounds the rewards of one file.
const maxEntries = 32

// Deps are what rewards need from outside.
type Deps struct {
	// Client is used by rewards of kind http.
	Client *http.Client
	// ReadFile reads token files; os.ReadFile in production.
	ReadFile func(string) ([]byte, error)
}

type file struct {
	Decides string      `yaml:"decides"`
	Rewards []yaml.Node `yaml:"rewards"`
}

type box struct {
	Window     int    `yaml:"window" json:",omitempty"`
	Strictness string `yaml:"strictness" json:",omitempty"`
	Choice     string `yaml:"choice" json:",omitempty"`
}

type equivalence struct {
	Profile  string `yaml:"profile" json:",omitempty"`
	Decimals int    `yaml:"decimals" json:",omitempty"`
}

type entry struct {
	Name             string      `yaml:"name" json:"-"`
	Kind             string      `yaml:"kind"`
	Version          string      `yaml:"version" json:"-"`
	Box              box         `yaml:"box"`
	Equivalence      equivalence `yaml:"equivalence"`
	ReadInvalidCalls bool        `yaml:"read_invalid_calls" json:",omitempty"`
	Bonus            *float64    `yaml:"bonus" json:",omitempty"`
	PerTurn          *float64    `yaml:"per_turn" json:",omitempty"`
	Limit            *float64    `yaml:"limit" json:",omitempty"`
	Expression       string      `yaml:"expression" json:",omitempty"`
	CostLimit        uint64      `yaml:"cost_limit" json:",omitempty"`
	URL              string      `yaml:"url" json:",omitempty"`
	Timeout          string      `yaml:"timeout" json:",omitempty"`
	Attempts         int         `yaml:"attempts" json:",omitempty"`
	Batch            int         `yaml:"batch" json:",omitempty"`
	TokenFile        string      `yaml:"token_file" json:"-"`
}

// Load reads the file at path.
func Load(path string, deps Deps) (*reward.Set, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	set, err := Parse(content, deps)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return set, nil
}

// Parse reads a file's content.
func Parse(content []byte, deps Deps) (*reward.Set, error) {
	var f file
	// An empty document is a file without rewards.
	if err := strict(content, &f); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	switch {
	case len(f.Rewards) == 0:
		return nil, fmt.Errorf("%w: no rewards: want a list under the key rewards", ErrFile)
	case len(f.Rewards) > maxEntries:
		return nil, fmt.Errorf("%w: %d rewards; want at most %d", ErrFile, len(f.Rewards), maxEntries)
	}
	var scorers []reward.Scorer
	for i := range f.Rewards {
		s, err := scorer(&f.Rewards[i], deps)
		if err != nil {
			return nil, err
		}
		scorers = append(scorers, s)
	}
	if f.Decides == "" {
		if len(scorers) > 1 {
			return nil, fmt.Errorf("%w: several rewards; decides: must name the one that becomes the advantage", ErrFile)
		}
		f.Decides = scorers[0].Name
	}
	set, err := reward.NewSet(f.Decides, scorers...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	return set, nil
}

func strict(content []byte, into any) error {
	d := yaml.NewDecoder(bytes.NewReader(content))
	d.KnownFields(true)
	return d.Decode(into)
}

// fields that belong to some kinds only.
var fieldsOf = map[string]string{
	"bonus": "format_bonus", "per_turn": "retool_shaped", "limit": "retool_shaped", "expression": "expression", "cost_limit": "expression",
	"url": "http", "timeout": "http", "attempts": "http", "batch": "http", "token_file": "http",
}

var known = map[string]bool{
	"name": true, "kind": true, "version": true, "box": true, "equivalence": true, "read_invalid_calls": true,
}

func scorer(n *yaml.Node, deps Deps) (reward.Scorer, error) {
	fail := func(line int, err error) (reward.Scorer, error) {
		return reward.Scorer{}, fmt.Errorf("%w: line %d: %w", ErrFile, line, err)
	}
	if n.Kind != yaml.MappingNode {
		return fail(n.Line, errors.New("want an entry with name and kind"))
	}
	var e entry
	if err := n.Decode(&e); err != nil {
		return fail(n.Line, err)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		kind, special := fieldsOf[key.Value]
		switch {
		case !special && !known[key.Value]:
			return fail(key.Line, fmt.Errorf("unknown field %q", key.Value))
		case special && kind != e.Kind:
			return fail(key.Line, fmt.Errorf("%q belongs to kind %s, not to %q", key.Value, kind, e.Kind))
		}
		if err := checkInner(n.Content[i+1], key.Value); err != nil {
			return fail(key.Line, err)
		}
	}
	if e.Name == "" {
		return fail(n.Line, errors.New("name is missing"))
	}
	s := reward.Scorer{Name: e.Name, Version: e.version(), Rules: e.rules()}
	if err := s.Rules.Validate(); err != nil {
		return fail(n.Line, err)
	}
	logic, line, err := e.logic(n, deps)
	if err != nil {
		return fail(line, err)
	}
	s.Logic = logic
	return s, nil
}

// checkInner refuses unknown fields of box and equivalence.
func checkInner(n *yaml.Node, key string) error {
	allowed := map[string]string{"box": "window strictness choice", "equivalence": "profile decimals"}[key]
	if allowed == "" || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i < len(n.Content); i += 2 {
		if name := n.Content[i].Value; !strings.Contains(" "+allowed+" ", " "+name+" ") {
			return fmt.Errorf("unknown field %q of %s; want %s", name, key, strings.Join(strings.Fields(allowed), ", "))
		}
	}
	return nil
}

func (e *entry) rules() reward.Rules {
	return reward.Rules{
		Box:              boxed.Config{Window: e.Box.Window, Strictness: boxed.Strictness(e.Box.Strictness), Choice: boxed.Choice(e.Box.Choice)},
		Equivalence:      mathverify.Options{Profile: mathverify.Profile(e.Equivalence.Profile), Decimals: e.Equivalence.Decimals},
		ReadInvalidCalls: e.ReadInvalidCalls,
	}
}

// version is the label, and a hash of whatever the entry says beyond its kind.
func (e *entry) version() string {
	label := e.Version
	if label == "" {
		label = "1"
	}
	bare, err := json.Marshal(entry{Kind: e.Kind})
	if err != nil {
		return label
	}
	full, err := json.Marshal(e)
	if err != nil || bytes.Equal(bare, full) {
		return label
	}
	sum := sha256.Sum256(full)
	return label + "-" + hex.EncodeToString(sum[:4])
}

// logic makes the kind's logic; on failure it returns the line at fault.
func (e *entry) logic(n *yaml.Node, deps Deps) (reward.Logic, int, error) {
	or := func(p *float64, def float64) float64 {
		if p == nil {
			return def
		}
		return *p
	}
	switch e.Kind {
	case "outcome":
		return reward.Outcome(), 0, nil
	case "zero_one":
		return reward.ZeroOne(), 0, nil
	case "format_bonus":
		l, err := reward.FormatBonus(or(e.Bonus, 0.1))
		return l, lineOf(n, "bonus"), err
	case "retool_shaped":
		l, err := reward.RetoolShaped(or(e.PerTurn, 0.1), or(e.Limit, -0.6))
		return l, lineOf(n, "limit"), err
	case "expression":
		l, err := expression.New(e.Expression, e.CostLimit)
		return l, lineOf(n, "expression"), placed(n, err)
	case "http":
		return e.remote(n, deps)
	case "":
		return nil, n.Line, errors.New("kind is missing; want outcome, zero_one, format_bonus, retool_shaped, expression or http")
	}
	return nil, lineOf(n, "kind"), fmt.Errorf("unknown kind %q; want outcome, zero_one, format_bonus, retool_shaped, expression or http", e.Kind)
}

func (e *entry) remote(n *yaml.Node, deps Deps) (reward.Logic, int, error) {
	c := remote.Config{URL: e.URL, Attempts: e.Attempts, Batch: e.Batch}
	if e.Timeout != "" {
		d, err := time.ParseDuration(e.Timeout)
		if err != nil {
			return nil, lineOf(n, "timeout"), fmt.Errorf("timeout: %w", err)
		}
		c.Timeout = d
	}
	if e.TokenFile != "" {
		if deps.ReadFile == nil {
			return nil, lineOf(n, "token_file"), errors.New("token files cannot be read here")
		}
		token, err := deps.ReadFile(e.TokenFile)
		if err != nil {
			return nil, lineOf(n, "token_file"), fmt.Errorf("token_file: %w", err)
		}
		c.Token = strings.TrimSpace(string(token))
	}
	l, err := remote.New(c, deps.Client)
	if err != nil {
		return nil, lineOf(n, "url"), err
	}
	return l, 0, nil
}

func valueOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func lineOf(n *yaml.Node, key string) int {
	if v := valueOf(n, key); v != nil {
		return v.Line
	}
	return n.Line
}

// placed turns positions inside an expression into positions in the file.
func placed(n *yaml.Node, err error) error {
	var e *expression.Error
	v := valueOf(n, "expression")
	if v == nil || !errors.As(err, &e) {
		return err
	}
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		line, column := v.Line+p.Line-1, p.Column
		switch {
		case v.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
			line++ // the text begins below the bar; its indentation is not counted
		case p.Line == 1 && v.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
			column += v.Column
		case p.Line == 1:
			column += v.Column - 1
		}
		parts[i] = fmt.Sprintf("line %d, column %d of the expression: %s (line %d of the file)", p.Line, p.Column, p.Message, line)
		if v.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && p.Line == 1 {
			parts[i] = fmt.Sprintf("line %d, column %d: %s", line, column, p.Message)
		}
	}
	return fmt.Errorf("%w: %s", expression.ErrExpression, strings.Join(parts, "; "))
}
