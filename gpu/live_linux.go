package gpu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// live holds the doors to running drivers: NVML, DRM queries, and the helper
// that asks Sysman.
type live struct {
	nvml    *nvml
	nvmlErr error
	fds     map[PCI]*os.File
	fdErr   map[PCI]error
	helper  *helper
	probe   bool // the helper is the privileged copy
	perfmon bool
	now     func() time.Time
}

func newLive(m Machine) *live {
	l := &live{fds: map[PCI]*os.File{}, fdErr: map[PCI]error{}, now: time.Now, perfmon: m.Host.Perfmon.Or(false)}
	for _, c := range m.Cards {
		switch {
		case c.Vendor == NVIDIA && l.nvml == nil && l.nvmlErr == nil:
			l.nvml, l.nvmlErr = openNVML()
		case c.Vendor == Intel && c.Discrete && l.helper == nil:
			if _, priv, err := helperPath(); err == nil {
				l.helper, l.probe = &helper{}, priv
			}
		}
	}
	return l
}

func (l *live) close() {
	if l.nvml != nil {
		l.nvml.close()
	}
	if l.helper != nil {
		l.helper.close()
	}
	for _, f := range l.fds {
		f.Close()
	}
}

func (l *live) windows() *WindowsAnswers { return nil }

// sensors fills what only a driver call tells.
func (l *live) sensors(c Card, r *CardReadings) {
	switch {
	case c.Vendor == NVIDIA && l.nvml != nil:
		l.nvml.fill(c.PCI, r)
	case c.Vendor == NVIDIA && l.nvmlErr != nil:
		u := Unknown[float64](nvmlSource, l.nvmlErr.Error())
		r.Busy, r.Temp, r.TempVRAM, r.Power, r.PowerMax, r.Fan, r.Clock, r.ClockMem = u, u, u, u, u, u, u, u
		r.Throttle = Unknown[string](nvmlSource, l.nvmlErr.Error())
	case c.Vendor == Intel && l.helper != nil:
		if hc, _, ok := l.ask(c); ok {
			if !r.Temp.Known && hc.Temp != 0 {
				r.Temp = Known(hc.Temp, hc.Source)
			}
			if !r.TempVRAM.Known && hc.TempVRAM != 0 {
				r.TempVRAM = Known(hc.TempVRAM, hc.Source)
			}
		}
	}
}

// ask gives the helper's last word on a card. The privileged copy is asked at
// every reading: it alone knows what others use. Without the privilege the
// driver's answer is the kernel's, which is asked directly, so once a minute is
// enough.
func (l *live) ask(c Card) (HelperCard, bool, bool) {
	every, age := time.Minute, 2*time.Minute
	if l.probe {
		every, age = time.Second, 5*time.Second
	}
	a, ok, _ := l.helper.latest(l.now(), every, age)
	if !ok {
		return HelperCard{}, false, false
	}
	for _, hc := range a.Cards {
		if hc.PCI == c.PCI {
			return hc, a.Perfmon, true
		}
	}
	return HelperCard{}, false, false
}

// procs lists a card's processes where a driver call tells them; false where
// files do.
func (l *live) procs(c Card) ([]ProcVRAM, Reading[int], bool) {
	switch {
	case c.Vendor != NVIDIA || c.Driver == "nouveau":
		return nil, Reading[int]{}, false
	case l.nvml != nil:
		p, r := l.nvml.processes(c.PCI)
		return p, r, true
	case l.nvmlErr != nil:
		return nil, Unknown[int](nvmlSource, l.nvmlErr.Error()), true
	}
	return nil, Unknown[int](nvmlSource, "not asked"), true
}

// vram asks the sources of a card's memory in order: Sysman in the helper, the
// DRM query, NVML.
func (l *live) vram(c Card) []VRAMAnswer {
	switch c.Vendor {
	case NVIDIA:
		if l.nvml != nil {
			return []VRAMAnswer{l.nvml.memory(c.PCI)}
		}
		if l.nvmlErr != nil {
			return []VRAMAnswer{{Source: l.nvmlErr.Error()}}
		}
	case Intel:
		var out []VRAMAnswer
		if l.helper != nil {
			if hc, priv, ok := l.ask(c); ok {
				out = append(out, VRAMAnswer{Source: hc.Source, Total: hc.Total, Used: hc.Used, HaveUsed: hc.HaveUsed, Blind: !priv})
			}
		}
		f, err := l.node(c)
		if err != nil {
			return append(out, VRAMAnswer{Source: "DRM query (" + err.Error() + ")"})
		}
		rs, src, err := queryDRM(c.Driver, f)
		if err != nil {
			return append(out, VRAMAnswer{Source: err.Error()})
		}
		t, u, _ := sumRegions(rs)
		return append(out, VRAMAnswer{Source: src, Total: t, Used: u, HaveUsed: t > 0, Blind: !l.perfmon})
	}
	return nil
}

// node opens a card's render node once.
func (l *live) node(c Card) (*os.File, error) {
	if f, ok := l.fds[c.PCI]; ok {
		return f, nil
	}
	if err, ok := l.fdErr[c.PCI]; ok {
		return nil, err
	}
	if c.Node.Path == "" {
		return nil, errors.New("no render node")
	}
	f, err := os.OpenFile(c.Node.Path, os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		l.fdErr[c.PCI] = errors.New(reason(err))
		return nil, l.fdErr[c.PCI]
	}
	l.fds[c.PCI] = f
	return f, nil
}

