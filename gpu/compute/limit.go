package compute

import "fmt"

// Limit caps the device memory that this program takes, as a smaller card would;
// 0 takes the cap away. What is held already stays. Allocations beyond fail with
// ErrMemory and the numbers, and Memory reports no more than what is left.
func (d *Device) Limit(bytes int64) { d.limit.Store(max(bytes, 0)) }

// Limited gives the cap; 0: none.
func (d *Device) Limited() int64 { return d.limit.Load() }

// within checks n more bytes against the cap.
func (d *Device) within(n int64) error {
	most, used := d.limit.Load(), d.used.Load()
	if most > 0 && used+n > most {
		return fmt.Errorf("allocate %d bytes on %s: %w: %d of the %d bytes that it may use are taken", n, d.info, ErrMemory, used, most)
	}
	return nil
}

// left is what of free and total memory the cap leaves.
func (d *Device) left(free, total int64, known bool) (int64, int64, bool) {
	most := d.limit.Load()
	if most <= 0 {
		return free, total, known
	}
	room := max(most-d.used.Load(), 0)
	if !known {
		return room, most, true
	}
	return min(free, room), min(total, most), true
}
