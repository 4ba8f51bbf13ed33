package quant

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

var neonTypes = []Type{Q4_0, Q4_1, Q8_0, Q4_K, Q6_K, IQ4_NL, IQ4_XS}

// atEnd copies b to the end of memory whose next page may not be touched.
func atEnd(t *testing.T, b []byte) []byte {
	t.Helper()
	page := unix.Getpagesize()
	size := (len(b) + page - 1) &^ (page - 1)
	m, err := unix.Mmap(-1, 0, size+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(m) })
	if err := unix.Mprotect(m[size:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	g := m[size-len(b) : size : size]
	copy(g, b)
	return g
}

func asBytes[T any](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(v[0])))
}

func fromBytes[T any](b []byte) []T {
	var z T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(z)))
}

// TestNEON compares every kernel with the plain loop: all lengths up to 13
// blocks, random bits, special values, with a guard page behind every buffer.
func TestNEON(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, typ := range neonTypes {
		t.Run(typ.String(), func(t *testing.T) {
			f := mustOf(t, typ)
			kernel := neonDots[typ]
			compared := 0
			for round := range 200 {
				n := max(f.Block, 32) * (1 + round%13)
				row := make([]byte, f.RowBytes(n))
				for i := range row {
					switch round % 10 {
					default:
						row[i] = byte(rng.Uint32())
					case 8:
						row[i] = 0xff
					case 9: // zeros
					}
				}
				x := make([]float32, n)
				for i := range x {
					x[i] = float32(rng.NormFloat64()) * float32(math.Exp2(float64(round%40-20)))
				}
				if round%7 == 6 {
					x[rng.IntN(n)] = float32(math.NaN())
				}
				a := plainActs(t, x, 1, n)
				want := f.Dot(row, a, 0)
				_, abs := exactProduct(f, decodeAll(f, row), a, 0)

				row = atEnd(t, row)
				a.q = fromBytes[int8](atEnd(t, asBytes(a.q)))
				a.d = fromBytes[float32](atEnd(t, asBytes(a.d)))
				a.s = fromBytes[int16](atEnd(t, asBytes(a.s)))
				var got float32
				if allocs := testing.AllocsPerRun(1, func() { got = kernel(row, a, 0) }); allocs != 0 {
					t.Fatalf("%v allocations", allocs)
				}
				if w := float64(want); math.IsNaN(w) || math.IsInf(w, 0) || math.IsNaN(abs) || abs > 1e30 {
					if g := float64(got); round%7 == 6 && !math.IsNaN(g) {
						t.Fatalf("round %d: %g with a NaN among the activations", round, g)
					}
					continue
				}
				compared++
				if d := math.Abs(float64(got) - float64(want)); !(d <= 2e-6*abs) {
					t.Fatalf("round %d, n %d: %g, plain loop %g (sum of magnitudes %g)", round, n, got, want, abs)
				}
			}
			if compared < 30 {
				t.Errorf("only %d rounds had finite values", compared)
			}
		})
	}
}

// TestNEONFixtures holds the kernels to the float64 products of testdata.
func TestNEONFixtures(t *testing.T) {
	a := fixtureActs(t)
	for _, typ := range neonTypes {
		f := mustOf(t, typ)
		kernel := neonDots[typ]
		for _, name := range []string{"rows.bin", "random.bin"} {
			b := readFixture(t, f.Name, name)
			size := f.RowBytes(fixtureCols)
			for r := range 4 {
				row := b[r*size : (r+1)*size]
				for i := range 4 {
					want, abs := exactProduct(f, decodeAll(f, row), a, i)
					if got := float64(kernel(row, a, i)); !(math.Abs(got-want) <= 1e-5*abs) {
						t.Errorf("%s %s row %d, activation %d: %g, want %g", f.Name, name, r, i, got, want)
					}
				}
			}
		}
	}
}
