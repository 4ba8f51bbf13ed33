package gpu

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

// MachineFile is another machine as one text file: the files of sys, proc, dev
// and the rest that [Detect] reads, what programs answered there, and, in tests,
// what we want to be found. It is a txtar archive (golang.org/x/tools/txtar):
//
//   - the comment tells the machine and the public report it comes from;
//   - "-- a/b -> target --" is a symbolic link;
//   - "-- a/b/ --" (a name that ends in a slash) holds many small files of one
//     folder, a line each: "name value", or "name -> target" for a link; \n in a
//     value is a line break;
//   - device files hold a line as "ls -l" prints it;
//   - "-- answers --" is described at [Answers];
//   - files below want/ are no part of the machine.
type MachineFile struct {
	Comment string
	Files   []RecordedFile // sorted by name
	Want    []RecordedFile // names without "want/"
}

// RecordedFile is one file of a machine file.
type RecordedFile struct {
	Name   string
	Target string // a symbolic link when not empty
	Data   string
}

// ParseMachineFile reads a machine file. Names that are absolute, leave the
// folder or appear twice are errors: Unpack writes them to disk.
func ParseMachineFile(data []byte) (*MachineFile, error) {
	comment, secs := sections(string(data))
	m := &MachineFile{Comment: strings.TrimSpace(comment)}
	seen := map[string]bool{}
	add := func(f RecordedFile) error {
		if f.Name == "" || path.IsAbs(f.Name) || path.Clean(f.Name) != f.Name || strings.HasPrefix(f.Name, "..") {
			return fmt.Errorf("machine file: name %q is not a clean relative path", f.Name)
		}
		if seen[f.Name] {
			return fmt.Errorf("machine file: %q appears twice", f.Name)
		}
		seen[f.Name] = true
		if w, ok := strings.CutPrefix(f.Name, "want/"); ok {
			f.Name = w
			m.Want = append(m.Want, f)
			return nil
		}
		m.Files = append(m.Files, f)
		return nil
	}
	for _, f := range secs {
		name, target, isLink := strings.Cut(f.Name, " -> ")
		switch {
		case isLink:
			if err := add(RecordedFile{Name: strings.TrimSpace(name), Target: strings.TrimSpace(target)}); err != nil {
				return nil, err
			}
		case strings.HasSuffix(f.Name, "/"):
			for line := range strings.Lines(f.Data) {
				line = strings.TrimSpace(line)
				if line == "" {
					continue
				}
				n, v, _ := strings.Cut(line, " ")
				r := RecordedFile{Name: f.Name + n}
				if t, ok := strings.CutPrefix(v, "-> "); ok {
					r.Target = t
				} else {
					r.Data = strings.ReplaceAll(v, `\n`, "\n") + "\n"
				}
				if err := add(r); err != nil {
					return nil, err
				}
			}
		default:
			if err := add(RecordedFile{Name: f.Name, Data: f.Data}); err != nil {
				return nil, err
			}
		}
	}
	if len(seen) == 0 {
		return nil, fmt.Errorf("machine file: it has no \"-- NAME --\" line, so it holds no files")
	}
	sort.Slice(m.Files, func(i, j int) bool { return m.Files[i].Name < m.Files[j].Name })
	for i := 1; i < len(m.Files); i++ {
		if strings.HasPrefix(m.Files[i].Name, m.Files[i-1].Name+"/") {
			return nil, fmt.Errorf("machine file: %q is both a file and a folder", m.Files[i-1].Name)
		}
	}
	return m, nil
}

// Unpack writes the machine below dir, which then serves as --root. Files are
// made new: dir should be empty.
func (m *MachineFile) Unpack(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("unpack machine: %w", err)
	}
	defer root.Close()
	// Links last: a file must never be written through one.
	for _, links := range []bool{false, true} {
		for _, f := range m.Files {
			if (f.Target != "") != links {
				continue
			}
			name := filepath.FromSlash(f.Name)
			if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return fmt.Errorf("unpack machine: %w", err)
			}
			if links {
				err = root.Symlink(f.Target, name)
			} else {
				err = root.WriteFile(name, []byte(f.Data), 0o644)
			}
			if err != nil {
				return fmt.Errorf("unpack machine: %w", err)
			}
		}
	}
	return nil
}

// maxMachine bounds a machine file: a report of a big machine has some 100 KB.
const maxMachine = 64 << 20

// UnpackFile reads a machine file and unpacks it into dir, making dir when it
// is not there.
func UnpackFile(file, dir string) error {
	st, err := os.Stat(file)
	switch {
	case err != nil:
		return fmt.Errorf("unpack machine: %w", err)
	case !st.Mode().IsRegular() || st.Size() > maxMachine:
		return fmt.Errorf("unpack machine: want a regular file of at most %d MiB", maxMachine>>20)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("unpack machine: %w", err)
	}
	m, err := ParseMachineFile(b)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("unpack machine: %w", err)
	}
	return m.Unpack(dir)
}

// sections splits a txtar archive: the text before the first "-- name --" line,
// and each name with the lines after it. The usual library for this format
// fails on a line "-- --", and a machine file is foreign input.
func sections(s string) (comment string, out []RecordedFile) {
	var b strings.Builder
	flush := func() {
		if len(out) == 0 {
			comment = b.String()
		} else {
			out[len(out)-1].Data = b.String()
		}
		b.Reset()
	}
	for line := range strings.Lines(s) {
		l := strings.TrimRight(line, "\r\n")
		if len(l) > 6 && strings.HasPrefix(l, "-- ") && strings.HasSuffix(l, " --") {
			if name := strings.TrimSpace(l[3 : len(l)-3]); name != "" {
				flush()
				out = append(out, RecordedFile{Name: name})
				continue
			}
		}
		b.WriteString(line)
	}
	flush()
	return comment, out
}

// Format writes the machine file as text.
func (m *MachineFile) Format() []byte {
	var b strings.Builder
	b.WriteString(m.Comment + "\n")
	put := func(prefix string, fs []RecordedFile) {
		for _, f := range fs {
			if f.Target != "" {
				fmt.Fprintf(&b, "-- %s%s -> %s --\n", prefix, f.Name, f.Target)
				continue
			}
			fmt.Fprintf(&b, "-- %s%s --\n%s", prefix, f.Name, f.Data)
			if f.Data != "" && !strings.HasSuffix(f.Data, "\n") {
				b.WriteByte('\n')
			}
		}
	}
	put("", m.Files)
	put("want/", m.Want)
	return []byte(b.String())
}
