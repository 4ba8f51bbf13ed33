package gguf

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrNoKey is wrapped by the errors of Meta's getters when the key is absent.
var ErrNoKey = errors.New("no key")

// Meta holds the key-value pairs of a file. It stays valid after Close and may
// be read from several goroutines.
type Meta struct {
	keys  []string
	vals  []value
	index map[string]int
}

// Keys lists the keys in the order of the file. The caller owns the slice.
func (m *Meta) Keys() []string { return slices.Clone(m.keys) }

// Has says whether the key is present, whatever its type.
func (m *Meta) Has(key string) bool {
	_, ok := m.index[key]
	return ok
}

// Type describes the stored type of a key in words, such as "uint32" or "array of 3 string"; "" when absent.
func (m *Meta) Type(key string) string {
	i, ok := m.index[key]
	if !ok {
		return ""
	}
	return m.vals[i].String()
}

// Any returns the value of a key as Go has it: uint8 to float64, bool, string,
// or a slice of one of these.
func (m *Meta) Any(key string) (any, bool) {
	i, ok := m.index[key]
	if !ok {
		return nil, false
	}
	v := m.vals[i]
	if v.kind != kindArray {
		return v.scalar(), true
	}
	switch v.elem {
	case kindUint8:
		return []byte(v.raw), true
	case kindInt8:
		return elements(v, func(s string) int8 { return int8(s[0]) }), true
	case kindUint16:
		return elements(v, u16), true
	case kindInt16:
		return elements(v, func(s string) int16 { return int16(u16(s)) }), true
	case kindUint32:
		return elements(v, u32), true
	case kindInt32:
		return elements(v, func(s string) int32 { return int32(u32(s)) }), true
	case kindFloat32:
		return elements(v, func(s string) float32 { return math.Float32frombits(u32(s)) }), true
	case kindBool:
		return elements(v, func(s string) bool { return s[0] != 0 }), true
	case kindUint64:
		return elements(v, u64), true
	case kindInt64:
		return elements(v, func(s string) int64 { return int64(u64(s)) }), true
	case kindFloat64:
		return elements(v, func(s string) float64 { return math.Float64frombits(u64(s)) }), true
	default:
		return v.strings(), true
	}
}

// String returns a string value.
func (m *Meta) String(key string) (string, error) {
	v, err := m.get(key)
	if err != nil {
		return "", err
	}
	if v.kind != kindString {
		return "", wrongType(key, v, "string")
	}
	return v.raw, nil
}

// Uint returns an integer value of any width that is not negative.
func (m *Meta) Uint(key string) (uint64, error) {
	v, err := m.get(key)
	if err != nil {
		return 0, err
	}
	if !v.kind.integer() {
		return 0, wrongType(key, v, "an integer")
	}
	n, big := v.kind.int(v.raw)
	if n < 0 && !big {
		return 0, fmt.Errorf("key %s is %d, a value of 0 or more is needed", quoted(key), n)
	}
	return uint64(n), nil
}

// Int returns an integer value of any width.
func (m *Meta) Int(key string) (int64, error) {
	v, err := m.get(key)
	if err != nil {
		return 0, err
	}
	if !v.kind.integer() {
		return 0, wrongType(key, v, "an integer")
	}
	n, big := v.kind.int(v.raw)
	if big {
		return 0, fmt.Errorf("key %s is %d, which is too large", quoted(key), uint64(n))
	}
	return n, nil
}

// Float returns a number: a float of either width, or an integer.
func (m *Meta) Float(key string) (float64, error) {
	v, err := m.get(key)
	if err != nil {
		return 0, err
	}
	if !v.kind.float() && !v.kind.integer() {
		return 0, wrongType(key, v, "a number")
	}
	return v.kind.number(v.raw), nil
}

// Bool returns a bool value.
func (m *Meta) Bool(key string) (bool, error) {
	v, err := m.get(key)
	if err != nil {
		return false, err
	}
	if v.kind != kindBool {
		return false, wrongType(key, v, "bool")
	}
	return v.raw[0] != 0, nil
}

// Strings returns an array of strings. They share the memory of the metadata.
func (m *Meta) Strings(key string) ([]string, error) {
	v, err := m.get(key)
	if err != nil {
		return nil, err
	}
	if v.kind != kindArray || v.elem != kindString {
		return nil, wrongType(key, v, "array of string")
	}
	return v.strings(), nil
}

