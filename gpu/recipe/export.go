package recipe

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Formats are the export formats.
func Formats() []string { return []string{"sh", "fish", "ps1", "env", "systemd", "docker", "json"} }

// Export writes the recipe as
//
//	sh       lines to source in a POSIX shell (bash, dash, zsh, ...)
//	fish     lines to source in fish
//	ps1      lines to run in PowerShell
//	env      a .env file, which a POSIX shell can source too; what must be unset is a comment there
//	systemd  a drop-in for a service
//	docker   a shell script that calls docker run with the variables and devices; arguments follow
//	json     the recipe itself
//
// Values with line breaks are refused where the format has no way to hold them.
func (r Recipe) Export(format string) (string, error) {
	if format == "json" {
		b, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return "", fmt.Errorf("export recipe: %w", err)
		}
		return string(b) + "\n", nil
	}
	w, ok := writers[format]
	if !ok {
		return "", fmt.Errorf("export recipe: unknown format %q (known: %s)", format, strings.Join(Formats(), ", "))
	}
	for _, l := range r.Lines {
		if !validName(l.Var) {
			return "", fmt.Errorf("export recipe: %q is no name of a variable", l.Var)
		}
		if strings.ContainsAny(l.Value, "\x00") || w.oneLine && strings.ContainsAny(l.Value, "\n\r") {
			return "", fmt.Errorf("export recipe: the value of %s has a character that %s cannot hold", l.Var, format)
		}
	}
	return w.write(r), nil
}

// validName keeps names to what every shell takes.
func validName(s string) bool {
	for i, c := range s {
		if !(c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}

type writer struct {
	write   func(Recipe) string
	oneLine bool
}

var writers = map[string]writer{
	"sh":   {write: func(r Recipe) string { return r.script("export %s=%s\n", "unset %s\n", quoteSh) }},
	"fish": {write: func(r Recipe) string { return r.script("set -gx %s %s\n", "set -e %s\n", quoteFish) }},
	"ps1": {write: func(r Recipe) string {
		return r.script("$env:%s = %s\n", "Remove-Item Env:%s -ErrorAction SilentlyContinue\n", quotePS)
	}},
	"env":     {write: func(r Recipe) string { return r.script("%s=%s\n", "# must not be set: %s\n", quoteEnv) }, oneLine: true},
	"systemd": {write: systemd},
	"docker":  {write: docker, oneLine: true},
}

// head says what the file is, as comments.
func (r Recipe) head() string {
	var b strings.Builder
	b.WriteString("# outcrop recipe: " + oneLine(r.Title) + "\n")
	if r.AsReported {
		b.WriteString("# the lines as reported, without our findings\n")
	}
	if a := r.Args(); len(a) > 0 {
		b.WriteString("# flags:")
		for _, x := range a {
			b.WriteString(" " + oneLine(x))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// script writes a file of one statement a line, each under its reason.
func (r Recipe) script(set, unset string, quote func(string) string) string {
	var b strings.Builder
	b.WriteString(r.head())
	for _, l := range r.sorted() {
		b.WriteString(l.comment())
		if l.Unset {
			fmt.Fprintf(&b, unset, l.Var)
		} else {
			fmt.Fprintf(&b, set, l.Var, quote(l.Value))
		}
	}
	for _, l := range r.Lines {
		if l.Off {
			fmt.Fprintf(&b, "# off: %s=%s: %s (%s)\n", l.Var, oneLine(l.Value), oneLine(l.Why), l.Confidence)
		}
	}
	return b.String()
}

func (l Line) comment() string {
	return fmt.Sprintf("# %s (%s; %s)\n", oneLine(l.Why), oneLine(l.Source), l.Confidence)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// quoteSh quotes for a POSIX shell: nothing is special inside single quotes.
func quoteSh(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// quoteFish quotes for fish, where a backslash escapes a quote or itself inside
// single quotes.
func quoteFish(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}

// quotePS quotes for PowerShell, which takes typographic quotes for single
// quotes too; each is doubled.
func quotePS(s string) string {
	return "'" + strings.NewReplacer("'", "''", "‘", "‘‘", "’", "’’", "‚", "‚‚", "‛", "‛‛").Replace(s) + "'"
}

// quoteEnv quotes for .env files so that a POSIX shell and the usual readers
// agree: single quotes where they can be used, double quotes with escapes else.
func quoteEnv(s string) string {
	if !strings.Contains(s, "'") {
		return "'" + s + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(s) + `"`
}

// systemd writes a drop-in. Inside double quotes systemd reads C escapes, and a
// percent sign begins a specifier everywhere in a unit.
func systemd(r Recipe) string {
	var b strings.Builder
	b.WriteString(r.head() + "[Service]\n")
	for _, l := range r.sorted() {
		b.WriteString(l.comment())
		if l.Unset {
			b.WriteString("UnsetEnvironment=" + l.Var + "\n")
			continue
		}
		v := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(l.Value)
		b.WriteString(`Environment="` + l.Var + "=" + v + "\"\n")
	}
	return b.String()
}

// docker writes a script around docker run. A variable without a value is
// removed from the image's environment when the caller does not have it either,
// which "env -u" makes sure of.
func docker(r Recipe) string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n" + r.head() + "# use: sh FILE [docker options] IMAGE [command]\n")
	b.WriteString("exec env")
	for _, l := range r.sorted() {
		if l.Unset {
			b.WriteString(" -u " + l.Var)
		}
	}
	b.WriteString(" docker run --rm")
	for _, l := range r.sorted() {
		if l.Unset {
			b.WriteString(" \\\n  --env " + l.Var)
		} else {
			b.WriteString(" \\\n  --env " + quoteSh(l.Var+"="+l.Value))
		}
	}
	for _, d := range r.Devices {
		b.WriteString(" \\\n  " + d)
	}
	b.WriteString(" \\\n  \"$@\"\n")
	return b.String()
}
