package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"outcrop/engine/quant"
	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
)

// cardMatrix is one matrix on a device, or several of one type whose rows
// follow each other, so that one launch makes the results of all.
type cardMatrix struct {
	mul   *ops.Mul
	many  *ops.MatMul
	bias  *compute.Buffer
	scale float32
	rows  int
}

func (w *cardMatrix) none() bool { return w.mul == nil }

// float tells whether the products take floats, else the 8-bit copy.
func (w *cardMatrix) float() bool { return w.mul != nil && w.mul.Weight().IsFloat() }

// run makes y = W a for t columns, or adds to y.
func (w *cardMatrix) run(q *compute.Queue, a *ops.Acts, t int, y *compute.Buffer, ld int, flags int) error {
	out := ops.Out{Y: y, Ld: ld, Flags: flags, Scale: w.scale}
	if w.bias != nil {
		out.Flags |= ops.Bias
		out.Extra = w.bias
	}
	if t <= ops.MaxColumns {
		return w.mul.Run(q, a, t, out)
	}
	out.Flags &^= ops.Hold | ops.Settled // tiles do not overlap
	return w.many.Run(q, a, t, nil, out)
}

// cardLayer is a layer on a device.
type cardLayer struct {
	*layer
	wide                                 *layerSpec // with the widths of the feed-forwards on the card
	why                                  parts      // what the CPU computes, and why
	attnNorm, postAttn, ffnNorm, postFFN *compute.Buffer

	attn         *ops.Attention
	q, k, v, o   cardMatrix // q may hold the rows of k, and of v, after its own
	kAt, vAt     int        // where in q, when k or v is none
	qNorm, kNorm *compute.Buffer
	sinks        *compute.Buffer
	rot          int // values that rotate

	delta                      *ops.Delta
	qkv, z, ba                 cardMatrix
	taps, decay, dt, deltaNorm *compute.Buffer
	out                        cardMatrix

	// Feed-forward, dense or shared: gate rows, then up rows, in one matrix where their types
	// are equal; else gate and up.
	gateUp, gate, up, down cardMatrix

	router       cardMatrix
	pick         *compute.Buffer
	expGateUp    cardMatrix // its bias is given to the activation
	expDown      cardMatrix
	expUpBias    *compute.Buffer // gate biases, then up biases, of each expert
	expDownBias  *compute.Buffer
	shGateUp     cardMatrix
	shDown       cardMatrix
	sharedGate   cardMatrix
	routedOnHost *layer // the layer with routed experts alone, for the CPU
}

// loader puts tensors on a device.
type loader struct {
	r   *run
	up  *ops.Upload
	err error
}

// load copies the weights of a run, and waits for its kernels.
func (r *run) load(ctx context.Context, o *Options) error {
	m := r.c.m
	var err error
	var compiled func(done, total int)
	if o.Progress != nil {
		compiled = func(done, total int) { o.Progress("kernels", int64(done), int64(total)) }
	}
	types := r.types()
	if err := r.set.Uploads(ctx, compiled, types...); err != nil {
		return err
	}
	const chunk = 64 << 20
	need := r.weightBytes()
	// A small model takes little of a card that may use little; norms and biases come on top.
	r.arena = r.dev.Arena(min(chunk, need+need/16+64<<10, r.dev.MaxBuffer()))
	ld := &loader{r: r}
	if ld.up, err = r.set.NewUpload(types...); err != nil {
		return err
	}
	defer ld.up.Free()
	for il := r.lo; il < r.hi; il++ {
		l := ld.layer(&m.layers[il])
		if err := ctx.Err(); err != nil {
			return err
		}
		if ld.err != nil {
			return fmt.Errorf("layer %d: %w", il, ld.err)
		}
		r.layers = append(r.layers, l)
		if o.Progress != nil {
			o.Progress("upload", int64(il-r.lo+1), int64(r.hi-r.lo))
		}
	}
	if r.last {
		r.outNorm = ld.floats(m.outNorm)
		if unknown(&m.output) == "" {
			r.output = ld.matrix(&m.output)
		}
	}
	if ld.err != nil {
		return ld.err
	}
	r.weights = r.arena.Size()
	ld.up.Free() // before there is more to take
	if err := r.room(); err != nil {
		return err
	}
	return r.set.Ready(ctx, compiled)
}

