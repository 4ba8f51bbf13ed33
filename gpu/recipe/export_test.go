package recipe_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"outcrop/gpu/recipe"
)

// nasty are values that break quoting.
var nasty = []string{
	"1", "", "level_zero:0,1", "two words", "-ze-opt-a -ze-opt-b", `it's`, `say "hi"`, `back\slash`, `end\`, "$HOME", "`id`", "$(id)", "%h %%", "a;b", "a&b|c", "#no comment", "tab\there", "ünï", "‘curly’", "!x", "*", "~", "{a,b}", "a=b", "\\n", `'"'"'`, "a\\'b",
}

func nastyRecipe() recipe.Recipe {
	r := recipe.Recipe{Target: "outcrop", Title: "a title\nwith a line break"}
	for i, v := range nasty {
		r.Lines = append(r.Lines, recipe.Line{Var: fmt.Sprintf("V%d_x", i), Value: v, Why: "why\nin two lines # ' \"", Source: "a/b#1", Confidence: recipe.Reported})
	}
	r.Lines = append(r.Lines, recipe.Line{Var: "GONE", Unset: true, Why: "must go"}, recipe.Line{Var: "ABSENT", Unset: true}, recipe.Line{Var: "OFF", Value: "1", Off: true})
	return r
}

// check compares what a shell ended up with.
func check(t *testing.T, r recipe.Recipe, got map[string]string, unset bool) {
	t.Helper()
	for _, l := range r.Lines {
		v, ok := got[l.Var]
		switch {
		case l.Off:
			if ok {
				t.Errorf("%s is off but was set to %q", l.Var, v)
			}
		case l.Unset:
			if ok && unset {
				t.Errorf("%s must be unset but is %q", l.Var, v)
			}
		case !ok:
			t.Errorf("%s is not set, want %q", l.Var, l.Value)
		case v != l.Value:
			t.Errorf("%s = %q, want %q", l.Var, v, l.Value)
		}
	}
}

// nul reads "NAME=value" entries separated by zero bytes, as env -0 prints them.
func nul(s string) map[string]string {
	out := map[string]string{}
	for _, kv := range strings.Split(s, "\x00") {
		if k, v, ok := strings.Cut(kv, "="); ok {
			out[k] = v
		}
	}
	return out
}

func tool(t *testing.T, name string) string {
	t.Helper()
	p, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed here", name)
	}
	return p
}

// run sources an export in a shell and reads the environment a child sees.
func run(t *testing.T, shell string, args []string, text, ext string) map[string]string {
	t.Helper()
	f := filepath.Join(t.TempDir(), "recipe."+ext)
	if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "FILE", f)
	}
	c := exec.Command(shell, args...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GONE=here", "LC_ALL=C.UTF-8"}
	out, err := c.Output()
	if err != nil {
		if e, ok := err.(*exec.ExitError); ok {
			t.Fatalf("%s: %v\n%s", shell, err, e.Stderr)
		}
		t.Fatal(err)
	}
	return nul(string(out))
}

