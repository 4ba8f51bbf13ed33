package doctor

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"
)

func skip(why string) StepResult { return StepResult{Skipped: why} }

// check turns errors into "passed of total" with the first error as detail.
func check(total int, errs []error, ok string) StepResult {
	r := StepResult{Total: total, Passed: total - len(errs), Detail: ok}
	if len(errs) > 0 {
		r.Detail = errs[0].Error()
		if len(errs) > 1 {
			r.Detail += fmt.Sprintf(" (and %d more)", len(errs)-1)
		}
	}
	return r
}

const (
	mib      = int64(1) << 20
	fourGiB  = int64(4) << 30
	tagEvery = 2 * mib // xe was seen to alias two pages of 2 MiB in one large buffer (Strata docs/INTEL.md)
)

// patterns writes a tag into every 2 MiB of one or more buffers that reach past
// 4 GiB where the device has the room, then reads all back: a wrapped offset or an
// aliased page shows as a foreign tag. One 4 MiB block in full, with a pattern
// that depends on the position, tests the copy itself.
func patterns(ctx context.Context, r *lightRun) StepResult {
	want := fourGiB + 256*mib
	if r.o.MaxBytes > 0 && want > r.o.MaxBytes {
		want = r.o.MaxBytes / tagEvery * tagEvery
	}
	if want < 8*mib {
		return StepResult{Total: 1, Detail: fmt.Sprintf("only %d MiB may be used, 8 are needed", want/mib)}
	}
	chunk := want
	if r.o.AllocMax > 0 && chunk > r.o.AllocMax {
		chunk = r.o.AllocMax / tagEvery * tagEvery
	}
	var bufs []Buffer
	defer func() {
		for _, b := range bufs {
			b.Free()
		}
	}()
	for left := want; left > 0; {
		n := min(chunk, left)
		b, err := r.d.Alloc(ctx, DeviceMemory, n)
		if err != nil && len(bufs) == 0 && chunk > 512*mib {
			chunk /= 2 // the device's own limit is the ladder's business
			continue
		}
		if err != nil {
			if len(bufs) > 0 {
				break // the card is full: what was had is tested
			}
			return check(1, []error{fmt.Errorf("allocate %d MiB: %w", n/mib, err)}, "")
		}
		bufs = append(bufs, b)
		left -= n
	}
	var errs []error
	var total int64
	block := make([]byte, 4*mib)
	fill(block, 1)
	got := make([]byte, 4*mib)
	last := bufs[len(bufs)-1]
	off := (last.Size() - 4*mib) / tagEvery * tagEvery
	if err := last.Write(off, block); err != nil {
		errs = append(errs, fmt.Errorf("write 4 MiB at %d: %w", off, err))
	} else if err := last.Read(off, got); err != nil {
		errs = append(errs, fmt.Errorf("read 4 MiB at %d: %w", off, err))
	} else if i := firstDiff(block, got); i >= 0 {
		errs = append(errs, fmt.Errorf("byte %d of a 4 MiB copy came back as %d, want %d", i, got[i], block[i]))
	}
	tag, back := make([]byte, 16), make([]byte, 16)
	for pass := range 2 {
		seed := uint64(0)
		for bi, b := range bufs {
			for o := int64(0); o+16 <= b.Size(); o += tagEvery {
				seed++
				if ctx.Err() != nil {
					return check(2, []error{ctx.Err(), ctx.Err()}, "")
				}
				fill(tag, seed)
				var err error
				if pass == 0 {
					total = max(total, o)
					err = b.Write(o, tag)
				} else if err = b.Read(o, back); err == nil && firstDiff(tag, back) >= 0 {
					err = fmt.Errorf("offset %d of buffer %d holds another place's tag", o, bi)
				}
				if err != nil {
					errs = append(errs, err)
					return check(2, errs[:min(len(errs), 2)], "")
				}
			}
		}
	}
	var sum int64
	for _, b := range bufs {
		sum += b.Size()
	}
	res := check(2, errs, fmt.Sprintf("%d MiB in %d buffer(s), a tag every 2 MiB", sum/mib, len(bufs)))
	res.Values = map[string]float64{"bytes": float64(sum), "highest_offset": float64(total)}
	return res
}

