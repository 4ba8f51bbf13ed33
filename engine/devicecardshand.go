package engine

import (
	"errors"
	"time"

	"outcrop/gpu/compute"
)

// HandOver is a place where activations go from one device to the next, and what
// that takes. A hand-over is the copy from the first device to its pinned memory,
// the CPU's copy to the other's, the copy from there, and the waits for both
// devices: what one token takes longer than if both parts were on one device.
// For a piece of a prompt both devices work meanwhile.
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
	for i := 1; i < len(m.cards.runs); i++ {
		from, to := m.cards.runs[i-1], m.cards.runs[i]
		row := 4 * int64(m.spec.dim)
		h := HandOver{After: from.hi - 1, From: from.dev.Info().String(), To: to.dev.Info().String(), TokenBytes: row, ChunkBytes: row * int64(from.buf.rows)}
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
	for i := range cap(times) + 1 {
		begin := time.Now()
		err := from.dev.Do(func(q *compute.Queue) error { return q.ReadHost(from.buf.xHost, 0, from.buf.x, 0, n) })
		if err != nil {
			return 0, from.wrap(err)
		}
		copy(to.buf.in.Bytes()[to.buf.inX:], from.buf.xHost.Bytes()[:n])
		err = to.dev.Do(func(q *compute.Queue) error { return q.WriteHost(to.buf.x, 0, to.buf.in, to.buf.inX, n) })
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
