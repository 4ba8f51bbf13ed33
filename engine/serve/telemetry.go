package serve

import (
	"math"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"outcrop/engine"
	"outcrop/engine/vitals"
	"outcrop/engine/wire"
)

// telemetry takes readings while somebody listens and hands them to all who
// do: once a second, and at each change of what the engine does.
type telemetry struct {
	s     *Server
	cpu   *vitals.CPU
	disk  *vitals.Disk
	mem   sync.Mutex // one reading at a time
	waits waits

	mu        sync.Mutex
	listeners map[chan wire.Sample]bool
	nudge     chan struct{} // a change worth a reading now
}

// every is the distance of two readings, and look how often the phase is
// looked at between them; a look reads a few atomics.
const (
	every = time.Second
	look  = 50 * time.Millisecond
)

func (t *telemetry) init(s *Server) {
	t.s = s
	t.cpu, t.disk = vitals.NewCPU(vitals.Live(), 0, runtime.NumCPU()), vitals.NewDisk()
	t.listeners = map[chan wire.Sample]bool{}
	t.nudge = make(chan struct{}, 1)
}

// wake asks for a reading soon.
func (t *telemetry) wake() {
	select {
	case t.nudge <- struct{}{}:
	default:
	}
}

// listen adds a listener; the first one starts the readings.
func (t *telemetry) listen() (chan wire.Sample, func()) {
	c := make(chan wire.Sample, 1)
	t.mu.Lock()
	t.listeners[c] = true
	if len(t.listeners) == 1 {
		go t.loop()
	}
	t.mu.Unlock()
	t.wake()
	return c, func() {
		t.mu.Lock()
		delete(t.listeners, c)
		t.mu.Unlock()
	}
}

// loop reads until the last listener has gone.
func (t *telemetry) loop() {
	tick := time.NewTicker(look)
	defer tick.Stop()
	var last time.Time
	phase := ""
	for {
		due := false
		select {
		case <-tick.C:
		case <-t.nudge:
			due = true
		}
		now := t.s.phaseNow()
		if !due && time.Since(last) < every && now == phase {
			continue
		}
		last, phase = time.Now(), now
		sample := t.read()
		t.mu.Lock()
		if len(t.listeners) == 0 {
			t.mu.Unlock()
			return
		}
		for c := range t.listeners {
			select { // a slow listener gets the newest reading only
			case <-c:
			default:
			}
			c <- sample
		}
		t.mu.Unlock()
	}
}

// read takes one reading of everything.
func (t *telemetry) read() wire.Sample {
	t.mem.Lock()
	defer t.mem.Unlock()
	now := time.Now()
	root := vitals.Live()
	out := wire.Sample{
		Time: now, Engine: t.s.engineNow(), Memory: vitals.Memory(root),
		Process: vitals.Process(root, 0), CPU: t.cpu.Read(now), Disk: t.disk.Read(now), Cards: []wire.Card{},
	}
	out.Memory.Level = MemoryLevel(root)
	t.s.mu.Lock()
	b := t.s.backend
	t.s.mu.Unlock()
	var e engine.Sample
	if b != nil {
		e = b.Telemetry()
		out.Pack = b.Name
		t.waits.add(e.Tokens, e.Experts)
		out.Tiers = tiers(e.Experts, &t.waits)
		if b.Residency != nil {
			out.Residency = residency(b.Residency())
		}
	}
	out.Guard = t.s.guardNow(e)
	if t.s.o.Cards != nil {
		if cards := t.s.o.Cards(now); cards != nil {
			out.Cards = cards
		}
	}
	if b != nil {
		e.Device.Why = b.whyCPU(e.Device)
	}
	out.Cards = useOf(out.Cards, e.Device)
	return out
}

// whyCPU is why the CPU computes although a card was wanted.
func (b *Backend) whyCPU(d engine.DeviceSample) string {
	if d.Why == "" && len(d.Each) == 0 {
		return b.Idle
	}
	return d.Why
}

// useOf marks the cards that the engine runs on, with what it holds on each,
// and says of the others why they are not used. A device that is none of the
// machine's cards, as OpenCL on the processor, is put behind them.
func useOf(cards []wire.Card, d engine.DeviceSample) []wire.Card {
	for _, u := range d.Each {
		i := -1
		if u.PCI != "" {
			i = slices.IndexFunc(cards, func(c wire.Card) bool { return strings.EqualFold(c.PCI, u.PCI) })
		}
		if i < 0 {
			i = len(cards)
			none := func(unit string) wire.Reading { return wire.Unknown(unit, "", "no card of the machine's list") }
			cards = append(cards, wire.Card{PCI: u.PCI, Name: u.Name, Total: none("bytes"), VRAM: none("bytes"), Own: none("bytes"),
				Busy: none("percent"), Temp: none("°C"), Power: none("W"), Clock: none("MHz")})
		}
		c := &cards[i]
		c.Used = true
		c.Use = &wire.CardUse{First: u.First, Layers: u.Layers, Weights: u.Weights, KV: u.KV, Slots: u.Slots, Scratch: u.Scratch}
		if held := float64(u.Weights + u.KV + u.Slots + u.Scratch); !c.Own.Known {
			c.Own = wire.Known(held, "bytes", "the engine's own count")
		}
	}
	for i := range cards {
		c := &cards[i]
		switch {
		case c.Used:
			c.WhyIdle = ""
		case d.Why != "":
			c.WhyIdle = d.Why
		}
	}
	return cards
}

