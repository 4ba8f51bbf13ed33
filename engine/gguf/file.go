package gguf

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"

	"outcrop/engine/quant"
)

// Tensor is one entry of the tensor directory.
type Tensor struct {
	Name   string
	Type   quant.Type
	Shape  []int64 // 1 to 4 dimensions, the fastest one (ne0, the row length) first
	Shard  int     // index in File.Shards
	Offset int64   // of the first byte, counted from the start of the shard's file
	Bytes  int64   // size of the data, without padding
}

// Values is the number of values in the tensor.
func (t *Tensor) Values() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Shard is one file of a model.
type Shard struct {
	Path   string
	Size   int64  // bytes
	Mapped []byte // the whole file, read only; nil after Close
}

// File is an open model: one file, or all shards of one.
type File struct {
	version uint32
	meta    *Meta
	tensors []*Tensor
	index   map[string]*Tensor
	shards  []Shard
	maps    []*mapping
}

// Open maps the model of which path is a file. When that file is one shard of
// several, the others are looked for beside it, and all are checked to belong
// together. The files must not be changed or cut while they are open.
func Open(path string) (*File, error) {
	first, err := openShard(path)
	if err != nil {
		return nil, err
	}
	f, err := assemble(path, first)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// ReadMeta reads the metadata of one file only, for a list that must name
// files which Open refuses, such as those with tensor types of the future.
// The file does not stay open.
func ReadMeta(path string) (*Meta, error) {
	if err := checkPath(path); err != nil { // a pipe would wait for its writer
		return nil, err
	}
	m, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	defer m.close()
	h, err := guarded(path, func() (*header, error) { return parseHeader(m.data, false) })
	if err != nil {
		return nil, err
	}
	return h.meta, nil
}

// Version is the format version of the file, 2 or 3.
func (f *File) Version() int { return int(f.version) }

// Meta returns the metadata; of a split model, that of the first shard.
func (f *File) Meta() *Meta { return f.meta }

// Tensor finds a tensor by name; nil when there is none.
func (f *File) Tensor(name string) *Tensor { return f.index[name] }

// Tensors lists all tensors in the order of the files. The caller owns the slice.
func (f *File) Tensors() []*Tensor { return slices.Clone(f.tensors) }

// Shards lists the files of the model in their order. The caller owns the slice.
func (f *File) Shards() []Shard { return slices.Clone(f.shards) }

// Data returns the bytes of a tensor of this file: a read-only part of the
// mapping, of length t.Bytes, nil after Close. It must not be used after
// Close, and writing to it ends the program.
func (f *File) Data(t *Tensor) []byte {
	data := f.shards[t.Shard].Mapped
	if data == nil {
		return nil
	}
	return data[t.Offset : t.Offset+t.Bytes : t.Offset+t.Bytes]
}

// Close unmaps all files. Closing again does nothing.
func (f *File) Close() error {
	var errs []error
	for i, m := range f.maps {
		errs = append(errs, m.close())
		f.shards[i].Mapped = nil
	}
	f.maps = nil
	return errors.Join(errs...)
}

// shard is an open file with its parsed header.
type shard struct {
	path string
	m    *mapping
	h    *header
}

func openShard(path string) (*shard, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	m, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	h, err := guarded(path, func() (*header, error) { return parse(m.data) })
	if err != nil {
		m.close()
		return nil, err
	}
	return &shard{path: path, m: m, h: h}, nil
}

// guarded runs read over a mapping. A mapped file that is cut while it is read
// makes the processor fault; that becomes an error here, as it would be for a
// file that is read the ordinary way.
func guarded(path string, read func() (*header, error)) (h *header, err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		if r := recover(); r != nil {
			if _, fault := r.(interface{ Addr() uintptr }); !fault {
				panic(r)
			}
			h, err = nil, fmt.Errorf("open %s: the file changed while it was read, or the disk failed", path)
		}
	}()
	h, err = read()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return h, nil
}

func checkPath(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("open %s: it is a folder, a GGUF file is wanted", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("open %s: it is not a regular file", path)
	}
	if raw, ok := rawPart(path); ok {
		return fmt.Errorf("open %s: it is one piece of a file that was cut in parts: join them first (cat %s.part* > %s)", path, raw, raw)
	}
	return nil
}
