package gpu

import (
	"fmt"
	"io/fs"
	"regexp"
	"sort"
	"strings"
	"sync"
)

// Record detects the machine below root while noting every file that was
// looked at, and gives both the machine and a machine file of it. A bug report
// made this way can be unpacked and read again with --root, and becomes a test.
// live answers may be nil.
func Record(root fs.FS, live Answers) (Machine, *MachineFile, error) {
	if _, err := fs.ReadDir(root, "."); err != nil {
		return Machine{}, nil, fmt.Errorf("record the machine: %w", err)
	}
	r := &recorder{fs: root, seen: map[string]bool{}}
	a := answersOf(root)
	for k, v := range live {
		a[k] = v
	}
	m := detect(r, a)
	NewSampler(r, m, false).Sample(timeZero)
	return m, r.file(a, m.Cards), nil
}

// recorder is a file system that remembers what was asked of it.
type recorder struct {
	fs   fs.FS
	mu   sync.Mutex
	seen map[string]bool
}

func (r *recorder) note(name string) {
	r.mu.Lock()
	r.seen[name] = true
	r.mu.Unlock()
}

func (r *recorder) Open(name string) (fs.File, error) {
	f, err := r.fs.Open(name)
	if err == nil {
		r.note(name)
	}
	return f, err
}

func (r *recorder) Stat(name string) (fs.FileInfo, error) {
	i, err := fs.Stat(r.fs, name)
	if err == nil {
		r.note(name)
	}
	return i, err
}

// ReadDir notes what is in a listed folder where the names are the answer.
func (r *recorder) ReadDir(name string) ([]fs.DirEntry, error) {
	es, err := fs.ReadDir(r.fs, name)
	if strings.HasSuffix(name, "/drm") || strings.HasSuffix(name, "/icd.d") || name == "sys/class/drm" {
		for _, e := range es {
			r.note(name + "/" + e.Name())
		}
	}
	return es, err
}

func (r *recorder) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(r.fs, name) }

func (r *recorder) ReadLink(name string) (string, error) {
	t, err := fs.ReadLink(r.fs, name)
	if err == nil {
		r.note(name)
	}
	return t, err
}

// ofCard says whether a file of the PCI tree belongs to a card or to a bridge
// above one. The rest of the bus is nobody's business.
func ofCard(n string, cards []Card) bool {
	rest, bus := strings.CutPrefix(n, pciDir+"/")
	if !bus && !strings.HasPrefix(n, "sys/devices/pci") || strings.Contains(n, "/block/") {
		return true
	}
	for _, c := range cards {
		if bus && strings.HasPrefix(rest, string(c.PCI)) || !bus && (strings.HasPrefix(n, c.Sysfs+"/") || strings.HasPrefix(c.Sysfs, n[:strings.LastIndexByte(n, '/')+1])) {
			return true
		}
	}
	return len(cards) == 0 && bus // that there is a bus at all is a fact too
}

