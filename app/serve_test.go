package app

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"outcrop/engine/catalog"
)

func (r *rig) servePage() *servePage {
	r.a.visit("serve")
	r.pump()
	return r.a.page("serve").(*servePage)
}

func TestServeOpensAndCloses(t *testing.T) {
	r := newRig(t, LookDark)
	p := r.servePage()
	p.address.SetText("127.0.0.1:0")
	p.flip()
	r.pump()
	if addr := r.a.deps.Gateway.Addr(); addr == "" || !strings.Contains(p.words.Text(), addr) {
		t.Fatalf("open at %q, the page says %q", addr, p.words.Text())
	}
	if !r.a.settings.Serve || p.toggle.Text != "Close" || !p.address.Disabled() {
		t.Error("an open gateway is not shown as one")
	}
	p.flip()
	r.pump()
	if r.a.deps.Gateway.Addr() != "" || r.a.settings.Serve {
		t.Error("the gateway stays open")
	}
}

func TestServeRefusesTheNetworkWithoutKey(t *testing.T) {
	r := newRig(t, LookDark)
	p := r.servePage()
	p.address.SetText("0.0.0.0:0")
	p.flip()
	r.pump()
	if r.a.deps.Gateway.Addr() != "" || !strings.Contains(texts(p.fault), "Set a key first") {
		t.Errorf("open at %q, the page says %q", r.a.deps.Gateway.Addr(), texts(p.fault))
	}
	for addr, want := range map[string]bool{"127.0.0.1:1": true, "localhost:1": true, "[::1]:1": true, "0.0.0.0:1": false, "192.168.1.5:80": false, ":80": false} {
		if got := loopback(addr); got != want {
			t.Errorf("loopback(%q): %v", addr, got)
		}
	}
}

func TestServeOffersTheNextPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := newRig(t, LookDark)
	p := r.servePage()
	p.address.SetText(l.Addr().String())
	p.flip()
	r.pump()
	if got := texts(p.fault); !strings.Contains(got, "taken by another program") || !strings.Contains(got, "Try the next port") {
		t.Errorf("a busy port is told as %q", got)
	}
	if got := nextPort("127.0.0.1:8484"); got != "127.0.0.1:8485" {
		t.Errorf("the next port is %s", got)
	}
}

func TestSnippetsCarryAddressAndKey(t *testing.T) {
	r := newRig(t, LookDark)
	p := r.servePage()
	p.address.SetText("127.0.0.1:9999")
	p.key.SetText("oc-secret")
	for _, kind := range []string{"curl", "Python", "JavaScript", "Anthropic", "environment"} {
		p.kind = kind
		p.snippets()
		if got := texts(p.snip); !strings.Contains(got, "127.0.0.1:9999") || !strings.Contains(got, "oc-secret") {
			t.Errorf("%s lacks address or key:\n%s", kind, got)
		}
	}
	if a, b := newKey(), newKey(); a == b || len(a) < 30 {
		t.Errorf("keys %q and %q", a, b)
	}
}

func TestEverySettingSaysItsDefault(t *testing.T) {
	r := newRig(t, LookDark)
	r.a.visit("settings")
	r.pump()
	p := r.a.page("settings").(*settingsPage)
	got := texts(p.body)
	for _, s := range settingTable() {
		if !strings.Contains(got, s.name) {
			t.Errorf("%s is not shown", s.name)
		}
		if s.standard(r.a) == "" || !strings.Contains(got, "Default: "+s.standard(r.a)) {
			t.Errorf("%s does not say its default %q", s.name, s.standard(r.a))
		}
		if s.set(&Settings{Look: LookSystem}) {
			t.Errorf("%s counts as chosen although nothing was", s.name)
		}
	}
	if !strings.Contains(got, "the plan's choice, now 2K") {
		t.Error("the context setting does not say what the plan would choose")
	}
	// A chosen value offers the way back.
	r.a.change(func(s *Settings) { s.Threads, s.KV, s.Tray = 3, "q8", true })
	p.draw()
	if n := strings.Count(texts(p.body), "Back to the default"); n != 4 { // these and the theme
		t.Errorf("%d settings offer the way back, want 4", n)
	}
	for _, s := range settingTable() {
		s.reset(&r.a.settings)
	}
	p.draw()
	if strings.Contains(texts(p.body), "Back to the default") {
		t.Error("a reset setting counts as chosen")
	}
	p.find("KV cache")
	if got := texts(p.body); !strings.Contains(got, "KV cache") || strings.Contains(got, "Threads") {
		t.Errorf("searching shows\n%s", got)
	}
}

func TestSettingsReachTheEngine(t *testing.T) {
	dir := t.TempDir()
	r := newRigIn(t, LookDark, dir)
	r.a.change(func(s *Settings) { s.Threads, s.Context, s.KV, s.Guard = 5, 1024, "q8", "busy" })
	r.a.startLast()
	r.pump()
	got := r.engine.specs[len(r.engine.specs)-1]
	if got.Threads != 5 || got.Context != 1024 || got.KV != "q8" || got.Guard != "busy" {
		t.Errorf("started with %+v", got)
	}
	if w := r.a.wishes(catalog.Entry{}); w.RAMFloor == 0 || w.Context != 1024 {
		t.Errorf("planned with %+v", w)
	}
	r.a.Close()
	r2 := newRigIn(t, LookDark, dir)
	if r2.a.settings.Threads != 5 || r2.a.settings.Guard != "busy" {
		t.Errorf("after a restart: %+v", r2.a.settings)
	}
	if fmt.Sprint(r2.engine.specs[0].Threads) != "5" {
		t.Errorf("started with %+v", r2.engine.specs)
	}
}

func TestUnreadableHistoryStillChats(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(HistoryPath(dir), bytes.Repeat([]byte("no database "), 999), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRigIn(t, LookDark, dir)
	if got := strings.Join(r.a.frame.toasts.Texts(), "|"); !strings.Contains(got, "the file is damaged") || !strings.Contains(got, "will not be kept") {
		t.Errorf("the toasts say %q", got)
	}
	r.answerWith("hello", "hi")
	r.want("user: hello", "assistant: hi")
	passing := r.a.passing
	r.a.Close()
	if _, err := os.Stat(passing); err == nil {
		t.Error("the session's file outlives the program")
	}
	if b, err := os.ReadFile(HistoryPath(dir)); err != nil || !bytes.HasPrefix(b, []byte("no database")) {
		t.Error("the damaged file was touched")
	}
}
