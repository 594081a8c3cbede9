package kafka

// priorityQueue queues work in ranks served strictly by priority: an item of a later rank is
// taken only while all earlier ones are empty. Each rank is first in, first out.
type priorityQueue[T any] struct {
	queues [][]T
}

func newPriorityQueue[T any](n int) *priorityQueue[T] {
	return &priorityQueue[T]{queues: make([][]T, n)}
}

func (l *priorityQueue[T]) push(rank int, item T) { l.queues[rank] = append(l.queues[rank], item) }

// pop takes the next item; ok is false if there is none.
func (l *priorityQueue[T]) pop() (item T, rank int, ok bool) {
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

func (l *priorityQueue[T]) len(rank int) int { return len(l.queues[rank]) }
