package status

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// Note is something that is not as it should be.
type Note struct {
	// Text says what, and what to do about it.
	Text string
	// Endpoint is where it was tried, without secrets. May be empty.
	Endpoint string
	// BackendAway: the stage can do no work because what it needs is away.
	BackendAway bool
}

// Record is a record in hand.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	// Since is when the process took it.
	Since    time.Time
	Attempts int
	// Text says why it still waits.
	Text string
}

// maxText bounds a text that may quote what others wrote.
const maxText = 500

// Board holds what a process says of itself. Its methods may be called from many
// goroutines at once, and on a nil Board.
type Board struct {
	now func() time.Time

	mu       sync.Mutex
	started  time.Time
	notes    map[string]noted
	backends map[string]string
	last     *sluicev1.StatusError
	oldest   func() (Record, bool)
	steps    func() []*sluicev1.StepProgress
	ready    func() bool
	changed  chan struct{}
}

type noted struct {
	Note
	notReady bool
	since    time.Time
}

// NewBoard makes an empty board. now is the clock; nil: time.Now.
func NewBoard(now func() time.Time) *Board {
	if now == nil {
		now = time.Now
	}
	return &Board{
		now: now, started: now(), notes: map[string]noted{}, backends: map[string]string{},
		changed: make(chan struct{}, 1),
	}
}

// Note says that something of a name is not as it should be. Saying it again with other
// words keeps the time since when.
func (b *Board) Note(name string, n Note) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note(name, n, false)
}

// Clear takes back what Note said.
func (b *Board) Clear(name string) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, there := b.notes[name]; there {
		delete(b.notes, name)
		b.touch()
	}
}

// Backend says that a part of readiness stands for what the stage's work needs, and where
// it is: while the part is not ready, the backend is away.
func (b *Board) Backend(part, endpoint string) {
	if b == nil {
		return
	}
	if u, err := url.Parse(endpoint); err == nil {
		endpoint = u.Redacted()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends[part] = endpoint
	if n, there := b.notes[part]; there {
		n.Endpoint, n.BackendAway = endpoint, true
		b.notes[part] = n
		b.touch()
	}
}

// Part notes a part of readiness: nil is ready.
func (b *Board) Part(name string, err error) {
	if b == nil {
		return
	}
	if err == nil {
		b.Clear(name)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	endpoint, backend := b.backends[name]
	b.note(name, Note{Text: err.Error(), Endpoint: endpoint, BackendAway: backend}, true)
}

// note is Note with mu held.
func (b *Board) note(name string, n Note, notReady bool) {
	n.Text = Shorten(n.Text)
	before, there := b.notes[name]
	if there && before.Note == n && before.notReady == notReady {
		return
	}
	since := before.since
	if !there || before.BackendAway != n.BackendAway {
		since = b.now()
	}
	b.notes[name] = noted{n, notReady, since}
	b.touch()
}

// Failed counts an error and keeps it as the last one. class is short, as of dead letters.
func (b *Board) Failed(class string, err error) {
	if b == nil || err == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var count uint64
	if b.last != nil {
		count = b.last.GetCount()
	}
	b.last = &sluicev1.StatusError{ErrorType: class, Text: Shorten(err.Error()), At: timestamppb.New(b.now()), Count: count + 1}
	b.touch()
}

// Oldest sets who is asked, at every report, for the record that has waited longest. It is
// asked without the board's lock.
func (b *Board) Oldest(f func() (Record, bool)) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.oldest = f
}

// Steps sets who is asked, at every report, how far the steps have come. It is asked
// without the board's lock.
func (b *Board) Steps(f func() []*sluicev1.StepProgress) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.steps = f
}

// Readiness sets who is asked, at every report, whether the process is ready.
func (b *Board) Readiness(f func() bool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready = f
}

func (b *Board) touch() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// Status is what the board says now, but for who says it.
func (b *Board) Status() *sluicev1.StageStatus {
	b.mu.Lock()
	oldest, ready, progress := b.oldest, b.ready, b.steps
	b.mu.Unlock()
	// Asked without the lock: they may be noting something on this board.
	var record Record
	var waits bool
	if oldest != nil {
		record, waits = oldest()
	}
	isReady := ready != nil && ready()
	var steps []*sluicev1.StepProgress
	if progress != nil {
		steps = progress()
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	s := &sluicev1.StageStatus{
		StartedAt: timestamppb.New(b.started), ReportedAt: timestamppb.New(b.now()), Ready: isReady, LastError: b.last, Steps: steps,
	}
	for _, name := range slices.Sorted(maps.Keys(b.notes)) {
		n := b.notes[name]
		s.Notes = append(s.Notes, &sluicev1.StatusNote{
			Name: name, Text: n.Text, Endpoint: n.Endpoint, NotReady: n.notReady,
			BackendAway: n.BackendAway, Since: timestamppb.New(n.since),
		})
	}
	if waits {
		s.Oldest = &sluicev1.OldestRecord{
			Topic: record.Topic, Partition: record.Partition, Offset: record.Offset, Since: timestamppb.New(record.Since),
			Attempts: uint32(max(0, record.Attempts)), Text: Shorten(record.Text),
		}
	}
	return s
}

// Shorten makes text of unknown origin fit for a record: valid UTF-8 of bounded length.
func Shorten(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxText {
		return text
	}
	cut := maxText
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + " …"
}