func export(t *testing.T, r recipe.Recipe, format string) string {
	t.Helper()
	s, err := r.Export(format)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestExportShells(t *testing.T) {
	r := nastyRecipe()
	r.Lines = append(r.Lines, recipe.Line{Var: "LINES2", Value: "one\ntwo"})
	for _, sh := range []string{"sh", "bash", "dash", "zsh"} {
		t.Run(sh, func(t *testing.T) {
			check(t, r, run(t, tool(t, sh), []string{"-c", ". FILE; env -0"}, export(t, r, "sh"), "sh"), true)
		})
		t.Run(sh+" set -eu", func(t *testing.T) {
			check(t, r, run(t, tool(t, sh), []string{"-euc", ". FILE; env -0"}, export(t, r, "sh"), "sh"), true)
		})
	}
	t.Run("fish", func(t *testing.T) {
		check(t, r, run(t, tool(t, "fish"), []string{"-c", "source FILE; env -0"}, export(t, r, "fish"), "fish"), true)
	})
	t.Run("pwsh", func(t *testing.T) {
		check(t, r, run(t, tool(t, "pwsh"), []string{"-NoProfile", "-Command", ". FILE; env -0"}, export(t, r, "ps1"), "ps1"), true)
	})
}

// TestExportPS1 reads the PowerShell export by PowerShell's own rules for single
// quotes, for machines without PowerShell.
func TestExportPS1(t *testing.T) {
	r := nastyRecipe()
	r.Lines = append(r.Lines, recipe.Line{Var: "LINES2", Value: "one\ntwo"})
	got := map[string]string{"GONE": "here"}
	s := []rune(export(t, r, "ps1"))
	quote := func(c rune) bool { return strings.ContainsRune("'‘’‚‛", c) }
	for i := 0; i < len(s); {
		j := i
		for j < len(s) && s[j] != '\n' {
			j++
		}
		line := string(s[i:j])
		switch {
		case strings.HasPrefix(line, "#"), line == "":
			i = j + 1
		case strings.HasPrefix(line, "Remove-Item Env:"):
			name, _, _ := strings.Cut(strings.TrimPrefix(line, "Remove-Item Env:"), " ")
			delete(got, name)
			i = j + 1
		case strings.HasPrefix(line, "$env:"):
			name, _, ok := strings.Cut(strings.TrimPrefix(line, "$env:"), " = ")
			if !ok {
				t.Fatalf("no assignment: %q", line)
			}
			k := i + len([]rune("$env:"+name+" = "))
			if !quote(s[k]) {
				t.Fatalf("value is not quoted: %q", line)
			}
			var v []rune
			for k++; ; k++ {
				if k >= len(s) {
					t.Fatalf("quote is not closed: %q", line)
				}
				if quote(s[k]) {
					if k+1 < len(s) && quote(s[k+1]) {
						v = append(v, s[k]) // a doubled quote stands for one
						k++
						continue
					}
					break
				}
				v = append(v, s[k])
			}
			if k+1 >= len(s) || s[k+1] != '\n' {
				t.Fatalf("text after the value of %s", name)
			}
			got[name] = string(v)
			i = k + 2
		default:
			t.Fatalf("not a statement: %q", line)
		}
	}
	check(t, r, got, true)
}

// TestExportEnv sources the .env file in a POSIX shell, and reads it by the rule
// of usual readers: single quotes are literal, double quotes know backslashes.
func TestExportEnv(t *testing.T) {
	r := nastyRecipe()
	text := export(t, r, "env")
	check(t, r, run(t, tool(t, "sh"), []string{"-c", "set -a; . FILE; env -0"}, text, "env"), false)
	got := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		k, v, _ := strings.Cut(line, "=")
		if strings.HasPrefix(v, "'") {
			got[k] = strings.Trim(v, "'")
			continue
		}
		var b strings.Builder
		for i := 1; i < len(v)-1; i++ {
			if v[i] == '\\' && strings.ContainsRune("\\\"$`", rune(v[i+1])) {
				i++
			}
			b.WriteByte(v[i])
		}
		got[k] = b.String()
	}
	check(t, r, got, true)
	if !strings.Contains(text, "# must not be set: GONE\n") {
		t.Error("what must be unset is not said")
	}
	if _, err := (recipe.Recipe{Lines: []recipe.Line{{Var: "A", Value: "x\ny"}}}).Export("env"); err == nil {
		t.Error("a line break in a .env value was not refused")
	}
}