// keepText are the files whose text is kept in full; of others below usr, lib,
// opt only the existence matters, and package records are kept as answers.
func keepText(name string) bool {
	for _, p := range []string{"sys/", "proc/", "etc/os-release", "etc/OpenCL/", "usr/share/OpenCL/", "usr/lib/os-release", "opt/rocm/.info", "run/"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// skipFile leaves out what holds other people's data: accounts, and package
// records, whose answers are kept instead.
func skipFile(name string) bool {
	if p, ok := strings.CutPrefix(name, "proc/"); ok && p[0] >= '0' && p[0] <= '9' {
		return true // other people's processes
	}
	return name == "." || name == "etc/passwd" || name == "var/lib/dpkg/status" || name == AnswersFile || strings.HasPrefix(name, "var/lib/pacman")
}

// file builds the machine file. Nothing is read through a link that was itself
// noted: the link is recorded, and its target on its own.
func (r *recorder) file(a Answers, cards []Card) *MachineFile {
	m := &MachineFile{}
	links := map[string]string{}
	var ns []string
	for n := range r.seen {
		ns = append(ns, n)
	}
	sort.Strings(ns)
	for _, n := range ns {
		// Links of sysfs are facts, and so is the version in a library's name; any
		// other link is only where a file lies.
		if i, err := fs.Lstat(r.fs, n); err == nil && i.Mode()&fs.ModeSymlink != 0 {
			t, err := fs.ReadLink(r.fs, n)
			if err == nil && (strings.HasPrefix(n, "sys/") || strings.Contains(n, ".so.") && pathBase(t) != pathBase(n)) {
				links[n] = t
			}
		}
	}
	under := func(n string) bool {
		for i := range n {
			if n[i] == '/' {
				if _, ok := links[n[:i]]; ok {
					return true
				}
			}
		}
		return false
	}
	for _, n := range ns {
		if skipFile(n) || under(n) || !ofCard(n, cards) {
			continue
		}
		f := RecordedFile{Name: n}
		if t, ok := links[n]; ok {
			f.Target = t
			if !strings.HasPrefix(n, "sys/") {
				f.Target = pathBase(t) // the build is in the name
				if b := n[:strings.LastIndexByte(n, '/')+1] + f.Target; exists(r.fs, n) && !r.seen[b] {
					m.Files = append(m.Files, RecordedFile{Name: b})
				}
			}
			m.Files = append(m.Files, f)
			continue
		}
		i, err := fs.Stat(r.fs, n)
		if err != nil {
			continue
		}
		if i.IsDir() {
			// A folder whose name is the answer lives on through its dev file.
			if strings.Contains(n, "/drm/") && exists(r.fs, n+"/dev") && !r.seen[n+"/dev"] {
				m.Files = append(m.Files, RecordedFile{Name: n + "/dev", Data: text(r.fs, n+"/dev") + "\n"})
			}
			continue
		}
		switch {
		case strings.HasPrefix(n, "dev/") && i.Mode().IsRegular():
			f.Data = text(r.fs, n) + "\n" // already a recording
		case strings.HasPrefix(n, "dev/"):
			f.Data = lsLine(i)
		case n == "etc/group":
			u, login := readUser(r.fs)
			f.Data = groupsOnly(text(r.fs, n), login)
			if login != "" && u.UID > 0 {
				m.Files = append(m.Files, RecordedFile{Name: "etc/passwd", Data: fmt.Sprintf("user:x:%d:%d::/home/user:/bin/sh\n", u.UID, u.UID)})
			}
		case n == "proc/self/environ":
			f.Data = envText(readEnv(r.fs))
		case n == "proc/cmdline":
			f.Data = strings.Join(readArgs(r.fs), " ") + "\n"
		case n == "proc/self/status":
			f.Data = onlyKeys(text(r.fs, n), "Uid", "Gid", "Groups", "CapEff")
		case n == "proc/cpuinfo":
			f.Data = shortCPU(text(r.fs, n))
		case n == WindowsFile, keepText(n):
			f.Data = text(r.fs, n) + "\n"
		}
		m.Files = append(m.Files, f)
	}
	keep := Answers{}
	for k, v := range a {
		keep[k] = v
	}
	u := readUserMode(r.fs, a)
	for k, v := range map[string]Reading[string]{"neo": u.NEO, "igc": u.IGC, "rocm": u.ROCm, "mesa": u.Mesa, "oneapi": u.OneAPI} {
		if v.Known {
			keep[k] = Answer{v.Value, v.Source}
		}
	}
	if len(keep) > 0 {
		m.Files = append(m.Files, RecordedFile{Name: AnswersFile, Data: keep.Text()})
	}
	out := m.Files[:0]
	for _, f := range m.Files {
		f.Data = hideIDs(f.Data)
		out = append(out, f)
	}
	m.Files = out
	sort.Slice(m.Files, func(i, j int) bool { return m.Files[i].Name < m.Files[j].Name })
	return m
}

func pathBase(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

// lsLine describes a device file as "ls -ln" would.
func lsLine(i fs.FileInfo) string {
	p, ok := statPerm(i)
	if !ok {
		return ""
	}
	const bits = "rwxrwxrwx"
	b := []byte("c---------")
	for k := range 9 {
		if p.mode>>(8-k)&1 == 1 {
			b[k+1] = bits[k]
		}
	}
	return fmt.Sprintf("%s 1 %d %d\n", b, p.uid, p.gid)
}

// groupsOnly keeps the groups that open device files, with the user under a
// neutral name and without anyone else.
func groupsOnly(s, login string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 4 || f[0] != "render" && f[0] != "video" && f[0] != "root" {
			continue
		}
		member := ""
		for _, u := range strings.Split(f[3], ",") {
			if u == login && login != "" {
				member = "user"
			}
		}
		fmt.Fprintf(&b, "%s:x:%s:%s\n", f[0], f[2], member)
	}
	return b.String()
}

// onlyKeys keeps the named "key: value" lines.
func onlyKeys(s string, keys ...string) string {
	var b strings.Builder
	for _, k := range keys {
		if v, ok := keyed(s, k); ok {
			b.WriteString(k + ": " + v + "\n")
		}
	}
	return b.String()
}

func envText(vs []EnvVar) string {
	var b strings.Builder
	for _, v := range vs {
		b.WriteString(v.Name + "=" + strings.ReplaceAll(v.Value, "\n", " ") + "\n")
	}
	return b.String()
}

// shortCPU keeps the lines of cpuinfo that are read.
func shortCPU(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		switch k, _, _ := strings.Cut(line, ":"); strings.TrimSpace(k) {
		case "processor", "model name", "physical id", "core id":
			b.WriteString(line)
		case "flags":
			if strings.Contains(line+" ", " hypervisor ") {
				b.WriteString("flags\t\t: hypervisor\n")
			}
		}
	}
	return b.String()
}

var cardIDs = regexp.MustCompile(`(?m)GPU-[0-9a-fA-F-]{8,}|^unique_id [1-9]\d*|(?i)serial.*`)

// hideIDs blanks what identifies one piece of hardware.
func hideIDs(s string) string {
	return cardIDs.ReplaceAllStringFunc(s, func(m string) string {
		switch {
		case strings.HasPrefix(m, "GPU-"):
			return "GPU-hidden"
		case strings.HasPrefix(m, "unique_id"):
			return "unique_id 0"
		}
		return "serial hidden"
	})
}
