package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"
)

// Limits that no real file comes near. They bound what a hostile file can
// make us hold or walk, beyond the rule that nothing exceeds the bytes present.
const (
	// maxHeader bounds metadata and tensor directory together. The largest
	// vocabularies in use (260 thousand tokens, half a million merges) take 15 MB.
	maxHeader = 256 << 20
	// maxName bounds a key (the specification says 65535) or a tensor's name.
	maxName = 65535
	// maxDims is the number of dimensions a tensor may have.
	maxDims = 4
)

// Errors that callers tell apart.
var (
	// ErrNotGGUF says that the file is something else.
	ErrNotGGUF = errors.New("not a GGUF file")
	// ErrTruncated says that the file ends before what its header promises.
	ErrTruncated = errors.New("file is truncated")
	// ErrUnknownType says that a tensor is stored in a format this program does not know.
	ErrUnknownType = errors.New("unknown tensor type")
)

// header is what one file says of itself.
type header struct {
	version   uint32
	meta      *Meta
	tensors   []*Tensor
	alignment int64
	dataStart int64 // where tensor offsets count from
}

// scanner walks the bytes of a file. pos never passes len(data).
type scanner struct {
	data []byte // at most maxHeader bytes
	size int64  // of the whole file
	pos  int
	what string // being read, for messages
}

// short is the error for n more bytes that are not there.
func (s *scanner) short(n uint64) error {
	left := s.size - int64(s.pos)
	if n > uint64(left) {
		return fmt.Errorf("%w: %s needs %d bytes at offset %d, %d are left: copy or download the file again", ErrTruncated, s.what, n, s.pos, left)
	}
	return fmt.Errorf("header is larger than %d MiB (reading %s at offset %d)", maxHeader>>20, s.what, s.pos)
}

func (s *scanner) need(n uint64) error {
	if n > uint64(len(s.data)-s.pos) {
		return s.short(n)
	}
	return nil
}

func (s *scanner) u32() (uint32, error) {
	if err := s.need(4); err != nil {
		return 0, err
	}
	v := binary.LittleEndian.Uint32(s.data[s.pos:])
	s.pos += 4
	return v, nil
}

func (s *scanner) u64() (uint64, error) {
	if err := s.need(8); err != nil {
		return 0, err
	}
	v := binary.LittleEndian.Uint64(s.data[s.pos:])
	s.pos += 8
	return v, nil
}

// name reads a key or a tensor name into memory of its own.
func (s *scanner) name() (string, error) {
	n, err := s.u64()
	if err != nil {
		return "", err
	}
	if n > maxName {
		if err := s.need(n); err != nil {
			return "", err
		}
		return "", fmt.Errorf("%s is %d bytes long, at most %d are allowed", s.what, n, maxName)
	}
	if err := s.need(n); err != nil {
		return "", err
	}
	text := string(s.data[s.pos : s.pos+int(n)])
	s.pos += int(n)
	return text, nil
}

// parse reads and checks the header of a file whose bytes are data.
func parse(data []byte) (*header, error) {
	return parseHeader(data, true)
}

// parseHeader stops after the metadata unless directory is set.
func parseHeader(data []byte, directory bool) (*header, error) {
	if err := checkMagic(data); err != nil {
		return nil, err
	}
	size := int64(len(data))
	s := &scanner{data: data[:min(len(data), maxHeader)], size: size, pos: 4, what: "version"}
	h := &header{}
	var err error
	if h.version, err = s.u32(); err != nil {
		return nil, err
	}
	switch {
	case h.version == 2 || h.version == 3:
	case h.version == 1:
		return nil, errors.New("GGUF version 1 is not supported, 2 and 3 are: convert the file with a newer tool")
	case h.version > 0xFFFF && bits.ReverseBytes32(h.version) <= 0xFFFF:
		return nil, errors.New("big-endian GGUF is not supported: get the little-endian file of this model")
	default:
		return nil, fmt.Errorf("GGUF version %d is not supported, 2 and 3 are", h.version)
	}
	s.what = "tensor count"
	tensors, err := s.u64()
	if err != nil {
		return nil, err
	}
	s.what = "metadata count"
	pairs, err := s.u64()
	if err != nil {
		return nil, err
	}
	// The shortest metadata pair takes 13 bytes, the shortest tensor entry 24.
	left := uint64(size) - uint64(s.pos)
	if pairs > left/13 {
		return nil, fmt.Errorf("%w: %d metadata pairs do not fit in the %d bytes left", ErrTruncated, pairs, left)
	}
	if tensors > left/24 {
		return nil, fmt.Errorf("%w: %d tensors do not fit in the %d bytes left", ErrTruncated, tensors, left)
	}
	if h.meta, err = s.metadata(int(pairs)); err != nil {
		return nil, err
	}
	if h.alignment, err = alignment(h.meta); err != nil {
		return nil, err
	}
	if !directory {
		return h, nil
	}
	if h.tensors, err = s.directory(int(tensors)); err != nil {
		return nil, err
	}
	h.dataStart = alignUp(int64(s.pos), h.alignment)
	if err := h.place(size); err != nil {
		return nil, err
	}
	return h, nil
}

