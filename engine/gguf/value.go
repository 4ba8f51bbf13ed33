package gguf

import (
	"fmt"
	"strconv"
)

// kind is the type number of a metadata value as the file stores it.
type kind uint32

// Type numbers of the specification.
const (
	kindUint8   kind = 0
	kindInt8    kind = 1
	kindUint16  kind = 2
	kindInt16   kind = 3
	kindUint32  kind = 4
	kindInt32   kind = 5
	kindFloat32 kind = 6
	kindBool    kind = 7
	kindString  kind = 8
	kindArray   kind = 9
	kindUint64  kind = 10
	kindInt64   kind = 11
	kindFloat64 kind = 12
)

// kinds lists name and width in bytes of each kind; width 0 is variable.
var kinds = [...]struct {
	name  string
	width int
}{
	kindUint8:   {"uint8", 1},
	kindInt8:    {"int8", 1},
	kindUint16:  {"uint16", 2},
	kindInt16:   {"int16", 2},
	kindUint32:  {"uint32", 4},
	kindInt32:   {"int32", 4},
	kindFloat32: {"float32", 4},
	kindBool:    {"bool", 1},
	kindString:  {"string", 0},
	kindArray:   {"array", 0},
	kindUint64:  {"uint64", 8},
	kindInt64:   {"int64", 8},
	kindFloat64: {"float64", 8},
}

func (k kind) known() bool { return int(k) < len(kinds) }

func (k kind) width() int { return kinds[k].width }

func (k kind) String() string {
	if k.known() {
		return kinds[k].name
	}
	return "type " + strconv.FormatUint(uint64(k), 10)
}

func (k kind) integer() bool {
	switch k {
	case kindUint8, kindInt8, kindUint16, kindInt16, kindUint32, kindInt32, kindUint64, kindInt64:
		return true
	}
	return false
}

func (k kind) float() bool { return k == kindFloat32 || k == kindFloat64 }

// value is one metadata value: where its bytes lie in Meta.raw.
type value struct {
	kind  kind
	elem  kind   // of an array
	count int    // elements of an array
	raw   string // the value's bytes; of a string, its text; of an array, its elements
}

func (v value) String() string {
	if v.kind == kindArray {
		return fmt.Sprintf("array of %d %s", v.count, v.elem)
	}
	return v.kind.String()
}

// quoted makes text from a file safe and short enough for an error message.
func quoted(s string) string {
	const most = 80
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}
