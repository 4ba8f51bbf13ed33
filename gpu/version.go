package gpu

import (
	"strconv"
	"strings"
)

// CleanVersion gives the upstream part of a package version: epoch, Debian
// revision, "~" and "+" suffixes removed. "1:26.09.37435.1-1~24.04~ppa1" gives
// "26.09.37435.1".
func CleanVersion(s string) string {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "build ") {
		return s // all that a file name tells
	}
	if i := strings.IndexByte(s, ':'); i >= 0 && i < 3 {
		s = s[i+1:]
	}
	if i := strings.IndexAny(s, "-~+ "); i >= 0 {
		s = s[:i]
	}
	return s
}

// CompareVersions compares dotted numbers; missing parts count as 0, and a part
// that is no number ends the comparison as equal.
func CompareVersions(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := 0; i < len(as) || i < len(bs); i++ {
		x, okx := part(as, i)
		y, oky := part(bs, i)
		if !okx || !oky {
			return 0
		}
		if x != y {
			if x < y {
				return -1
			}
			return 1
		}
	}
	return 0
}

func part(p []string, i int) (int64, bool) {
	if i >= len(p) {
		return 0, true
	}
	v, err := strconv.ParseInt(p[i], 10, 64)
	return v, err == nil
}

// NEOBuild gives the build number of an Intel compute-runtime version, its
// third part (26.09.37435.1 is build 37435). Builds grow over all releases, so
// they order versions even where only the library's file name is known, which
// carries the build alone ("build 37435"). 0 means it could not be read.
func NEOBuild(v string) int {
	v = CleanVersion(strings.TrimPrefix(v, "build "))
	p := strings.Split(v, ".")
	i := 2
	if len(p) < 3 {
		i = len(p) - 1
	}
	n, err := strconv.Atoi(p[i])
	if err != nil || n < 10000 {
		return 0
	}
	return n
}
