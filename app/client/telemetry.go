package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"outcrop/engine/wire"
)

// Update is one telemetry reading, or the news that there is none: Err is set
// while the engine cannot be reached.
type Update struct {
	Sample wire.Sample
	Err    error
}

// Telemetry follows the server's readings until ctx ends, then closes the
// channel. When the connection breaks it says so once and tries again, at
// first quickly. A reader that is slow gets the newest reading, not all.
func (c *Client) Telemetry(ctx context.Context) <-chan Update {
	out := make(chan Update, 1)
	go func() {
		defer close(out)
		attempt := 0
		told := false
		for ctx.Err() == nil {
			err := c.follow(ctx, func(s wire.Sample) {
				attempt, told = 0, false
				offer(out, Update{Sample: s})
			})
			if ctx.Err() != nil {
				return
			}
			if !told {
				told = true
				offer(out, Update{Err: err})
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(retryWait(attempt)):
				attempt++
			}
		}
	}()
	return out
}

// offer replaces what nobody has read yet.
func offer(out chan Update, u Update) {
	for {
		select {
		case out <- u:
			return
		default:
		}
		select {
		case <-out:
		default:
		}
	}
}

// follow reads one connection to its end, which is always an error.
func (c *Client) follow(ctx context.Context, each func(wire.Sample)) error {
	resp, err := c.do(ctx, http.MethodGet, "/telemetry", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		return statusError(resp.StatusCode, b)
	}
	ev := newEvents(resp.Body)
	for {
		data, err := ev.next()
		if err != nil {
			return gone(err)
		}
		var s wire.Sample
		if err := json.Unmarshal(data, &s); err != nil {
			return fmt.Errorf("telemetry of %s: %w", c.addr, err)
		}
		each(s)
	}
}
