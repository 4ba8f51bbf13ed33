package quant

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// vex finds the VEX forms of VPDPBUSD in the kernels of the AVX-VNNI level: the
// prefix 3E, three bytes of VEX, the opcode, two registers.
func vex(t *testing.T) (found [][]byte, text []byte) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pc, _, _, _ := runtime.Caller(0)
	for s := bufio.NewScanner(f); s.Scan(); {
		var lo, hi uintptr
		if n, _ := fmt.Sscanf(s.Text(), "%x-%x", &lo, &hi); n == 2 && lo <= pc && pc < hi {
			text = unsafe.Slice((*byte)(unsafe.Add(nil, lo)), hi-lo)
		}
	}
	for i := 0; i+6 <= len(text); i++ {
		b := text[i : i+6]
		if b[0] == 0x3E && b[1] == 0xC4 && b[2]&0x5F == 0x42 && b[3]&0x87 == 5 && b[4] == 0x50 && b[5] >= 0xC0 {
			if f := runtime.FuncForPC(uintptr(unsafe.Pointer(&b[0]))); f != nil && strings.HasSuffix(f.Name(), "xVNNI") {
				found = append(found, b)
			}
		}
	}
	return found, text
}

// TestAVXVNNIOnAVX512 runs the AVX-VNNI kernels on a processor that has only the
// EVEX form of their one special instruction: it is put in place of the VEX form,
// which is made as long. The operands stay: the second and the third byte of
// both encodings differ in one bit, and EVEX has a fourth.
func TestAVXVNNIOnAVX512(t *testing.T) {
	if cpu.X86.HasAVXVNNI {
		t.Skip("this processor has AVX-VNNI: the level is tested as it is")
	}
	if !cpu.X86.HasAVX512VNNI || !cpu.X86.HasAVX512VL {
		t.Skip("this processor has no VPDPBUSD")
	}
	found, text := vex(t)
	if len(found) < 100 {
		t.Fatalf("found %d instructions in the AVX-VNNI kernels", len(found))
	}
	if err := syscall.Mprotect(text, syscall.PROT_READ|syscall.PROT_WRITE|syscall.PROT_EXEC); err != nil {
		t.Skipf("cannot change the program in memory: %v", err)
	}
	old := levels
	levels = []*kernels{&avxvnni}
	for _, b := range found {
		copy(b, []byte{0x62, b[2] | 0x10, b[3], 0x28, 0x50, b[5]})
	}
	defer func() {
		levels = old
		for _, b := range found {
			copy(b, []byte{0x3E, 0xC4, b[1] &^ 0x10, b[2], 0x50, b[5]})
		}
		if err := syscall.Mprotect(text, syscall.PROT_READ|syscall.PROT_EXEC); err != nil {
			t.Error(err)
		}
	}()
	t.Run("rows", TestRows)
	t.Run("edge", TestEdge)
	t.Run("relay", TestRelay)
	t.Run("slabs", TestSlabs)
}

// TestVEXForm compares the bytes with those of an assembler that knows the
// instruction: llvm-mc -mattr=+avxvnni of {vex} vpdpbusd with the registers below.
func TestVEXForm(t *testing.T) {
	found, _ := vex(t)
	seen := map[string]bool{}
	for _, b := range found {
		seen[fmt.Sprintf("%x", b[1:])] = true
	}
	for registers, want := range map[string]string{
		"ymm0, ymm13, ymm14": "c4c21550c6", "ymm7, ymm13, ymm14": "c4c21550fe",
		"ymm4, ymm12, ymm13": "c4c21d50e5", "ymm11, ymm15, ymm13": "c4420550dd",
	} {
		if !seen[want] {
			t.Errorf("no kernel has vpdpbusd %s as %s; found %v", registers, want, seen)
		}
	}
}
