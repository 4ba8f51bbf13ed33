package engine

import (
	"errors"
	"fmt"
	"sync/atomic"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
)

// What runs where, when a model uses graphics devices.
//
// Layers are cut into runs. A run lies on one device, or on the CPU; runs follow
// each other in the order of layers, and the residual stream goes from one to
// the next through pinned host memory. Within a run on a device everything stays
// there: weights, repacked at load as the kernels want them (gpu/compute/ops),
// keys and values, recurrent state, activations. The host writes the embedded
// tokens, their rotations and the position, and reads the logits.
//
// Routed experts of a run may stay with the CPU: then the normed hidden state is
// read back once a layer, the worker pool computes the experts beside the shared
// one on the device, and their sum goes back.

// ErrNoKernels is wrapped when a model cannot run on a device: its family or
// the type of a tensor has no kernels. On the CPU it runs.
var ErrNoKernels = errors.New("no card kernels")

// Placement says which layers lie on which device of Options.Devices. The zero
// value puts all of them on the devices, cut by the planner (plan.Split).
type Placement struct {
	// Layers counts the layers of each device, in order. Those that are left
	// over come first and stay with the CPU. Nil: all that have room.
	Layers []int
	// Split is how layers are dealt out when Layers is nil: the number of each
	// device where they add up to all layers, else proportions. Nil: by what a
	// turn takes.
	Split []float64
	// Rates are the bytes a second that each device reads from its memory; nil: all alike.
	Rates []float64
	// CPUExperts keeps routed experts with the CPU.
	CPUExperts bool
}

// cards are the devices of a model.
type cards struct {
	m       *Model
	runs    []*run
	first   int  // layers before it are the CPU's
	experts bool // routed experts are the CPU's
	check   *checker
	slots   *cardSlots // nil: none
	onCPU   []string   // which parts of the layers the CPU computes, and why

	times deviceTimes
	kv    atomic.Int64 // bytes of all sessions
}

// run is a number of consecutive layers on one device. One pass at a time uses
// its buffers.
type run struct {
	c      *cards
	dev    *compute.Device
	set    *ops.Set
	rows   *ops.Rows
	quant  *ops.Quantize
	arena  *compute.Arena // weights
	work   *compute.Arena // buffers of a pass
	lo, hi int            // layers
	last   bool           // the logits are made here
	layers []cardLayer

	outNorm *compute.Buffer
	output  cardMatrix

	buf     runBuffers
	weights int64 // bytes on the device
	scratch atomic.Int64
	kv      atomic.Int64 // bytes of all sessions
}

// deviceRefusal says in words why a model's layers cannot run on a device; ""
// when they can. Types of tensors are seen at load.
func deviceRefusal(s *spec) string {
	switch {
	case s.streams > 0:
		return "hyper-connections"
	case s.ple != nil:
		return "n-gram tables"
	case s.perLayer > 0:
		return "per-layer embeddings"
	case s.dim%32 != 0:
		return fmt.Sprintf("a width of %d, which is not a multiple of 32", s.dim)
	}
	for i := range s.layers {
		if why := s.layers[i].deviceRefusal(); why != "" {
			return why
		}
	}
	return ""
}

func (l *layerSpec) deviceRefusal() string {
	switch l.mixer {
	case latent:
		return "latent attention"
	case shortConv:
		return "short convolutions"
	case attention:
		a := &l.attn
		switch {
		case a.kvFrom >= 0:
			return "caches shared between layers"
		case a.index != nil:
			return "a sparse index"
		case a.qkNorm == qkFull:
			return "norms over all heads"
		case a.vNorm:
			return "values that are normed"
		case a.kvHeads < 1 || a.keyDim%8 != 0 || a.valDim%8 != 0 || a.keyDim > 576 || a.valDim > 576 || a.heads*a.valDim%32 != 0:
			return fmt.Sprintf("attention heads of %d and %d values", a.keyDim, a.valDim)
		}
	case deltaNet:
		d := &l.delta
		if d.taps > 8 || d.dim > 256 || d.valHeads*d.dim%32 != 0 {
			return fmt.Sprintf("delta nets with heads of %d values and %d taps", d.dim, d.taps)
		}
	}
	e := &l.expert
	switch {
	case l.ff > 0 && e.count > 0:
		return "dense parts beside experts"
	case l.ff%32 != 0 || e.ff%32 != 0 || e.shared%32 != 0:
		return "feed-forwards whose width is not a multiple of 32"
	case e.count > 1024 || e.used > 64 || e.groups > 64:
		return fmt.Sprintf("%d of %d experts", e.used, e.count)
	}
	return ""
}

// newCards cuts the layers into runs and loads their weights.
func newCards(m *Model, o *Options) (*cards, error) {
	if why := deviceRefusal(m.spec); why != "" {
		return nil, fmt.Errorf("%w: this family has no card kernels yet: %s has %s", ErrNoKernels, m.spec.arch, why)
	}
	if m.kv != kvF16 && m.kv != kvQ8 {
		return nil, fmt.Errorf("%w: keys and values in %s asked, cards keep f16 or q8", ErrNoKernels, m.kv)
	}
	if o.Check && o.Placement.CPUExperts {
		return nil, errors.New("check mode compares devices with the CPU: it does not go with experts on the CPU")
	}
	n := len(m.layers)
	cut, err := m.cut(o, n)
	if err != nil {
		return nil, err
	}
	c := &cards{m: m, first: n, experts: o.Placement.CPUExperts}
	if o.Check {
		c.check = &checker{tell: o.Deviates}
	}
	for _, k := range cut {
		c.first -= k
	}
	at := c.first
	for i, k := range cut {
		if k == 0 {
			continue
		}
		r := &run{c: c, dev: o.Devices[i], lo: at, hi: at + k, last: at+k == n}
		at += k
		c.runs = append(c.runs, r)
		if err := r.load(o); err != nil {
			err = r.loadFailed(err, c.experts)
			c.close()
			return nil, err
		}
	}
	return c, nil
}

// cut gives the number of layers for each device, as fit chose them.
func (m *Model) cut(o *Options, n int) ([]int, error) {
	want, sum := o.Placement.Layers, 0
	for _, k := range want {
		if k < 0 {
			return nil, fmt.Errorf("%d layers asked for a device", k)
		}
		sum += k
	}
	if len(want) != len(o.Devices) || sum > n || sum == 0 {
		return nil, fmt.Errorf("layers %v asked for %d devices, the model has %d layers", want, len(o.Devices), n)
	}
	return want, nil
}

func (c *cards) close() {
	c.slots.free()
	for _, r := range c.runs {
		r.free()
	}
}

// has tells whether layer il lies on a device.
func (c *cards) has(il int) bool { return c != nil && il >= c.first && il < len(c.m.layers) }

// names lists the devices in use.
func (c *cards) names() string {
	s := ""
	for i, r := range c.runs {
		if i > 0 {
			s += ", "
		}
		s += r.dev.Info().Name
	}
	return s
}
