package gpu

import (
	"io/fs"
	"strconv"
	"strings"
)

// perm is a device file's owner and mode, from stat or from a recording.
type perm struct {
	mode     uint32 // rwxrwxrwx
	uid, gid int64
	acl      bool // an access list decides beyond the mode
}

// nodeOf describes a device file and whether user may open it for reading and
// writing. path begins with a slash. A recorded machine holds a regular file
// with an "ls -l" line instead of the device.
func nodeOf(root fs.FS, path string, user User, groups map[int64]string, a Answers) Node {
	n := Node{Path: path, GID: -1, Group: Unknown[string](path, "no such file")}
	name := strings.TrimPrefix(path, "/")
	info, err := fs.Stat(root, name)
	if err != nil {
		n.Access = Unknown[bool](path, reason(err))
		n.Group.Why = reason(err)
		return n
	}
	var p perm
	ok := false
	if info.Mode().IsRegular() {
		p, ok = parsePerm(text(root, name), groups)
	} else {
		p, ok = statPerm(info)
	}
	if ok {
		n.GID = p.gid
		n.Group = Known(strconv.FormatInt(p.gid, 10), path)
		if g := groups[p.gid]; g != "" {
			n.Group.Value = g
		}
	} else {
		n.Group.Why = "owner not recorded"
	}
	if v, has := a["open "+path]; has {
		n.Access = Known(v.Value == "yes", v.Source)
		if v.Value != "yes" {
			n.Access.Why = v.Value
		}
		return n
	}
	switch {
	case !ok:
		n.Access = Unknown[bool](path, "mode not recorded")
	case user.UID < 0:
		n.Access = Unknown[bool](path, "who runs this is not known")
	case p.may(user):
		n.Access = Known(true, "mode of "+path)
	case p.acl:
		n.Access = Unknown[bool](path, "an access list decides, try to open it")
	default:
		n.Access = Known(false, "mode of "+path)
	}
	return n
}

// may applies the kernel's rule: owner, else group, else others; root always.
func (p perm) may(u User) bool {
	if u.UID == 0 {
		return true
	}
	shift := 0
	if u.UID == p.uid {
		shift = 6
	} else {
		for _, g := range u.Groups {
			if g == p.gid {
				shift = 3
			}
		}
	}
	return p.mode>>shift&6 == 6
}

// parsePerm reads the start of an "ls -l" line: mode, links, owner, group.
// Owner and group may be names ("root", or one of groups) or numbers.
func parsePerm(s string, groups map[int64]string) (perm, bool) {
	f := strings.Fields(s)
	if len(f) < 4 || len(f[0]) < 10 {
		return perm{}, false
	}
	p := perm{acl: strings.HasSuffix(f[0], "+")}
	for i, c := range f[0][1:10] {
		if c != '-' {
			p.mode |= 1 << (8 - i)
		}
	}
	p.uid = id(f[2], nil)
	p.gid = id(f[3], groups)
	return p, p.uid >= 0 && p.gid >= 0
}

// id gives a number for a user or group name, -1 when it is not known.
func id(s string, groups map[int64]string) int64 {
	if s == "root" {
		return 0
	}
	if v, err := strconv.ParseInt(s, 10, 64); err == nil && v >= 0 {
		return v
	}
	for g, n := range groups {
		if n == s {
			return g
		}
	}
	return -1
}
