package engine

import (
	"errors"
	"sync/atomic"
	"time"

	"outcrop/gpu/compute"
)

// HandOver is a place where activations go from one device to the next, and what
// that takes. A hand-over is the copy from the first device to pinned memory, the
// CPU's copy to the other's where both do not know the same, the copy from there,
// and the waits for both devices: what one token takes longer than if both parts
// were on one device. For a piece of a prompt both devices work meanwhile.
type HandOver struct {
	After      int     `json:"after_layer"`
	From       string  `json:"from"`
	To         string  `json:"to"`
	TokenBytes int64   `json:"token_bytes"`
	TokenUS    float64 `json:"token_us"` // median, microseconds
	ChunkBytes int64   `json:"chunk_bytes"`
	ChunkUS    float64 `json:"chunk_us"`
	// GapUS is what lay between the two devices' work for a token while the model
	// decoded, in the mean: the part of TokenUS that is neither device's. 0: it has
	// not decoded.
	GapUS float64 `json:"gap_us,omitempty"`
	// Shared: both devices know the same memory, and no CPU copies.
	Shared bool `json:"shared"`
}

// HandOvers measures every hand-over between devices; nil where there is none.
func (m *Model) HandOvers() ([]HandOver, error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	if m.pool == nil {
		return nil, errors.New("the model is closed")
	}
	if m.cards == nil {
		return nil, nil
	}
	var out []HandOver
	for i := 1; i < len(m.cards.runs) && m.cards.flows(); i++ {
		from, to := m.cards.runs[i-1], m.cards.runs[i]
		row := 4 * int64(m.spec.dim)
		h := HandOver{After: from.hi - 1, From: from.dev.Info().String(), To: to.dev.Info().String(), TokenBytes: row, ChunkBytes: row * int64(from.buf.rows), Shared: from.hops[0].one}
		var err error
		if h.TokenUS, err = handOver(from, to, h.TokenBytes); err != nil {
			return nil, err
		}
		if h.ChunkUS, err = handOver(from, to, h.ChunkBytes); err != nil {
			return nil, err
		}
		if n := to.gaps.Load(); n > 0 {
			h.GapUS = float64(to.gap.Load()) / float64(n) / 1e3
		}
		out = append(out, h)
	}
	return out, nil
}

// handOver is the median time of handing n bytes over, in microseconds.
func handOver(from, to *run, n int64) (float64, error) {
	times := make([]float64, 0, 41)
	h := from.hops[0]
	for i := range cap(times) + 1 {
		begin := time.Now()
		err := from.dev.Do(func(q *compute.Queue) error { return q.ReadHost(h.from, 0, from.buf.x, 0, n) })
		if err != nil {
			return 0, from.wrap(err)
		}
		h.pass(int(n))
		err = to.dev.Do(func(q *compute.Queue) error { return q.WriteHost(to.buf.x, 0, h.to, 0, n) })
		if err != nil {
			return 0, to.wrap(err)
		}
		if i > 0 { // the first touches pages
			times = append(times, float64(time.Since(begin).Nanoseconds())/1e3)
		}
	}
	return median(times), nil
}

// timed replays a step and notes when the device had it, so that what lies
// between two devices can be told.
func (r *run) timed(q *compute.Queue, seq *compute.Sequence) error {
	r.began = time.Now()
	if err := q.Replay(seq); err != nil {
		return err
	}
	if len(r.c.runs) < 2 {
		return nil
	}
	err := q.Finish()
	r.ended = time.Now()
	q.Leave() // nothing is left to wait for
	return err
}

// passed counts the gap between two runs of a token.
func (r *run) passed(from *run) {
	if g := r.began.Sub(from.ended); g > 0 && !from.ended.IsZero() {
		r.gap.Add(g.Nanoseconds())
		r.gaps.Add(1)
	}
	r.began, from.ended = time.Time{}, time.Time{}
}

// StageTimes is what a device of several, or the CPU before the first one, did
// during a prompt, in milliseconds.
type StageTimes struct {
	Name   string  `json:"name"`
	Pieces int64   `json:"pieces"`
	Tokens int64   `json:"tokens"`
	Busy   float64 `json:"busy_ms"`        // from the first call of a piece to its end
	Launch float64 `json:"launch_ms"`      // of that, until the last call was made
	Input  float64 `json:"wait_input_ms"`  // for the piece before it to come
	Output float64 `json:"wait_output_ms"` // for memory to put results into
}

// stageTimes are nanoseconds since load.
type stageTimes struct {
	pieces, tokens, busy, launch, input, output atomic.Int64
}

func (t *stageTimes) took(tokens int, ns int64) {
	t.pieces.Add(1)
	t.tokens.Add(int64(tokens))
	t.busy.Add(ns)
}

func (t *stageTimes) sum(name string) StageTimes {
	ms := func(x *atomic.Int64) float64 { return float64(x.Load()) / 1e6 }
	return StageTimes{name, t.pieces.Load(), t.tokens.Load(), ms(&t.busy), ms(&t.launch), ms(&t.input), ms(&t.output)}
}

// stageTimes are the sums since load of the CPU and of each device; nil where no
// prompt flows.
func (c *cards) stageTimes() (out []StageTimes) {
	if c == nil || !c.piped() {
		return nil
	}
	out = append(out, c.feed.sum("CPU"))
	for _, r := range c.runs {
		out = append(out, r.stage.sum(r.dev.Info().String()))
	}
	return out
}

// stagesSince is what was added to before.
func stagesSince(now, before []StageTimes) []StageTimes {
	for i := range now {
		a, b := &now[i], before[i]
		a.Pieces, a.Tokens = a.Pieces-b.Pieces, a.Tokens-b.Tokens
		a.Busy, a.Launch, a.Input, a.Output = a.Busy-b.Busy, a.Launch-b.Launch, a.Input-b.Input, a.Output-b.Output
	}
	return now
}