// checkMagic looks at the first bytes, and says what the file is instead when
// it is one of the things that are often saved under a model's name.
func checkMagic(data []byte) error {
	if len(data) == 0 {
		return fmt.Errorf("%w: the file is empty", ErrNotGGUF)
	}
	head := string(data[:min(len(data), 512)])
	if strings.HasPrefix(head, "GGUF") {
		return nil
	}
	lower := strings.ToLower(strings.TrimLeft(head, "\xef\xbb\xbf \t\r\n"))
	switch {
	case strings.HasPrefix("GGUF", head):
		return fmt.Errorf("%w: only %d bytes", ErrTruncated, len(data))
	case strings.HasPrefix(head, "FUGG"):
		return errors.New("big-endian GGUF is not supported: get the little-endian file of this model")
	case strings.HasPrefix(head, "version https://git-lfs"):
		return fmt.Errorf("%w: it is a Git LFS pointer, the model itself was not fetched: run git lfs pull", ErrNotGGUF)
	case strings.HasPrefix(lower, "<!doctype") || strings.HasPrefix(lower, "<html") || strings.HasPrefix(lower, "<?xml"):
		return fmt.Errorf("%w: it is a web page, probably an error page saved in place of the model: download it again", ErrNotGGUF)
	case strings.HasPrefix(head, "PK\x03\x04"):
		return fmt.Errorf("%w: it is a zip archive (a PyTorch checkpoint is one too)", ErrNotGGUF)
	case strings.HasPrefix(head, "\x1f\x8b"):
		return fmt.Errorf("%w: it is compressed with gzip: unpack it first", ErrNotGGUF)
	case strings.HasPrefix(head, "\x28\xb5\x2f\xfd"):
		return fmt.Errorf("%w: it is compressed with zstd: unpack it first", ErrNotGGUF)
	case strings.HasPrefix(head, "lmgg"), strings.HasPrefix(head, "fmgg"), strings.HasPrefix(head, "tjgg"), strings.HasPrefix(head, "algg"):
		return fmt.Errorf("%w: it is in an older GGML format: convert it with a newer tool", ErrNotGGUF)
	case len(head) > 9 && head[8] == '{':
		return fmt.Errorf("%w: it looks like safetensors: convert it to GGUF first", ErrNotGGUF)
	case strings.HasPrefix(lower, "{"):
		return fmt.Errorf("%w: it is JSON text", ErrNotGGUF)
	}
	return fmt.Errorf("%w: it begins with %q, a model begins with \"GGUF\"", ErrNotGGUF, head[:min(len(head), 4)])
}

// metadata reads n pairs. The whole region is copied to the heap once and all
// keys and values are parts of that copy, so that a vocabulary of hundreds of
// thousands of tokens costs one allocation and stays valid after Close.
func (s *scanner) metadata(n int) (*Meta, error) {
	start := s.pos
	type span struct{ key, keyEnd, val, end int }
	var spans []span
	m := &Meta{index: make(map[string]int, min(n, 1024))}
	for i := range n {
		s.what = fmt.Sprintf("key %d of %d", i+1, n)
		key, err := s.name()
		if err != nil {
			return nil, err
		}
		sp := span{key: s.pos - len(key), keyEnd: s.pos}
		if _, twice := m.index[key]; twice {
			return nil, fmt.Errorf("key %s appears twice", quoted(key))
		}
		s.what = "the value of key " + quoted(key)
		v, err := s.value(key)
		if err != nil {
			return nil, err
		}
		sp.end = s.pos
		sp.val = sp.end - v.bytes
		spans = append(spans, sp)
		m.index[key] = i
		m.vals = append(m.vals, value{kind: v.kind, elem: v.elem, count: v.count})
	}
	raw := string(s.data[start:s.pos])
	for i, sp := range spans {
		m.keys = append(m.keys, raw[sp.key-start:sp.keyEnd-start])
		m.vals[i].raw = raw[sp.val-start : sp.end-start]
	}
	// Index again with keys that share the copy, so that the first ones are freed.
	m.index = make(map[string]int, len(m.keys))
	for i, key := range m.keys {
		m.index[key] = i
	}
	return m, nil
}

