package dataset

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The files that Prepare writes into its output folder.
const (
	TrainFile    = "train.jsonl"
	DevFile      = "dev.jsonl"
	OrderFile    = "order.csv"
	ManifestFile = "manifest.json"
)

// maxExamples bounds the refused rows that a manifest lists one by one.
const maxExamples = 100

// PrepareConfig says what to prepare and where to.
type PrepareConfig struct {
	Input string
	// OutDir is made if it is not there; files of an earlier preparation in it
	// are replaced.
	OutDir string
	Seed   uint64
	// Dev is how many questions are kept apart, from 0 to below their number, or DevAuto.
	Dev int
	// Dedupe keeps the first row of each question alone.
	Dedupe bool
	// DataSource names rows that do not say where they are from.
	DataSource string
}

// Refusal is one row that was not used. Row counts from 1, as editors count lines.
type Refusal struct {
	Row    int    `json:"row"`
	Reason Reason `json:"reason"`
	Detail string `json:"detail"`
}

// Manifest says what a preparation did; it stands beside the files as manifest.json.
type Manifest struct {
	Input       string         `json:"input"`
	InputSHA256 string         `json:"input_sha256"`
	Seed        uint64         `json:"seed"`
	Rows        int            `json:"rows"`
	Used        int            `json:"used"`
	Train       int            `json:"train"`
	Dev         int            `json:"dev"`
	Refused     map[Reason]int `json:"refused"`
	// The first 100 refused rows.
	Refusals []Refusal `json:"refusals"`
	// Rows whose id stands more than once. Kept: an id is a key, not an identity.
	DuplicateIDs int `json:"duplicate_ids"`
	// Questions counts different ones, white space, case and compatible forms aside.
	Questions int `json:"questions"`
	// RepeatedQuestions are rows whose question an earlier row has; ConflictingAnswers
	// those of them whose answer is another. Deduped: they were left out.
	RepeatedQuestions  int  `json:"repeated_questions"`
	ConflictingAnswers int  `json:"conflicting_answers"`
	Deduped            bool `json:"deduped"`
	// DevRepeatsLeftOut are rows in neither file, since they repeat a question of dev.
	DevRepeatsLeftOut int `json:"dev_repeats_left_out"`
	// Notes count used rows of which something was left out, by what.
	Notes  map[string]int    `json:"notes,omitempty"`
	SHA256 map[string]string `json:"sha256"`
}

// ErrSplit: the dev size does not leave anything to train on.
var ErrSplit = errors.New("cannot split")

type numbered struct {
	Row
	input int
}

// Prepare reads cfg.Input and writes the split. All used rows are in memory at once.
func Prepare(cfg PrepareConfig, progress func(rows int)) (Manifest, error) {
	m := Manifest{
		Input: filepath.Base(cfg.Input), Seed: cfg.Seed,
		Refused: map[Reason]int{}, Refusals: []Refusal{}, SHA256: map[string]string{},
	}
	rows, err := m.read(cfg, progress)
	if err != nil {
		return m, err
	}
	if len(rows) == 0 {
		return m, fmt.Errorf("%w: no usable row of %d", ErrSplit, m.Rows)
	}
	m.Deduped = cfg.Dedupe
	rows = m.dedupe(rows, !cfg.Dedupe)
	shuffled := make([]numbered, len(rows))
	for i, j := range PythonShuffle(len(rows), cfg.Seed) {
		shuffled[i] = rows[j]
	}
	dev, train, err := m.split(shuffled, cfg.Dev)
	if err != nil {
		return m, err
	}
	return m, m.write(cfg.OutDir, dev, train)
}

func (m *Manifest) read(cfg PrepareConfig, progress func(int)) ([]numbered, error) {
	var rows []numbered
	ids := map[string]bool{}
	err := ReadObjects(cfg.Input, func(index int, o Object, refused error) error {
		m.Rows++
		if progress != nil {
			progress(m.Rows)
		}
		var row Row
		err := refused
		if err == nil {
			row, err = Normalise(o, index, cfg.DataSource)
			m.note(err, o)
		}
		var why *RefusedError
		if errors.As(err, &why) {
			m.Refused[why.Reason]++
			if len(m.Refusals) < maxExamples {
				m.Refusals = append(m.Refusals, Refusal{Row: index + 1, Reason: why.Reason, Detail: why.Detail})
			}
			return nil
		}
		if ids[row.ID] {
			m.DuplicateIDs++
		}
		ids[row.ID] = true
		rows = append(rows, numbered{row, index})
		return err
	})
	if err != nil {
		return nil, err
	}
	m.Used = len(rows)
	m.InputSHA256, err = hashFile(cfg.Input)
	return rows, err
}

// note counts what a used row had that is not in its problem.
func (m *Manifest) note(err error, o Object) {
	if err != nil {
		return
	}
	for _, what := range leftOut(o) {
		if m.Notes == nil {
			m.Notes = map[string]int{}
		}
		m.Notes[what]++
	}
}

func (m *Manifest) write(dir string, dev, train []numbered) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("output folder: %w", err)
	}
	for _, part := range []struct {
		file string
		rows []numbered
	}{{DevFile, dev}, {TrainFile, train}} {
		sum, err := writeFile(dir, part.file, func(w io.Writer) error { return writeRows(w, part.rows) })
		if err != nil {
			return err
		}
		m.SHA256[part.file] = sum
	}
	sum, err := writeFile(dir, OrderFile, func(w io.Writer) error { return m.writeOrder(w, append(dev, train...)) })
	if err != nil {
		return err
	}
	m.SHA256[OrderFile] = sum
	_, err = writeFile(dir, ManifestFile, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(m)
	})
	return err
}

func writeRows(w io.Writer, rows []numbered) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, r := range rows {
		if err := enc.Encode(r.Row); err != nil {
			return err
		}
	}
	return nil
}

// writeOrder says for each line of the output which row of the input it was, both
// from 1.
func (m *Manifest) writeOrder(w io.Writer, shuffled []numbered) error {
	if _, err := fmt.Fprintln(w, "file,line,input_row"); err != nil {
		return err
	}
	for i, r := range shuffled {
		file, line := DevFile, i+1
		if i >= m.Dev {
			file, line = TrainFile, i-m.Dev+1
		}
		if _, err := fmt.Fprintf(w, "%s,%d,%d\n", file, line, r.input+1); err != nil {
			return err
		}
	}
	return nil
}

// writeFile replaces a file whole or not at all and returns the SHA-256 of what it
// wrote.
func writeFile(dir, name string, fill func(io.Writer) error) (string, error) {
	f, err := os.CreateTemp(dir, "."+name+".*")
	if err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	defer os.Remove(f.Name())
	hash := sha256.New()
	w := bufio.NewWriter(io.MultiWriter(f, hash))
	err = errors.Join(fill(w), w.Flush(), f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