// residency puts a map of the experts on the wire. Shares are cut to four
// digits: a large model has ten thousand of them in every reading.
func residency(r *engine.ResidencyMap) *wire.Residency {
	if r == nil {
		return nil
	}
	out := &wire.Residency{Layers: r.Layers, Experts: r.Experts, Tier: make([]uint8, len(r.Tier)), Use: make([]float64, len(r.Use))}
	for i, t := range r.Tier {
		out.Tier[i] = map[engine.Tier]uint8{engine.TierSlot: 1, engine.TierRAM: 2, engine.TierFile: 3}[t]
		out.Use[i] = math.Round(r.Use[i]*1e4) / 1e4
	}
	return out
}

// waits turns the time that passes have waited for experts since the start into
// milliseconds a token, between two readings; the last value stands while no
// token comes.
type waits struct {
	tokens         int64
	file, card     time.Duration
	fileMS, cardMS float64
}

func (w *waits) add(tokens int64, t engine.TierSample) {
	if n := tokens - w.tokens; n > 0 {
		ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(n) }
		w.fileMS, w.cardMS = ms(t.Waited-w.file), ms(t.CardWait-w.card)
		w.tokens, w.file, w.card = tokens, t.Waited, t.CardWait
	}
}

// tiers counts where experts were found; nil for an engine that keeps none
// apart from the file's pages.
func tiers(t engine.TierSample, w *waits) *wire.Tiers {
	if t.Slot+t.RAM == 0 && t.Read == 0 {
		return nil
	}
	out := &wire.Tiers{VRAM: t.Slot, RAM: t.RAM, File: t.File, WaitMS: w.fileMS + w.cardMS, FileMS: w.fileMS,
		Held: t.Held, Limit: t.Limit, Linked: t.Linked, Promoted: t.Promoted, Evicted: t.Evicted, Given: t.Given, Guessed: t.Guessed, Right: t.Right}
	if s := t.ReadTime.Seconds(); s > 0 {
		out.DiskBS = float64(t.Read) / s
	}
	if s := t.LinkTime.Seconds(); s > 0 {
		out.LinkBS = float64(t.LinkBytes) / s
	}
	return out
}

// phaseNow is what the engine does, in one word or a sentence.
func (s *Server) phaseNow() string {
	s.mu.Lock()
	state, phase, b := s.state, s.phase, s.backend
	s.mu.Unlock()
	if state == "ok" && b != nil {
		return b.Telemetry().Phase
	}
	return phase
}

// engineNow is the engine's part of a reading.
func (s *Server) engineNow() wire.Engine {
	s.mu.Lock()
	e := wire.Engine{Status: s.state, Phase: s.phase, LoadDone: s.done, LoadTotal: s.total, Device: "CPU"}
	b := s.backend
	s.mu.Unlock()
	e.Active, e.Queue = s.queue.counts()
	if b == nil {
		return e
	}
	t := b.Telemetry()
	e.Phase = t.Phase
	e.DecodeTokS, e.PrefillTokS, e.MSPerStep = t.DecodeTokS, t.PrefillTokS, t.MsPerStep
	e.PrefillDone, e.PrefillTotal = t.PrefillDone, t.PrefillTotal
	e.ContextUsed, e.ContextSize = t.ContextUsed, t.ContextSize
	e.Tokens, e.Drafted, e.Accepted = t.Tokens, t.Drafted, t.Accepted
	e.Threads, e.Kernel = t.Threads, t.Kernel
	e.BytesPerToken = t.BytesPerToken
	if t.Phase == "decode" {
		e.ReadBS = t.GBs * 1e9
	}
	if t.Device.Name != "" {
		e.Device = t.Device.Name
	}
	e.DeviceWhy, e.DeviceWanted = b.whyCPU(t.Device), b.Wanted
	if d := t.Device; d.DeviceMs > 0 {
		e.LayerTimes = &wire.Layers{Count: d.Layers, CardMS: d.DeviceMs, CPUMS: d.CPUMs, WaitMS: d.WaitMs}
	}
	e.OnCPU, e.Slow, e.Check = t.Device.OnCPU, t.Device.Slow, t.Device.Check
	e.Use = wire.Use{Weights: t.Weights, KV: t.KV, Scratch: t.Scratch, Relaid: t.Relaid}
	if e.Phase != "decode" {
		// Rates are those of now: while nothing is decoded, none is.
		e.DecodeTokS, e.MSPerStep = 0, 0
	}
	if e.Phase != "prefill" {
		e.PrefillTokS = 0
	}
	return e
}

// telemetry streams readings until the client goes or the server stops. With
// ?once=1 it answers with one.
func (s *Server) telemetry(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("once") == "1" {
		writeJSON(w, http.StatusOK, s.tele.read())
		return
	}
	samples, done := s.tele.listen()
	defer done()
	st := newStream(w, s.o.Keepalive)
	defer st.end()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-s.stopping:
			return
		case m := <-samples:
			if st.send("", m) != nil {
				return
			}
		}
	}
}
