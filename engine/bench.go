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

// BenchOptions says what to measure. Zero values are 512, 128, an empty context
// and 3.
type BenchOptions struct {
	Prompt   int   // tokens of the prompt; -1: none
	Generate int   // tokens decoded one by one; -1: none
	Depths   []int // tokens in the context before either, for each result
	Runs     int   // how often; the medians are reported
}

// BenchResult is one measurement. GB are 1e9 bytes.
type BenchResult struct {
	Model    string `json:"model"`
	Arch     string `json:"arch"`
	Prompt   int    `json:"prompt"`
	Generate int    `json:"generate"`
	Depth    int    `json:"depth"`
	Runs     int    `json:"runs"`
	Filled   bool   `json:"filled"` // the tokens before were not computed: their rows in the cache are random (benchfill.go)

	PrefillTokS float64 `json:"prefill_tok_s"`
	DecodeTokS  float64 `json:"decode_tok_s"`
	MsPerStep   float64 `json:"ms_per_step"`

	BytesPerToken int64   `json:"bytes_per_token"` // weights, chosen experts only, and the cache at the mean depth
	GBs           float64 `json:"gb_s"`            // read by decode
	BandwidthGBs  float64 `json:"bandwidth_gb_s"`  // what the same threads read from memory at best
	Share         float64 `json:"share"`           // of that bandwidth

	HandOver []HandOver   `json:"hand_over,omitempty"`    // between devices
	Stages   []StageTimes `json:"stages,omitempty"`       // of the last prompt through several devices
	Prefills []float64    `json:"prefill_runs,omitempty"` // tokens a second of each prompt
	Layers   *LayerTimes  `json:"layer_times,omitempty"`  // of decode, with layers on devices

	Threads int    `json:"threads"`
	Kernel  string `json:"kernel"` // of the CPU's products
	Device  string `json:"device"` // "CPU", or the graphics devices that run layers
	KV      string `json:"kv"`

	// Memory of the process when the last run had ended: the largest it had been
	// (without what measures bandwidth), and what was resident then of memory of
	// its own and of mapped files. 0: not known on this system.
	PeakRSSBytes int64 `json:"peak_rss_bytes"`
	AnonBytes    int64 `json:"anon_bytes"`
	MappedBytes  int64 `json:"mapped_bytes"`
}

// LayerTimes is where the time of a layer on devices goes, in milliseconds: the
// devices as the host sees them, the CPU with what is left to it, and the part
// of the devices' time in which the CPU had nothing to do.
type LayerTimes struct {
	CardMs float64 `json:"card_ms"`
	CPUMs  float64 `json:"cpu_ms"`
	WaitMs float64 `json:"wait_ms"`
}

// Bench measures prefill and decode of a model with tokens drawn at random:
// the routing of experts is then as even as the model allows. There is one
// result for each of o.Depths.
func Bench(ctx context.Context, m *Model, o BenchOptions) ([]BenchResult, error) {
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
	if len(o.Depths) == 0 {
		o.Depths = []int{0}
	}
	need := max(slices.Max(o.Depths)+max(o.Prompt, o.Generate), 1)
	if need > m.context {
		return nil, fmt.Errorf("bench: %w: %d tokens needed, the context holds %d; give a larger context or fewer tokens", ErrContextFull, need, m.context)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	ids := make([]token.ID, need)
	for i := range ids {
		ids[i] = token.ID(rng.IntN(m.spec.vocab))
	}
	s, err := m.NewSession()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if o.Prompt > 0 { // once to touch weights and buffers; drivers make much at first use
		n := min(o.Prompt, 32)
		if m.cards != nil {
			n = o.Prompt
		}
		if err := s.prefill(ctx, ids[:n], 1, nil); err != nil {
			return nil, err
		}
	}
	var all []BenchResult
	for _, depth := range o.Depths {
		r, err := s.bench(ctx, ids, depth, o)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	// Last, because its buffer is larger than some models.
	bandwidth := m.bandwidth()
	for i := range all {
		r := &all[i]
		r.BandwidthGBs = bandwidth
		if bandwidth > 0 {
			r.Share = r.GBs / bandwidth
		}
	}
	return all, nil
}

// bench measures at one depth.
func (s *Session) bench(ctx context.Context, ids []token.ID, depth int, o BenchOptions) (r BenchResult, err error) {
	m := s.m
	r = BenchResult{
		Model: m.pack.Name, Arch: m.spec.arch, Prompt: o.Prompt, Generate: o.Generate, Depth: depth, Runs: o.Runs,
		Threads: m.Threads(), Kernel: m.Kernel(), KV: m.kv.String(), Device: "CPU",
		Filled: depth > 0 && s.canFill(),
	}
	if d := m.deviceSample(); d.Name != "" {
		r.Device = d.Name
	}
	if r.Filled {
		s.Reset()
		s.fill(ids[:depth])
	}
	start := func() error {
		if r.Filled {
			s.take(ids[:depth])
			return nil
		}
		s.Reset()
		return s.prefill(ctx, ids[:depth], 0, nil)
	}
	var prefill, decode []float64
	for range o.Runs {
		if o.Prompt > 0 {
			if err := start(); err != nil {
				return r, err
			}
			before := m.cards.stageTimes()
			begin := time.Now()
			if err := s.prefill(ctx, ids[depth:depth+o.Prompt], 1, nil); err != nil {
				return r, err
			}
			prefill = append(prefill, float64(o.Prompt)/time.Since(begin).Seconds())
			r.Stages = stagesSince(m.cards.stageTimes(), before)
		}
		if o.Generate > 0 {
			if err := start(); err != nil {
				return r, err
			}
			before := m.cards.layerTimes()
			begin := time.Now()
			for i := range o.Generate {
				if err := s.greedy(ctx, ids[depth+i:depth+i+1]); err != nil {
					return r, err
				}
			}
			r.Layers = m.cards.layerTimes().since(before, o.Generate)
			decode = append(decode, float64(o.Generate)/time.Since(begin).Seconds())
		}
	}
	r.Prefills = slices.Clone(prefill)
	r.PrefillTokS, r.DecodeTokS = median(prefill), median(decode)
	r.BytesPerToken = m.tele.perToken + m.cacheBytes(depth+o.Generate/2)
	if r.DecodeTokS > 0 {
		r.MsPerStep = 1e3 / r.DecodeTokS
		r.GBs = float64(r.BytesPerToken) * r.DecodeTokS / 1e9
	}
	r.PeakRSSBytes, r.AnonBytes, r.MappedBytes = ownMemory()
	r.HandOver, err = m.HandOvers()
	return r, err
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

// ownMemory is the largest resident size of this process so far, and how much
// is resident now of its own memory and of files (Linux); 0 where they cannot be
// read.
func ownMemory() (peak, anon, mapped int64) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0, 0
	}
	for line := range strings.Lines(string(b)) {
		name, rest, _ := strings.Cut(line, ":")
		n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		if err != nil {
			continue
		}
		switch name {
		case "VmHWM":
			peak = n << 10
		case "RssAnon":
			anon = n << 10
		case "RssFile":
			mapped = n << 10
		}
	}
	return peak, anon, mapped
}