// TestExportSystemd reads the drop-in by the rules of systemd.syntax(7) and
// systemd.exec(5): C escapes inside double quotes, %% for a percent sign.
func TestExportSystemd(t *testing.T) {
	r := nastyRecipe()
	r.Lines = append(r.Lines, recipe.Line{Var: "LINES2", Value: "one\ntwo"})
	text := export(t, r, "systemd")
	got := map[string]string{"GONE": "here"}
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = line
		case strings.HasPrefix(line, "UnsetEnvironment="):
			delete(got, strings.TrimPrefix(line, "UnsetEnvironment="))
		case strings.HasPrefix(line, "Environment="):
			if strings.HasSuffix(line, `\`) {
				t.Fatalf("a backslash at the end would join lines: %q", line)
			}
			kv, err := systemdWord(strings.TrimPrefix(line, "Environment="))
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			k, v, _ := strings.Cut(kv, "=")
			got[k] = v
		default:
			t.Fatalf("not a setting: %q", line)
		}
	}
	if section != "[Service]" {
		t.Errorf("section %q", section)
	}
	check(t, r, got, true)
}

// systemdWord reads one double-quoted word.
func systemdWord(s string) (string, error) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return "", fmt.Errorf("not one quoted word")
	}
	s = s[1 : len(s)-1]
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return "", fmt.Errorf("quote inside the word")
		case '%':
			if i+1 >= len(s) || s[i+1] != '%' {
				return "", fmt.Errorf("a lone %% is a specifier")
			}
			i++
			b.WriteByte('%')
		case '\\':
			i++
			if i >= len(s) {
				return "", fmt.Errorf("backslash at the end")
			}
			c, ok := map[byte]byte{'\\': '\\', '"': '"', 'n': '\n', 't': '\t', 'r': '\r'}[s[i]]
			if !ok {
				return "", fmt.Errorf("escape \\%c", s[i])
			}
			b.WriteByte(c)
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}

// TestExportDocker runs the script with a docker that prints its arguments and
// environment: quoting is the real shell's.
func TestExportDocker(t *testing.T) {
	r := nastyRecipe()
	r.Devices = []string{"--device /dev/dri/renderD128", "--group-add 992"}
	dir := t.TempDir()
	fake := "#!/bin/sh\nfor a; do printf '%s\\0' \"$a\"; done\nenv -0\n"
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "recipe.sh")
	if err := os.WriteFile(script, []byte(export(t, r, "docker")), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(tool(t, "sh"), script, "--name", "my name", "image", "cmd arg")
	c.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "GONE=here"}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	parts := strings.Split(string(out), "\x00")
	got := map[string]string{}
	bare := []string{}
	for i := 0; i+1 < len(parts); i++ {
		if parts[i] == "--env" {
			if k, v, ok := strings.Cut(parts[i+1], "="); ok {
				got[k] = v
			} else {
				bare = append(bare, k)
			}
		}
	}
	check(t, r, got, true)
	if fmt.Sprint(bare) != "[GONE ABSENT]" {
		t.Errorf("variables to remove: %v", bare)
	}
	for _, w := range []string{"--device", "/dev/dri/renderD128", "--group-add", "992", "my name", "cmd arg"} {
		if !slices.Contains(parts, w) {
			t.Errorf("argument %q is missing in %q", w, parts)
		}
	}
	for _, p := range parts {
		if strings.HasPrefix(p, "GONE=") {
			t.Error("docker still sees GONE, so it would hand it on")
		}
	}
}

func TestExportJSON(t *testing.T) {
	r := nastyRecipe()
	var back recipe.Recipe
	if err := json.Unmarshal([]byte(export(t, r, "json")), &back); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(back.Lines) != fmt.Sprint(r.Lines) {
		t.Error("lines changed on the way through JSON")
	}
}

func TestExportRefuses(t *testing.T) {
	if _, err := (recipe.Recipe{}).Export("yaml"); err == nil || !strings.Contains(err.Error(), "systemd") {
		t.Errorf("unknown format: %v", err)
	}
	for _, name := range []string{"A B", "1A", "A;rm", "", "Ä", "A\nB"} {
		if _, err := (recipe.Recipe{Lines: []recipe.Line{{Var: name, Value: "1"}}}).Export("sh"); err == nil {
			t.Errorf("name %q was not refused", name)
		}
	}
	// The real recipes pass through every format.
	for _, x := range machines(t) {
		for _, target := range recipe.Targets() {
			r, err := recipe.For(x.m, target, recipe.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range recipe.Formats() {
				if _, err := r.Export(f); err != nil {
					t.Errorf("%s %s: %v", x.name, f, err)
				}
			}
		}
	}
}

// TestExportSystemdReal lets systemd's own parser read the drop-in: it complains
// about every line it does not take.
func TestExportSystemdReal(t *testing.T) {
	verify := tool(t, "systemd-analyze")
	dir := t.TempDir()
	unit := filepath.Join(dir, "outcrop-test.service")
	if err := os.WriteFile(unit, []byte("[Service]\nExecStart=/bin/true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(unit+".d", 0o755); err != nil {
		t.Fatal(err)
	}
	parse := func(text string) string {
		if err := os.WriteFile(filepath.Join(unit+".d", "recipe.conf"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, _ := exec.Command(verify, "verify", unit).CombinedOutput()
		return string(out)
	}
	if out := parse("[Service]\nEnvironment=\"A=x\n"); !strings.Contains(out, "recipe.conf:2") {
		t.Skipf("systemd-analyze does not read drop-ins here: %q", out)
	}
	if out := parse(export(t, nastyRecipe(), "systemd")); strings.Contains(out, "recipe.conf") {
		t.Errorf("systemd complains: %s", out)
	}
}
