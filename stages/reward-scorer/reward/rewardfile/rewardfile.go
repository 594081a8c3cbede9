package rewardfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/sluice-rl/sluice/stages/reward-scorer/boxed"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward/expression"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward/remote"
	"go.yaml.in/yaml/v4"
)

// ErrFile is wrapped by every error about a file's content.
var ErrFile = errors.New("reward file")

// maxEntries bounds the rewards of one file.
const maxEntries = 32

// Deps are what rewards need from outside.
type Deps struct {
	// Transport carries the requests of rewards of kind http.
	Transport http.RoundTripper
	// ReadFile reads token files; os.ReadFile in production.
	ReadFile func(string) ([]byte, error)
}

type box struct {
	Window     int    `json:",omitempty"`
	Strictness string `json:",omitempty"`
	Choice     string `json:",omitempty"`
	Thought    string `json:",omitempty"`
}

type equivalence struct {
	Profile  string `json:",omitempty"`
	Decimals int    `json:",omitempty"`
	Strict   bool   `json:",omitempty"`
}

// entry is one reward. Its JSON is what its version is a hash of.
type entry struct {
	Name             string `json:"-"`
	Kind             string
	Version          string `json:"-"`
	Box              box
	Equivalence      equivalence
	ReadInvalidCalls bool     `json:",omitempty"`
	Bonus            *float64 `json:",omitempty"`
	PerTurn          *float64 `json:",omitempty"`
	Limit            *float64 `json:",omitempty"`
	Expression       string   `json:",omitempty"`
	CostLimit        uint64   `json:",omitempty"`
	URL              string   `json:",omitempty"`
	Timeout          string   `json:",omitempty"`
	Attempts         int      `json:",omitempty"`
	Batch            int      `json:",omitempty"`
	TokenFile        string   `json:"-"`
}

func (e *entry) fields() map[string]any {
	return map[string]any{
		"name": &e.Name, "kind": &e.Kind, "version": &e.Version, "read_invalid_calls": &e.ReadInvalidCalls,
		"box":         map[string]any{"window": &e.Box.Window, "strictness": &e.Box.Strictness, "choice": &e.Box.Choice, "thought": &e.Box.Thought},
		"equivalence": map[string]any{"profile": &e.Equivalence.Profile, "decimals": &e.Equivalence.Decimals, "strict": &e.Equivalence.Strict},
		"bonus":       &e.Bonus, "per_turn": &e.PerTurn, "limit": &e.Limit, "expression": &e.Expression, "cost_limit": &e.CostLimit,
		"url": &e.URL, "timeout": &e.Timeout, "attempts": &e.Attempts, "batch": &e.Batch, "token_file": &e.TokenFile,
	}
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
	root, err := document(content)
	if err != nil {
		return nil, err
	}
	if root == nil || root.ShortTag() == "!!null" {
		return nil, at(1, errNone)
	}
	if root.Kind != yaml.MappingNode {
		return nil, at(root.Line, fmt.Errorf("the file %s, want the keys decides and rewards", describe(root)))
	}
	var decides string
	var rewards []yaml.Node
	if err := read(root, "", map[string]any{"decides": &decides, "rewards": &rewards}); err != nil {
		return nil, err
	}
	switch {
	case len(rewards) == 0:
		return nil, at(lineOf(root, "rewards"), errNone)
	case len(rewards) > maxEntries:
		return nil, at(rewards[maxEntries].Line, fmt.Errorf("%d rewards; want at most %d", len(rewards), maxEntries))
	}
	var scorers []reward.Scorer
	lines := map[string]int{}
	for i := range rewards {
		s, err := scorer(&rewards[i], deps)
		if err != nil {
			return nil, err
		}
		line := lineOf(&rewards[i], "name")
		if first, taken := lines[s.Name]; taken {
			return nil, at(line, fmt.Errorf("the reward on line %d is named %q too", first, s.Name))
		}
		lines[s.Name] = line
		scorers = append(scorers, s)
	}
	if valueOf(root, "decides") == nil {
		if len(scorers) > 1 {
			return nil, at(root.Line, errors.New("several rewards; decides: must name the one that becomes the advantage"))
		}
		decides = scorers[0].Name
	}
	set, err := reward.NewSet(decides, scorers...)
	if err != nil {
		return nil, at(lineOf(root, "decides"), err) // all else has been looked at
	}
	return set, nil
}

