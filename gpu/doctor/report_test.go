package doctor

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"outcrop/gpu"
)

// TestReportReadsBack: the report of a machine is a machine file that gives the
// same facts and conditions, and it holds none of the person's names.
func TestReportReadsBack(t *testing.T) {
	files, err := filepath.Glob("../recipe/testdata/machines/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			f := load(t, name)
			if f["proc/self/environ"] != nil {
				put(f, "proc/self/environ", string(f["proc/self/environ"].Data)+"\nOUTCROP_HOME=/home/marianne/packs\nSECRET=hunter2\n")
			}
			m := detect(t, f)
			b, err := Report(f, nil, Options{}, Person{User: "marianne", Home: "/home/marianne", Host: "attic"}, "test")
			if err != nil {
				t.Fatal(err)
			}
			for _, bad := range []string{"marianne", "attic", "hunter2"} {
				if strings.Contains(b.Text, bad) {
					t.Errorf("the report holds %q", bad)
				}
			}
			mf, err := gpu.ParseMachineFile([]byte(b.Text))
			if err != nil {
				t.Fatal(err)
			}
			back := detect(t, mapFS(mf))
			if got, want := outline(back), outline(m); got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
		})
	}
}

// outline is what must survive a report.
func outline(m gpu.Machine) string {
	type card struct {
		PCI, Name, Driver, Arch, Link, Total, BAR, Access string
	}
	var cs []card
	for _, c := range m.Cards {
		cs = append(cs, card{string(c.PCI), c.Name, c.Driver, string(c.Arch), string(c.Link.At) + c.Link.Width.String(), c.Memory.Total.String(), c.BAR.Size.String(), c.Node.Access.String()})
	}
	var codes []string
	for _, c := range Check(m, Options{}) {
		codes = append(codes, c.Code+" "+string(c.Card))
	}
	b, _ := json.Marshal(struct {
		Cards []card
		Codes []string
		NEO   string
		RAM   string
		Notes []string
	}{cs, codes, m.UserMode.NEO.Or(""), m.Host.RAM().String(), m.Notes})
	return string(b)
}

func TestScrub(t *testing.T) {
	p := Person{User: "anna", Home: "/home/anna", Host: "box-7"}
	for in, want := range map[string]string{
		"/home/anna/packs/a.gguf":           "/home/user/packs/a.gguf",
		"/home/bert/x and /home/anna":       "/home/user/x and /home/user",
		"anna@box-7:~$ ls":                  "user@host:~$ ls",
		"anna anna,anna":                    "user user,user",
		"annabel stays":                     "annabel stays",
		"mail anna.b@example.org now":       "mail mail@hidden now",
		"link/ether 52:54:00:ab:cd:ef brd":  "link/ether 00:00:00:00:00:00 brd",
		"0000:03:00.0 stays, so does 26.05": "0000:03:00.0 stays, so does 26.05",
		"ANNA-PC":                           "user-PC",
	} {
		if got := Scrub(in, p); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	// Names that are words of the report are left alone.
	if got := Scrub("driver intel, user root", Person{User: "root", Host: "intel"}); got != "driver intel, user root" {
		t.Error(got)
	}
}

// TestCardIDs: serial numbers of cards do not leave the machine.
func TestCardIDs(t *testing.T) {
	for _, name := range []string{"ollama-7429-3090-4090", "ollama-10430-9070xt"} {
		b, err := Report(load(t, name), nil, Options{}, Person{}, "test")
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"GPU-00000000-1111", "GPU-55555555", "8817961"} {
			if strings.Contains(b.Text, id) {
				t.Errorf("%s: the report holds %s", name, id)
			}
		}
	}
}

// elfWith builds a small 64-bit shared object with needed libraries and
// imported symbols, as a linker would lay it out.
func elfWith(needed, imports []string) []byte {
	str := []byte{0}
	add := func(s string) uint64 {
		o := len(str)
		str = append(append(str, s...), 0)
		return uint64(o)
	}
	var dyn bytes.Buffer
	le := binary.LittleEndian
	for _, n := range needed {
		binary.Write(&dyn, le, []uint64{uint64(elf.DT_NEEDED), add(n)})
	}
	binary.Write(&dyn, le, []uint64{0, 0})
	sym := bytes.NewBuffer(make([]byte, 24))
	for _, s := range imports {
		binary.Write(sym, le, uint32(add(s)))
		sym.Write([]byte{elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), 0})
		binary.Write(sym, le, uint16(0)) // undefined: imported
		binary.Write(sym, le, []uint64{0, 0})
	}
	names := []byte("\x00.dynstr\x00.dynsym\x00.dynamic\x00.shstrtab\x00")
	type section struct {
		name       uint32
		kind       elf.SectionType
		data       []byte
		link, info uint32
		entry      uint64
	}
	secs := []section{{}, {1, elf.SHT_STRTAB, str, 0, 0, 0}, {9, elf.SHT_DYNSYM, sym.Bytes(), 1, 1, 24}, {17, elf.SHT_DYNAMIC, dyn.Bytes(), 1, 0, 16}, {26, elf.SHT_STRTAB, names, 0, 0, 0}}
	var body bytes.Buffer
	offs := make([]uint64, len(secs))
	for i, s := range secs {
		for body.Len()%8 != 0 {
			body.WriteByte(0)
		}
		offs[i] = 64 + uint64(body.Len())
		body.Write(s.data)
	}
	for body.Len()%8 != 0 {
		body.WriteByte(0)
	}
	var out bytes.Buffer
	h := elf.Header64{Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Shoff: 64 + uint64(body.Len()), Ehsize: 64, Shentsize: 64, Shnum: uint16(len(secs)), Shstrndx: 4}
	binary.Write(&out, le, h)
	out.Write(body.Bytes())
	for i, s := range secs {
		binary.Write(&out, le, elf.Section64{Name: s.name, Type: uint32(s.kind), Off: offs[i], Size: uint64(len(s.data)), Link: s.link, Info: s.info, Addralign: 8, Entsize: s.entry})
	}
	return out.Bytes()
}