// fill makes a pattern of seed that repeats nowhere near.
func fill(p []byte, seed uint64) {
	x := seed*0x9e3779b97f4a7c15 + 0x1234567
	for i := range p {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		p[i] = byte(x >> 32)
	}
}

func firstDiff(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// rungs are the sizes tried for one allocation.
var rungs = []int64{
	64 * mib, 256 * mib, 1 << 30, 2 << 30, 3 << 30, fourGiB - 8192, fourGiB, fourGiB + 4096, 6 << 30, 8 << 30, 12 << 30, 16 << 30, 20 << 30, 24 << 30, 32 << 30, 48 << 30, 64 << 30,
}

// ladder finds where single allocations stop. It passes when that is not below
// what the recipe promised (or 64 MiB, when it promised nothing).
func ladder(ctx context.Context, r *lightRun, s Space, promised int64) StepResult {
	var top int64
	var stop error
	for _, n := range rungs {
		if r.o.MaxBytes > 0 && n > r.o.MaxBytes {
			break
		}
		if err := ctx.Err(); err != nil {
			stop = err
			break
		}
		b, err := r.d.Alloc(ctx, s, n)
		if err == nil {
			// An allocation that cannot be used is none: drivers place lazily.
			err = errors.Join(b.Write(n-16, make([]byte, 16)), b.Free())
		}
		if err != nil {
			stop = fmt.Errorf("%d MiB: %w", n/mib, err)
			break
		}
		top = n
	}
	need := int64(64 * mib)
	if promised > 0 {
		need = promised
		if r.o.MaxBytes > 0 {
			need = min(need, r.o.MaxBytes)
		}
		// the highest rung at or below the promise
		i := sort.Search(len(rungs), func(i int) bool { return rungs[i] > need })
		if i == 0 {
			need = rungs[0]
		} else {
			need = rungs[i-1]
		}
	}
	var errs []error
	if top < need {
		if stop == nil {
			stop = fmt.Errorf("no size was tried: only %d MiB may be used", r.o.MaxBytes/mib)
		}
		errs = append(errs, fmt.Errorf("stops below the %d MiB counted on: %w", need/mib, stop))
	}
	detail := fmt.Sprintf("up to %d MiB at once", top/mib)
	if stop != nil {
		detail += "; then " + stop.Error()
	}
	res := check(1, errs, detail)
	res.Values = map[string]float64{"largest_bytes": float64(top)}
	return res
}

// kernels runs every kernel and compares it with its reference.
func kernels(ctx context.Context, r *lightRun) StepResult {
	ks := r.d.Kernels()
	if len(ks) == 0 {
		return StepResult{Total: 1, Detail: "the device brought no kernel to test"}
	}
	var errs []error
	worst := 0.0
	for _, k := range ks {
		_, e, want, fail := k.Run(ctx)
		switch {
		case fail != nil:
			errs = append(errs, fmt.Errorf("%s: %w", k.Name(), fail))
		case e != e || e > want:
			errs = append(errs, fmt.Errorf("%s: relative error %.3g, want at most %.3g", k.Name(), e, want))
		}
		if e == e {
			worst = max(worst, e)
		}
	}
	res := check(len(ks), errs, fmt.Sprintf("%d kernels, largest relative error %.2g", len(ks), worst))
	res.Values = map[string]float64{"worst_error": worst}
	return res
}

// repeat runs each kernel again and again on the same input: silent corruption
// under eviction (intel/compute-runtime#973) shows as differing bytes.
func repeat(ctx context.Context, r *lightRun) StepResult {
	ks := r.d.Kernels()
	if len(ks) == 0 {
		return skip("no kernel to repeat")
	}
	var errs []error
	for _, k := range ks {
		first, _, _, err := k.Run(ctx)
		for i := 1; err == nil && i < r.o.Repeat; i++ {
			var again []byte
			again, _, _, err = k.Run(ctx)
			if err == nil && (len(again) != len(first) || firstDiff(first, again) >= 0) {
				err = fmt.Errorf("run %d of %d gave other bytes", i+1, r.o.Repeat)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", k.Name(), err))
		}
	}
	return check(len(ks), errs, fmt.Sprintf("%d kernels, %d runs each, all equal", len(ks), r.o.Repeat))
}

// unitsDevice is a Device that knows of matrix units. words is empty when it has none; err
// says that the device computes wrongly there, and would do so unnoticed.
type unitsDevice interface {
	Units(ctx context.Context) (words string, err error)
}

// units multiplies on matrix units, which prompts use.
func units(ctx context.Context, r *lightRun) StepResult {
	d, ok := r.d.(unitsDevice)
	if !ok {
		return skip("this device has none that kernels know")
	}
	words, err := d.Units(ctx)
	switch {
	case err != nil:
		return check(1, []error{err}, "")
	case words == "":
		return skip("this device has none that kernels know")
	}
	return check(1, nil, words)
}

// bandwidth times copies of 64 MiB, the best of five.
func bandwidth(ctx context.Context, r *lightRun) StepResult {
	n := 64 * mib
	if r.o.MaxBytes > 0 {
		n = min(n, max(r.o.MaxBytes/4, mib))
	}
	b, err := r.d.Alloc(ctx, DeviceMemory, n)
	if err != nil {
		return check(1, []error{fmt.Errorf("allocate %d MiB: %w", n/mib, err)}, "")
	}
	defer b.Free()
	p := make([]byte, n)
	fill(p, 7)
	up, down := 0.0, 0.0
	for range 5 {
		if ctx.Err() != nil {
			break
		}
		t := time.Now()
		if err := b.Write(0, p); err != nil {
			return check(1, []error{err}, "")
		}
		up = max(up, float64(n)/time.Since(t).Seconds()/1e9)
		t = time.Now()
		if err := b.Read(0, p); err != nil {
			return check(1, []error{err}, "")
		}
		down = max(down, float64(n)/time.Since(t).Seconds()/1e9)
	}
	return StepResult{Detail: fmt.Sprintf("to the device %.1f GB/s, back %.1f GB/s", up, down), Values: map[string]float64{"h2d_gb_s": up, "d2h_gb_s": down}}
}

// launch times an empty kernel with its read-back, the median of 200.
func launch(ctx context.Context, r *lightRun) StepResult {
	var ts []float64
	for range 200 {
		if ctx.Err() != nil {
			break
		}
		t := time.Now()
		if err := r.d.Launch(ctx); err != nil {
			return check(1, []error{fmt.Errorf("launch: %w", err)}, "")
		}
		ts = append(ts, float64(time.Since(t).Nanoseconds())/1e3)
	}
	if len(ts) == 0 {
		return skip("stopped")
	}
	sort.Float64s(ts)
	m := ts[len(ts)/2]
	return StepResult{Detail: fmt.Sprintf("%.1f us, the median of %d", m, len(ts)), Values: map[string]float64{"launch_us": m}}
}

// together is Together with the devices of the other cards.
func together(ctx context.Context, r *lightRun) StepResult {
	if len(r.o.Others) == 0 {
		return skip("one device")
	}
	return Together(ctx, append([]Device{r.d}, r.o.Others...))
}

// golden runs the starter pack.
func golden(ctx context.Context, r *lightRun) StepResult {
	if r.o.Golden == nil {
		return skip("no starter pack was given to the test")
	}
	right, total, err := r.o.Golden(ctx, r.d)
	res := StepResult{Passed: right, Total: max(total, 1), Detail: fmt.Sprintf("%d of %d tokens", right, total)}
	if err != nil {
		res.Passed = min(right, res.Total-1)
		res.Detail = err.Error()
	}
	return res
}
