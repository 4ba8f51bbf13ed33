package compute

import "testing"

func TestRegisters(t *testing.T) {
	const text = ".visible .entry one(\n\t.param .u64 p\n)\n.reqntid 128\n{\n\tret;\n}\n.visible .entry two(\n)\n{\n\tret;\n}\n"
	got := string(registers([]byte(text), map[string]int{"two": 72, "three": 1}))
	const want = ".visible .entry one(\n\t.param .u64 p\n)\n.reqntid 128\n{\n\tret;\n}\n.visible .entry two(\n)\n.maxnreg 72\n{\n\tret;\n}\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