// TestReadEngine tells engines with and without Level Zero apart by their
// imports.
func TestReadEngine(t *testing.T) {
	dir := t.TempDir()
	for _, k := range []struct {
		name            string
		needed, imports []string
		sycl, ze        bool
	}{
		{"strata without headers", []string{"libsycl.so.8", "libc.so.6"}, []string{"malloc"}, true, false},
		{"strata with headers", []string{"libsycl.so.8", "libc.so.6"}, []string{"malloc", "zeMemAllocHost"}, true, true},
		{"llama.cpp linked to the loader", []string{"libggml-sycl.so", "libze_loader.so.1"}, nil, true, true},
		{"llama.cpp for CUDA", []string{"libggml-cuda.so"}, nil, false, false},
	} {
		p := filepath.Join(dir, strings.ReplaceAll(k.name, " ", "-"))
		if err := os.WriteFile(p, elfWith(k.needed, k.imports), 0o755); err != nil {
			t.Fatal(err)
		}
		e, err := ReadEngine(p)
		if err != nil {
			t.Fatalf("%s: %v", k.name, err)
		}
		if e.SYCL != k.sycl || e.LevelZero != k.ze || strings.Join(e.Needed, " ") != strings.Join(k.needed, " ") {
			t.Errorf("%s: %+v", k.name, e)
		}
		c := find(detect(t, load(t, "strata-1545-a770-xe")), Options{Engines: []Engine{e}}, "engine-level-zero")
		if (c != nil) != (k.sycl && !k.ze) {
			t.Errorf("%s: condition %+v", k.name, c)
		}
	}
	script := filepath.Join(dir, "script")
	os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755)
	if _, err := ReadEngine(script); err == nil || !strings.Contains(err.Error(), script) {
		t.Errorf("a script: %v", err)
	}
	// A real binary of this system.
	if e, err := ReadEngine("/bin/sh"); err != nil || e.SYCL {
		t.Logf("/bin/sh: %+v %v", e, err)
	}
}

// TestReportFromDisk makes reports of machines that are real files, with links
// of every kind, and of the machine this runs on.
func TestReportFromDisk(t *testing.T) {
	for _, name := range []string{"strata-1545-a770-xe", "b570-setup", "amd-mixed-7900-6700", "ollama-7429-3090-4090", "llm-scaler-370-group", "here"} {
		t.Run(name, func(t *testing.T) {
			dir := "/"
			if name != "here" {
				dir = t.TempDir()
				if err := gpu.UnpackFile("../recipe/testdata/machines/"+name+".txt", dir); err != nil {
					t.Fatal(err)
				}
				// A link whose target has the same name, as some containers mount
				// driver libraries, and os-release as distributions have it.
				os.MkdirAll(filepath.Join(dir, "usr/lib/real"), 0o755)
				os.WriteFile(filepath.Join(dir, "usr/lib/real/libcuda.so.1"), nil, 0o644)
				os.Symlink("real/libcuda.so.1", filepath.Join(dir, "usr/lib/libcuda.so.1"))
				os.Rename(filepath.Join(dir, "etc/os-release"), filepath.Join(dir, "usr/lib/os-release"))
				os.Symlink("../usr/lib/os-release", filepath.Join(dir, "etc/os-release"))
			}
			m, fsys, _, err := gpu.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			b, err := Report(fsys, nil, Options{}, Person{}, "test")
			if err != nil {
				t.Fatal(err)
			}
			mf, err := gpu.ParseMachineFile([]byte(b.Text))
			if err != nil {
				t.Fatal(err)
			}
			back := t.TempDir()
			if err := mf.Unpack(back); err != nil {
				t.Fatal(err)
			}
			again := detect(t, os.DirFS(back))
			got, want := outline(again)+again.Host.Distro.Name, outline(m)+m.Host.Distro.Name
			if name == "here" { // the RAM left changes while the test runs
				got, want = again.Host.Distro.Name+again.Host.RAM().String(), m.Host.Distro.Name+m.Host.RAM().String()
			}
			if got != want || again.UserMode.CUDA.Found != m.UserMode.CUDA.Found {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// TestStamp: a cache is stale when a driver that compiles has changed, and only
// then.
func TestStamp(t *testing.T) {
	dir := t.TempDir()
	f := load(t, "neo-905-a770-xe-pve")
	m := detect(t, f)
	c, err := ReadCache(dir)
	if err != nil || c.Version != "" || find(m, Options{Caches: []Cache{c}}, "cache-stale") != nil {
		t.Errorf("a folder without a note: %+v %v", c, err)
	}
	if err := StampCache(dir, m); err != nil {
		t.Fatal(err)
	}
	if c, err = ReadCache(dir); err != nil || !strings.Contains(c.Version, "neo 26.05.37020.3") || find(m, Options{Caches: []Cache{c}}, "cache-stale") != nil {
		t.Errorf("a fresh cache: %+v %v", c, err)
	}
	sub(t, f, "var/lib/dpkg/status", "26.05.37020.3", "26.35.39758.4")
	if find(detect(t, f), Options{Caches: []Cache{c}}, "cache-stale") == nil {
		t.Error("the driver changed and nobody noticed")
	}
}
