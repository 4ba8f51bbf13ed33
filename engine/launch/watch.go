package launch

import (
	"time"

	"outcrop/engine/vitals"
)

// watch takes readings of the child until it ends: ten a second while it
// loads, when memory moves fast, then two; the last one before an
// out-of-memory kill is what counts, and a machine that is out of memory
// schedules us late anyhow.
func (e *Engine) watch(pid int) {
	root := vitals.Live()
	t := time.NewTicker(100 * time.Millisecond)
	defer t.Stop()
	for n := 0; ; n++ {
		if n == 100 {
			t.Reset(500 * time.Millisecond)
		}
		r := Reading{time.Now(), vitals.Memory(root), vitals.Process(root, pid)}
		// A dead child still has a status file, without memory lines.
		if r.Process.RSS.Known && r.Process.RSS.Value > 0 {
			e.mu.Lock()
			e.before = append(e.before, r)
			if len(e.before) > keptReadings {
				e.before = e.before[1:]
			}
			e.mu.Unlock()
		}
		select {
		case <-t.C:
		case <-e.quiet:
			return
		}
	}
}

// Readings returns the last readings of the running child, oldest first.
func (e *Engine) Readings() []Reading {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Reading(nil), e.before...)
}

// kills reads the kernel's counts of processes killed for memory. The child
// lives in our control group, so our group's count is its count.
func kills() killCounts {
	group, machine := vitals.OOMKills(vitals.Live())
	k := killCounts{-1, -1}
	if group.Known {
		k.group = group.Value
	}
	if machine.Known {
		k.machine = machine.Value
	}
	return k
}
