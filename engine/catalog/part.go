package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// partEnd is the ending of a file that is not complete, tagEnd of the server's
// mark (ETag) of the version it is a part of.
const (
	partEnd = ".part"
	tagEnd  = ".etag"
)

// margin is how much room must be left on the disk beside the pack.
const margin = 256 << 20

// job is one run of Get.
type job struct {
	d     *Downloader
	dir   string
	tell  func(Progress)
	total int64 // of all files, -1 unknown
	known int64 // of the files whose size is known
	open  int   // files whose size is not known yet
	have  int64 // of all files on disk
	start int64 // have at the start, for the rate
	began time.Time
	told  time.Time
}

func (j *job) say(phase, file, note string) {
	p := Progress{Phase: phase, File: file, Note: note, Done: j.have, Total: j.total}
	if s := time.Since(j.began).Seconds(); s > 0.2 {
		p.Rate = float64(j.have-j.start) / s
	}
	j.told = time.Now()
	j.tell(p)
}

// onDisk is how much of a file is there.
func (j *job) onDisk(f RemoteFile) int64 {
	for _, end := range []string{"", partEnd} {
		if st, err := os.Stat(filepath.Join(j.dir, f.Name+end)); err == nil {
			return st.Size()
		}
	}
	return 0
}

func (j *job) checkRoom() error {
	if j.total < 0 {
		return nil
	}
	return j.needRoom(j.total - j.have)
}

func (j *job) needRoom(need int64) error {
	room := j.d.room
	if room == nil {
		room = freeBytes
	}
	free, err := room(j.dir)
	if err != nil || need <= 0 || free >= need+margin {
		return nil // unknown is not full
	}
	return fmt.Errorf("not enough room in %s: %s more are needed (with a margin of %s), %s are free; choose another folder or free some space",
		j.dir, gb(need+margin), gb(margin), gb(free))
}

func gb(n int64) string { return fmt.Sprintf("%.1f GB", float64(n)/1e9) }

// fatal marks an error that trying again will not cure.
type fatal struct{ error }

func (f fatal) Unwrap() error { return f.error }

// file brings one file to its end.
func (j *job) file(ctx context.Context, f RemoteFile) error {
	if _, err := safeName(f.Name); err != nil {
		return err
	}
	final := filepath.Join(j.dir, f.Name)
	if st, err := os.Stat(final); err == nil && (f.Size < 0 || st.Size() == f.Size) {
		return nil // complete since an earlier run
	}
	tries := j.d.Tries
	if tries <= 0 {
		tries = 6
	}
	for n := 1; ; n++ {
		before := j.onDisk(f)
		err := j.fetch(ctx, &f)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return fmt.Errorf("download of %s: paused: %w", f.Name, ctx.Err())
		}
		var fe fatal
		if errors.As(err, &fe) {
			return fmt.Errorf("download of %s: %w", f.Name, fe.error)
		}
		if j.onDisk(f) > before {
			n = 0 // it moves
		} else if n >= tries {
			return fmt.Errorf("download of %s: %w; what came so far is kept, try again later", f.Name, err)
		}
		wait := min(time.Second<<min(n, 5), 30*time.Second)
		j.say("waiting", f.Name, fmt.Sprintf("%v; trying again in %v", err, wait))
		pause := j.d.pause
		if pause == nil {
			pause = sleep
		}
		if err := pause(ctx, wait); err != nil {
			return fmt.Errorf("download of %s: paused: %w", f.Name, err)
		}
	}
	if err := j.verify(ctx, f); err != nil {
		return fmt.Errorf("download of %s: %w", f.Name, err)
	}
	if err := os.Rename(final+partEnd, final); err != nil {
		return fmt.Errorf("download of %s: %w", f.Name, err)
	}
	os.Remove(final + tagEnd)
	return nil
}

