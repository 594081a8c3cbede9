package output

import (
	"sync"
	"sync/atomic"
)

// Budget is the number of bytes that the streams of one call may hold together.
type Budget struct {
	left   atomic.Int64
	once   sync.Once
	exceed func()
}

// NewBudget returns a budget of limit bytes; exceed is called once, from the
// writing goroutine, when more are written.
func NewBudget(limit int64, exceed func()) *Budget {
	b := &Budget{exceed: exceed}
	b.left.Store(limit)
	return b
}

func (b *Budget) take(n int) {
	if b.left.Add(-int64(n)) < 0 {
		b.once.Do(b.exceed)
	}
}

// Tail is an io.Writer that keeps the last bytes written to it. Safe for one
// writer and any number of readers.
type Tail struct {
	mu     sync.Mutex
	ring   []byte
	size   int
	total  int64
	budget *Budget
}

// NewTail keeps up to size bytes, at least 1, and charges budget, which may be
// nil.
func NewTail(size int, budget *Budget) *Tail {
	return &Tail{size: max(size, 1), budget: budget}
}

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	n := len(p)
	t.mu.Lock()
	for len(p) > 0 {
		if len(t.ring) < t.size {
			// Grow as needed: most programs print a few bytes.
			k := min(len(p), t.size-len(t.ring))
			t.ring = append(t.ring, p[:k]...)
			t.total += int64(k)
			p = p[k:]
			continue
		}
		at := int(t.total % int64(t.size))
		k := copy(t.ring[at:], p)
		t.total += int64(k)
		p = p[k:]
	}
	t.mu.Unlock()
	if t.budget != nil {
		t.budget.take(n)
	}
	return n, nil
}

// Bytes returns a copy of what is kept, oldest byte first. If earlier bytes
// were dropped, a UTF-8 sequence cut by that is dropped too.
func (t *Tail) Bytes() (kept []byte, total int64, truncated bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.total <= int64(t.size) {
		return append([]byte{}, t.ring...), t.total, false
	}
	at := int(t.total % int64(t.size))
	kept = append(append(make([]byte, 0, t.size), t.ring[at:]...), t.ring[:at]...)
	// At most three continuation bytes can belong to a cut sequence; more of
	// them in a row are not UTF-8 anyway and stay.
	for i := 0; i < 3 && len(kept) > 0 && kept[0]&0xC0 == 0x80; i++ {
		kept = kept[1:]
	}
	return kept, t.total, true
}