// types lists the tensor types of the run.
func (r *run) types() []uint32 {
	m := r.c.m
	seen := map[uint32]bool{}
	var list []uint32
	add := func(w *matrix) {
		if w.none() {
			return
		}
		if t := uint32(w.f.Type); !seen[t] {
			seen[t] = true
			list = append(list, t)
		}
	}
	for il := r.lo; il < r.hi; il++ {
		l := &m.layers[il]
		why := r.c.parts[il]
		if why.mixer == "" {
			for _, w := range []*matrix{&l.q, &l.k, &l.v, &l.o, &l.qkv, &l.z, &l.alpha, &l.beta, &l.ba, &l.deltaOut} {
				add(w)
			}
		}
		if why.ffn == "" {
			for _, w := range []*matrix{&l.gate, &l.up, &l.down, &l.router, &l.shGate, &l.shUp, &l.shDown} {
				add(w)
			}
			if !r.c.experts && why.experts == "" {
				for _, b := range l.banks() {
					add(&b.matrix)
				}
			}
		}
	}
	if r.last && unknown(&m.output) == "" {
		add(&m.output)
	}
	return list
}

func (ld *loader) fail(err error) {
	if ld.err == nil && err != nil {
		ld.err = err
	}
}

// alloc takes n bytes beside the weights.
func (ld *loader) alloc(n int64) *compute.Buffer {
	if ld.err != nil {
		return nil
	}
	b, err := ld.r.arena.Alloc(n)
	ld.fail(err)
	return b
}

// floats copies v; nil for nothing.
func (ld *loader) floats(v []float32) *compute.Buffer {
	if len(v) == 0 || ld.err != nil {
		return nil
	}
	b := ld.alloc(4 * int64(len(v)))
	if ld.err != nil {
		return nil
	}
	raw := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(x))
	}
	ld.fail(ld.r.dev.Do(func(q *compute.Queue) error { return q.Write(b, 0, raw) }))
	return b
}

// uploadPiece bounds what one turn of the device's goroutine copies.
const uploadPiece = 64 << 20

// put copies rows of a matrix of w.
func (ld *loader) put(w *ops.Weight, index, row0 int, data []byte, rowBytes int) {
	per := max(1, uploadPiece/rowBytes)
	if per > 8 {
		per &^= 7
	}
	for len(data) > 0 && ld.err == nil {
		n := min(len(data), per*rowBytes)
		ld.fail(ld.r.dev.Do(func(q *compute.Queue) error { return ld.up.Run(q, w, index, row0, data[:n]) }))
		data, row0 = data[n:], row0+n/rowBytes
	}
}

// matrix copies the rows of some matrices of one type and one width after each
// other. Those that are none are left out.
func (ld *loader) matrix(list ...*matrix) cardMatrix {
	var out cardMatrix
	if ld.err != nil || list[0].none() {
		return out
	}
	first, biased := list[0], false
	for _, w := range list {
		out.rows += w.rows
		biased = biased || w.bias != nil
		if w.scale != 0 && w.bias != nil {
			ld.fail(fmt.Errorf("%w: tensor %s has a scale and a bias", ErrNoKernels, w.name))
			return out
		}
	}
	out.scale = first.scale
	w := ld.weight(first, out.rows, 1)
	if ld.err != nil {
		return out
	}
	at := 0
	for _, x := range list {
		ld.put(w, 0, at, x.data, x.rowBytes)
		at += x.rows
	}
	if biased {
		all := make([]float32, 0, out.rows)
		for _, x := range list {
			if x.bias == nil {
				all = append(all, make([]float32, x.rows)...)
			}
			all = append(all, x.bias...)
		}
		out.bias = ld.floats(all)
	}
	if ld.err != nil {
		return out
	}
	var err error
	out.mul, err = ld.r.set.Mul(w, ops.MaxColumns)
	ld.fail(err)
	if ld.r.c.m.chunk > ops.MaxColumns {
		out.many, err = ld.r.set.MatMul(w)
		ld.fail(err)
	}
	return out
}

// alike tells whether matrices can be one on the device.
func alike(list ...*matrix) bool {
	for _, w := range list {
		if w.none() || w.f.Type != list[0].f.Type || w.cols != list[0].cols || w.scale != list[0].scale {
			return false
		}
	}
	return true
}

