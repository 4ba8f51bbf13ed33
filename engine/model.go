package engine

import (
	"context"
	"fmt"
	"sync"

	"outcrop/engine/plan"
	"outcrop/engine/quant"
	"outcrop/gpu/compute"
)

// Options say how a pack is loaded. The zero value decides everything.
type Options struct {
	Threads int    // workers; 0: the physical cores allowed
	Context int    // tokens a session can hold; 0: the trained context, at most 8192
	KV      string // how keys and values are cached: "f16" (default), "f32", "q8", "q4"
	Chunk   int    // tokens of a prompt run at once; 0: 512
	// Draft chooses how several tokens are tried at once: "mtp" (the pack's own
	// draft block), "lookup" (what followed the same words before), "off", or
	// "auto" (default: the block when there is one, else lookup). It changes
	// speed, never the answer.
	Draft string
	// FileTier: experts do not all fit in RAM and stay in the file (plan.AllFile).
	FileTier bool
	// ExpertRAM is how many bytes of routed experts are held as copies in
	// memory of our own, -1: all. The guard may take that memory back. Without
	// FileTier they are read at load; with it, those used most take the place of
	// others as they are wanted. 0: experts are used in the file's pages.
	ExpertRAM int64
	// Relay is how many bytes of RAM all weights together may take when some are
	// held as copies in a layout that this processor multiplies faster. 0: none.
	Relay int64
	// Progress is told of loading and of prefill, from the goroutine that asked.
	Progress func(phase string, done, total int64)
	// Device names graphics devices: "cpu" or "" is none, "auto" every card once,
	// else PCI addresses and IDs of Devices with commas between them. Load opens
	// them, with KernelCache as the folder for compiled kernels, and Close closes
	// them.
	Device, KernelCache string
	// Devices are open graphics devices that run layers; they must outlive the
	// model. Placement says which. None: the CPU runs everything.
	Devices   []*compute.Device
	Placement Placement
	// VRAMLimit caps the bytes that are used of each device; the last one counts
	// for all that follow. Nil: no cap.
	VRAMLimit []int64
	// Plan says what goes where (plan.Make). Load keeps to it: the context, the
	// layers of each card, copies in RAM, slots. Nil: Load makes one where devices
	// are named, and else goes by the options below.
	Plan *plan.Plan
	// SlotBytes of device memory hold hot experts when the CPU has the routed
	// ones; experts come and go as they are used. It goes with ExpertRAM.
	SlotBytes int64
	// Pinned has the copies of experts lie in memory that devices fetch from by
	// themselves, so that experts without a slot can be computed there too.
	Pinned bool
	// Misses says who computes experts in pinned memory: "cpu", "link" (the
	// device, their weights go over the link first) or "auto" (default: both, by
	// measured rates).
	Misses string
	// Check compares every block that a device runs with the CPU (Model.Check).
	// It is slow. Deviates, when set, is told of the first deviation.
	Check    bool
	Deviates func(Deviation)
}

// DefaultContext is the largest context used when none is asked for.
const DefaultContext = 8192

// Model is a loaded pack: everything in it is read-only after Load. Sessions
// share it and take turns at its workers.
type Model struct {
	*weights
	pack      *Pack
	spec      *spec
	context   int
	chunk     int
	recurrent bool // some layer keeps a state that cannot be cut back
	kv        kvKind
	draftBy   draftMode
	options   Options

	chunkAsked bool // and pieces of prompts on several cards are as long

	own      []*compute.Device // opened by Load
	noCard   string            // why the CPU computes although a card was wanted
	cards    *cards            // nil: everything on the CPU
	missesBy string
	sides    sides
	placed   []Placed // what the plan wanted, and what came of it
	pool     *pool
	heat     *heat
	experts  experts
	tiers    tierCounts
	relief   *relief
	relaid   relaid
	maps     residencyMaps
	turn     sync.Mutex // one forward pass at a time
	tele     telemetry

	cardParts []parts // see parts

	trace    func(il int, x []float32)    // tests look at the residual stream
	route    func(il, t int, ids []int32) // tests choose the experts of a token
	foretell func(il, t int, ids []int32) // and what is expected of the next layer
}

