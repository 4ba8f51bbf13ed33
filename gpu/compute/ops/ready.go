package ops

import (
	"context"
	"fmt"

	"outcrop/gpu/compute"
	"outcrop/gpu/kernels"
)

// Constructors of this package do not wait for compilers: they name the modules that they
// need, and a first launch waits for its own. Ready waits for all of them.

// wish is a kernel that work goes on without, slower.
type wish struct {
	p     *compute.Program
	k     **compute.Kernel // set to nil when there is none
	units bool             // of matrix units, which are then not used at all
}

// load gives a kernel of a module that is compiled now.
func (s *Set) load(m kernels.Module, name string) (*compute.Kernel, error) {
	return s.program(m, compute.Now).Entry(name), nil
}

// later is load for what the first answers can do without.
func (s *Set) later(m kernels.Module, name string) *compute.Kernel {
	return s.program(m, compute.Later).Entry(name)
}

// spare is load for what is hardly ever used, and compiled then.
func (s *Set) spare(m kernels.Module, name string) *compute.Kernel {
	return s.program(m, compute.Spare).Entry(name)
}

// try is load for a kernel that work goes on without: *k becomes nil when its module
// fails. With units it is one of matrix units.
func (s *Set) try(m kernels.Module, name string, k **compute.Kernel, units bool) {
	p := s.program(m, compute.Now)
	*k = p.Entry(name)
	w := wish{p, k, units}
	select {
	case <-p.Done():
		s.grant(w)
		s.mu.Lock()
		s.granted[p] = true
		s.mu.Unlock()
	default:
		s.mu.Lock()
		s.wishes = append(s.wishes, w)
		s.mu.Unlock()
	}
}

// grant looks at what came of a wish.
func (s *Set) grant(w wish) {
	err := w.p.Wait(context.Background())
	if err == nil {
		return
	}
	*w.k = nil
	if w.units {
		s.noUnits(err)
	}
}

// program has a module compiled, once.
func (s *Set) program(m kernels.Module, u compute.Urgency) *compute.Program {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.extra {
		m.Name += "+" + d
		m.Defines = append(m.Defines[:len(m.Defines):len(m.Defines)], d)
	}
	p := s.programs[m.Name]
	if p == nil {
		p = s.dev.Prepare(m, u)
		s.programs[m.Name] = p
		if u == compute.Now {
			s.wanted = append(s.wanted, p)
		}
	}
	return p
}

// Ahead begins to compile what weights of the given types need: for uploads, for one
// column, and with many for prompts.
func (s *Set) Ahead(many bool, types ...uint32) {
	var list []kernels.Layout
	for _, t := range types {
		if l, ok := kernels.LayoutOf(t); ok {
			list = append(list, l)
		}
	}
	for _, l := range list {
		if !l.Float() {
			s.program(kernels.Repack(l), compute.Now)
		}
	}
	for _, l := range list { // what takes longest first
		if many {
			s.program(s.manyModule(l), compute.Now)
		}
		s.program(kernels.MulShaped(l, 1, s.shape(l, 1)), compute.Now)
	}
}

// Uploads waits for what NewUpload needs for the given types, as Ready does.
func (s *Set) Uploads(ctx context.Context, tell func(done, total int), types ...uint32) error {
	for _, t := range types {
		if l, ok := kernels.LayoutOf(t); ok && !l.Float() {
			p := s.program(kernels.Repack(l), compute.Now)
			if err := s.await(ctx, tell, []*compute.Program{p}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Ready waits until every module is compiled that was named so far and is used at
// once. tell, which may be nil, hears of progress on the goroutine of the caller. A
// kernel that could not be made is an error, but for those that work goes on without.
func (s *Set) Ready(ctx context.Context, tell func(done, total int)) error {
	s.mu.Lock()
	wishes := s.wishes
	s.wishes = nil
	for _, w := range wishes {
		s.granted[w.p] = true
	}
	var must, all []*compute.Program
	for _, p := range s.wanted {
		all = append(all, p)
		if !s.granted[p] {
			must = append(must, p)
		}
	}
	s.mu.Unlock()
	if err := s.await(ctx, tell, all); err != nil && ctx.Err() != nil {
		s.drop()
		return err
	}
	for _, p := range must {
		if err := p.Wait(ctx); err != nil {
			s.drop()
			return err
		}
	}
	for _, w := range wishes {
		s.grant(w)
	}
	return nil
}

// await waits for programs, and tells how many of all that were named are done. It
// returns what failed first.
func (s *Set) await(ctx context.Context, tell func(done, total int), list []*compute.Program) error {
	ended := make(chan error, len(list))
	for _, p := range list {
		go func() { ended <- p.Wait(ctx) }()
	}
	var first error
	for i := 0; ; i++ {
		if tell != nil {
			tell(s.done())
		}
		if i == len(list) {
			return first
		}
		if err := <-ended; err != nil && first == nil {
			first = err
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("compile kernels for %s: %w", s.dev.Info(), err)
		}
	}
}

// done counts the modules that are compiled, of those that were named.
func (s *Set) done() (done, total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.wanted {
		select {
		case <-p.Done():
			done++
		default:
		}
	}
	return done, len(s.wanted)
}

// drop gives up on what no compiler has begun with.
func (s *Set) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.programs {
		p.Drop()
	}
}
