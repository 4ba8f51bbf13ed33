package quant

import (
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"outcrop/engine/quant/emutile"
)

type tileSite struct {
	code []byte
	op   emutile.Op
}

// tileSites finds the AMX instructions in the kernels of the level.
func tileSites(t *testing.T) (sites []tileSite, text []byte) {
	_, text = vex(t)
	for i := 0; i+6 <= len(text); i++ {
		op, ok := emutile.Decode(text[i:])
		if !ok {
			continue
		}
		f := runtime.FuncForPC(uintptr(unsafe.Pointer(&text[i])))
		if f != nil && strings.HasSuffix(f.Name(), "xAMX") {
			sites = append(sites, tileSite{text[i : i+op.Len : i+op.Len], op})
		}
	}
	return sites, text
}

// tileForms are the instructions of the kernels as GNU as 2.40 assembles them
// (.intel_syntax noprefix).
var tileForms = map[string]string{
	"ldtilecfg [rcx]":            "c4e2784901",
	"tilezero tmm0":              "c4e27b49c0",
	"tileloadd tmm1, [r14+r9]":   "c4827b4b0c0e",
	"tileloadd tmm2, [rsi+rbx]":  "c4e27b4b141e",
	"tdpbssd tmm0, tmm1, tmm2":   "c4e26b5ec1",
	"tilestored [r15+rbx], tmm0": "c4c27a4b041f",
	"tilerelease":                "c4e27849c0",
}

// TestTileForms: the bytes in the kernels are those of an assembler, each once a
// kernel and in the order that a product needs.
func TestTileForms(t *testing.T) {
	sites, _ := tileSites(t)
	var got []string
	for _, s := range sites {
		got = append(got, s.op.String())
		if form := hex(s.code); tileForms[s.op.String()] != form {
			t.Errorf("%s is %s, an assembler makes %q of it", s.op, form, tileForms[s.op.String()])
		}
	}
	one := []string{"ldtilecfg [rcx]", "tilezero tmm0", "tileloadd tmm1, [r14+r9]", "tileloadd tmm2, [rsi+rbx]",
		"tdpbssd tmm0, tmm1, tmm2", "tilestored [r15+rbx], tmm0", "tilerelease"}
	if want := slices.Repeat(one, 2); !slices.Equal(got, want) {
		t.Errorf("two kernels have %q, want %q", got, want)
	}
}

func hex(b []byte) string {
	const digits = "0123456789abcdef"
	var s []byte
	for _, v := range b {
		s = append(s, digits[v>>4], digits[v&15])
	}
	return string(s)
}

// TestTilesRefused: without AMX there is no such level and nothing to explain.
func TestTilesRefused(t *testing.T) {
	has := slices.Contains(Levels(), AMX)
	if want := hasTiles() && Refused() == nil; has != want {
		t.Errorf("level amx: %v, want %v; refused: %v", has, want, Refused())
	}
	if !hasTiles() && Refused() != nil {
		t.Error(Refused())
	}
	if !hasTiles() {
		// Processors without tiles have no such component to ask for.
		if err := askTiles(); err == nil || !strings.Contains(err.Error(), "tile data") {
			t.Errorf("asked for tile data: %v", err)
		}
	}
}

// TestAMXEmulated runs the AMX level on a processor that lacks only AMX: each
// instruction is replaced by a call of a function that does what it says, with
// the registers that its bytes name. Everything else of the kernels runs as it is.
func TestAMXEmulated(t *testing.T) {
	if hasTiles() && askTiles() == nil {
		t.Skip("this processor has AMX: the level is tested as it is")
	}
	if !slices.Contains(Levels(), AVX512VNNI) {
		t.Skip("this processor has no AVX-512 with VNNI")
	}
	sites, text := tileSites(t)
	calls := nearby(t, text, 64*len(sites))
	if err := syscall.Mprotect(text, syscall.PROT_READ|syscall.PROT_WRITE|syscall.PROT_EXEC); err != nil {
		t.Skipf("cannot change the program in memory: %v", err)
	}
	emutile.Products, emutile.Faults = 0, 0
	old := levels
	levels = []*kernels{&amx}
	var were [][]byte
	for n, s := range sites {
		emutile.Ops = append(emutile.Ops, s.op)
		at := calls[64*n:]
		copy(at, emutile.Code(s.op, byte(n), uintptr(unsafe.Pointer(&at[0]))))
		were = append(were, slices.Clone(s.code))
		far := uint32(uintptr(unsafe.Pointer(&at[0])) - uintptr(unsafe.Pointer(&s.code[0])) - 5)
		copy(s.code, []byte{0xE8, byte(far), byte(far >> 8), byte(far >> 16), byte(far >> 24), 0x90}) // call, nop
	}
	defer func() {
		levels = old
		for n, s := range sites {
			copy(s.code, were[n])
		}
		if err := syscall.Mprotect(text, syscall.PROT_READ|syscall.PROT_EXEC); err != nil {
			t.Error(err)
		}
		emutile.Ops = nil
	}()
	t.Run("rows", TestRows)
	t.Run("edge", TestEdge)
	t.Run("relay", TestRelay)
	if emutile.Products < 1000 {
		t.Errorf("only %d products of tiles were made", emutile.Products)
	}
	if emutile.Faults != 0 {
		t.Errorf("%d instructions that a processor would have refused", emutile.Faults)
	}
}

// nearby maps memory for code within reach of calls from text.
func nearby(t *testing.T, text []byte, n int) []byte {
	end := uintptr(unsafe.Pointer(&text[0])) + uintptr(len(text))
	for far := uintptr(256 << 20); far < 1<<30; far += 128 << 20 {
		hint := (end + far) &^ 0xFFFF
		p, err := unix.MmapPtr(-1, 0, unsafe.Add(nil, hint), uintptr(n), unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			t.Skipf("no memory for code: %v", err)
		}
		t.Cleanup(func() { _ = unix.MunmapPtr(p, uintptr(n)) })
		if uintptr(p) > end && uintptr(p)-end < 1<<30 {
			return unsafe.Slice((*byte)(p), n)
		}
	}
	t.Skip("no memory within reach of the kernels")
	return nil
}
