package kafka

// lanes queues work in lanes served strictly by priority: an item of a later lane is
// taken only while all earlier ones are empty. Each lane is first in, first out.
type lanes[T any] struct {
	queues [][]T
}

func newLanes[T any](n int) *lanes[T] { return &lanes[T]{queues: make([][]T, n)} }

func (l *lanes[T]) push(lane int, item T) { l.queues[lane] = append(l.queues[lane], item) }

// pop takes the next item; ok is false if there is none.
func (l *lanes[T]) pop() (item T, lane int, ok bool) {
	for i, q := range l.queues {
		if len(q) > 0 {
			item = q[0]
			var zero T
			q[0] = zero // the record must not outlive its turn
			l.queues[i] = q[1:]
			return item, i, true
		}
	}
	return item, 0, false
}

func (l *lanes[T]) len(lane int) int { return len(l.queues[lane]) }
