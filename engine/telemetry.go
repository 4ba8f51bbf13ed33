package engine

import (
	"math"
	"sync/atomic"
	"time"
)

// Sample is what the engine is doing at one moment. Rates are those of the
// last or current phase; 0 means not measured yet.
type Sample struct {
	Time         time.Time
	Phase        string // "idle", "prefill", "decode", "closed"
	DecodeTokS   float64
	PrefillTokS  float64
	MsPerStep    float64 // of decode: one forward pass, which may yield several tokens
	PrefillDone  int     // tokens of the current or last prompt
	PrefillTotal int
	ContextUsed  int
	ContextSize  int

	Weights int64 // bytes of weights in use, mapped from the file
	KV      int64 // bytes of caches and states
	Scratch int64 // bytes of buffers
	Relaid  int64 // bytes of weights kept in a second layout

	Drafted, Accepted int64 // draft tokens since load
	Tokens            int64 // tokens generated since load
	Threads           int
	Kernel            string
	BytesPerToken     int64   // weight bytes one decoded token reads
	GBs               float64 // weight bytes read per second of decode, in 1e9

	Experts TierSample // from where experts were used

	Device DeviceSample // what runs on graphics devices; zero: nothing

	// What the guard sees and does, when the model is watched (see Watch):
	// its level and step in words, and its last actions, the oldest first.
	Level, Step string
	Words       []Said
}

type phase = int32

const (
	phaseIdle phase = iota
	phasePrefill
	phaseDecode
	phaseClosed
)

var phaseNames = []string{"idle", "prefill", "decode", "closed"}

// telemetry is written by the goroutine that decodes and read by any. Every
// field is an atomic of its own; a sample may mix two neighbouring steps.
type telemetry struct {
	phase                     atomic.Int32
	decode, prefill, step     atomic.Uint64 // float64 bits
	prefillDone, prefillTotal atomic.Int64
	used                      atomic.Int64
	kv, scratch               atomic.Int64
	drafted, accepted, tokens atomic.Int64
	threads                   int // fixed at load
	perToken                  int64
}

func (t *telemetry) start(m *Model) {
	t.threads = len(m.pool.workers)
	t.perToken = m.activeBytes()
}

func setFloat(a *atomic.Uint64, v float64) { a.Store(math.Float64bits(v)) }

func (t *telemetry) sample(m *Model) Sample {
	s := Sample{
		Time:          time.Now(),
		Phase:         phaseNames[t.phase.Load()],
		DecodeTokS:    math.Float64frombits(t.decode.Load()),
		PrefillTokS:   math.Float64frombits(t.prefill.Load()),
		MsPerStep:     math.Float64frombits(t.step.Load()),
		PrefillDone:   int(t.prefillDone.Load()),
		PrefillTotal:  int(t.prefillTotal.Load()),
		ContextUsed:   int(t.used.Load()),
		ContextSize:   m.context,
		Weights:       m.bytes,
		KV:            t.kv.Load(),
		Scratch:       t.scratch.Load(),
		Relaid:        m.relaid.bytes.Load(),
		Drafted:       t.drafted.Load(),
		Accepted:      t.accepted.Load(),
		Tokens:        t.tokens.Load(),
		Threads:       t.threads,
		Kernel:        m.Kernel(),
		BytesPerToken: t.perToken,
		Experts:       m.tierSample(),
	}
	s.Device = m.deviceSample()
	w := m.told()
	s.Level, s.Step, s.Words = w.level.String(), w.step.String(), w.words
	if s.MsPerStep > 0 {
		s.GBs = float64(t.perToken) / (s.MsPerStep * 1e6)
	}
	return s
}

// activeBytes is what one decoded token reads of the weights: all matrices,
// of routed experts only the chosen ones, of the embedding one row.
func (m *Model) activeBytes() int64 {
	n := m.output.bytes() + int64(m.embed.rowBytes)
	for i := range m.layers {
		n += m.layers[i].activeBytes()
	}
	return n
}

func (l *layer) activeBytes() int64 {
	var n int64
	for _, w := range []*matrix{
		&l.q, &l.k, &l.v, &l.o, &l.qa, &l.kva, &l.kb.matrix, &l.vb.matrix, &l.convIn, &l.convOut, &l.qkv, &l.z, &l.alpha, &l.beta, &l.ba, &l.deltaOut,
		&l.gate, &l.up, &l.down, &l.router, &l.shGate, &l.shUp, &l.shDown,
	} {
		n += w.bytes()
	}
	if l.perLayer != nil {
		n += l.perLayer.gate.bytes() + l.perLayer.proj.bytes()
	}
	if l.expert.count > 0 {
		routed := l.gates.bytes() + l.ups.bytes() + l.downs.bytes()
		n += routed / int64(l.expert.count) * int64(l.expert.used)
	}
	return n
}
