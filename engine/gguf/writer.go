package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"

	"outcrop/engine/quant"
)

// Writer makes a GGUF file, for tests and tools. Keys and tensors are written
// in the order they were set and added, so equal calls give equal bytes. The
// first mistake is kept and returned by WriteTo.
type Writer struct {
	// Version is the format version to write; NewWriter sets 3.
	Version uint32

	pairs   []pair
	index   map[string]int
	tensors []entry
	names   map[string]bool
	align   int64
	err     error
}

type pair struct {
	key string
	val []byte // encoded, with its type number in front
}

type entry struct {
	name  string
	typ   quant.Type
	shape []int64
	data  []byte
}

// NewWriter starts an empty file of version 3.
func NewWriter() *Writer {
	return &Writer{Version: 3, index: map[string]int{}, names: map[string]bool{}, align: 32}
}

func (w *Writer) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("write gguf: "+format, args...)
	}
}

// Set sets a key to a value of one of the types that Meta.Any returns. Setting
// a key again replaces its value in its place. general.alignment is obeyed.
func (w *Writer) Set(key string, v any) {
	val, err := encodeValue(v)
	if err != nil {
		w.fail("key %s: %w", quoted(key), err)
		return
	}
	if key == "general.alignment" {
		a, ok := v.(uint32)
		if !ok || a == 0 || a&(a-1) != 0 {
			w.fail("general.alignment is %v, a uint32 power of two is needed", v)
			return
		}
		w.align = int64(a)
	}
	if i, ok := w.index[key]; ok {
		w.pairs[i].val = val
		return
	}
	w.index[key] = len(w.pairs)
	w.pairs = append(w.pairs, pair{key, val})
}

// Add adds a tensor; shape has the fastest dimension first, data is kept, not
// copied, and must be as long as type and shape say.
func (w *Writer) Add(name string, t quant.Type, shape []int64, data []byte) {
	if w.names[name] {
		w.fail("tensor %s is added twice", quoted(name))
		return
	}
	f, err := quant.Of(t)
	if err != nil {
		w.fail("tensor %s: %w", quoted(name), err)
		return
	}
	if len(shape) < 1 || len(shape) > maxDims {
		w.fail("tensor %s has %d dimensions, 1 to %d are possible", quoted(name), len(shape), maxDims)
		return
	}
	values := int64(1)
	for _, d := range shape {
		if d < 1 || values > math.MaxInt64/d {
			w.fail("tensor %s has the impossible shape %v", quoted(name), shape)
			return
		}
		values *= d
	}
	if shape[0]%int64(f.Block) != 0 {
		w.fail("tensor %s: rows of %d values are not whole blocks of %d", quoted(name), shape[0], f.Block)
		return
	}
	if want := values / int64(f.Block) * int64(f.Bytes); int64(len(data)) != want {
		w.fail("tensor %s of type %s and shape %v takes %d bytes, got %d", quoted(name), f.Name, shape, want, len(data))
		return
	}
	w.names[name] = true
	w.tensors = append(w.tensors, entry{name, t, append([]int64(nil), shape...), data})
}

// WriteTo writes the file.
func (w *Writer) WriteTo(out io.Writer) (int64, error) {
	if w.err != nil {
		return 0, w.err
	}
	head := w.header()
	buf := bufio.NewWriterSize(out, 1<<16)
	var n int64
	put := func(b []byte) error {
		m, err := buf.Write(b)
		n += int64(m)
		return err
	}
	padding := make([]byte, w.align)
	pad := func() error { return put(padding[:alignUp(n, w.align)-n]) }
	if err := put(head); err != nil {
		return n, err
	}
	for _, t := range w.tensors {
		if err := pad(); err != nil {
			return n, err
		}
		if err := put(t.data); err != nil {
			return n, err
		}
	}
	// The last tensor is padded too, as other writers do.
	if err := pad(); err != nil {
		return n, err
	}
	return n, buf.Flush()
}

// WriteFile writes the file to path, replacing what is there.
func (w *Writer) WriteFile(path string) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := w.WriteTo(out); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// header encodes everything before the data section.
func (w *Writer) header() []byte {
	b := append([]byte(nil), "GGUF"...)
	b = binary.LittleEndian.AppendUint32(b, w.Version)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(w.tensors)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(w.pairs)))
	for _, p := range w.pairs {
		b = appendString(b, p.key)
		b = append(b, p.val...)
	}
	var offset int64
	for _, t := range w.tensors {
		b = appendString(b, t.name)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(t.shape)))
		for _, d := range t.shape {
			b = binary.LittleEndian.AppendUint64(b, uint64(d))
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(t.typ))
		b = binary.LittleEndian.AppendUint64(b, uint64(offset))
		offset = alignUp(offset+int64(len(t.data)), w.align)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}

// encodeValue gives the bytes of a value with its type number in front.
func encodeValue(v any) ([]byte, error) {
	num := func(k kind, v any) ([]byte, error) {
		b := binary.LittleEndian.AppendUint32(nil, uint32(k))
		return binary.Append(b, binary.LittleEndian, v)
	}
	arr := func(k kind, n int, v any) ([]byte, error) {
		b := binary.LittleEndian.AppendUint32(nil, uint32(kindArray))
		b = binary.LittleEndian.AppendUint32(b, uint32(k))
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
		return binary.Append(b, binary.LittleEndian, v)
	}
	switch v := v.(type) {
	case uint8:
		return num(kindUint8, v)
	case int8:
		return num(kindInt8, v)
	case uint16:
		return num(kindUint16, v)
	case int16:
		return num(kindInt16, v)
	case uint32:
		return num(kindUint32, v)
	case int32:
		return num(kindInt32, v)
	case float32:
		return num(kindFloat32, v)
	case bool:
		return num(kindBool, v)
	case uint64:
		return num(kindUint64, v)
	case int64:
		return num(kindInt64, v)
	case float64:
		return num(kindFloat64, v)
	case string:
		return appendString(binary.LittleEndian.AppendUint32(nil, uint32(kindString)), v), nil
	case []uint8:
		return arr(kindUint8, len(v), v)
	case []int8:
		return arr(kindInt8, len(v), v)
	case []uint16:
		return arr(kindUint16, len(v), v)
	case []int16:
		return arr(kindInt16, len(v), v)
	case []uint32:
		return arr(kindUint32, len(v), v)
	case []int32:
		return arr(kindInt32, len(v), v)
	case []float32:
		return arr(kindFloat32, len(v), v)
	case []bool:
		return arr(kindBool, len(v), v)
	case []uint64:
		return arr(kindUint64, len(v), v)
	case []int64:
		return arr(kindInt64, len(v), v)
	case []float64:
		return arr(kindFloat64, len(v), v)
	case []string:
		b := binary.LittleEndian.AppendUint32(nil, uint32(kindArray))
		b = binary.LittleEndian.AppendUint32(b, uint32(kindString))
		b = binary.LittleEndian.AppendUint64(b, uint64(len(v)))
		for _, s := range v {
			b = appendString(b, s)
		}
		return b, nil
	}
	return nil, fmt.Errorf("a value of type %T cannot be stored", v)
}
