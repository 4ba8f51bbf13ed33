package serve

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"outcrop/assets"
	"outcrop/engine"
	"outcrop/gpu/compute"
)

// TestLostCard: a card that is lost in the middle of an answer ends it with an
// error that names the card and says what to do; the server goes on, says the same
// of the next question at once, and the pack loaded again on the other card
// answers.
func TestLostCard(t *testing.T) {
	path := filepath.Join(t.TempDir(), assets.StarterName)
	if err := os.WriteFile(path, assets.Starter, 0o600); err != nil {
		t.Fatal(err)
	}
	pack, err := engine.OpenPack(path)
	if err != nil {
		t.Fatal(err)
	}
	defer pack.Close()
	launches := 0
	var cards []*compute.Fake
	var devs []*compute.Device
	for i := range 2 {
		f := &compute.Fake{Other: func(*compute.FakeCall) error { // kernels that leave things as they are
			if i == 1 {
				launches++
			}
			return nil
		}}
		infos, err := f.Devices()
		if err != nil {
			t.Fatal(err)
		}
		infos[0].Name = "card " + string(rune('A'+i))
		d, err := compute.Open(f, infos[0], compute.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		cards, devs = append(cards, f), append(devs, d)
	}
	serve := func(o engine.Options) (url string, end func()) {
		o.Threads, o.Context, o.Chunk, o.Draft = 1, 256, 16, "off"
		m, err := engine.Load(context.Background(), pack, o)
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		b := backend(t, nil)
		b.Session, b.Telemetry, b.Residency = s, m.Telemetry, m.Residency
		srv := New(Options{})
		srv.Ready(b)
		return httpTest(t, srv).URL, func() { s.Close(); m.Close() }
	}
	ask := `{"messages":[{"role":"user","content":"` + strings.Repeat("What is a card? ", 8) + `"}],"temperature":0,"max_tokens":4}`
	url, end := serve(engine.Options{Devices: devs, Placement: engine.Placement{Layers: []int{4, 4}}})
	before := launches
	if status, body := post(t, url+"/v1/chat/completions", ask); status != 200 {
		t.Fatalf("before: %d %s", status, body)
	}
	cards[1].Break(compute.Fault{LostAfter: (launches - before) / 2})
	for _, stream := range []string{"", `,"stream":true`} {
		began := time.Now()
		status, body := post(t, url+"/v1/chat/completions", strings.TrimSuffix(strings.Replace(ask, "What", "Now what", 1), "}")+stream+"}")
		if !strings.Contains(body, `"code":"card_lost"`) || !strings.Contains(body, "card B") || strings.Contains(body, "card A") || !strings.Contains(body, `"next":`) || (status == 200) != (stream != "") {
			t.Errorf("the card is lost%s: %d %s", stream, status, body)
		}
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("that took %v", d)
		}
		resp, err := http.Get(url + "/health")
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("health afterwards: %v, %v", resp, err)
		}
		resp.Body.Close()
	}
	end()
	if used, _ := devs[0].Used(); used != 0 {
		t.Errorf("%d bytes stay on the other card", used)
	}
	url, end = serve(engine.Options{Devices: devs[:1]})
	defer end()
	if status, body := post(t, url+"/v1/chat/completions", ask); status != 200 || !strings.Contains(body, `"completion_tokens":4`) {
		t.Errorf("on the other card: %d %s", status, body)
	}
}
