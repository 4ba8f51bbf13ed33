package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2/maybe"
)

// DefaultSite is the model site that owner/name refers to; the setting
// Downloader.Site and the variable HF_ENDPOINT replace it.
const DefaultSite = "https://huggingface.co"

// Downloader fetches packs. The zero value needs only Dir. It never starts by
// itself: every download is one that a person asked for.
//
// A file comes as NAME.part and gets its name when its size and digest are
// right, so that a half file is never taken for a whole one. What was fetched
// stays after a break, a crash or a restart of the machine, and Get goes on
// from there.
type Downloader struct {
	Dir   string        // packs are put into Dir/NAME/
	Site  string        // "" is HF_ENDPOINT, else DefaultSite
	Token string        // sent to the site only, for packs behind a licence
	HTTP  *http.Client  // nil is a plain one
	Stall time.Duration // no byte for so long: try again; 0 is 30 s
	Tries int           // in a row without one new byte; 0 is 6

	// pause waits between tries, and room says how many bytes are free; tests
	// replace them.
	pause func(ctx context.Context, d time.Duration) error
	room  func(dir string) (free int64, err error)
}

// PacksDir is where downloaded packs are kept unless the user chose a folder.
func PacksDir() string { return filepath.Join(DataDir(), "packs") }

// Progress is how far a download is. Done never goes back while a file stays
// the same on the server.
type Progress struct {
	Phase string // looking up, downloading, waiting, verifying, done
	Note  string // in words, for waiting: why and for how long
	File  string // which one
	Done  int64  // bytes of all files
	Total int64  // -1: unknown
	Rate  float64
}

// Unfinished is a download that was begun and is not complete.
type Unfinished struct {
	Source Source
	Done   int64
}

const sourceFile = "download.json"

// Get downloads what is missing of s and returns the path of the first file.
// Cancelling ctx pauses: calling it again, also after a restart, goes on.
// One that failed before its first byte leaves nothing behind: there is
// nothing to go on with.
func (d *Downloader) Get(ctx context.Context, s Source, progress func(Progress)) (path string, err error) {
	if progress == nil {
		progress = func(Progress) {}
	}
	if len(s.Files) == 0 {
		return "", errors.New("nothing to download")
	}
	folder, err := safeName(s.Name)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(d.Dir, folder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the folder for %s: %w", s.Name, err)
	}
	lock := flock.New(filepath.Join(dir, ".lock"))
	if ok, err := lock.TryLock(); err != nil {
		return "", fmt.Errorf("lock %s: %w", dir, err)
	} else if !ok {
		return "", fmt.Errorf("%s is being downloaded by another copy of the program", s.Name)
	}
	empty := func() bool { return false }
	defer func() {
		nothing := err != nil && ctx.Err() == nil && empty()
		if nothing {
			os.Remove(filepath.Join(dir, sourceFile))
		}
		lock.Unlock()
		os.Remove(filepath.Join(dir, ".lock"))
		if nothing {
			os.Remove(dir) // stays when something else lies in it
		}
	}()
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return "", err
	}
	if err := maybe.WriteFile(filepath.Join(dir, sourceFile), b, 0o644); err != nil {
		return "", fmt.Errorf("note the download of %s: %w", s.Name, err)
	}

	j := &job{d: d, dir: dir, tell: progress, total: s.Size(), began: time.Now()}
	for _, f := range s.Files {
		j.have += j.onDisk(f)
		if f.Size < 0 {
			j.open++
		} else {
			j.known += f.Size
		}
	}
	j.start = j.have
	empty = func() bool {
		return !slices.ContainsFunc(s.Files, func(f RemoteFile) bool { return j.onDisk(f) > 0 })
	}
	if err := j.checkRoom(); err != nil {
		return "", err
	}
	for _, f := range s.Files {
		if err := j.file(ctx, f); err != nil {
			return "", err
		}
	}
	os.Remove(filepath.Join(dir, sourceFile))
	j.say("done", "", "")
	return filepath.Join(dir, s.Files[0].Name), nil
}

