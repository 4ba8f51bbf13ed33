package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

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
	parts   []parts    // what the CPU computes of each layer for want of kernels
	onCPU   []string   // the same in words

	chain  bool // steps are handed to all devices at once
	giveUp time.Duration
	cutBy  func(n int) []int // tests choose the pieces of prompts
	times  deviceTimes
	feed   stageTimes   // what the CPU does for the first of several devices
	kv     atomic.Int64 // bytes of all sessions
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
	hosted bool           // the residual stream stays with the CPU (deviceblocks.go)
	split  bool           // routed experts of some layers are the CPU's
	layers []cardLayer

	outNorm *compute.Buffer
	output  cardMatrix

	buf     runBuffers
	pick    cardPick
	weights int64 // bytes on the device
	scratch atomic.Int64
	kv      atomic.Int64 // bytes of all sessions

	turnTime time.Duration // of the last step, see devicechain.go

	hops  []*hop // by which activations go to the next run; none: through the CPU
	stage stageTimes

	began, ended time.Time // of the last recorded step
	gap, gaps    atomic.Int64
}

// newCards cuts the layers into runs and loads their weights.
func newCards(ctx context.Context, m *Model, o *Options) (*cards, error) {
	if why := deviceRefusal(m.spec); why != "" {
		return nil, fmt.Errorf("%w for any part of a %s model: %s", ErrNoKernels, m.spec.arch, why)
	}
	n := len(m.layers)
	cut, err := m.cut(o, n)
	if err != nil {
		return nil, err
	}
	c := &cards{m: m, first: n, experts: o.Placement.CPUExperts, parts: m.parts()}
	if o.Check {
		c.check = &checker{tell: o.Deviates, coarse: m.kv == kvQ8}
	}
	for _, k := range cut {
		c.first -= k
	}
	at, stream := c.first, m.weights.streamOnCPU(m.spec)
	c.onCPU = onCPU(m.layers, c.parts, c.first, stream)
	for i, k := range cut {
		if k == 0 {
			continue
		}
		r := &run{c: c, dev: o.Devices[i], lo: at, hi: at + k, last: at+k == n}
		at += k
		r.plan(stream)
		c.runs = append(c.runs, r)
	}
	for _, r := range c.runs {
		if err := r.compile(o); err != nil {
			err = r.loadFailed(err, c.experts)
			c.close()
			return nil, err
		}
	}
	for _, r := range c.runs { // planned all of them, since buffers depend on the next one
		if err := r.load(ctx, o); err != nil {
			err = r.loadFailed(err, c.experts)
			c.close()
			return nil, err
		}
	}
	if err := c.openHops(); err != nil {
		c.close()
		return nil, err
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

// plan finds how the run has to go.
func (r *run) plan(stream string) {
	r.hosted = stream != "" || r.last && unknown(&r.c.m.output) != ""
	for il := r.lo; il < r.hi; il++ {
		w := r.c.parts[il]
		r.hosted = r.hosted || w.mixer != "" || w.ffn != ""
		r.split = r.split || (r.c.experts || w.experts != "") && r.c.m.layers[il].expert.count > 0 && w.ffn == ""
	}
	r.hosted = r.hosted || r.split && r.c.check != nil // which compares there
}

// plain tells whether devices compute everything of their layers.
func (c *cards) plain() bool {
	for _, r := range c.runs {
		if r.hosted || r.split {
			return false
		}
	}
	return true
}

// mixes tells whether the mixer of layer il, and what it keeps, is a device's.
func (c *cards) mixes(il int) bool { return c.has(il) && c.parts[il].mixer == "" }

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