// fetch makes one request for what is missing. nil means that every byte the
// server promised is there.
func (j *job) fetch(ctx context.Context, f *RemoteFile) error {
	part := filepath.Join(j.dir, f.Name+partEnd)
	have := int64(0)
	if st, err := os.Stat(part); err == nil {
		have = st.Size()
	}
	if f.Size >= 0 && have == f.Size {
		return nil
	}
	if f.Size >= 0 && have > f.Size {
		if err := j.restart(part, &have); err != nil {
			return err
		}
	}
	tag, _ := os.ReadFile(filepath.Join(j.dir, f.Name+tagEnd))
	h := http.Header{}
	if have > 0 {
		h.Set("Range", fmt.Sprintf("bytes=%d-", have))
		if len(tag) > 0 && !bytes.HasPrefix(tag, []byte("W/")) {
			h.Set("If-Range", string(tag))
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stall := j.d.Stall
	if stall <= 0 {
		stall = 30 * time.Second
	}
	watch := time.AfterFunc(stall, cancel)
	defer watch.Stop()
	resp, err := j.d.get(ctx, f.URL, h)
	if err != nil {
		return j.stalled(ctx, watch, stall, err)
	}
	defer resp.Body.Close()

	total := int64(-1)
	switch resp.StatusCode {
	case http.StatusOK: // the whole file: no ranges there, or it has changed
		if have > 0 {
			j.say("downloading", f.Name, "the server sends the file from its beginning")
		}
		if err := j.restart(part, &have); err != nil {
			return err
		}
		total = resp.ContentLength
	case http.StatusPartialContent:
		start, t, ok := contentRange(resp.Header.Get("Content-Range"))
		if !ok || start != have || len(tag) > 0 && resp.Header.Get("ETag") != "" && string(tag) != resp.Header.Get("ETag") {
			if err := j.restart(part, &have); err != nil {
				return err
			}
			os.Remove(filepath.Join(j.dir, f.Name+tagEnd))
			return errors.New("the server has another version of the file now, or sent another part than asked; starting from its beginning")
		}
		total = t
	case http.StatusRequestedRangeNotSatisfiable:
		// At its full length there is nothing more to ask for.
		if _, t, _ := contentRange(resp.Header.Get("Content-Range")); t == have && t > 0 && (f.Size < 0 || f.Size == t) {
			if f.Size < 0 {
				j.learn(f, t)
			}
			return nil
		}
		if err := j.restart(part, &have); err != nil {
			return err
		}
		os.Remove(filepath.Join(j.dir, f.Name+tagEnd))
		return errors.New("the server has another version of the file now; starting from its beginning")
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return httpError(resp, f.Name)
	default:
		return fatal{httpError(resp, f.Name)}
	}
	if total >= 0 && f.Size >= 0 && total != f.Size {
		return fatal{fmt.Errorf("the server offers %d bytes, the listing says %d: the file has changed; look it up again", total, f.Size)}
	}
	if total >= 0 && f.Size < 0 {
		j.learn(f, total)
		if err := j.needRoom(total - have); err != nil {
			return fatal{err}
		}
	}
	if t := resp.Header.Get("ETag"); t != "" {
		os.WriteFile(filepath.Join(j.dir, f.Name+tagEnd), []byte(t), 0o644)
	}
	if err := j.copy(ctx, part, have, resp.Body, f, watch, stall); err != nil {
		return err
	}
	if st, err := os.Stat(part); err == nil && f.Size >= 0 && st.Size() != f.Size {
		return fmt.Errorf("the connection was cut at %d of %d bytes", st.Size(), f.Size)
	}
	return nil
}

// learn takes over a size that the listing did not give.
func (j *job) learn(f *RemoteFile, size int64) {
	f.Size = size
	j.known += size
	if j.open--; j.open == 0 {
		j.total = j.known
	}
}

// restart empties a part.
func (j *job) restart(part string, have *int64) error {
	j.have -= *have
	j.start = min(j.start, j.have)
	*have = 0
	if err := os.Truncate(part, 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fatal{err}
	}
	return nil
}

// stalled tells a time-out of our own from a wish of the caller.
func (j *job) stalled(ctx context.Context, watch *time.Timer, stall time.Duration, err error) error {
	if ctx.Err() != nil && !watch.Stop() {
		return fmt.Errorf("nothing came for %v", stall)
	}
	return err
}

// copy appends the body to the part.
func (j *job) copy(ctx context.Context, part string, have int64, body io.Reader, f *RemoteFile, watch *time.Timer, stall time.Duration) error {
	out, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fatal{err}
	}
	defer out.Close()
	if _, err := out.Seek(have, io.SeekStart); err != nil {
		return fatal{err}
	}
	buf := make([]byte, 256<<10)
	at := have
	for {
		n, rerr := body.Read(buf)
		if n > 0 {
			watch.Reset(stall)
			if at < 4 {
				if err := looksRight(f.Name, at, buf[:n]); err != nil {
					out.Close()
					os.Remove(part)
					j.have -= at
					return fatal{err}
				}
			}
			if f.Size >= 0 && at+int64(n) > f.Size {
				return fatal{fmt.Errorf("the server sends more than the %d bytes it promised", f.Size)}
			}
			if _, err := out.Write(buf[:n]); err != nil {
				return fatal{j.writeError(err, f)}
			}
			at += int64(n)
			j.have += int64(n)
			if time.Since(j.told) > 200*time.Millisecond {
				j.say("downloading", f.Name, "")
			}
		}
		if rerr == io.EOF {
			break
		}
		if rerr != nil {
			return j.stalled(ctx, watch, stall, rerr)
		}
	}
	if err := out.Sync(); err != nil {
		return fatal{j.writeError(err, f)}
	}
	return nil
}

// writeError says what a full disk means.
func (j *job) writeError(err error, f *RemoteFile) error {
	if !diskFull(err) {
		return err
	}
	s := fmt.Sprintf("the disk of %s is full", j.dir)
	if f.Size >= 0 {
		s += fmt.Sprintf("; %s more are needed", gb(max(f.Size-j.onDisk(*f), 0)))
	}
	return fmt.Errorf("%s; free some space and go on, what came so far is kept: %w", s, err)
}

// looksRight refuses a page or a pointer file that was saved under the name of
// a model, at its first bytes instead of its last.
func looksRight(name string, at int64, b []byte) error {
	if at != 0 || len(b) < 4 || !strings.EqualFold(filepath.Ext(name), ".gguf") || bytes.HasPrefix(b, []byte("GGUF")) {
		return nil
	}
	head := strings.ToLower(string(b[:min(len(b), 200)]))
	switch {
	case strings.Contains(head, "git-lfs"):
		return errors.New("the address gives a large-file pointer (git-lfs), not the file itself; use the site's download address")
	case strings.Contains(head, "<html"), strings.Contains(head, "<!doctype"):
		return errors.New("the address gives a web page, not a GGUF file; use the site's download address")
	}
	return fmt.Errorf("the address gives something else than a GGUF file (it begins with %q)", b[:4])
}

// verify checks the digest of a complete part, or at least its beginning.
func (j *job) verify(ctx context.Context, f RemoteFile) error {
	part := filepath.Join(j.dir, f.Name+partEnd)
	in, err := os.Open(part)
	if err != nil {
		return err
	}
	defer in.Close()
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil && strings.EqualFold(filepath.Ext(f.Name), ".gguf") {
		os.Remove(part)
		return errors.New("the file is shorter than a GGUF header")
	}
	if err := looksRight(f.Name, 0, head[:]); err != nil {
		os.Remove(part)
		return err
	}
	if f.SHA256 == "" {
		return nil
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum := sha256.New()
	buf := make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := in.Read(buf)
		sum.Write(buf[:n])
		if time.Since(j.told) > 500*time.Millisecond {
			j.say("verifying", f.Name, "")
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); !strings.EqualFold(got, f.SHA256) {
		os.Remove(part)
		os.Remove(filepath.Join(j.dir, f.Name+tagEnd))
		return fmt.Errorf("the bytes that came are not those the site lists (sha256 %s, want %s); they were deleted, try again", got[:12], f.SHA256[:min(12, len(f.SHA256))])
	}
	return nil
}

// contentRange reads "bytes 5-9/10" and "bytes */10".
func contentRange(s string) (start, total int64, ok bool) {
	s, ok = strings.CutPrefix(s, "bytes ")
	if !ok {
		return 0, -1, false
	}
	r, t, _ := strings.Cut(s, "/")
	total = -1
	if n, err := strconv.ParseInt(t, 10, 64); err == nil {
		total = n
	}
	from, _, found := strings.Cut(r, "-")
	if !found {
		return 0, total, false
	}
	start, err := strconv.ParseInt(from, 10, 64)
	return start, total, err == nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
