package gpu

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Client is one DRM client: one opening of a card by one process, as
// /proc/PID/fdinfo/FD describes it.
type Client struct {
	Driver string
	PCI    PCI
	ID     int64            // drm-client-id; several file descriptors may share it
	Regs   map[string]memKB // by region: vram0, gtt, system, local0, vram, ...
	Busy   map[string]int64 // nanoseconds of work by engine (i915, amdgpu)
	Cycles map[string]int64 // cycles of work by engine (xe)
	Total  map[string]int64 // cycles passed by engine (xe)
}

// memKB is one region of a client, in bytes.
type memKB struct{ total, resident int64 }

// ParseFdinfo reads a DRM fdinfo file; false when it is none. Keys are those of
// the kernel's drm-usage-stats document, and amdgpu's older drm-memory-.
func ParseFdinfo(s string) (Client, bool) {
	if !strings.Contains(s, "drm-driver:") {
		return Client{}, false
	}
	c := Client{ID: -1, Regs: map[string]memKB{}, Busy: map[string]int64{}, Cycles: map[string]int64{}, Total: map[string]int64{}}
	for line := range strings.Lines(s) {
		k, v, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		v = strings.TrimSpace(v)
		switch {
		case k == "drm-driver":
			c.Driver = v
		case k == "drm-pdev":
			c.PCI = PCI(strings.ToLower(v))
		case k == "drm-client-id":
			if n, err := strconv.ParseInt(v, 10, 64); err == nil && n >= 0 {
				c.ID = n
			}
		case strings.HasPrefix(k, "drm-total-cycles-"):
			put(c.Total, k[len("drm-total-cycles-"):], v)
		case strings.HasPrefix(k, "drm-cycles-"):
			put(c.Cycles, k[len("drm-cycles-"):], v)
		case strings.HasPrefix(k, "drm-engine-capacity-"):
		case strings.HasPrefix(k, "drm-engine-"):
			put(c.Busy, k[len("drm-engine-"):], strings.TrimSuffix(v, " ns"))
		case strings.HasPrefix(k, "drm-total-"):
			if n, ok := size(v); ok {
				m := c.Regs[k[len("drm-total-"):]]
				m.total = n
				c.Regs[k[len("drm-total-"):]] = m
			}
		case strings.HasPrefix(k, "drm-resident-"), strings.HasPrefix(k, "drm-memory-"):
			if n, ok := size(v); ok {
				name := strings.TrimPrefix(strings.TrimPrefix(k, "drm-resident-"), "drm-memory-")
				m := c.Regs[name]
				m.resident = max(m.resident, n)
				c.Regs[name] = m
			}
		}
	}
	return c, c.Driver != ""
}

func put(m map[string]int64, k, v string) {
	if n, err := strconv.ParseInt(v, 10, 64); err == nil && n >= 0 {
		m[k] = n
	}
}

// size reads "123 KiB", "4 MiB" or plain bytes.
func size(v string) (int64, bool) {
	f := strings.Fields(v)
	if len(f) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil || n < 0 || n > 1<<50 {
		return 0, false
	}
	if len(f) > 1 {
		switch f[1] {
		case "KiB":
			n <<= 10
		case "MiB":
			if n > 1<<40 {
				return 0, false
			}
			n <<= 20
		}
	}
	return n, true
}

// vram gives the client's bytes in the card's memory: there now, and claimed
// (every buffer it may use, also ones never filled).
func (c Client) vram() (resident, claim int64) {
	for k, m := range c.Regs {
		if strings.HasPrefix(k, "vram") || strings.HasPrefix(k, "local") {
			resident += m.resident
			claim += max(m.total, m.resident)
		}
	}
	return
}

// tells says whether the kernel counts the client's bytes in the card's memory:
// i915 does since Linux 6.8 only.
func (c Client) tells() bool {
	for k := range c.Regs {
		if strings.HasPrefix(k, "vram") || strings.HasPrefix(k, "local") {
			return true
		}
	}
	return false
}

// gtt gives the bytes of system memory the driver holds for the client.
func (c Client) gtt() int64 {
	m := c.Regs["gtt"]
	return max(m.total, m.resident)
}

// clients reads every DRM client that this user may see. Descriptors that share
// a client id on a card are one client (a program that duplicates its descriptor
// would be counted twice).
type clients struct {
	byPCI map[PCI][]procClient
	files []string // fdinfo files that were DRM clients, for the cheap second reading
	procs int      // processes looked at
}