// liveAnswers asks the running system what its files do not tell: whether device
// files open, what the drivers call the cards, the size of file systems, and
// package versions from rpm.
func liveAnswers(root fs.FS, m Machine) Answers {
	a := Answers{}
	nvidia := false
	for _, c := range m.Cards {
		nvidia = nvidia || c.Vendor == NVIDIA && (c.Driver == "nvidia" || c.Driver == "dxg")
		if asleepNow(root, c) || c.Node.Path == "" {
			continue
		}
		f, err := os.OpenFile(c.Node.Path, os.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				a["open "+c.Node.Path] = Answer{reason(err), "open " + c.Node.Path}
			}
			continue
		}
		a["open "+c.Node.Path] = Answer{"yes", "open " + c.Node.Path}
		if c.Vendor == Intel && c.Discrete {
			if rs, src, err := queryDRM(c.Driver, f); err == nil {
				if ip := xeVersion(c.Driver, f); ip != "" {
					a["ip "+string(c.PCI)] = Answer{ip, "DRM_XE_DEVICE_QUERY_GT_LIST"}
				}
				if t, _, vis := sumRegions(rs); t > 0 {
					a["vram.total "+string(c.PCI)] = Answer{fmt.Sprint(t), src}
					if vis > 0 {
						a["vram.visible "+string(c.PCI)] = Answer{fmt.Sprint(vis), src}
					}
				}
			}
		}
		f.Close()
	}
	if m.KFD.GID >= 0 {
		if f, err := os.OpenFile("/dev/kfd", os.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
			a["open /dev/kfd"] = Answer{"yes", "open /dev/kfd"}
			f.Close()
		} else {
			a["open /dev/kfd"] = Answer{reason(err), "open /dev/kfd"}
		}
	}
	if nvidia {
		if n, err := openNVML(); err == nil {
			n.answers(m.Cards, a)
			n.close()
		}
	}
	for _, d := range m.Host.Disks {
		var st unix.Statfs_t
		if unix.Statfs(d.Mount, &st) == nil {
			a["free "+d.Mount] = Answer{fmt.Sprint(int64(st.Bavail) * st.Bsize), "statfs " + d.Mount}
			a["size "+d.Mount] = Answer{fmt.Sprint(int64(st.Blocks) * st.Bsize), "statfs " + d.Mount}
		}
	}
	if path, priv, err := helperPath(); err == nil && priv {
		// The file capability is an extended attribute; which one it is shows when
		// the helper answers.
		v := "no"
		if n, err := unix.Getxattr(path, "security.capability", nil); err == nil && n > 0 {
			v = "yes"
		}
		a["perfmon.helper"] = Answer{v, path}
	}
	rpmAnswers(a)
	return a
}

// asleepNow says whether a card is suspended: opening it would wake it.
func asleepNow(root fs.FS, c Card) bool {
	return text(root, c.file("power/runtime_status")) == "suspended"
}

// rpmAnswers asks rpm for driver versions, where there is an rpm: its records
// are a database, not files.
func rpmAnswers(a Answers) {
	rpm, err := exec.LookPath("rpm")
	if err != nil {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Second)
	defer stop()
	var want []string
	key := map[string]string{}
	for k, ps := range packages {
		for _, p := range ps {
			want = append(want, p)
			key[p] = k
		}
	}
	// rpm gives an error for each package that is not installed, and the others all the same.
	out, _ := exec.CommandContext(ctx, rpm, append([]string{"-q", "--qf", "%{NAME} %{VERSION}\\n"}, want...)...).Output()
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) == 2 && key[f[0]] != "" {
			if _, ok := a[key[f[0]]]; !ok {
				a[key[f[0]]] = Answer{f[1], "rpm " + f[0]}
			}
		}
	}
}

// helperRead gives the helper's reading function: Sysman once per question, and
// the DRM query with whatever right the helper has.
func helperRead() func() HelperAnswer {
	z, zerr := openSysman()
	root := os.DirFS("/")
	perf := readPerfmon(root).Or(false)
	m := detect(root, Answers{})
	l := &live{fds: map[PCI]*os.File{}, fdErr: map[PCI]error{}, perfmon: perf, now: time.Now}
	return func() HelperAnswer {
		a := HelperAnswer{Perfmon: perf, Cards: []HelperCard{}}
		if z != nil {
			a.Cards = z.cards()
		}
		seen := map[PCI]bool{}
		for _, c := range a.Cards {
			seen[c.PCI] = c.HaveUsed
		}
		for _, c := range m.Cards {
			if c.Vendor != Intel || !c.Discrete || seen[c.PCI] || asleepNow(root, c) {
				continue
			}
			for _, v := range l.vram(c) {
				if v.HaveUsed {
					a.Cards = append(a.Cards, HelperCard{PCI: c.PCI, Source: v.Source + " in the helper", Total: v.Total, Used: v.Used, HaveUsed: true})
					break
				}
			}
		}
		if len(a.Cards) == 0 && zerr != nil {
			a.Err = zerr.Error()
		}
		return a
	}
}
