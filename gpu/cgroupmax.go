package gpu

import (
	"io/fs"
	"path"
	"strings"
)

// AtMax reads how much is used of the smallest limit around this process, and
// which part of that is clean page cache: by the group that has the limit, which
// may hold other programs too. Both are unknown where there is no limit.
func (g Cgroup) AtMax(root fs.FS) (used, cache Reading[int64]) {
	if !g.Max.Known {
		u := Unknown[int64](g.Max.Source, g.Max.Why)
		return u, u
	}
	file := strings.TrimPrefix(g.Max.Source, "/")
	dir := path.Dir(file)
	if path.Base(file) == "memory.limit_in_bytes" {
		return number(root, dir+"/memory.usage_in_bytes"), groupCache1(root, dir)
	}
	return number(root, dir+"/memory.current"), groupCache(root, dir)
}
