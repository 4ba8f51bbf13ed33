//go:build amd64

// Package emutile runs kernels with AMX instructions on processors that have
// none, for tests: the instructions are taken apart by their published encoding
// (Intel SDM, volume 2), and calls to functions that do what they say are put
// in their place.
package emutile

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// Op is one instruction. Registers are the processor's numbers.
type Op struct {
	Name        string
	Tile, A, B  int // of tdpb..: the sums, and the two factors
	Base, Index int // of an address; -1: none
	Scale       int
	Len         int // bytes
}

// String is the instruction in Intel's notation.
func (o Op) String() string {
	names := []string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}
	at := ""
	if o.Base >= 0 {
		at = names[o.Base]
		if o.Index >= 0 {
			at += "+" + names[o.Index]
			if o.Scale > 1 {
				at += fmt.Sprint("*", o.Scale)
			}
		}
	}
	switch o.Name {
	case "tilerelease":
		return o.Name
	case "tilezero":
		return fmt.Sprintf("%s tmm%d", o.Name, o.Tile)
	case "ldtilecfg":
		return fmt.Sprintf("%s [%s]", o.Name, at)
	case "tileloadd":
		return fmt.Sprintf("%s tmm%d, [%s]", o.Name, o.Tile, at)
	case "tilestored":
		return fmt.Sprintf("%s [%s], tmm%d", o.Name, at, o.Tile)
	}
	return fmt.Sprintf("%s tmm%d, tmm%d, tmm%d", o.Name, o.Tile, o.A, o.B)
}

// Decode takes the AMX instruction at the start of b apart; ok is false where
// there is none. Addresses have no displacement.
func Decode(b []byte) (o Op, ok bool) {
	if len(b) < 6 || b[0] != 0xC4 || b[1]&0x1F != 2 || b[2]&0x84 != 0 {
		return o, false
	}
	pp, v := b[2]&3, int(^b[2]>>3&15)
	mod, reg, rm := b[4]>>6, int(b[4]>>3&7), int(b[4]&7)
	high := func(bit byte) int { return int(^b[1]>>bit&1) << 3 } // R, X, B are inverted
	o = Op{Base: -1, Index: -1, Len: 5}
	switch mod {
	case 0:
		switch rm {
		case 4:
			o.Base, o.Len = int(b[5]&7)|high(5), 6
			if i := int(b[5]>>3&7) | high(6); i != 4 {
				o.Index, o.Scale = i, 1<<(b[5]>>6)
			}
			if o.Base&7 == 5 {
				return o, false
			}
		case 5:
			return o, false
		default:
			o.Base = rm | high(5)
		}
	case 3:
	default:
		return o, false
	}
	sib := o.Len == 6
	switch b[3] {
	case 0x49:
		switch {
		case v != 0:
		case mod == 3 && pp == 0 && reg == 0 && rm == 0:
			o.Name = "tilerelease"
		case mod == 3 && pp == 3 && rm == 0:
			o.Name, o.Tile = "tilezero", reg
		case mod == 0 && pp == 0 && reg == 0:
			o.Name = "ldtilecfg"
		}
	case 0x4B:
		o.Tile = reg
		switch {
		case v != 0 || !sib:
		case pp == 3:
			o.Name = "tileloadd"
		case pp == 2:
			o.Name = "tilestored"
		}
	case 0x5E:
		if mod == 3 {
			o.Name, o.Tile, o.A, o.B = [...]string{"tdpbuud", "tdpbusd", "tdpbsud", "tdpbssd"}[pp], reg, rm, v
		}
	}
	return o, o.Name != ""
}

// What a processor with AMX holds. Products counts those of two tiles, Faults
// what it would not have done.
var (
	Products, Faults int
	tiles            [8][16][64]byte
	rows             [8]int
	bytes            [8]int // of a row
	loaded           bool   // a shape of tiles
)

// Code is the machine code of a call in place of an instruction, which goes to
// ops[n], with the values of its registers on the stack; it lies at address at.
func Code(o Op, n byte, at uintptr) []byte {
	push := func(r int) []byte {
		if r < 0 {
			r = 0
		}
		if r >= 8 {
			return []byte{0x41, byte(0x50 + r - 8)}
		}
		return []byte{byte(0x50 + r)}
	}
	c := append(push(o.Base), push(o.Index)...)
	c = append(c, 0x6A, n, 0xE8)
	c = binary.LittleEndian.AppendUint32(c, uint32(enterAt()-(at+uintptr(len(c))+4)))
	return append(c, 0x48, 0x83, 0xC4, 24, 0xC3) // add rsp, 24; ret
}

// Ops are the instructions that calls stand for, by number.
var Ops []Op

// Read and written by enter.
var (
	argSite, argIndex, argBase uintptr
)

// emulate does the instruction that enter was called for. It runs on the stack
// of a kernel, so that it must not grow it.
//
//go:nosplit
func emulate() {
	o := &Ops[argSite]
	at := *(*unsafe.Pointer)(unsafe.Pointer(&argBase)) // memory that the kernel works on
	switch o.Name {
	case "ldtilecfg":
		c := (*[64]byte)(at)
		loaded = c[0] == 1 && c[1] == 0
		for t := range 8 {
			bytes[t], rows[t] = int(c[16+2*t])|int(c[17+2*t])<<8, int(c[48+t])
			if bytes[t] > 64 || rows[t] > 16 {
				Faults++
				bytes[t], rows[t] = 0, 0
			}
			clearTile(t)
		}
	case "tilerelease":
		loaded = false
	case "tilezero":
		need(o.Tile)
		clearTile(o.Tile)
	case "tileloadd":
		need(o.Tile)
		clearTile(o.Tile)
		for r := range rows[o.Tile] {
			row := (*[64]byte)(unsafe.Add(at, r*int(argIndex)*o.Scale))
			for i := range bytes[o.Tile] {
				tiles[o.Tile][r][i] = row[i]
			}
		}
	case "tilestored":
		need(o.Tile)
		for r := range rows[o.Tile] {
			row := (*[64]byte)(unsafe.Add(at, r*int(argIndex)*o.Scale))
			for i := range bytes[o.Tile] {
				row[i] = tiles[o.Tile][r][i]
			}
		}
	case "tdpbssd":
		mul(o)
	default:
		Faults++
	}
}

//go:nosplit
func need(t int) {
	if !loaded || rows[t] == 0 || bytes[t] == 0 {
		Faults++
	}
}

//go:nosplit
func clearTile(t int) {
	for r := range 16 {
		for i := range 64 {
			tiles[t][r][i] = 0
		}
	}
}

// mul adds to row m, number n of the sums the products of the fours of row m of
// A with the fours in column n of B.
//
//go:nosplit
func mul(o *Op) {
	need(o.Tile)
	need(o.A)
	need(o.B)
	if rows[o.Tile] != rows[o.A] || bytes[o.Tile] != bytes[o.B] || bytes[o.A] != 4*rows[o.B] || o.Tile == o.A || o.A == o.B || o.B == o.Tile {
		Faults++
		return
	}
	Products++
	for m := range rows[o.Tile] {
		for n := range bytes[o.Tile] / 4 {
			sum := (*int32)(unsafe.Pointer(&tiles[o.Tile][m][4*n]))
			for k := range rows[o.B] {
				for i := range 4 {
					*sum += int32(int8(tiles[o.A][m][4*k+i])) * int32(int8(tiles[o.B][k][4*n+i]))
				}
			}
		}
	}
}

// enterAt is where enter lies.
func enterAt() uintptr
