package serve

import (
	"context"
	"slices"
	"sync"
)

// queue lets one request at a time use the session, in order of arrival. The
// zero value needs only max.
type queue struct {
	max int

	mu      sync.Mutex
	active  bool
	waiting []*ticket
}

// ticket is one request that waits.
type ticket struct {
	turn chan struct{} // closed when it is this one's turn
	move chan int      // newest number of requests before this one
}

// join takes a place, or refuses one when too many wait. After a ticket, wait
// must be called: a stream joins before its first byte, so that a full queue is
// a real status, and waits after it.
func (q *queue) join() (*ticket, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &ticket{turn: make(chan struct{}), move: make(chan int, 1)}
	if !q.active {
		q.active = true
		close(t.turn)
		return t, nil
	}
	if n := len(q.waiting); n >= q.max {
		return nil, fail(429, "queue_full", "", "%d requests wait already; try again later", n)
	}
	q.waiting = append(q.waiting, t)
	t.move <- len(q.waiting)
	return t, nil
}

// wait waits for the turn. ahead is told how many requests are before this
// one, at first and at each change. It ends with an error when ctx does. After
// nil, leave must be called.
func (q *queue) wait(ctx context.Context, t *ticket, ahead func(int)) error {
	for {
		select {
		case <-t.turn:
			return nil
		case n := <-t.move:
			ahead(n)
		case <-ctx.Done():
			q.mu.Lock()
			if i := slices.Index(q.waiting, t); i >= 0 {
				q.waiting = slices.Delete(q.waiting, i, i+1)
				q.tell()
				q.mu.Unlock()
				return ctx.Err()
			}
			q.mu.Unlock()
			// The turn came in the same moment: give it to the next.
			q.leave()
			return ctx.Err()
		}
	}
}

// leave gives the session to the next.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.active = false
		return
	}
	t := q.waiting[0]
	q.waiting = q.waiting[1:]
	close(t.turn)
	q.tell()
}

// tell gives those who wait their new places. It holds mu.
func (q *queue) tell() {
	for i, t := range q.waiting {
		select {
		case <-t.move:
		default:
		}
		t.move <- i + 1
	}
}

// counts are the requests running and waiting.
func (q *queue) counts() (active, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.active {
		active = 1
	}
	return active, len(q.waiting)
}
