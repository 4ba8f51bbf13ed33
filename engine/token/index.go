package token

import (
	"hash/maphash"
	"math/bits"
)

// index finds tokens by their bytes. It is a map from string to ID that knows
// its size, keeps no copy of the keys and is built in half the time, which
// counts with hundreds of thousands of tokens.
type index struct {
	seed  maphash.Seed
	slots []indexSlot // open addressing; length is a power of two
	keys  []string    // by id
}

type indexSlot struct {
	hash uint32
	id   int32 // plus one; 0 is empty
}

// newIndex makes an empty index over keys, which stay the caller's.
func newIndex(keys []string) *index {
	size := 1 << bits.Len(uint(2*len(keys)))
	return &index{seed: maphash.MakeSeed(), slots: make([]indexSlot, size), keys: keys}
}

// add enters the key of an id. An empty key is left out, and of equal keys the
// first stays.
func (x *index) add(id ID) {
	key := x.keys[id]
	if key == "" {
		return
	}
	h := maphash.String(x.seed, key)
	mask := len(x.slots) - 1
	for i := int(h) & mask; ; i = (i + 1) & mask {
		s := &x.slots[i]
		if s.id == 0 {
			*s = indexSlot{uint32(h >> 32), int32(id) + 1}
			return
		}
		if s.hash == uint32(h>>32) && x.keys[s.id-1] == key {
			return
		}
	}
}

// find looks a key up.
func (x *index) find(key string) (ID, bool) {
	h := maphash.String(x.seed, key)
	mask := len(x.slots) - 1
	for i := int(h) & mask; ; i = (i + 1) & mask {
		s := x.slots[i]
		if s.id == 0 {
			return 0, false
		}
		if s.hash == uint32(h>>32) && x.keys[s.id-1] == key {
			return ID(s.id - 1), true
		}
	}
}

// findBytes is find for bytes.
func (x *index) findBytes(key []byte) (ID, bool) {
	h := maphash.Bytes(x.seed, key)
	mask := len(x.slots) - 1
	for i := int(h) & mask; ; i = (i + 1) & mask {
		s := x.slots[i]
		if s.id == 0 {
			return 0, false
		}
		if s.hash == uint32(h>>32) && x.keys[s.id-1] == string(key) {
			return ID(s.id - 1), true
		}
	}
}
