package cli

import (
	"context"
	"fmt"
	"time"

	"outcrop/engine"
	"outcrop/engine/serve"
	"outcrop/engine/token"
	"outcrop/engine/vitals"
)

// loadTimes is what bench --load prints: medians, from the opening of the file
// to the logits of a first token.
type loadTimes struct {
	Pack   string   `json:"pack"`
	Bytes  int64    `json:"pack_bytes"`
	Runs   int      `json:"runs"`
	Cold   loadTime `json:"cold"` // with nothing of the file in the system's cache, as far as Cached says
	Warm   loadTime `json:"warm"`
	Cached float64  `json:"cached"` // part of the file that other processes kept in the cache; -1: not known
	Peer   *struct {
		Command string  `json:"command"`
		ColdMS  float64 `json:"cold_ms"` // the whole process, with a prompt of one token and an answer of one
		WarmMS  float64 `json:"warm_ms"`
	} `json:"peer,omitempty"`
}

// loadTime is in milliseconds.
type loadTime struct {
	Open  float64 `json:"open_ms"`
	Load  float64 `json:"load_ms"`
	First float64 `json:"first_token_ms"`
	Total float64 `json:"total_ms"`
}

// loads measures how long a pack takes to its first token, cold and warm in
// turn, beside a peer where one is given.
func (p *Program) loads(ctx context.Context, peer, arg string, l loadFlags, runs int) (loadTimes, error) {
	pack, res, err := p.open(arg)
	if err != nil {
		return loadTimes{}, err
	}
	out := loadTimes{Pack: res.Name, Bytes: pack.Size(), Runs: runs, Cached: -1}
	var files []string
	for _, s := range pack.File().Shards() {
		files = append(files, s.Path)
	}
	pack.Close()
	if l.threads == 0 {
		l.threads = engine.DefaultThreads()
	}
	words := peerWords(peer, "1", "1", l.threads, files[0])
	var cold, warm []loadTime
	var peerCold, peerWarm []float64
	for range runs {
		for _, c := range []struct {
			cold  bool
			times *[]loadTime
			peers *[]float64
		}{{true, &cold, &peerCold}, {false, &warm, &peerWarm}} {
			if c.cold {
				if out.Cached, err = dropCached(files); err != nil {
					return out, fmt.Errorf("bench: take %s out of the system's cache: %w", res.Name, err)
				}
			}
			t, err := loadOnce(ctx, res.Path, l)
			if err != nil {
				return out, err
			}
			*c.times = append(*c.times, t)
			if peer == "" {
				continue
			}
			if c.cold {
				if _, err = dropCached(files); err != nil {
					return out, err
				}
			}
			began := time.Now()
			if _, _, err := output(ctx, words[0], words[1:]); err != nil {
				return out, err
			}
			*c.peers = append(*c.peers, millis(began))
		}
	}
	out.Cold, out.Warm = medianLoad(cold), medianLoad(warm)
	if peer != "" {
		out.Peer = &struct {
			Command string  `json:"command"`
			ColdMS  float64 `json:"cold_ms"`
			WarmMS  float64 `json:"warm_ms"`
		}{peer, middle(peerCold), middle(peerWarm)}
	}
	return out, nil
}

func millis(since time.Time) float64 { return float64(time.Since(since).Microseconds()) / 1e3 }

// loadOnce loads a pack as the server does and runs one token.
func loadOnce(ctx context.Context, path string, l loadFlags) (t loadTime, err error) {
	began := time.Now()
	pack, err := engine.OpenPack(path)
	if err != nil {
		return t, err
	}
	defer pack.Close()
	t.Open = millis(began)
	if l.context == 0 {
		l.context = min(8192, max(1, pack.Info().Context))
	}
	opt := l.options()
	opt.Relay = serve.RelayRoom(vitals.Live(), 4<<30)
	began = time.Now()
	if err := l.place(pack, &opt, func(string) {}); err != nil {
		return t, err
	}
	m, s, err := load(ctx, pack, opt)
	if err != nil {
		return t, err
	}
	defer m.Close()
	defer s.Close()
	t.Load = millis(began)
	began = time.Now()
	if _, err := s.Logits(ctx, []token.ID{1}); err != nil {
		return t, err
	}
	t.First = millis(began)
	t.Total = t.Open + t.Load + t.First
	return t, nil
}

func medianLoad(ts []loadTime) loadTime {
	mid := func(f func(loadTime) float64) float64 {
		var v []float64
		for _, t := range ts {
			v = append(v, f(t))
		}
		return middle(v)
	}
	return loadTime{
		Open: mid(func(t loadTime) float64 { return t.Open }), Load: mid(func(t loadTime) float64 { return t.Load }),
		First: mid(func(t loadTime) float64 { return t.First }), Total: mid(func(t loadTime) float64 { return t.Total }),
	}
}

func (p *Program) printLoads(t loadTimes) {
	row := func(name string, l loadTime) []string {
		ms := func(v float64) string { return fmt.Sprintf("%.0f ms", v) }
		return []string{name, ms(l.Open), ms(l.Load), ms(l.First), ms(l.Total)}
	}
	table(p.Out, [][]string{{t.Pack + ", " + size(t.Bytes), "open", "load", "first token", "together"}, row("cold", t.Cold), row("warm", t.Warm)})
	switch {
	case t.Cached < 0:
		fmt.Fprintln(p.Out, "this system does not tell what it keeps of the file: cold may be warm")
	case t.Cached > 0.01:
		fmt.Fprintf(p.Out, "%.0f %% of the file stayed in the system's cache, because others use it\n", 100*t.Cached)
	}
	if t.Peer != nil {
		fmt.Fprintf(p.Out, "peer, whole process: cold %.0f ms, warm %.0f ms (%s)\n", t.Peer.ColdMS, t.Peer.WarmMS, t.Peer.Command)
	}
	fmt.Fprintf(p.Out, "medians of %d\n", t.Runs)
}
