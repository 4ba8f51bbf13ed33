package recipe_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"outcrop/gpu"
	"outcrop/gpu/doctor"
	"outcrop/gpu/recipe"
)

var update = flag.Bool("update", false, "write the wanted facts, recipes and conditions of the machine files anew")

// machine is one recorded machine.
type machine struct {
	name string
	path string
	file *gpu.MachineFile
	fs   fstest.MapFS
	m    gpu.Machine
}

// all holds every recorded machine, read once for all tests.
var all = sync.OnceValues(func() ([]machine, error) {
	paths, err := filepath.Glob("testdata/machines/*.txt")
	if err != nil {
		return nil, err
	}
	var out []machine
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		x := machine{name: strings.TrimSuffix(filepath.Base(p), ".txt"), path: p, fs: fstest.MapFS{}}
		if x.file, err = gpu.ParseMachineFile(b); err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		for _, f := range x.file.Files {
			if f.Target != "" {
				x.fs[f.Name] = &fstest.MapFile{Data: []byte(f.Target), Mode: fs.ModeSymlink | 0o777}
			} else {
				x.fs[f.Name] = &fstest.MapFile{Data: []byte(f.Data), Mode: 0o644}
			}
		}
		if x.m, err = gpu.Detect(x.fs); err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		out = append(out, x)
	}
	return out, nil
})

func machines(t *testing.T) []machine {
	t.Helper()
	out, err := all()
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 45 {
		t.Fatalf("%d machine files, want at least 45", len(out))
	}
	return out
}

// TestUnpacked: a machine unpacked into a folder, as --root has it, is the same
// machine.
func TestUnpacked(t *testing.T) {
	for i, x := range machines(t) {
		if i%9 != 0 {
			continue
		}
		dir := filepath.Join(t.TempDir(), "m")
		if err := gpu.UnpackFile(x.path, dir); err != nil {
			t.Fatal(err)
		}
		m, fsys, live, err := gpu.Open(dir)
		if err != nil || live {
			t.Fatalf("%s: %v", x.name, err)
		}
		if got, want := facts(m, fsys), facts(x.m, x.fs); got != want {
			t.Errorf("%s: got %s, want %s", x.name, got, want)
		}
	}
}

