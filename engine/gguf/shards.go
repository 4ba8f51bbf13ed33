package gguf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Keys that mark a shard. split.no counts from 0, the number in the file's
// name from 1; split.tensors.count is the total over all shards.
const (
	keySplitNo      = "split.no"
	keySplitCount   = "split.count"
	keySplitTensors = "split.tensors.count"
)

// maxShards bounds the files of one model; the name has five digits.
const maxShards = 99999

var (
	shardName = regexp.MustCompile(`^(.*)-([0-9]{5})-of-([0-9]{5})\.gguf$`)
	rawName   = regexp.MustCompile(`(?i)^(.*\.gguf)\.part[0-9]+(of[0-9]+)?$`)
)

// ShardName takes the name of a file apart that follows the pattern of split
// models, NAME-00001-of-00003.gguf. no counts from 1. ok is false for other
// names and for numbers that cannot be (00000, 6 of 5).
func ShardName(path string) (prefix string, no, count int, ok bool) {
	dir, base := filepath.Split(path)
	g := shardName.FindStringSubmatch(base)
	if g == nil {
		return "", 0, 0, false
	}
	no, _ = strconv.Atoi(g[2])
	count, _ = strconv.Atoi(g[3])
	if no < 1 || no > count {
		return "", 0, 0, false
	}
	return dir + g[1], no, count, true
}

// shardPath is the reverse of ShardName.
func shardPath(prefix string, no, count int) string {
	return fmt.Sprintf("%s-%05d-of-%05d.gguf", prefix, no, count)
}

// rawPart recognises a file that was cut without regard to the format, as some
// uploads are, and names the whole.
func rawPart(path string) (whole string, ok bool) {
	if g := rawName.FindStringSubmatch(filepath.Base(path)); g != nil {
		return g[1], true
	}
	return "", false
}

// split reads the keys of a shard: no counts from 0, count is 1 for a model in
// one file. total is -1 when the file does not say.
func (m *Meta) split() (no, count int, total int64, err error) {
	n, err := m.Uint(keySplitCount)
	if errors.Is(err, ErrNoKey) {
		return 0, 1, -1, nil
	}
	if err != nil {
		return 0, 0, 0, err
	}
	if n <= 1 {
		return 0, 1, -1, nil
	}
	if n > maxShards {
		return 0, 0, 0, fmt.Errorf("%s is %d, at most %d is possible", keySplitCount, n, maxShards)
	}
	i, err := m.Uint(keySplitNo)
	if err != nil {
		return 0, 0, 0, err
	}
	if i >= n {
		return 0, 0, 0, fmt.Errorf("%s is %d, with %d shards it is at most %d", keySplitNo, i, n, n-1)
	}
	t, err := m.Uint(keySplitTensors)
	if err != nil {
		return 0, 0, 0, err
	}
	if t > maxHeader {
		return 0, 0, 0, fmt.Errorf("%s is %d, which is too large", keySplitTensors, t)
	}
	return int(i), int(n), int64(t), nil
}

// assemble opens what first is a part of and joins the directories.
func assemble(path string, first *shard) (f *File, err error) {
	shards := []*shard{first}
	defer func() {
		if err != nil {
			for _, s := range shards {
				if s != nil {
					s.m.close()
				}
			}
		}
	}()
	no, count, total, err := first.h.meta.split()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if count > 1 {
		prefix, err := siblings(path, no, count)
		if err != nil {
			return nil, err
		}
		// The list grows as files open: a count that the file only claims
		// reserves nothing.
		shards = nil
		for i := range count {
			s := first
			if i != no {
				if s, err = openShard(shardPath(prefix, i+1, count)); err != nil {
					if i < no {
						shards = append(shards, first)
					}
					return nil, err
				}
			}
			shards = append(shards, s)
			if i == no {
				continue
			}
			n, c, t, err := s.h.meta.split()
			switch {
			case err != nil:
			case c != count:
				err = fmt.Errorf("it says it is one of %d shards, %s says %d", c, filepath.Base(path), count)
			case n != i:
				err = fmt.Errorf("by its name it is shard %d of %d, by its metadata %d: give it back the name it came with", i+1, count, n+1)
			case t != total:
				err = fmt.Errorf("%s is %d, in %s it is %d: the shards are of different models", keySplitTensors, t, filepath.Base(path), total)
			}
			if err != nil {
				if i < no {
					shards = append(shards, first)
				}
				return nil, fmt.Errorf("open %s: %w", s.path, err)
			}
		}
	}
	f = &File{version: shards[0].h.version, meta: shards[0].h.meta, index: make(map[string]*Tensor)}
	for i, s := range shards {
		f.shards = append(f.shards, Shard{Path: s.path, Size: int64(len(s.m.data)), Mapped: s.m.data})
		f.maps = append(f.maps, s.m)
		for _, t := range s.h.tensors {
			t.Shard = i
			if other := f.index[t.Name]; other != nil {
				return nil, fmt.Errorf("open %s: tensor %s is in shard %d and in shard %d", path, quoted(t.Name), other.Shard+1, i+1)
			}
			f.index[t.Name] = t
			f.tensors = append(f.tensors, t)
		}
	}
	if total >= 0 && int64(len(f.tensors)) != total {
		return nil, fmt.Errorf("open %s: the %d shards hold %d tensors, %s says %d", path, count, len(f.tensors), keySplitTensors, total)
	}
	return f, nil
}

// siblings finds the common prefix of the shards' paths and makes sure that
// all are there. What the metadata says counts; the name only leads to the others.
func siblings(path string, no, count int) (string, error) {
	prefix, n, c, ok := ShardName(path)
	want := fmt.Sprintf("-%05d-of-%05d.gguf", no+1, count)
	if !ok || n != no+1 || c != count {
		return "", fmt.Errorf("open %s: its metadata says it is shard %d of %d, so its name must end in %s to find the others: give it back the name it came with", path, no+1, count, want)
	}
	var missing []string
	absent := 0
	for i := range count {
		p := shardPath(prefix, i+1, count)
		if _, err := os.Stat(p); err != nil {
			if !errors.Is(err, os.ErrNotExist) {
				return "", err
			}
			if absent++; len(missing) < 8 {
				missing = append(missing, filepath.Base(p))
			}
		}
	}
	if absent > 0 {
		more := ""
		if absent > len(missing) {
			more = fmt.Sprintf(" and %d more", absent-len(missing))
		}
		return "", fmt.Errorf("open %s: %d of %d shards are missing: %s%s: put them in the same folder", path, absent, count, strings.Join(missing, ", "), more)
	}
	return prefix, nil
}
