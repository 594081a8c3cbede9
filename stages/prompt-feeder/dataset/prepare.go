package dataset

import (
	"bufio"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
	// Inputs are files or Hugging Face dataset folders; with weights they are mixed in
	// these shares, without all rows of all are used.
	Inputs []Input
	// Split is the part that is read of a folder; "" means train.
	Split string
	// Layout says where rows keep what. With several inputs its DataSource is empty:
	// rows that name none get the name of their input.
	Layout Layout
	// OutDir is made if it is not there. Files of a preparation that gave something else
	// are refused with ErrOccupied, unless Replace is set.
	OutDir  string
	Replace bool
	Seed    uint64
	// Dev is how many questions are kept apart, from 0 to below their number, or DevAuto.
	Dev int
	// Dedupe keeps the first row of each question alone.
	Dedupe bool
}

// Refusal is one row that was not used. Row counts from 1, as editors count lines. File
// is empty where the preparation reads one file.
type Refusal struct {
	File   string `json:"file,omitempty"`
	Row    int    `json:"row"`
	Reason Reason `json:"reason"`
	Detail string `json:"detail"`
}

// Manifest says what a preparation did; it stands beside the files as manifest.json.
type Manifest struct {
	// Input is the name of the file or folder; of several, joined by commas. InputSHA256
	// is the hash of the file; of several, of a line "hash  name" for each.
	Input       string         `json:"input"`
	InputSHA256 string         `json:"input_sha256"`
	Inputs      []InputCounts  `json:"inputs"`
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

// ErrOccupied: the output folder holds files that the preparation would change. A run may
// be reading them.
var ErrOccupied = errors.New("output folder is in use")

// numbered is a row with where it is from: its number in its file, and its input.
type numbered struct {
	Row
	number int
	file   string
	input  int
}

// Prepare reads cfg.Inputs and writes the split. All used rows are in memory at once.
func Prepare(cfg PrepareConfig, progress func(rows int)) (Manifest, error) {
	m := Manifest{Seed: cfg.Seed, Refused: map[Reason]int{}, Refusals: []Refusal{}, SHA256: map[string]string{}}
	sources, err := resolve(cfg)
	if err != nil {
		return m, err
	}
	rows, err := m.read(sources, progress)
	if err != nil {
		return m, err
	}
	if len(rows) == 0 {
		return m, fmt.Errorf("%w: no usable row of %d%s", ErrSplit, m.Rows, m.firstRefusal())
	}
	m.Deduped = cfg.Dedupe
	rows = m.dedupe(rows, !cfg.Dedupe)
	shuffled := make([]numbered, len(rows))
	for i, j := range PythonShuffle(len(rows), cfg.Seed) {
		shuffled[i] = rows[j]
	}
	if shuffled, err = m.mix(shuffled); err != nil {
		return m, err
	}
	dev, train, err := m.split(shuffled, cfg.Dev)
	if err != nil {
		return m, err
	}
	m.countInputs(dev, train)
	return m, m.write(cfg, dev, train)
}

func (m *Manifest) firstRefusal() string {
	if len(m.Refusals) == 0 {
		return ""
	}
	r := m.Refusals[0]
	return fmt.Sprintf("; row %d: %s: %s", r.Row, r.Reason, r.Detail)
}

func (m *Manifest) read(sources []origin, progress func(int)) ([]numbered, error) {
	var rows []numbered
	ids := map[string]bool{}
	hashes := &hashes{}
	several := len(sources) > 1 || len(sources[0].files) > 1
	for n, src := range sources {
		counts := InputCounts{Name: src.name, Weight: src.weight}
		for _, file := range src.files {
			before := counts.Rows
			err := ReadObjects(file, func(number int, o Object, refused error) error {
				m.Rows++
				counts.Rows++
				if progress != nil {
					progress(m.Rows)
				}
				row, err := src.normalise(o, before+number, refused)
				var why *RefusedError
				if errors.As(err, &why) {
					m.refuse(file, number, *why, several)
					return nil
				}
				m.note(src.layout, o)
				counts.Used++
				if ids[row.ID] {
					m.DuplicateIDs++
				}
				ids[row.ID] = true
				rows = append(rows, numbered{row, number, filepath.Base(file), n})
				return err
			})
			if err == nil {
				err = hashes.add(file)
			}
			if err != nil {
				return nil, err
			}
		}
		counts.Files = len(src.files)
		m.Inputs = append(m.Inputs, counts)
	}
	m.Input, m.InputSHA256 = joinNames(sources), hashes.sum()
	m.Used = len(rows)
	return rows, nil
}

func (m *Manifest) refuse(file string, number int, why RefusedError, several bool) {
	m.Refused[why.Reason]++
	if len(m.Refusals) == maxExamples {
		return
	}
	r := Refusal{Row: number + 1, Reason: why.Reason, Detail: why.Detail}
	if several {
		r.File = file
	}
	m.Refusals = append(m.Refusals, r)
}

// note counts what a used row had that is not in its problem.
func (m *Manifest) note(l Layout, o Object) {
	for _, what := range l.leftOut(o) {
		if m.Notes == nil {
			m.Notes = map[string]int{}
		}
		m.Notes[what]++
	}
}

// write puts all files aside first, so that nothing is touched if the folder is refused.
func (m *Manifest) write(cfg PrepareConfig, dev, train []numbered) error {
	dir := cfg.OutDir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("output folder: %w", err)
	}
	var drafts []draft
	defer func() {
		for _, d := range drafts {
			os.Remove(d.temp)
		}
	}()
	for _, part := range []struct {
		file string
		fill func(io.Writer) error
	}{
		{DevFile, func(w io.Writer) error { return writeRows(w, dev) }},
		{TrainFile, func(w io.Writer) error { return writeRows(w, train) }},
		{OrderFile, func(w io.Writer) error { return m.writeOrder(w, slices.Concat(dev, train)) }},
		{ManifestFile, func(w io.Writer) error {
			enc := json.NewEncoder(w)
			enc.SetIndent("", "  ")
			return enc.Encode(m)
		}},
	} {
		d, err := newDraft(dir, part.file, part.fill)
		if err != nil {
			return err
		}
		drafts = append(drafts, d)
		if part.file != ManifestFile {
			m.SHA256[part.file] = d.sum
		}
	}
	if !cfg.Replace {
		if err := occupied(drafts); err != nil {
			return err
		}
	}
	for _, d := range drafts {
		if err := os.Rename(d.temp, d.path); err != nil {
			return fmt.Errorf("write %s: %w", d.path, err)
		}
	}
	return nil
}

