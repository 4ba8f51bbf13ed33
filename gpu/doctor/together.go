package doctor

import (
	"context"
	"fmt"
)

// togetherBytes is the allocation that failed on two A770s with 16 GiB free on
// each, as soon as a program saw both (GSD-12641).
const togetherBytes = 2 * mib

// Together allocates 2 MiB on every device while the others hold theirs, in both
// orders, and looks whether each still holds what was written to it: two checks a
// device. Each device has a context of its own, so the fault of GSD-12641, where
// one context saw two cards, cannot occur; that it does not is what is tested.
func Together(ctx context.Context, all []Device) StepResult {
	var errs []error
	for round := range 2 {
		order := make([]int, len(all))
		for i := range order {
			order[i] = i
			if round == 1 {
				order[i] = len(all) - 1 - i
			}
		}
		errs = append(errs, holdAll(ctx, all, order)...)
	}
	return check(2*len(all), errs, fmt.Sprintf("%d devices, each with %d MiB while the others hold as much", len(all), togetherBytes/mib))
}

// holdAll does it in one order; at most one error a device.
func holdAll(ctx context.Context, all []Device, order []int) (errs []error) {
	bufs := make([]Buffer, len(all))
	defer func() {
		for _, b := range bufs {
			if b != nil {
				b.Free()
			}
		}
	}()
	want, got := make([]byte, togetherBytes), make([]byte, togetherBytes)
	fail := func(i int, what string, err error) {
		errs = append(errs, fmt.Errorf("%s 2 MiB on %s %s with %d devices open: %w", what, all[i].Name(), all[i].PCI(), len(all), err))
	}
	for _, i := range order {
		b, err := all[i].Alloc(ctx, DeviceMemory, togetherBytes)
		if err != nil {
			fail(i, "allocate", err)
			continue
		}
		fill(want, uint64(i)+11)
		if err := b.Write(0, want); err != nil {
			b.Free()
			fail(i, "write", err)
			continue
		}
		bufs[i] = b
	}
	for i, b := range bufs {
		if b == nil {
			continue
		}
		fill(want, uint64(i)+11)
		if err := b.Read(0, got); err != nil {
			fail(i, "read", err)
		} else if k := firstDiff(want, got); k >= 0 {
			fail(i, "read", fmt.Errorf("byte %d is %d, want %d", k, got[k], want[k]))
		}
	}
	return errs
}
