package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// data is a file of n bytes that begins like a GGUF file.
func data(n int, salt byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7) ^ salt ^ byte(i>>8)
	}
	copy(b, "GGUF")
	return b
}

func digest(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// site is a server of one file with its faults.
type site struct {
	mu       sync.Mutex
	body     []byte
	tag      string
	cutAfter int // bytes per answer, 0 all
	requests []string
	hook     func(w http.ResponseWriter, r *http.Request, n int) bool // true: answered
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Header.Get("Range"))
	if s.hook != nil && s.hook(w, r, len(s.requests)) {
		return
	}
	if s.tag != "" {
		w.Header().Set("ETag", s.tag)
	}
	if s.cutAfter > 0 {
		w = &cutter{w, s.cutAfter}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.body))
}

// cutter breaks the connection after some bytes.
type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(b []byte) (int, error) {
	if len(b) > c.left {
		c.ResponseWriter.Write(b[:c.left])
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= len(b)
	return c.ResponseWriter.Write(b)
}

func start(t *testing.T, s http.Handler) (*Downloader, string) {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return &Downloader{Dir: t.TempDir(), Site: srv.URL, HTTP: srv.Client(), Stall: 5 * time.Second, Tries: 3,
		pause: func(context.Context, time.Duration) error { return nil }}, srv.URL
}

func check(t *testing.T, path string, want []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(b, want) {
		t.Errorf("got %d bytes, %v, want %d", len(b), err, len(want))
	}
	es, _ := os.ReadDir(filepath.Dir(path))
	for _, e := range es {
		if filepath.Ext(e.Name()) != ".gguf" {
			t.Errorf("left over: %s", e.Name())
		}
	}
}

func TestDownload(t *testing.T) {
	want := data(1<<20, 0)
	s := &site{body: want, tag: `"v1"`}
	d, url := start(t, s)
	src, err := d.Find(context.Background(), url+"/files/My%20Pack-Q4.gguf?sig=a")
	if err != nil || src.Name != "My Pack-Q4" {
		t.Fatalf("got %+v, %v", src, err)
	}
	src.Files[0].SHA256 = digest(want)
	var last Progress
	p, err := d.Get(context.Background(), src, func(p Progress) {
		if p.Done < last.Done {
			t.Errorf("progress ran backwards: %d after %d", p.Done, last.Done)
		}
		last = p
	})
	if err != nil {
		t.Fatal(err)
	}
	check(t, p, want)
	if last.Phase != "done" || last.Done != int64(len(want)) || last.Total != int64(len(want)) {
		t.Errorf("got %+v", last)
	}
	if _, err := d.Get(context.Background(), src, nil); err != nil || len(s.requests) != 1 {
		t.Errorf("a complete pack was asked for again: %v, %d requests", err, len(s.requests))
	}
}

func TestCutConnectionsResume(t *testing.T) {
	want := data(300_000, 0)
	s := &site{body: want, tag: `"v1"`, cutAfter: 100_000}
	d, url := start(t, s)
	src := Source{Name: "p", Files: []RemoteFile{{URL: url + "/p.gguf", Name: "p.gguf", Size: -1, SHA256: digest(want)}}}
	var last int64
	p, err := d.Get(context.Background(), src, func(p Progress) {
		if p.Done < last {
			t.Errorf("progress ran backwards: %d after %d", p.Done, last)
		}
		last = p.Done
	})
	if err != nil {
		t.Fatal(err)
	}
	check(t, p, want)
	if len(s.requests) < 3 || s.requests[1] == "" {
		t.Errorf("requests: %q", s.requests)
	}
}

// T80: paused or killed, then resumed by another run; the digest covers both halves.
func TestPauseAndResume(t *testing.T) {
	want := data(400_000, 0)
	s := &site{body: want, tag: `"v1"`, cutAfter: 150_000}
	d, url := start(t, s)
	src := Source{Name: "p", Files: []RemoteFile{{URL: url + "/p.gguf", Name: "p.gguf", Size: int64(len(want)), SHA256: digest(want)}}}
	ctx, cancel := context.WithCancel(context.Background())
	_, err := d.Get(ctx, src, func(p Progress) {
		if p.Phase == "waiting" {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	again := &Downloader{Dir: d.Dir, Site: d.Site, HTTP: d.HTTP, pause: d.pause}
	u, err := again.Unfinished()
	if err != nil || len(u) != 1 || u[0].Done < 100_000 || u[0].Source.Name != "p" {
		t.Fatalf("got %+v, %v", u, err)
	}
	s.cutAfter = 0
	p, err := again.Get(context.Background(), u[0].Source, nil)
	if err != nil {
		t.Fatal(err)
	}
	check(t, p, want)
	if r := s.requests[len(s.requests)-1]; !strings.HasPrefix(r, "bytes=1") {
		t.Errorf("the second run asked for %q", r)
	}
	if u, _ := again.Unfinished(); len(u) != 0 {
		t.Errorf("still unfinished: %+v", u)
	}
}

// T71: the file on the server changed between the two halves.
func TestChangedOnServer(t *testing.T) {
	d, url := start(t, nil)
	src := Source{Name: "p", Files: []RemoteFile{{URL: url + "/p.gguf", Name: "p.gguf", Size: -1}}}
	for _, ranges := range []bool{true, false} {
		want := data(200_000, 9)
		s := &site{body: want, tag: `"v2"`}
		if !ranges { // a server that knows no If-Range and sends the part of the new file
			s.hook = func(w http.ResponseWriter, r *http.Request, n int) bool {
				r.Header.Del("If-Range")
				return false
			}
		}
		d2, u2 := start(t, s)
		d.Dir, d.HTTP = d2.Dir, d2.HTTP
		src.Files[0].URL = u2 + "/p.gguf"
		dir := filepath.Join(d.Dir, "p")
		os.MkdirAll(dir, 0o755)
		os.WriteFile(filepath.Join(dir, "p.gguf.part"), data(50_000, 0), 0o644)
		os.WriteFile(filepath.Join(dir, "p.gguf.etag"), []byte(`"v1"`), 0o644)
		p, err := d.Get(context.Background(), src, nil)
		if err != nil {
			t.Fatalf("ranges %v: %v", ranges, err)
		}
		check(t, p, want)
	}
}

// T73: 416 at the full length means that everything is there.
func TestFullLengthAlready(t *testing.T) {
	want := data(5000, 0)
	s := &site{body: want, tag: `"v1"`}
	d, url := start(t, s)
	dir := filepath.Join(d.Dir, "p")
	os.MkdirAll(dir, 0o755)
	os.WriteFile(filepath.Join(dir, "p.gguf.part"), want, 0o644)
	os.WriteFile(filepath.Join(dir, "p.gguf.etag"), []byte(`"v1"`), 0o644)
	p, err := d.Get(context.Background(), Source{Name: "p", Files: []RemoteFile{{URL: url + "/p.gguf", Name: "p.gguf", Size: -1, SHA256: digest(want)}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	check(t, p, want)
}

func TestWrongThings(t *testing.T) {
	good := data(1000, 0)
	for _, c := range []struct {
		name   string
		body   []byte
		size   int64
		sum    string
		status int
		want   string
	}{
		{"page", []byte("<!doctype html><html><body>Sign in</body></html>"), -1, "", 200, "web page"},
		{"pointer", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:x\n"), -1, "", 200, "pointer"},
		{"short", []byte("GG"), -1, "", 200, "shorter than"},
		{"another size", good, 2000, "", 200, "the file has changed"},
		{"another digest", good, 1000, digest([]byte("x")), 200, "not those the site lists"},
		{"licence", nil, -1, "", 403, "accept the licence"},
		{"key", nil, -1, "", 401, "access token"},
		{"missing", nil, -1, "", 404, "not there"},
		{"server fault", nil, -1, "", 502, "502"},
	} {
		s := &site{body: c.body}
		s.hook = func(w http.ResponseWriter, r *http.Request, n int) bool {
			if c.status != 200 {
				w.WriteHeader(c.status)
			}
			return c.status != 200
		}
		d, url := start(t, s)
		_, err := d.Get(context.Background(), Source{Name: "p", Files: []RemoteFile{{URL: url + "/p.gguf", Name: "p.gguf", Size: c.size, SHA256: c.sum}}}, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.name, err)
		}
		if _, err := os.Stat(filepath.Join(d.Dir, "p", "p.gguf")); err == nil {
			t.Errorf("%s: was taken for a pack", c.name)
		}
		// Nothing came, so nothing is left to go on with.
		if u, err := d.Unfinished(); err != nil || len(u) != 0 {
			t.Errorf("%s: unfinished: %v, %v", c.name, u, err)
		}
		if err := d.Discard("p"); err != nil {
			t.Errorf("%s: discard: %v", c.name, err)
		}
		if _, err := os.Stat(filepath.Join(d.Dir, "p")); err == nil {
			t.Errorf("%s: discard left the folder", c.name)
		}
	}
}

func TestRedirects(t *testing.T) {
	n := 0
	d, url := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		to := r.URL.Path
		if to == "/file.gguf" {
			to = "file:///etc/passwd"
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	}))
	d.HTTP = nil
	for _, name := range []string{"loop.gguf", "file.gguf"} {
		n = 0
		_, err := d.Get(context.Background(), Source{Name: "p", Files: []RemoteFile{{URL: url + "/" + name, Name: name, Size: -1}}}, nil)
		if err == nil || !strings.Contains(err.Error(), "leads in a circle") || n > 10 {
			t.Errorf("%s: %d requests, %v", name, n, err)
		}
	}
}

// T77: a server that stops sending without closing.
func TestStall(t *testing.T) {
	want := data(100_000, 0)
	release := make(chan struct{})
	defer close(release)
	s := &site{body: want, tag: `"v1"`}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") == "" {
			w.Header().Set("ETag", `"v1"`)
			w.Header().Set("Content-Length", fmt.Sprint(len(want)))
			w.Write(want[:40_000])
			w.(http.Flusher).Flush()
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return
		}
		s.ServeHTTP(w, r)
	})
	d, url := start(t, h)
	d.Stall = 100 * time.Millisecond
	note := ""
	p, err := d.Get(context.Background(), Source{Name: "p", Files: []RemoteFile{{URL: url + "/p.gguf", Name: "p.gguf", Size: -1, SHA256: digest(want)}}},
		func(p Progress) { note += p.Note })
	if err != nil {
		t.Fatal(err)
	}
	check(t, p, want)
	if !strings.Contains(note, "nothing came for") {
		t.Errorf("notes: %q", note)
	}
}

func TestNoRoom(t *testing.T) {
	s := &site{body: data(1000, 0)}
	d, url := start(t, s)
	d.room = func(string) (int64, error) { return 100 << 20, nil }
	for _, size := range []int64{1000, -1} {
		_, err := d.Get(context.Background(), Source{Name: "p", Files: []RemoteFile{{URL: url + "/p.gguf", Name: "p.gguf", Size: size}}}, nil)
		if err == nil || !strings.Contains(err.Error(), "not enough room") || !strings.Contains(err.Error(), "0.1 GB are free") {
			t.Errorf("size %d: got %v", size, err)
		}
	}
}

// T74: the token belongs to the site and not to the host it redirects to.
func TestTokenStaysAtTheSite(t *testing.T) {
	want := data(1000, 0)
	var leaked, sent string
	cdn := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked += r.Header.Get("Authorization")
		w.Write(want)
	}))
	defer cdn.Close()
	other := strings.Replace(cdn.URL, "127.0.0.1", "localhost", 1)
	d, url := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("Authorization")
		http.Redirect(w, r, other+"/signed", http.StatusFound)
	}))
	d.Token = "secret"
	if _, err := d.Get(context.Background(), Source{Name: "p", Files: []RemoteFile{{URL: url + "/p.gguf", Name: "p.gguf", Size: -1}}}, nil); err != nil {
		t.Skip("this machine has no address localhost: ", err)
	}
	if sent != "Bearer secret" || leaked != "" {
		t.Errorf("site got %q, the other host %q", sent, leaked)
	}
	if _, err := d.Get(context.Background(), Source{Name: "q", Files: []RemoteFile{{URL: other + "/q.gguf", Name: "q.gguf", Size: -1}}}, nil); err != nil || leaked != "" {
		t.Errorf("direct: %v, leaked %q", err, leaked)
	}
}

