package dataset

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
)

// Input is a file or folder to read problems from, and its share of a mixture.
type Input struct {
	Path string
	// Weight is in proportion to those of the other inputs; 0 means that none is given.
	Weight float64
}

// ErrInput: inputs that do not say what to read, or in which shares.
var ErrInput = errors.New("cannot tell what to read")

// ParseInput reads "path" or "path=weight". A last part after "=" that is no number
// belongs to the path.
func ParseInput(text string) (Input, error) {
	in := Input{Path: text}
	if i := strings.LastIndexByte(text, '='); i >= 0 {
		if w, err := strconv.ParseFloat(text[i+1:], 64); err == nil {
			if !(w > 0) || math.IsInf(w, 0) {
				return in, fmt.Errorf("%w: the weight of %q is not above 0", ErrInput, text)
			}
			in = Input{Path: text[:i], Weight: w}
		}
	}
	if in.Path == "" {
		return in, fmt.Errorf("%w: %q names no file", ErrInput, text)
	}
	return in, nil
}

// InputCounts says what became of one input's rows.
type InputCounts struct {
	Name   string  `json:"name"`
	Weight float64 `json:"weight,omitempty"`
	Files  int     `json:"files"`
	Rows   int     `json:"rows"`
	Used   int     `json:"used"`
	// LeftOutOfMixture are usable rows for which the other inputs had too few beside them.
	LeftOutOfMixture int `json:"left_out_of_mixture"`
	Train            int `json:"train"`
	Dev              int `json:"dev"`
}

// origin is an input whose files are known.
type origin struct {
	name   string
	files  []string
	weight float64
	layout Layout
	// prefix stands before ids that are row numbers, which other inputs have too.
	prefix string
}

func resolve(cfg PrepareConfig) ([]origin, error) {
	if len(cfg.Inputs) == 0 {
		return nil, fmt.Errorf("%w: there is no input", ErrInput)
	}
	several := len(cfg.Inputs) > 1
	if several && cfg.Layout.DataSource != "" {
		return nil, fmt.Errorf("%w: --data-source would give all inputs one name: leave it out, rows that name no source get the name of their input", ErrInput)
	}
	var sources []origin
	weighted := 0
	names := map[string]string{}
	for _, in := range cfg.Inputs {
		files, err := filesOf(in.Path, or(cfg.Split, "train"))
		if err != nil {
			return nil, err
		}
		src := origin{name: filepath.Base(in.Path), files: files, weight: in.Weight, layout: cfg.Layout}
		if in.Weight > 0 {
			weighted++
		}
		if several {
			name := withoutExt(withoutExt(src.name, ".gz", ".gzip", ".zst", ".zstd"), ".parquet", ".jsonl", ".json", ".csv", ".arrow")
			if other, taken := names[name]; taken {
				return nil, fmt.Errorf("%w: %s and %s would both be the data source %s: rename one", ErrInput, other, in.Path, name)
			}
			names[name] = in.Path
			src.layout.DataSource, src.prefix = name, name+":"
		}
		sources = append(sources, src)
	}
	if weighted > 0 && weighted < len(sources) {
		return nil, fmt.Errorf("%w: %d of %d inputs have a weight: give all one (--input a.jsonl=0.7 --input b.jsonl=0.3), or none", ErrInput, weighted, len(sources))
	}
	return sources, nil
}

func (s origin) normalise(o Object, index int, refused error) (Row, error) {
	if refused != nil {
		return Row{}, refused
	}
	row, err := s.layout.Normalise(o, index)
	if err == nil && s.prefix != "" && (idOf(o) == nil || idOf(o) == "") {
		row.ID = s.prefix + row.ID
	}
	return row, err
}

// mix takes of the shuffled rows as many as stand in the shares of the weights without any
// row taken twice, of each input its first ones. Without weights that is all.
func (m *Manifest) mix(shuffled []numbered) ([]numbered, error) {
	if len(m.Inputs) < 2 || m.Inputs[0].Weight == 0 {
		return shuffled, nil
	}
	have := make([]int, len(m.Inputs))
	for _, r := range shuffled {
		have[r.input]++
	}
	take := shares(m.Inputs, have)
	for n, in := range m.Inputs {
		if take[n] == 0 {
			return nil, fmt.Errorf("%w: at its weight of %g, %s has no row in the mixture: it has %d usable ones, and the whole would be %v rows",
				ErrInput, in.Weight, in.Name, have[n], take)
		}
		m.Inputs[n].LeftOutOfMixture = have[n] - take[n]
	}
	var mixed []numbered
	questions := map[string]bool{}
	for _, r := range shuffled {
		if take[r.input] == 0 {
			continue
		}
		take[r.input]--
		mixed = append(mixed, r)
		questions[normalQuestion(r.Question)] = true
	}
	m.Questions = len(questions)
	return mixed, nil
}

// shares are the largest numbers of rows, at most have, in proportion to the weights; each
// is rounded to the nearest.
func shares(inputs []InputCounts, have []int) []int {
	scale := math.Inf(1)
	for n, in := range inputs {
		scale = min(scale, float64(have[n])/in.Weight)
	}
	take := make([]int, len(inputs))
	for n, in := range inputs {
		take[n] = min(int(math.Round(scale*in.Weight)), have[n])
	}
	return take
}

func (m *Manifest) countInputs(dev, train []numbered) {
	for _, r := range dev {
		m.Inputs[r.input].Dev++
	}
	for _, r := range train {
		m.Inputs[r.input].Train++
	}
}

func (m *Manifest) severalFiles() bool { return len(m.Inputs) > 1 || m.Inputs[0].Files > 1 }

func joinNames(sources []origin) string {
	var names []string
	for _, s := range sources {
		names = append(names, s.name)
	}
	return strings.Join(names, ",")
}