// weight takes room for count matrices like w with rows rows.
func (ld *loader) weight(w *matrix, rows, count int) *ops.Weight {
	size, err := ops.WeightSize(uint32(w.f.Type), rows, w.cols)
	if err != nil {
		ld.fail(fmt.Errorf("%w: tensor %s: %w", ErrNoKernels, w.name, err))
		return nil
	}
	b := ld.alloc(size * int64(count))
	if ld.err != nil {
		return nil
	}
	out, err := ops.NewWeight(uint32(w.f.Type), rows, w.cols, count, b)
	ld.fail(err)
	return out
}

// bank copies matrices of all experts; with two, the rows of the second follow
// those of the first.
func (ld *loader) bank(list ...*bank) cardMatrix {
	var out cardMatrix
	if ld.err != nil {
		return out
	}
	b := list[0]
	for _, x := range list {
		out.rows += x.rows
		if x.scales != nil {
			ld.fail(fmt.Errorf("%w: experts with scales in %s", ErrNoKernels, x.name))
		}
		if x.f.Type != b.f.Type {
			ld.fail(fmt.Errorf("%w: gate and up of the experts have types %s and %s", ErrNoKernels, b.f.Name, x.f.Name))
		}
	}
	if ld.err != nil {
		return out
	}
	w := ld.weight(&b.matrix, out.rows, b.count)
	for e := range b.count {
		at := 0
		for _, x := range list {
			if ld.err != nil {
				return out
			}
			ld.put(w, e, at, x.of(e), x.rowBytes)
			at += x.rows
		}
	}
	if ld.err != nil {
		return out
	}
	var err error
	out.mul, err = ld.r.set.Mul(w, 1)
	ld.fail(err)
	if ld.r.c.m.chunk > ops.MaxColumns {
		out.many, err = ld.r.set.MatMul(w)
		ld.fail(err)
	}
	return out
}

// layer copies the weights of a layer.
func (ld *loader) layer(l *layer) cardLayer {
	r, m := ld.r, ld.r.c.m
	out := cardLayer{
		layer:    l,
		why:      r.c.parts[l.index],
		wide:     l.layerSpec,
		attnNorm: ld.floats(l.attnNorm), postAttn: ld.floats(l.postAttn),
		ffnNorm: ld.floats(l.ffnNorm), postFFN: ld.floats(l.postFFN),
	}
	var err error
	switch {
	case out.why.mixer != "":
	case l.mixer == attention:
		ld.projections(&out)
		out.o = ld.matrix(&l.o)
		out.qNorm, out.kNorm, out.sinks = ld.floats(l.qNorm), ld.floats(l.kNorm), ld.floats(l.sinks)
		if l.rope != nil {
			out.rot = l.rope.spec.dims
		}
		out.attn, err = r.set.Attention(r.heads(l))
	case l.mixer == deltaNet:
		d := &l.delta
		out.qkv, out.z, out.out = ld.matrix(&l.qkv), ld.matrix(&l.z), ld.matrix(&l.deltaOut)
		switch {
		case d.fusedBA:
			out.ba = ld.matrix(&l.ba)
		case alike(&l.alpha, &l.beta):
			out.ba = ld.matrix(&l.alpha, &l.beta)
		default:
			ld.fail(fmt.Errorf("%w: alpha and beta have types %s and %s", ErrNoKernels, l.alpha.f.Name, l.beta.f.Name))
		}
		out.taps, out.decay, out.dt, out.deltaNorm = ld.floats(l.convTaps), ld.floats(l.decay), ld.floats(l.dtBias), ld.floats(l.deltaNorm)
		out.delta, err = r.set.Delta(ops.DeltaShape{
			Keys: d.keyHeads, Values: d.valHeads, Dim: d.dim, Taps: d.taps,
			ByMod: d.byMod, FusedBA: d.fusedBA, Sigmoid: d.sigmoidGate, Eps: m.spec.eps,
		})
	}
	ld.fail(err)
	if out.why.ffn != "" {
		return out
	}
	wide := widen(l)
	out.wide = wide.layerSpec
	if l.ff > 0 {
		out.gateUp, out.gate, out.up = ld.pair(&wide.gate, &wide.up)
		out.down = ld.matrix(&wide.down)
	}
	if l.expert.count > 0 {
		ld.mixture(&out, wide)
	}
	return out
}