// Ints returns an array of integers of any width; an integer that is not in an
// array is an array of one. Many per-layer keys may be either.
func (m *Meta) Ints(key string) ([]int64, error) {
	v, err := m.get(key)
	if err != nil {
		return nil, err
	}
	elem, count := v.flat()
	if !elem.integer() {
		return nil, wrongType(key, v, "integers")
	}
	out := make([]int64, count)
	for i, w := 0, elem.width(); i < count; i++ {
		n, big := elem.int(v.raw[i*w:])
		if big {
			return nil, fmt.Errorf("key %s is %d at element %d, which is too large", quoted(key), uint64(n), i)
		}
		out[i] = n
	}
	return out, nil
}

// Floats returns an array of numbers; a number that is not in an array is an array of one.
func (m *Meta) Floats(key string) ([]float64, error) {
	v, err := m.get(key)
	if err != nil {
		return nil, err
	}
	elem, count := v.flat()
	if !elem.integer() && !elem.float() {
		return nil, wrongType(key, v, "numbers")
	}
	out := make([]float64, count)
	for i, w := 0, elem.width(); i < count; i++ {
		out[i] = elem.number(v.raw[i*w:])
	}
	return out, nil
}

// Bools returns an array of bools; a bool that is not in an array is an array of one.
func (m *Meta) Bools(key string) ([]bool, error) {
	v, err := m.get(key)
	if err != nil {
		return nil, err
	}
	elem, count := v.flat()
	if elem != kindBool {
		return nil, wrongType(key, v, "bools")
	}
	out := make([]bool, count)
	for i := range out {
		out[i] = v.raw[i] != 0
	}
	return out, nil
}

func (m *Meta) get(key string) (value, error) {
	i, ok := m.index[key]
	if !ok {
		return value{}, fmt.Errorf("%w %s in the metadata", ErrNoKey, quoted(key))
	}
	return m.vals[i], nil
}

func wrongType(key string, v value, want string) error {
	return fmt.Errorf("key %s has type %v, wanted %s", quoted(key), v, want)
}

// flat sees a scalar as an array of one.
func (v value) flat() (elem kind, count int) {
	if v.kind == kindArray {
		return v.elem, v.count
	}
	return v.kind, 1
}

// int reads an integer; big says that it is a uint64 above the largest int64.
func (k kind) int(raw string) (n int64, big bool) {
	switch k {
	case kindUint8:
		return int64(raw[0]), false
	case kindInt8:
		return int64(int8(raw[0])), false
	case kindUint16:
		return int64(u16(raw)), false
	case kindInt16:
		return int64(int16(u16(raw))), false
	case kindUint32:
		return int64(u32(raw)), false
	case kindInt32:
		return int64(int32(u32(raw))), false
	case kindUint64:
		n := u64(raw)
		return int64(n), n > math.MaxInt64
	default:
		return int64(u64(raw)), false
	}
}

func (k kind) number(raw string) float64 {
	switch k {
	case kindFloat32:
		return float64(math.Float32frombits(u32(raw)))
	case kindFloat64:
		return math.Float64frombits(u64(raw))
	case kindUint64:
		return float64(u64(raw))
	}
	n, _ := k.int(raw)
	return float64(n)
}

func (v value) scalar() any {
	switch v.kind {
	case kindUint8:
		return v.raw[0]
	case kindInt8:
		return int8(v.raw[0])
	case kindUint16:
		return u16(v.raw)
	case kindInt16:
		return int16(u16(v.raw))
	case kindUint32:
		return u32(v.raw)
	case kindInt32:
		return int32(u32(v.raw))
	case kindFloat32:
		return math.Float32frombits(u32(v.raw))
	case kindBool:
		return v.raw[0] != 0
	case kindUint64:
		return u64(v.raw)
	case kindInt64:
		return int64(u64(v.raw))
	case kindFloat64:
		return math.Float64frombits(u64(v.raw))
	}
	return v.raw
}

func elements[T any](v value, read func(string) T) []T {
	out := make([]T, v.count)
	for i, w := 0, v.elem.width(); i < v.count; i++ {
		out[i] = read(v.raw[i*w:])
	}
	return out
}

func (v value) strings() []string {
	out := make([]string, v.count)
	raw := v.raw
	for i := range out {
		n := int(u64(raw))
		out[i], raw = raw[8:8+n], raw[8+n:]
	}
	return out
}

func u16(s string) uint16 { return uint16(s[0]) | uint16(s[1])<<8 }

func u32(s string) uint32 {
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

func u64(s string) uint64 { return uint64(u32(s)) | uint64(u32(s[4:]))<<32 }