var errNone = errors.New("no rewards: want a list under the key rewards")

const kinds = "outcome, zero_one, format_bonus, retool_shaped, expression or http"

// kindsOf are the fields that belong to one kind only.
var kindsOf = map[string]string{
	"bonus": "format_bonus", "per_turn": "retool_shaped", "limit": "retool_shaped", "expression": "expression", "cost_limit": "expression",
	"url": "http", "timeout": "http", "attempts": "http", "batch": "http", "token_file": "http",
}

func scorer(n *yaml.Node, deps Deps) (reward.Scorer, error) {
	fail := func(line int, err error) (reward.Scorer, error) { return reward.Scorer{}, at(line, err) }
	if n.Kind != yaml.MappingNode {
		return fail(n.Line, errors.New("want an entry with name and kind"))
	}
	var e entry
	if err := read(n, "", e.fields()); err != nil {
		return reward.Scorer{}, err
	}
	switch {
	case e.Name == "":
		return fail(lineOf(n, "name"), errors.New("name is missing"))
	case e.Kind == "":
		return fail(lineOf(n, "kind"), errors.New("kind is missing; want "+kinds))
	}
	s := reward.Scorer{Name: e.Name, Version: e.version(), Rules: e.rules()}
	if err := s.Rules.Box.Validate(); err != nil {
		return fail(lineOf(n, "box"), err)
	}
	if err := s.Rules.Equivalence.Validate(); err != nil {
		return fail(lineOf(n, "equivalence"), err)
	}
	logic, line, err := e.logic(n, deps)
	if err != nil {
		return fail(line, err)
	}
	s.Logic = logic
	return s, nil
}

func (e *entry) rules() reward.Rules {
	return reward.Rules{
		Box:              boxed.Config{Window: e.Box.Window, Strictness: boxed.Strictness(e.Box.Strictness), Choice: boxed.Choice(e.Box.Choice), Thought: boxed.Thought(e.Box.Thought)},
		Equivalence:      mathverify.Options{Profile: mathverify.Profile(e.Equivalence.Profile), Decimals: e.Equivalence.Decimals, Strict: e.Equivalence.Strict},
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
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if kind, special := kindsOf[key.Value]; special && kind != e.Kind {
			return nil, key.Line, fmt.Errorf("%q belongs to kind %s, not to %q", key.Value, kind, e.Kind)
		}
	}
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
		perTurn := or(e.PerTurn, 0.1)
		if _, err := reward.RetoolShaped(perTurn, -1); err != nil {
			return nil, lineOf(n, "per_turn"), err
		}
		l, err := reward.RetoolShaped(perTurn, or(e.Limit, -0.6))
		return l, lineOf(n, "limit"), err
	case "expression":
		l, err := expression.New(e.Expression, e.CostLimit)
		return l, lineOf(n, "expression"), placed(n, err)
	case "http":
		key, l, err := e.remote(deps)
		return l, lineOf(n, key), err
	}
	return nil, lineOf(n, "kind"), fmt.Errorf("unknown kind %q; want %s", e.Kind, kinds)
}

// remote makes the logic of kind http; on failure it returns the key at fault.
func (e *entry) remote(deps Deps) (string, reward.Logic, error) {
	c := remote.Config{URL: e.URL}
	if err := c.Validate(); err != nil {
		return "url", nil, err
	}
	if e.Timeout != "" {
		d, err := time.ParseDuration(e.Timeout)
		if err != nil {
			return "timeout", nil, fmt.Errorf("timeout is %q; want a duration such as 10s", e.Timeout)
		}
		c.Timeout = d
	}
	if err := c.Validate(); err != nil {
		return "timeout", nil, err
	}
	c.Attempts = e.Attempts
	if err := c.Validate(); err != nil {
		return "attempts", nil, err
	}
	c.Batch = e.Batch
	if err := c.Validate(); err != nil {
		return "batch", nil, err
	}
	if e.TokenFile != "" {
		if deps.ReadFile == nil {
			return "token_file", nil, errors.New("token files cannot be read here")
		}
		token, err := deps.ReadFile(e.TokenFile)
		if err != nil {
			return "token_file", nil, fmt.Errorf("token_file: %w", err)
		}
		c.Token = strings.TrimSpace(string(token))
	}
	l, err := remote.New(c, deps.Transport)
	if err != nil {
		return "url", nil, err
	}
	return "", l, nil
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
