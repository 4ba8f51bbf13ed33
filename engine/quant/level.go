package quant

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// Level is a set of kernels. One level is active in the whole process; it is
// the best one that the processor has, unless Use changes it.
type Level int

// The levels. A processor has some of them.
const (
	Generic    Level = iota // the plain Go loops: every processor
	NEON                    // arm64 with the signed dot product instruction
	AVX2                    // amd64 with AVX2, FMA and F16C (x86-64-v3)
	AVXVNNI                 // AVX2 and the VEX form of VPDPBUSD (Alder Lake and later, Zen 5)
	AVX512VNNI              // AVX-512 F, BW, DQ, VL, VBMI, VNNI and GFNI (Ice Lake and later servers, Zen 4 and later)
	AMX                     // that, and AMX-INT8 for many activation rows (Sapphire Rapids and later servers)
)

var levelNames = [...]string{"generic", "neon", "avx2", "avxvnni", "avx512vnni", "amx"}

// String is the name that telemetry and the bench show.
func (l Level) String() string {
	if l >= 0 && int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("level %d", int(l))
}

// kernels is what a level can do. The functions of one level give the same bits
// for the same row and activation row, whatever else is in a call.
type kernels struct {
	level Level

	// dot is one row with one activation row, for levels whose kernels take
	// pairs. Where it is nil, Format.Dot stands in.
	dot [typeCount]func(row []byte, a *Acts, t int) float32

	// The rest belongs to levels that work on records (acts.go); all is zero
	// elsewhere.
	records  bool
	quantize func(r *record, x *float32, groups int)
	rows     [typeCount]func(g *gemv) // rows with few activation rows (mul.go)
	floats   [BF16 + 1]func(g *gemv)  // the same for F32, F16, BF16
	many     [typeCount]slabKernels   // rows with many activation rows (many.go)

	floatTails bool // floats takes rows of any length; else of multiples of 16

	vec vecOps

	delta func(d *Delta, s []float32, lo, hi, t0, t1 int) // delta.go; nil: the plain loop

	// attendmany.go, rows of values of size bytes: how many of the queries are
	// done; nil: none
	scoresMany func(dst []float32, ldd int, q []float32, nq, n int, k unsafe.Pointer, size, rows, stride int, ahead uintptr) int
	mixMany    func(dst []float32, ldd, n int, p []float32, ldp, nq int, v unsafe.Pointer, size, rows, stride int, ahead uintptr) int

	slab [2]slabOps // attendslab.go, by CacheKind
}

// active is the level in use.
var active atomic.Pointer[kernels]

var levels = func() []*kernels {
	all := append([]*kernels{{level: Generic, vec: plainVec, slab: plainSlabs}}, machineLevels()...)
	best := all[len(all)-1]
	active.Store(best)
	vec = best.vec
	return all
}()

// Levels lists what this processor can run, slowest first.
func Levels() []Level {
	var l []Level
	for _, k := range levels {
		l = append(l, k.level)
	}
	return l
}

// refused is why a level that the processor has is not among them.
var refused error

// Refused says why the system does not let this process use all that the
// processor has; nil when it does.
func Refused() error { return refused }

// Active is the level in use.
func Active() Level { return active.Load().level }

// Use switches the level, for tests and comparisons; undo switches back. No
// other goroutine may be in this package meanwhile, and Acts must be quantised
// anew after it.
func Use(l Level) (undo func(), err error) {
	for _, k := range levels {
		if k.level == l {
			old := active.Load()
			set := func(k *kernels) { active.Store(k); vec = k.vec }
			set(k)
			return func() { set(old) }, nil
		}
	}
	return nil, fmt.Errorf("use kernel level %s: this processor has %v", l, Levels())
}