// occupied says whether one of the files is there with another content.
func occupied(drafts []draft) error {
	for _, d := range drafts {
		there := &hashes{}
		err := there.add(d.path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if there.sum() != d.sum {
			return fmt.Errorf("%w: %s is there and would be another: give another --out, or --replace to write over it", ErrOccupied, d.path)
		}
	}
	return nil
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
// from 1, and of several inputs or files which.
func (m *Manifest) writeOrder(w io.Writer, shuffled []numbered) error {
	c := csv.NewWriter(w)
	header := []string{"file", "line", "input_row"}
	several := m.severalFiles()
	if several {
		header = append(header, "input", "input_file")
	}
	if err := c.Write(header); err != nil {
		return err
	}
	for i, r := range shuffled {
		file, line := DevFile, i+1
		if i >= m.Dev {
			file, line = TrainFile, i-m.Dev+1
		}
		record := []string{file, strconv.Itoa(line), strconv.Itoa(r.number + 1)}
		if several {
			record = append(record, m.Inputs[r.input].Name, r.file)
		}
		if err := c.Write(record); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// draft is a file written whole under a name of its own, beside the path that it is for.
type draft struct {
	path, temp string
	sum        string // SHA-256, in hex
}

func newDraft(dir, name string, fill func(io.Writer) error) (draft, error) {
	f, err := os.CreateTemp(dir, "."+name+".*")
	if err != nil {
		return draft{}, fmt.Errorf("write %s: %w", name, err)
	}
	hash := sha256.New()
	w := bufio.NewWriter(io.MultiWriter(f, hash))
	if err := errors.Join(fill(w), w.Flush(), f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		os.Remove(f.Name())
		return draft{}, fmt.Errorf("write %s: %w", name, err)
	}
	return draft{path: filepath.Join(dir, name), temp: f.Name(), sum: hex.EncodeToString(hash.Sum(nil))}, nil
}

// hashes are of the files that were read.
type hashes struct{ lines []string }

func (h *hashes) add(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	h.lines = append(h.lines, fmt.Sprintf("%x  %s\n", hash.Sum(nil), filepath.Base(path)))
	return nil
}

func (h *hashes) sum() string {
	if len(h.lines) == 1 {
		return h.lines[0][:2*sha256.Size]
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(h.lines, ""))))
}