// Unfinished lists downloads that were begun and not completed or discarded,
// so that they can be resumed after a restart.
func (d *Downloader) Unfinished() ([]Unfinished, error) {
	es, err := os.ReadDir(d.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for unfinished downloads: %w", err)
	}
	var out []Unfinished
	for _, e := range es {
		dir := filepath.Join(d.Dir, e.Name())
		b, err := os.ReadFile(filepath.Join(dir, sourceFile))
		if err != nil {
			continue
		}
		var u Unfinished
		if json.Unmarshal(b, &u.Source) != nil || len(u.Source.Files) == 0 {
			continue
		}
		j := &job{dir: dir}
		for _, f := range u.Source.Files {
			u.Done += j.onDisk(f)
		}
		out = append(out, u)
	}
	return out, nil
}

// Discard deletes what an unfinished download left. It refuses to touch one
// that is complete; where nothing is left there is nothing to do.
func (d *Downloader) Discard(name string) error {
	folder, err := safeName(name)
	if err != nil {
		return err
	}
	dir := filepath.Join(d.Dir, folder)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(dir, sourceFile))
	if err != nil {
		return fmt.Errorf("discard %s: no unfinished download of this name", name)
	}
	var s Source
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("discard %s: %w", name, err)
	}
	for _, f := range s.Files {
		if n, err := safeName(f.Name); err == nil {
			os.Remove(filepath.Join(dir, n))
			os.Remove(filepath.Join(dir, n+partEnd))
			os.Remove(filepath.Join(dir, n+tagEnd))
		}
	}
	os.Remove(filepath.Join(dir, sourceFile))
	os.Remove(filepath.Join(dir, ".lock"))
	os.Remove(dir) // stays when something else lies in it
	return nil
}

func (d *Downloader) site() string {
	s := d.Site
	if s == "" {
		s = os.Getenv("HF_ENDPOINT")
	}
	if s == "" {
		s = DefaultSite
	}
	return strings.TrimRight(s, "/")
}

// get sends one request. The token goes to the site alone; net/http drops it
// on a redirect to another host.
func (d *Downloader) get(ctx context.Context, address string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	for k, v := range header {
		req.Header[k] = v
	}
	req.Header.Set("User-Agent", "outcrop")
	// A compressed transfer has no ranges and another size.
	req.Header.Set("Accept-Encoding", "identity")
	if site, err := url.Parse(d.site()); d.Token != "" && err == nil && site.Host == req.URL.Host && site.Scheme == req.URL.Scheme {
		req.Header.Set("Authorization", "Bearer "+d.Token)
	}
	hc := d.HTTP
	if hc == nil {
		hc = plainClient
	}
	resp, err := hc.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.Is(err, errRedirect) {
			return nil, fatal{fmt.Errorf("%s: %w", req.URL.Host, errRedirect)}
		}
		if errors.As(err, &ue) && ctx.Err() == nil {
			return nil, fmt.Errorf("%s: %w", req.URL.Host, ue.Err)
		}
		return nil, err
	}
	return resp, nil
}

// errRedirect is an address that leads nowhere, however often it is asked.
var errRedirect = errors.New("the address leads in a circle, or to something that is no web address")

var plainClient = &http.Client{CheckRedirect: func(r *http.Request, via []*http.Request) error {
	if len(via) >= 10 || r.URL.Scheme != "https" && r.URL.Scheme != "http" {
		return errRedirect
	}
	return nil
}}

// httpError says what a status means for a person, and what helps.
func httpError(resp *http.Response, what string) error {
	host := resp.Request.URL.Host
	switch s := resp.StatusCode; {
	case s == http.StatusForbidden:
		return fmt.Errorf("%s answers %d: accept the licence of %s on its page there, and set an access token in the variable HF_TOKEN", host, s, what)
	case s == http.StatusUnauthorized:
		// The site says 401 of what does not exist, too.
		return fmt.Errorf("%s answers %d: %s is not there, or only for those who have accepted its licence on its page and give an access token in the variable HF_TOKEN%w", host, s, what, errNotThere)
	case s == http.StatusNotFound || s == http.StatusGone:
		return fmt.Errorf("%s answers %d: %s is not there (or needs an access token in the variable HF_TOKEN)%w", host, s, what, errNotThere)
	case s == http.StatusTooManyRequests:
		return fmt.Errorf("%s answers 429: too many requests; try again later", host)
	default:
		return fmt.Errorf("%s answers %s", host, resp.Status)
	}
}
