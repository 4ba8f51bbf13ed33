package rates

import (
	"context"
	"fmt"
	"slices"
	"time"

	"outcrop/engine/quant"
	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
)

// Computer is a Link to a card that multiplies too.
type Computer interface {
	// Products gives the bytes of weights a second that one token is multiplied
	// with, and for prompts bytes a second times tokens. Bytes are those in a file.
	Products(ctx context.Context, least time.Duration) (read, multiply float64, err error)
}

// What is multiplied: matrices of a usual model in the usual format, more of them
// than the caches of a card hold. A processor that stands for a card gets little.
const (
	productType   = quant.Q4_K
	productBytes  = 256 << 20
	productTokens = 512
)

func productShape(i compute.Info) (rows, cols, most int) {
	if i.CPU || i.Driver == "fake" {
		return 256, 512, 4
	}
	return 4096, 4096, productBytes / (4096 * 4096 * 9 / 16)
}

// Products multiplies with the engine's own kernels. Weights and activations are
// zeros: that takes as long as others.
func (k *deviceLink) Products(ctx context.Context, least time.Duration) (read, multiply float64, err error) {
	rows, cols, count := productShape(k.dev.Info())
	f, err := quant.Of(productType)
	if err != nil {
		return 0, 0, err
	}
	bytes := float64(rows) * float64(cols) / float64(f.Block) * float64(f.Bytes)
	set, err := ops.New(k.dev)
	if err != nil {
		return 0, 0, err
	}
	defer set.Free()
	size, err := ops.WeightSize(uint32(productType), rows, cols)
	if err != nil {
		return 0, 0, err
	}
	if free, _, known := k.dev.Memory(); known { // others hold the rest
		count = max(1, min(count, int(free/4/size)))
	}
	arena := k.dev.Arena(0)
	defer arena.Free()
	var muls []*ops.Mul
	var many *ops.MatMul
	var all []*compute.Buffer
	for range count {
		b, err := arena.Alloc(size)
		if err != nil {
			return 0, 0, err
		}
		w, err := ops.NewWeight(uint32(productType), rows, cols, 1, b)
		if err != nil {
			return 0, 0, err
		}
		m, err := set.Mul(w, 1)
		if err != nil {
			return 0, 0, err
		}
		if many == nil {
			if many, err = set.MatMul(w); err != nil {
				return 0, 0, err
			}
		}
		muls, all = append(muls, m), append(all, b)
	}
	acts, err := ops.NewActs(arena, productTokens, cols, true, true)
	if err != nil {
		return 0, 0, err
	}
	y, err := arena.Alloc(4 * int64(productTokens) * int64(rows))
	if err != nil {
		return 0, 0, err
	}
	if err := set.Ready(ctx, nil); err != nil {
		return 0, 0, err
	}
	for _, b := range append(all, acts.X, acts.Q, acts.M) {
		if err := k.dev.Do(func(q *compute.Queue) error { return q.Fill(b, 0, b.Len(), 0) }); err != nil {
			return 0, 0, err
		}
	}
	one, err := k.dev.Record(func(q *compute.Queue) error {
		for _, m := range muls {
			if err := m.Run(q, acts, 1, ops.Out{Y: y, Ld: rows}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	defer one.Free()
	token, err := timed(ctx, k.dev, least, func(q *compute.Queue) error { return q.Replay(one) })
	if err != nil {
		return 0, 0, fmt.Errorf("products with one token: %w", err)
	}
	prompt, err := timed(ctx, k.dev, least, func(q *compute.Queue) error {
		return many.Run(q, acts, productTokens, nil, ops.Out{Y: y, Ld: rows})
	})
	if err != nil {
		return 0, 0, fmt.Errorf("products with %d tokens: %w", productTokens, err)
	}
	return bytes * float64(len(muls)) / token, bytes * productTokens / prompt, nil
}

// timed is the median time in seconds of what fn enqueues, four at a time, so that
// the way to the device's goroutine counts little.
func timed(ctx context.Context, d *compute.Device, least time.Duration, fn func(q *compute.Queue) error) (float64, error) {
	const together = 4
	var all []float64
	for begin := time.Now(); len(all) < 4 || time.Since(begin) < least; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		one := time.Now()
		err := d.Do(func(q *compute.Queue) error {
			for range together {
				if err := fn(q); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		all = append(all, max(time.Since(one).Seconds()/together, 1e-9))
	}
	all = all[1:] // the first one wakes the card up
	slices.Sort(all)
	return all[len(all)/2], nil
}
