package doctor

import (
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"

	"outcrop/gpu"
	"outcrop/gpu/recipe"
)

// Person is what a bug report must not contain.
type Person struct {
	User string // login name
	Home string // home folder
	Host string // host name
}

// Bundle is a bug report: one text that says what was found in words and holds
// the machine as a machine file, so that "--root" can read it again. It is text
// so that it can be shown before it is sent.
type Bundle struct {
	Text string
}

// Report makes the bundle of the machine below root: the conditions, the recipe
// of the target, and every file detection looked at, with home, user and host
// names and the serial numbers of cards removed. live are answers of running
// drivers, nil for a recorded machine.
func Report(root fs.FS, live gpu.Answers, o Options, who Person, version string) (Bundle, error) {
	m, file, err := gpu.Record(root, live)
	if err != nil {
		return Bundle{}, fmt.Errorf("make report: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Outcrop report, version %s\n\n", version)
	b.WriteString("Below this text are the files that were read. With all of it in a file, every\ncommand that reads a machine reads this one with --root FILE.\n\n")
	for _, c := range m.Cards {
		fmt.Fprintf(&b, "card %s %s (%s) driver %s, memory %s\n", c.PCI, c.Name, c.ID(), orNone(c.Driver), c.Memory.Total)
	}
	for _, n := range m.Notes {
		b.WriteString("note: " + n + "\n")
	}
	b.WriteByte('\n')
	for _, c := range Check(m, o) {
		fmt.Fprintf(&b, "%s %s%s: %s\n", c.Severity, c.Code, at(c.Card), c.Title)
		for _, e := range c.Evidence {
			b.WriteString("    " + e + "\n")
		}
		b.WriteString("    next: " + c.Next + "\n")
	}
	t := o.Target
	if t == "" {
		t = recipe.Outcrop
	}
	if r, err := recipe.For(m, t, recipe.Options{Card: o.Card}); err == nil {
		b.WriteString("\nrecipe: " + r.Title + "\n")
		for _, l := range r.Lines {
			switch {
			case l.Off:
				fmt.Fprintf(&b, "    (off) %s=%s\n", l.Var, l.Value)
			case l.Unset:
				fmt.Fprintf(&b, "    unset %s\n", l.Var)
			default:
				fmt.Fprintf(&b, "    %s=%s\n", l.Var, l.Value)
			}
		}
	}
	file.Comment = b.String()
	return Bundle{Text: Scrub(string(file.Format()), who)}, nil
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func at(p gpu.PCI) string {
	if p == "" {
		return ""
	}
	return " at " + string(p)
}

// WriteTo writes the report.
func (b Bundle) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, b.Text)
	return int64(n), err
}

var (
	homes = regexp.MustCompile(`/(home|Users)/[^/\s:"']+`)
	mails = regexp.MustCompile(`[\w.+-]+@[\w-]+\.[\w.-]+`)
	macs  = regexp.MustCompile(`\b([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b`)
)

// Scrub removes a person's names from text: the home folder and any other below
// /home, the login name, the host name, mail and hardware addresses. Names of one
// or two letters and system names are left, since replacing them would hide
// facts.
func Scrub(text string, p Person) string {
	if len(p.Home) > 1 {
		text = strings.ReplaceAll(text, p.Home, "/home/user")
	}
	text = homes.ReplaceAllString(text, "/$1/user")
	for _, w := range []struct{ name, with string }{{p.Host, "host"}, {p.User, "user"}} {
		if len(w.name) < 3 || common[strings.ToLower(w.name)] {
			continue
		}
		re, err := regexp.Compile(`(?i)(^|[^A-Za-z0-9])` + regexp.QuoteMeta(w.name) + `($|[^A-Za-z0-9])`)
		if err != nil {
			continue
		}
		// Twice: neighbours share the character between them.
		for range 2 {
			text = re.ReplaceAllString(text, "${1}"+w.with+"${2}")
		}
	}
	text = mails.ReplaceAllString(text, "mail@hidden")
	return macs.ReplaceAllString(text, "00:00:00:00:00:00")
}

// common are names that are words of the report itself.
var common = map[string]bool{"root": true, "user": true, "host": true, "localhost": true, "intel": true, "amd": true, "nvidia": true, "linux": true, "debian": true, "ubuntu": true, "fedora": true, "arch": true}
