package serve

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// tooLarge is a body that has more than is taken.
type tooLarge struct{ limit int64 }

func (e *tooLarge) Error() string {
	return fmt.Sprintf("the request is larger than %s", mebibytes(e.limit))
}

func mebibytes(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// What of a body that is too large is read and thrown away, so that its sender
// gets to reading the answer: a connection that is closed on a client in the middle of
// writing shows it a broken pipe and no status.
const (
	drainTimes = 8 // of the limit
	drainTime  = 10 * time.Second
)

// limitBody gives a request's body that ends with *tooLarge after limit bytes,
// once its sender has sent the rest. A client that asks before it sends is
// answered at once.
func limitBody(w http.ResponseWriter, r *http.Request, limit int64) io.ReadCloser {
	b := &body{in: r.Body, left: limit, limit: limit, rc: http.NewResponseController(w)}
	if r.ContentLength > limit {
		b.over = true
		b.asks = strings.EqualFold(r.Header.Get("Expect"), "100-continue")
	}
	return b
}

type body struct {
	in          io.ReadCloser
	left, limit int64
	over, asks  bool
	gone        bool
	rc          *http.ResponseController
}

func (b *body) Read(p []byte) (int, error) {
	if b.over {
		b.drain()
		return 0, &tooLarge{b.limit}
	}
	if len(p) == 0 {
		return 0, nil
	}
	// One byte more than is allowed tells a body that is too long from one that fits.
	n, err := b.in.Read(p[:min(int64(len(p)), b.left+1)])
	if int64(n) <= b.left {
		b.left -= int64(n)
		return n, err
	}
	n, b.left, b.over = int(b.left), 0, true
	b.drain()
	return n, &tooLarge{b.limit}
}

func (b *body) drain() {
	if b.gone || b.asks {
		return
	}
	b.gone = true
	b.rc.SetReadDeadline(time.Now().Add(drainTime))
	io.CopyN(io.Discard, b.in, drainTimes*b.limit)
}

func (b *body) Close() error { return b.in.Close() }