type procClient struct {
	Client
	pid, parent int
	name        string
}

// scanClients looks through all processes. It costs one link per open file, so
// a sampler does it now and then and rereads only the known files in between.
func scanClients(root fs.FS) clients {
	var files []string
	n := 0
	for _, p := range names(root, "proc") {
		if p == "" || p[0] < '0' || p[0] > '9' {
			continue
		}
		n++
		files = append(files, drmFiles(root, p)...)
	}
	c := readClients(root, files)
	c.procs = n
	return c
}

// drmFiles lists the fdinfo files of a process that belong to a card: by the
// link of the descriptor where links are there, else by content.
func drmFiles(root fs.FS, pid string) []string {
	var out []string
	fds := names(root, "proc/"+pid+"/fd")
	for _, fd := range fds {
		t, err := fs.ReadLink(root, "proc/"+pid+"/fd/"+fd)
		if err == nil && strings.Contains(t, "/dri/") {
			out = append(out, "proc/"+pid+"/fdinfo/"+fd)
		}
	}
	if len(fds) == 0 {
		for _, fd := range names(root, "proc/"+pid+"/fdinfo") {
			out = append(out, "proc/"+pid+"/fdinfo/"+fd)
		}
	}
	return out
}

func readClients(root fs.FS, files []string) clients {
	c := clients{byPCI: map[PCI][]procClient{}}
	type key struct {
		p  PCI
		id int64
	}
	seen := map[key]bool{}
	name, parent := map[string]string{}, map[string]int{}
	for _, f := range files {
		s, err := read(root, f)
		if err != nil {
			continue
		}
		cl, ok := ParseFdinfo(s)
		if !ok {
			continue
		}
		c.files = append(c.files, f)
		k := key{cl.PCI, cl.ID}
		if cl.ID >= 0 && seen[k] {
			continue
		}
		seen[k] = true
		pid := strings.Split(f, "/")[1]
		if _, ok := name[pid]; !ok {
			name[pid], parent[pid] = text(root, "proc/"+pid+"/comm"), parentOf(root, pid)
		}
		n, _ := strconv.Atoi(pid)
		c.byPCI[cl.PCI] = append(c.byPCI[cl.PCI], procClient{cl, n, parent[pid], name[pid]})
	}
	return c
}

// parentOf is who started a process: field 4 of its stat file, 0 when that cannot
// be read. The name before it, in brackets, may hold anything.
func parentOf(root fs.FS, pid string) int {
	s := text(root, "proc/"+pid+"/stat")
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(f) < 2 {
		return 0
	}
	n, err := strconv.Atoi(f[1])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// procs sums a card's clients by process, largest first.
func (c clients) of(p PCI) []ProcVRAM {
	sum := map[int]*ProcVRAM{}
	for _, cl := range c.byPCI[p] {
		v := sum[cl.pid]
		if v == nil {
			v = &ProcVRAM{PID: cl.pid, Parent: cl.parent, Name: cl.name, Unknown: "this kernel's driver does not count it"}
			sum[cl.pid] = v
		}
		r, t := cl.vram()
		v.VRAM += r
		v.Claim += t
		v.GTT += cl.gtt()
		if cl.tells() {
			v.Unknown = ""
		}
	}
	out := make([]ProcVRAM, 0, len(sum))
	for _, v := range sum {
		out = append(out, *v)
	}
	slices.SortFunc(out, byVRAM)
	return out
}

// busy gives the share of the compute and render engines used between two
// readings of the same card, in percent, over the clients seen in both.
func busy(before, after []procClient, wallNS int64) (float64, bool) {
	type key struct{ id int64 }
	old := map[key]Client{}
	for _, c := range before {
		old[key{c.ID}] = c.Client
	}
	best := -1.0
	sum := map[string]float64{}
	for _, c := range after {
		o, ok := old[key{c.ID}]
		if !ok {
			continue
		}
		for e, n := range c.Cycles {
			if d, t := n-o.Cycles[e], c.Total[e]-o.Total[e]; d >= 0 && t > 0 {
				sum[e] += float64(d) / float64(t) * 100
			}
		}
		for e, n := range c.Busy {
			if d := n - o.Busy[e]; d >= 0 && wallNS > 0 {
				sum[e] += float64(d) / float64(wallNS) * 100
			}
		}
	}
	for _, v := range sum {
		best = max(best, v)
	}
	return min(best, 100), best >= 0
}