// found is a value that was walked over: its kind and how many bytes it ends with.
type found struct {
	kind, elem kind
	count      int
	bytes      int
}

// value walks over one value and checks it.
func (s *scanner) value(key string) (found, error) {
	k, err := s.u32()
	if err != nil {
		return found{}, err
	}
	v := found{kind: kind(k)}
	switch {
	case !v.kind.known():
		return v, fmt.Errorf("key %s has unknown value %v", quoted(key), v.kind)
	case v.kind == kindString:
		n, err := s.u64()
		if err != nil {
			return v, err
		}
		if err := s.need(n); err != nil {
			return v, err
		}
		v.bytes = int(n)
	case v.kind == kindArray:
		return s.array(key)
	default:
		v.bytes = v.kind.width()
		if err := s.need(uint64(v.bytes)); err != nil {
			return v, err
		}
		if v.kind == kindBool && s.data[s.pos] > 1 {
			return v, fmt.Errorf("key %s is a bool of value %d, 0 and 1 are allowed", quoted(key), s.data[s.pos])
		}
	}
	s.pos += v.bytes
	return v, nil
}

// array walks over the elements of an array. Arrays of arrays are refused at
// the first level: no model uses them, and nesting without end is a known way
// to hang or overflow a reader.
func (s *scanner) array(key string) (found, error) {
	v := found{kind: kindArray}
	e, err := s.u32()
	if err != nil {
		return v, err
	}
	v.elem = kind(e)
	n, err := s.u64()
	if err != nil {
		return v, err
	}
	if !v.elem.known() {
		return v, fmt.Errorf("key %s is an array of unknown element %v", quoted(key), v.elem)
	}
	if v.elem == kindArray {
		return v, fmt.Errorf("key %s is an array of arrays, which is not supported", quoted(key))
	}
	width := v.elem.width()
	if v.elem == kindString {
		width = 8 // the length of an empty one
	}
	if left := uint64(len(s.data) - s.pos); n > left/uint64(width) {
		hi, need := bits.Mul64(n, uint64(width))
		if hi != 0 {
			need = math.MaxUint64
		}
		return v, fmt.Errorf("array of %d %s: %w", n, v.elem, s.short(need))
	}
	start := s.pos
	v.count = int(n)
	switch v.elem {
	case kindString:
		for range v.count {
			size, err := s.u64()
			if err != nil {
				return v, err
			}
			if err := s.need(size); err != nil {
				return v, err
			}
			s.pos += int(size)
		}
	case kindBool:
		for i, b := range s.data[s.pos : s.pos+v.count] {
			if b > 1 {
				return v, fmt.Errorf("key %s has a bool of value %d at element %d, 0 and 1 are allowed", quoted(key), b, i)
			}
		}
		s.pos += v.count
	default:
		s.pos += v.count * width
	}
	v.bytes = s.pos - start
	return v, nil
}

// alignment is the key general.alignment, 32 when absent.
func alignment(m *Meta) (int64, error) {
	a, err := m.Uint("general.alignment")
	switch {
	case errors.Is(err, ErrNoKey):
		return 32, nil
	case err != nil:
		return 0, err
	case a == 0 || a&(a-1) != 0:
		return 0, fmt.Errorf("general.alignment is %d, a power of two is needed", a)
	case a > 1<<30:
		return 0, fmt.Errorf("general.alignment is %d, at most %d is supported", a, 1<<30)
	}
	return int64(a), nil
}

func alignUp(n, a int64) int64 { return (n + a - 1) &^ (a - 1) }