// facts flattens what matters of a machine to "path = value" lines.
func facts(m gpu.Machine, fsys fs.FS) string {
	var b strings.Builder
	add := func(k string, v any) { fmt.Fprintf(&b, "%s = %v\n", k, v) }
	r := func(k string, r any) {
		j, _ := json.Marshal(r)
		var v struct {
			Value  any
			Known  bool
			Source string
			Why    string
		}
		json.Unmarshal(j, &v)
		if v.Known {
			if n, ok := v.Value.(float64); ok {
				add(k, strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0"))
			} else {
				add(k, v.Value)
			}
			return
		}
		add(k, "unknown: "+v.Why)
	}
	h := m.Host
	add("os", h.OS)
	add("kernel", h.Kernel)
	add("distro", h.Distro.ID)
	add("virtual", h.Virtual)
	add("cpu", fmt.Sprintf("%s, %d cores, %d threads", h.CPU.Name, h.CPU.Cores, h.CPU.Threads))
	r("ram", h.RAM())
	r("available", h.Available())
	r("neo", m.UserMode.NEO)
	if len(h.Args) > 0 {
		add("args", strings.Join(h.Args, " "))
	}
	s := gpu.NewSampler(fsys, m, false)
	read := map[gpu.PCI]gpu.CardReadings{}
	for _, c := range s.Sample(time.Unix(1, 0)) {
		read[c.PCI] = c
	}
	for _, c := range m.Cards {
		k := string(c.PCI) + " "
		add(k+"name", c.Name)
		add(k+"arch", fmt.Sprintf("%s %s", c.Arch, c.Chip))
		add(k+"kind", map[bool]string{true: "discrete", false: "integrated"}[c.Discrete]+map[bool]string{true: ", virtual"}[c.Virtual])
		add(k+"driver", c.Driver)
		r(k+"total", c.Memory.Total)
		r(k+"usable", c.Memory.Usable)
		r(k+"bar", c.BAR.Size)
		r(k+"rebar", c.BAR.Resizable)
		add(k+"link at", c.Link.At)
		r(k+"link GB/s", c.Link.GBs())
		r(k+"may open", c.Node.Access)
		v := read[c.PCI].VRAM
		r(k+"used", v.Used)
		r(k+"free", v.Free)
		r(k+"plan", v.Plan)
		if t := read[c.PCI].Temp; t.Known {
			r(k+"temp", t)
		}
	}
	for _, n := range m.Notes {
		add("note", n)
	}
	return b.String()
}

// text gives a recipe as text, one line each.
func text(r recipe.Recipe) string {
	var b strings.Builder
	fmt.Fprintln(&b, r.Title)
	for _, l := range r.Lines {
		switch {
		case l.Off:
			fmt.Fprintf(&b, "off %s=%s", l.Var, l.Value)
		case l.Unset:
			fmt.Fprintf(&b, "unset %s", l.Var)
		default:
			fmt.Fprintf(&b, "%s=%s", l.Var, l.Value)
		}
		if l.Reported != "" {
			fmt.Fprintf(&b, " (reported: %s)", l.Reported)
		}
		fmt.Fprintf(&b, " # %s, %s\n", l.Rule, l.Confidence)
	}
	for _, l := range r.LeftOut {
		fmt.Fprintf(&b, "left out %s=%s # %s\n", l.Var, l.Reported, l.Rule)
	}
	for _, f := range r.Flags {
		fmt.Fprintf(&b, "flag %s # %s\n", strings.TrimSpace(f.Name+" "+f.Value), f.Rule)
	}
	for _, l := range r.Limits {
		fmt.Fprintf(&b, "limit %s %d # %s\n", l.Name, l.Value, l.Rule)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note %s\n", n.Rule)
	}
	for _, s := range r.Scripts {
		fmt.Fprintf(&b, "script %s # %s\n", s.Name, s.Rule)
	}
	return b.String()
}

func conditions(m gpu.Machine) string {
	var b strings.Builder
	for _, c := range doctor.Check(m, doctor.Options{}) {
		fmt.Fprintf(&b, "%s %s %s\n", c.Severity, c.Code, c.Card)
	}
	return b.String()
}

// parse reads the name of a wanted recipe: "TARGET [split] [reported] [@PCI]".
func parse(name string) (string, recipe.Options) {
	f := strings.Fields(strings.TrimPrefix(name, "recipe "))
	var o recipe.Options
	for _, w := range f[1:] {
		switch {
		case w == "split":
			o.Split = true
		case w == "reported":
			o.AsReported = true
		case w[0] == '@':
			o.Card = gpu.PCI(w[1:])
		}
	}
	return f[0], o
}

func norm(s string) string {
	ls := strings.Split(strings.TrimSpace(s), "\n")
	for i := range ls {
		ls[i] = strings.TrimSpace(ls[i])
	}
	return strings.Join(ls, "\n")
}

// TestMachines compares every recorded machine with the facts, recipes and
// conditions wanted in its file.
func TestMachines(t *testing.T) {
	for _, x := range machines(t) {
		t.Run(x.name, func(t *testing.T) {
			if !strings.Contains(x.file.Comment, "source: ") || !strings.Contains(x.file.Comment, "reported: ") {
				t.Fatal("the comment must name the public report (source:) and what it says (reported:)")
			}
			got := map[string]string{"facts": facts(x.m, x.fs), "conditions": conditions(x.m)}
			wanted := 0
			for _, w := range x.file.Want {
				if !strings.HasPrefix(w.Name, "recipe ") {
					continue
				}
				wanted++
				target, o := parse(w.Name)
				r, err := recipe.For(x.m, target, o)
				if err != nil {
					t.Fatalf("%s: %v", w.Name, err)
				}
				got[w.Name] = text(r)
			}
			if wanted == 0 {
				t.Fatal("no recipe is wanted")
			}
			if *update {
				write(t, x, got)
				return
			}
			have := map[string]bool{}
			for _, w := range x.file.Want {
				have[w.Name] = true
				g, ok := got[w.Name]
				if !ok {
					t.Errorf("want/%s: nothing makes that", w.Name)
				} else if norm(g) != norm(w.Data) {
					t.Errorf("want/%s\n--- got\n%s\n--- want\n%s", w.Name, norm(g), norm(w.Data))
				}
			}
			for _, k := range []string{"facts", "conditions"} {
				if !have[k] {
					t.Errorf("want/%s is missing", k)
				}
			}
		})
	}
}

// write puts the wanted parts into a machine file, leaving the machine's own
// text as it is.
func write(t *testing.T, x machine, got map[string]string) {
	b, err := os.ReadFile(x.path)
	if err != nil {
		t.Fatal(err)
	}
	s := string(b)
	if i := strings.Index(s, "-- want/"); i >= 0 {
		s = s[:i]
	}
	var keys []string
	for k := range got {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		s += "-- want/" + k + " --\n" + strings.TrimSpace(got[k]) + "\n"
	}
	if err := os.WriteFile(x.path, []byte(s), 0o644); err != nil {
		t.Fatal(err)
	}
}