// Load binds the tensors of a pack and starts the workers. Nothing is copied:
// weights stay in the mapped file.
func Load(ctx context.Context, p *Pack, o Options) (*Model, error) {
	s, err := p.specification()
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", p.Name, err)
	}
	asked := o.Chunk != 0
	o = o.planned()
	m := &Model{pack: p, spec: s, options: o, chunkAsked: asked}
	if m.kv, err = kvKindOf(o.KV); err != nil {
		return nil, fmt.Errorf("load %s: %w", p.Name, err)
	}
	if m.draftBy, err = draftModeOf(o.Draft); err != nil {
		return nil, fmt.Errorf("load %s: %w", p.Name, err)
	}
	m.context = o.Context
	if m.context == 0 {
		m.context = min(s.context, DefaultContext)
	}
	if m.context < 1 || m.context > s.context {
		return nil, fmt.Errorf("load %s: context %d asked, the model was trained for 1 to %d", p.Name, o.Context, s.context)
	}
	m.chunk = o.Chunk
	if m.chunk == 0 {
		m.chunk = defaultChunk
	}
	if m.chunk < 1 || m.chunk > 1<<16 {
		return nil, fmt.Errorf("load %s: chunk %d asked, 1 to 65536 are possible", p.Name, o.Chunk)
	}
	if o.Threads < 0 || o.Threads > 4096 {
		return nil, fmt.Errorf("load %s: %d threads asked, 0 to 4096 are possible", p.Name, o.Threads)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if m.weights, err = bind(p.file, s); err != nil {
		return nil, fmt.Errorf("load %s: %w", p.Name, err)
	}
	if len(m.drafts) == 0 && m.draftBy == draftMTP {
		return nil, fmt.Errorf("load %s: drafts by the pack's own block asked, it has none; use \"auto\" or \"lookup\"", p.Name)
	}
	m.heat, m.relief, m.experts = newHeat(m.layers, m.weights.drafts), newRelief(), &pages{m: m}
	if err := m.warm(ctx); err != nil {
		return nil, err
	}
	if m.draftBy == draftAuto {
		m.draftBy = draftLookup
		if len(m.drafts) > 0 && m.drafts[0].mixer != deltaNet {
			m.draftBy = draftMTP
		}
	}
	for i := range m.layers {
		m.recurrent = m.recurrent || m.layers[i].recurrent()
	}
	threads := o.Threads
	if threads == 0 {
		threads = DefaultThreads()
	}
	if err := m.place(ctx, &o); err != nil {
		return nil, fmt.Errorf("load %s: %w", p.Name, err)
	}
	if o.Threads == 0 && threads > 2 && m.cards != nil && m.cards.experts {
		threads-- // one core makes the calls to the cards while the others compute
	}
	m.pool = newPool(threads)
	m.tele.start(m)
	m.measureSides()
	if err := m.relay(ctx); err != nil {
		m.Close()
		return nil, fmt.Errorf("load %s: %w", p.Name, err)
	}
	return m, nil
}

// warm asks the system to read the file ahead, shard by shard, so that the
// first tokens do not wait for one page fault after the other.
func (m *Model) warm(ctx context.Context) error {
	f := m.pack.file
	var done int64
	for _, t := range f.Tensors() {
		if err := ctx.Err(); err != nil {
			return err
		}
		// Advice is a wish; a system that refuses it reads later.
		_ = f.Advise(t, 0, t.Bytes, m.mapAdvice(t))
		done += t.Bytes
		if m.options.Progress != nil {
			m.options.Progress("load", done, m.pack.size)
		}
	}
	return nil
}

// Close ends the workers. All sessions must be finished; the pack stays open.
func (m *Model) Close() error {
	m.turn.Lock()
	defer m.turn.Unlock()
	if m.pool != nil {
		m.pool.close()
		m.pool = nil
		defer m.unrelay()
		if m.cards != nil {
			defer m.closeDevices()
			defer m.cards.close()
		}
		if s, ok := m.experts.(*shelves); ok {
			defer s.end()
		}
		m.tele.phase.Store(phaseClosed)
	}
	return nil
}

// Pack is the pack the model was loaded from.
func (m *Model) Pack() *Pack { return m.pack }

// Context is how many tokens a session can hold.
func (m *Model) Context() int { return m.context }

// Threads is the number of workers.
func (m *Model) Threads() int { return m.tele.threads }

// Vocab is the number of logits per token.
func (m *Model) Vocab() int { return m.spec.vocab }

// Unused names tensors of the pack that the model does not use.
func (m *Model) Unused() []string { return m.unused }

// Kernel is the name of the products' instruction level in use.
func (m *Model) Kernel() string { return quant.Active().String() }

// Telemetry reads the current figures; any goroutine may ask at any time.
func (m *Model) Telemetry() Sample { return m.tele.sample(m) }

// NewSession starts an empty timeline.
func (m *Model) NewSession() (*Session, error) {
	if m.pool == nil {
		return nil, fmt.Errorf("new session: the model is closed")
	}
	s := &Session{m: m, st: newState(m)}
	if m.cards != nil {
		var err error
		if s.st.cards, err = m.cards.newState(); err != nil {
			return nil, fmt.Errorf("new session: %w", err)
		}
	}
	s.p = &pass{m: m, st: s.st, cs: make([][]float32, len(m.ropes))}
	s.drafts.init(s)
	m.tele.kv.Add(s.st.bytes())
	return s, nil
}
