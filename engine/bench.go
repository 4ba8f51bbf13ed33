package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"outcrop/engine/quant"
	"outcrop/engine/token"
)

// BenchOptions says what to measure. Zero values are 512, 128, 0 and 3.
type BenchOptions struct {
	Prompt   int // tokens of the prompt; -1: none
	Generate int // tokens decoded one by one; -1: none
	Depth    int // tokens in the context before either
	Runs     int // how often; the medians are reported
}

// BenchResult is one measurement. GB are 1e9 bytes.
type BenchResult struct {
	Model    string `json:"model"`
	Arch     string `json:"arch"`
	Prompt   int    `json:"prompt"`
	Generate int    `json:"generate"`
	Depth    int    `json:"depth"`
	Runs     int    `json:"runs"`

	PrefillTokS float64 `json:"prefill_tok_s"`
	DecodeTokS  float64 `json:"decode_tok_s"`
	MsPerStep   float64 `json:"ms_per_step"`

	BytesPerToken int64   `json:"bytes_per_token"` // weights, chosen experts only, and the cache at the mean depth
	GBs           float64 `json:"gb_s"`            // read by decode
	BandwidthGBs  float64 `json:"bandwidth_gb_s"`  // what the same threads read from memory at best
	Share         float64 `json:"share"`           // of that bandwidth

	Threads      int    `json:"threads"`
	Kernel       string `json:"kernel"` // of the CPU's products
	Device       string `json:"device"` // "CPU", or the graphics devices that run layers
	KV           string `json:"kv"`
	PeakRSSBytes int64  `json:"peak_rss_bytes"` // 0: not known on this system
}

// Bench measures prefill and decode of a model with tokens drawn at random:
// the routing of experts is then as even as the model allows.
func Bench(ctx context.Context, m *Model, o BenchOptions) (BenchResult, error) {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		} else if *v < 0 {
			*v = 0
		}
	}
	def(&o.Prompt, 512)
	def(&o.Generate, 128)
	def(&o.Runs, 3)
	r := BenchResult{
		Model: m.pack.Name, Arch: m.spec.arch, Prompt: o.Prompt, Generate: o.Generate, Depth: o.Depth, Runs: o.Runs,
		Threads: m.Threads(), Kernel: m.Kernel(), KV: m.kv.String(), Device: "CPU",
	}
	if d := m.deviceSample(); d.Name != "" {
		r.Device = d.Name
	}
	need := max(o.Depth+o.Prompt, o.Depth+o.Generate, 1)
	if need > m.context {
		return r, fmt.Errorf("bench: %w: %d tokens needed, the context holds %d; give a larger context or fewer tokens", ErrContextFull, need, m.context)
	}
	r.BandwidthGBs = m.bandwidth()

	s, err := m.NewSession()
	if err != nil {
		return r, err
	}
	defer s.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	ids := make([]token.ID, need)
	for i := range ids {
		ids[i] = token.ID(rng.IntN(m.spec.vocab))
	}
	start := func() error {
		s.Reset()
		for s.st.pos < o.Depth {
			if err := s.advance(ctx, ids[s.st.pos:min(s.st.pos+m.chunk, o.Depth)], 0); err != nil {
				return err
			}
		}
		return nil
	}
	var prefill, decode []float64
	if o.Prompt > 0 { // once to touch weights and buffers
		if err := s.advance(ctx, ids[:min(len(ids), 32)], 1); err != nil {
			return r, err
		}
	}
	for range o.Runs {
		if o.Prompt > 0 {
			if err := start(); err != nil {
				return r, err
			}
			begin := time.Now()
			end := o.Depth + o.Prompt
			for s.st.pos < end {
				n := min(m.chunk, end-s.st.pos)
				last := 0
				if s.st.pos+n == end {
					last = 1
				}
				if err := s.advance(ctx, ids[s.st.pos:s.st.pos+n], last); err != nil {
					return r, err
				}
			}
			prefill = append(prefill, float64(o.Prompt)/time.Since(begin).Seconds())
		}
		if o.Generate > 0 {
			if err := start(); err != nil {
				return r, err
			}
			begin := time.Now()
			for i := range o.Generate {
				if err := s.advance(ctx, ids[o.Depth+i:o.Depth+i+1], 1); err != nil {
					return r, err
				}
				argmax(s.fresh)
			}
			decode = append(decode, float64(o.Generate)/time.Since(begin).Seconds())
		}
	}
	r.PrefillTokS, r.DecodeTokS = median(prefill), median(decode)
	r.BytesPerToken = m.tele.perToken + m.cacheBytes(o.Depth+o.Generate/2)
	if r.DecodeTokS > 0 {
		r.MsPerStep = 1e3 / r.DecodeTokS
		r.GBs = float64(r.BytesPerToken) * r.DecodeTokS / 1e9
		if r.BandwidthGBs > 0 {
			r.Share = r.GBs / r.BandwidthGBs
		}
	}
	r.PeakRSSBytes = peakRSS()
	return r, nil
}

// cacheBytes is what attention reads at a position: cached rows inside the
// windows, and recurrent states.
func (m *Model) cacheBytes(pos int) int64 {
	var n int64
	for i := range m.layers {
		l := m.layers[i].layerSpec
		seen := pos
		if l.mixer == attention && l.attn.window > 0 {
			seen = min(seen, l.attn.window)
		}
		n += int64(seen)*l.kvBytes(m.kv) + l.stateBytes()
	}
	return n
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	slices.Sort(x)
	if n := len(x); n%2 == 0 {
		return (x[n/2-1] + x[n/2]) / 2
	}
	return x[len(x)/2]
}

// readJob sums a buffer that is larger than any cache.
type readJob struct {
	x   []float32
	sum [64]float32 // so that nothing is left out as useless
}

const readPiece = 1 << 16

func (j *readJob) part(i int, w *worker) {
	j.sum[w.id%64] += quant.SumSquares(j.x[i*readPiece : (i+1)*readPiece])
}

// bandwidth measures how fast the workers read memory together, in 1e9 bytes
// per second: the best of several passes.
func (m *Model) bandwidth() float64 {
	m.turn.Lock()
	defer m.turn.Unlock()
	if m.pool == nil {
		return 0
	}
	j := &readJob{x: make([]float32, 64<<20)}
	for i := range j.x {
		j.x[i] = 1 // touch the pages
	}
	best := 0.0
	for range 5 {
		begin := time.Now()
		m.pool.run(j, len(j.x)/readPiece)
		best = max(best, float64(4*len(j.x))/time.Since(begin).Seconds())
	}
	return best / 1e9
}

// peakRSS is the largest resident size of this process so far (Linux), 0 where
// it cannot be read.
func peakRSS() int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}
