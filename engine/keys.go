package engine

import (
	"errors"
	"fmt"
	"math"

	"outcrop/engine/gguf"
)

// keys reads the metadata of one family. Names are given without the
// "<arch>." prefix. The first problem is kept in err and every later read
// returns a harmless value, so that a family file reads without checks between
// its lines.
type keys struct {
	m    *gguf.Meta
	arch string
	err  error
}

func (k *keys) name(key string) string { return k.arch + "." + key }

func (k *keys) fail(format string, a ...any) {
	if k.err == nil {
		k.err = fmt.Errorf(format, a...)
	}
}

func (k *keys) has(key string) bool {
	_, ok := k.m.Any(k.name(key))
	return ok
}

// int reads a required integer in [lo, hi].
func (k *keys) int(key string, lo, hi int) int {
	v, err := k.m.Int(k.name(key))
	if err != nil {
		k.fail("%w", err)
		return lo
	}
	if v < int64(lo) || v > int64(hi) {
		k.fail("key %q is %d, want %d to %d", k.name(key), v, lo, hi)
		return lo
	}
	return int(v)
}

// intOr is int with a value for an absent key.
func (k *keys) intOr(key string, def, lo, hi int) int {
	if !k.has(key) {
		return def
	}
	return k.int(key, lo, hi)
}

// float reads an optional finite number.
func (k *keys) float(key string, def float64) float64 {
	v, err := k.m.Float(k.name(key))
	switch {
	case errors.Is(err, gguf.ErrNoKey):
		return def
	case err != nil:
		k.fail("%w", err)
		return def
	case math.IsNaN(v) || math.IsInf(v, 0):
		k.fail("key %q is %v, want a finite number", k.name(key), v)
		return def
	}
	return v
}

func (k *keys) bool(key string, def bool) bool {
	v, err := k.m.Bool(k.name(key))
	switch {
	case errors.Is(err, gguf.ErrNoKey):
		return def
	case err != nil:
		k.fail("%w", err)
		return def
	}
	return v
}

func (k *keys) string(key string) string {
	v, err := k.m.String(k.name(key))
	if err != nil && !errors.Is(err, gguf.ErrNoKey) {
		k.fail("%w", err)
	}
	return v
}

// ints reads an optional array (or a scalar) with every value in [lo, hi].
func (k *keys) ints(key string, lo, hi int64) []int64 {
	v, err := k.m.Ints(k.name(key))
	if err != nil {
		if !errors.Is(err, gguf.ErrNoKey) {
			k.fail("%w", err)
		}
		return nil
	}
	for i, x := range v {
		if x < lo || x > hi {
			k.fail("key %q value %d is %d, want %d to %d", k.name(key), i, x, lo, hi)
			return nil
		}
	}
	return v
}

// ints2 reads integers if the key holds integers, nil if it holds something else
// or is absent: some keys may be a number or an array of bools.
func (k *keys) ints2(key string) []int64 {
	v, err := k.m.Ints(k.name(key))
	if err != nil {
		return nil
	}
	return v
}

// perLayer reads a value that may be one for all n layers or an array with one
// for each. An absent key gives def everywhere; def < lo makes it required.
func (k *keys) perLayer(key string, n, def, lo, hi int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = max(def, lo)
	}
	if !k.has(key) {
		if def < lo {
			k.fail("%w %q in the metadata", gguf.ErrNoKey, k.name(key))
		}
		return out
	}
	v := k.ints(key, int64(lo), int64(hi))
	if k.err != nil {
		return out
	}
	if len(v) != 1 && len(v) != n {
		k.fail("key %q has %d values, want 1 or %d", k.name(key), len(v), n)
		return out
	}
	for i := range out {
		out[i] = int(v[min(i, len(v)-1)])
	}
	return out
}

// uints reads a required array of n numbers that are not negative, of any
// integer type; hash multipliers may be above the largest int64.
func (k *keys) uints(key string, n int) []uint64 {
	out := make([]uint64, n)
	v, _ := k.m.Any(k.name(key))
	if big, ok := v.([]uint64); ok && len(big) == n {
		copy(out, big)
		return out
	}
	x, err := k.m.Ints(k.name(key))
	if err != nil {
		k.fail("%w", err)
		return out
	}
	if len(x) != n {
		k.fail("key %q has %d values, want %d", k.name(key), len(x), n)
		return out
	}
	for i, v := range x {
		if v < 0 {
			k.fail("key %q value %d is %d, want 0 or more", k.name(key), i, v)
			return out
		}
		out[i] = uint64(v)
	}
	return out
}

// flags reads a bool per layer, stored as an array of bools or of integers;
// nil when absent.
func (k *keys) flags(key string, n int) []bool {
	if !k.has(key) {
		return nil
	}
	v, err := k.m.Bools(k.name(key))
	if err != nil {
		for _, x := range k.ints(key, 0, 1) {
			v = append(v, x != 0)
		}
	}
	if k.err == nil && len(v) != n {
		k.fail("key %q has %d values, want %d", k.name(key), len(v), n)
	}
	if k.err != nil {
		return make([]bool, n)
	}
	return v
}