// projections copies the matrices of queries, keys and values: as one matrix, or
// queries and keys as one, where types and alignment allow it, since each launch
// costs some microseconds. Check mode looks at them one by one, and a norm over
// all heads wants its rows without gaps.
func (ld *loader) projections(out *cardLayer) {
	l, a := out.layer, &out.layer.attn
	kw := a.kvHeads * a.keyDim
	apart := ld.r.c.check != nil || a.qkNorm == qkFull || !alike(&l.q, &l.k) || !ld.r.sliced(l.q.rows)
	switch {
	case apart:
		out.q, out.k, out.v = ld.matrix(&l.q), ld.matrix(&l.k), ld.matrix(&l.v)
	case alike(&l.q, &l.k, &l.v) && ld.r.sliced(l.q.rows+kw):
		out.q, out.kAt, out.vAt = ld.matrix(&l.q, &l.k, &l.v), l.q.rows, l.q.rows+kw
	default:
		out.q, out.kAt, out.v = ld.matrix(&l.q, &l.k), l.q.rows, ld.matrix(&l.v)
	}
	if l.v.none() { // values are the keys before norm and rotation
		out.v, out.vAt = out.k, out.kAt
	}
}

// sliced tells whether a buffer may be cut after n floats. Where it may not,
// gate and up have matrices of their own.
func (r *run) sliced(n int) bool {
	align := r.dev.Info().Align
	return align <= 1 || 4*int64(n)%align == 0
}

// pair puts gate and up into one matrix where that is possible.
func (ld *loader) pair(gate, up *matrix) (both, g, u cardMatrix) {
	if alike(gate, up) && gate.scale == 0 && ld.r.sliced(gate.rows) {
		return ld.matrix(gate, up), g, u
	}
	return both, ld.matrix(gate), ld.matrix(up)
}

// mixture copies the router and the experts of a layer; w is the layer in the
// widths of the card.
func (ld *loader) mixture(l *cardLayer, w *layer) {
	if l.expert.shared > 0 {
		l.shGateUp, l.gate, l.up = ld.pair(&w.shGate, &w.shUp)
		l.shDown = ld.matrix(&w.shDown)
		if v := l.layer.sharedGate; v != nil {
			l.sharedGate = ld.matrix(rowMatrix(v))
		}
	}
	if l.both == nil && unknown(&l.layer.router) == "" {
		l.router, l.pick = ld.matrix(&l.layer.router), ld.floats(l.pickBias)
	}
	if ld.r.c.experts || l.why.experts != "" {
		s := *l.layerSpec
		s.expert.shared = 0
		host := *l.layer
		host.layerSpec = &s
		l.routedOnHost = &host
		return
	}
	if l.fused {
		l.expGateUp = ld.bank(&w.gates)
		l.expUpBias = ld.floats(w.gates.biases)
	} else {
		l.expGateUp = ld.bank(&w.gates, &w.ups)
		if w.gates.biases != nil || w.ups.biases != nil {
			l.expUpBias = ld.floats(twoBiases(&w.gates, &w.ups))
		}
	}
	l.expDown = ld.bank(&w.downs)
	l.expDownBias = ld.floats(w.downs.biases)
}

// twoBiases are, expert by expert, the biases of a and of b.
func twoBiases(a, b *bank) []float32 {
	out := make([]float32, a.count*(a.rows+b.rows))
	for e := range a.count {
		at := out[e*(a.rows+b.rows):]
		if a.biases != nil {
			copy(at, a.biases[e*a.rows:(e+1)*a.rows])
		}
		if b.biases != nil {
			copy(at[a.rows:], b.biases[e*b.rows:(e+1)*b.rows])
		}
	}
	return out
}

// rowMatrix makes a matrix of one row of floats.
func rowMatrix(v []float32) *matrix {
	f, _ := quant.Of(quant.F32)
	raw := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(x))
	}
	return &matrix{name: "a row", f: f, data: raw, rows: 1, cols: len(v), rowBytes: len(raw)}
}

// free gives all memory of the run back. The compiled kernels stay with the
// device.
func (r *run) free() {
	r.buf.free()
	for _, h := range r.hops {
		h.free()
	}
	r.hops = nil
	if r.pick.host != nil {
		r.pick.host.Free()
	}
	r.pick = cardPick{}
	if r.work != nil {
		r.work.Free()
	}
	if r.arena != nil {
		r.arena.Free()
	}
	if r.set != nil {
		r.set.Free()
	}
}