func TestFind(t *testing.T) {
	type m = map[string]any
	lfs := func(path string, size int64) m {
		return m{"type": "file", "path": path, "size": 130, "lfs": m{"oid": strings.Repeat("a", 64), "size": size}}
	}
	list := []m{
		lfs("a-Q4_K_M.gguf", 100), lfs("a-Q4_K.gguf", 90), lfs("a-Q8_0.gguf", 200), lfs("mmproj-F16.gguf", 5),
		lfs("big/a-F16-00002-of-00002.gguf", 20), lfs("big/a-F16-00001-of-00002.gguf", 30),
		lfs("a-Q2_K-00001-of-00002.gguf", 7),
		{"type": "file", "path": "README.md", "size": 1}, {"type": "directory", "path": "big"},
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/api/models/o/many/tree/main"):
			if r.URL.Query().Get("cursor") == "" {
				w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?cursor=2>; rel="next"`, r.Host, r.URL.Path))
				json.NewEncoder(w).Encode(list[:4])
				return
			}
			json.NewEncoder(w).Encode(list[4:])
		case strings.HasPrefix(r.URL.Path, "/api/models/o/one/"):
			json.NewEncoder(w).Encode(list[:1])
		case strings.HasPrefix(r.URL.Path, "/api/models/o/none/"):
			io.WriteString(w, "[]")
		case strings.HasPrefix(r.URL.Path, "/api/models/o/odd/"):
			io.WriteString(w, "<html>")
		default:
			http.NotFound(w, r)
		}
	})
	d, url := start(t, h)
	ctx := context.Background()
	for ref, want := range map[string]string{
		"o/one":                               "a-Q4_K_M a-Q4_K_M.gguf",
		"o/many:Q8_0":                         "a-Q8_0 a-Q8_0.gguf",
		"o/many:q4_k":                         "a-Q4_K a-Q4_K.gguf",
		"o/many:F16":                          "a-F16 a-F16-00001-of-00002.gguf a-F16-00002-of-00002.gguf",
		"o/many/a-Q4_K.gguf":                  "a-Q4_K a-Q4_K.gguf",
		url + "/o/one":                        "a-Q4_K_M a-Q4_K_M.gguf",
		url + "/o/many/blob/main/a-Q8_0.gguf": "a-Q8_0 a-Q8_0.gguf",
		url + "/o/x/resolve/main/z.gguf":      "z z.gguf",
		"https://h.example/m-00002-of-00002.gguf": "m m-00001-of-00002.gguf m-00002-of-00002.gguf",
	} {
		s, err := d.Find(ctx, ref)
		got := s.Name
		for _, f := range s.Files {
			got += " " + f.Name
		}
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", ref, got, err, want)
		}
	}
	s, _ := d.Find(ctx, "o/many:F16")
	if s.Size() != 50 || s.Files[0].SHA256 == "" || s.Files[0].URL != url+"/o/many/resolve/main/big/a-F16-00001-of-00002.gguf" {
		t.Errorf("got %+v", s)
	}
	_, err := d.Find(ctx, "o/many")
	var ce *ChoiceError
	if !errors.As(err, &ce) || len(ce.Options) != 5 || ce.Options[0].Bytes != 7 {
		t.Errorf("got %v", err)
	}
	for ref, want := range map[string]string{
		"o/many:Q5_K":                  "holds no file",
		"o/many:Q2_K":                  "1 of 2 parts",
		"o/none":                       "no GGUF file",
		"o/odd":                        "not the expected list",
		"o/missing":                    "not there",
		"not a reference":              "no address",
		"https://h.example/page":       "does not end in .gguf",
		"https://h.example/a%3Ab.gguf": "cannot be the name",
		"http://":                      "not a valid address",
		url + "/":                      "names no pack",
	} {
		if _, err := d.Find(ctx, ref); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", ref, err)
		}
	}
}

func TestSafeName(t *testing.T) {
	for _, bad := range []string{"", ".", "..", "a/b", `a\b`, "a:b", "a.", "a ", "-a", "a\x00b", strings.Repeat("x", 300)} {
		if n, err := safeName(bad); err == nil {
			t.Errorf("%q was accepted as %q", bad, n)
		}
	}
	for _, good := range []string{"a.gguf", "Größe #1 50%.gguf", "a b.gguf"} {
		if _, err := safeName(good); err != nil {
			t.Error(err)
		}
	}
}

func TestOneDownloadAtATime(t *testing.T) {
	inside := make(chan struct{})
	release := make(chan struct{})
	want := data(1000, 0)
	d, url := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(inside)
		<-release
		w.Write(want)
	}))
	src := Source{Name: "p", Files: []RemoteFile{{URL: url + "/p.gguf", Name: "p.gguf", Size: -1}}}
	done := make(chan error)
	go func() { _, err := d.Get(context.Background(), src, nil); done <- err }()
	<-inside
	if _, err := d.Get(context.Background(), src, nil); err == nil || !strings.Contains(err.Error(), "another copy") {
		t.Errorf("got %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A suggestion whose place has changed says more than the site's bare answer,
// whatever the site answers for what it does not have.
func TestSuggestionThatMoved(t *testing.T) {
	ref := KnownPacks[0].Ref
	for name, h := range map[string]http.HandlerFunc{
		"404": func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		"401": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"other files": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `[{"type":"file","path":"x-Q2_K.gguf","size":9}]`)
		},
		"none": func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `[]`) },
	} {
		d, url := start(t, h)
		_, err := d.Find(t.Context(), ref)
		if err == nil || !strings.Contains(err.Error(), `look for "Qwen3 0.6B GGUF" on `+url) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := d.Find(t.Context(), "some/body:Q8_0"); err == nil || strings.Contains(err.Error(), "when this version was made") {
			t.Errorf("%s, no suggestion: %v", name, err)
		}
	}
	d, _ := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }))
	d.Tries = 1
	if _, err := d.Find(t.Context(), ref); err == nil || strings.Contains(err.Error(), "when this version was made") {
		t.Errorf("too many requests: %v", err)
	}
}

// Every suggestion is of the form that Find takes, and they stand in the order
// of their size.
func TestSuggestions(t *testing.T) {
	last := int64(0)
	for _, k := range KnownPacks {
		if m := repoRef.FindStringSubmatch(k.Ref); m == nil || m[3] == "" {
			t.Errorf("%s: %q names no file", k.Name, k.Ref)
		}
		if k.Bytes <= last || k.Licence == "" || k.About == "" || k.Arch == "" {
			t.Errorf("%+v", k)
		}
		last = k.Bytes
	}
}
