package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"outcrop/app/client"
	"outcrop/engine/launch"
	"outcrop/engine/wire"
	"outcrop/gpu"
	"outcrop/gpu/recipe"
)

// host is the engine that a chat talks to: a child process of ours, started
// when it is first needed and again after it has ended, or a server elsewhere.
type host struct {
	p    *Program
	o    *chatOptions
	name string // of the pack
	demo bool
	eng  *launch.Engine
	c    *client.Client
}

func newHost(p *Program, o *chatOptions) *host { return &host{p: p, o: o} }

// client is the way to a loaded engine.
func (h *host) client(ctx context.Context) (*client.Client, error) {
	if h.o.address != "" {
		if h.c == nil {
			h.c = client.New(h.o.address, h.o.key)
			models, err := h.c.Models(ctx)
			if err != nil {
				return nil, err
			}
			if len(models) > 0 {
				h.name = models[0].ID
			}
		}
		return h.c, nil
	}
	if h.eng != nil {
		select {
		case <-h.eng.Done():
			h.c.Close()
		default:
			return h.c, nil
		}
	}
	r, err := h.p.packs().Resolve(h.o.pack)
	if err != nil {
		return nil, err
	}
	h.name, h.demo = r.Name, r.Demo
	base, err := environment(h.o.root, h.o.or(h.o.device))
	if err != nil {
		return nil, err
	}
	args := append(h.o.args(), "--name="+r.Name)
	if h.o.force {
		args = append(args, "--force")
	}
	e, err := launch.Start(ctx, launch.Spec{Binary: h.p.Self, Pack: r.Path, Base: base, Args: args})
	if err != nil {
		return nil, err
	}
	tell := h.p.progress()
	err = e.WaitReady(ctx, func(w wire.Health) { tell(w.Phase, w.Done, w.Total) })
	tell("", 0, 0)
	if err != nil {
		e.Stop()
		var x *launch.ExitError
		if !errors.As(err, &x) && ctx.Err() != nil {
			return nil, errors.New("stopped")
		}
		return nil, err
	}
	h.eng, h.c = e, client.New(e.Addr(), e.Key())
	return h.c, nil
}

// environment is ours with the recipe of this machine's card applied, or of the
// cards that device names.
func environment(root, device string) ([]string, error) {
	m, err := machine(root)
	if err != nil {
		return nil, err
	}
	r, err := recipe.For(m, recipe.Outcrop, namedCards(m, device))
	if err != nil {
		// A machine that the rules cannot place runs without a recipe; the
		// doctor says what is wrong with it.
		return os.Environ(), nil
	}
	return r.Apply(os.Environ()), nil
}

// explain adds to an error how the engine ended, when it did.
func (h *host) explain(err error) error {
	if h.eng == nil || !errors.Is(err, client.ErrGone) {
		return err
	}
	select {
	case <-h.eng.Done():
	case <-time.After(2 * time.Second): // the socket closes a moment before the end is known
		return err
	}
	x := h.eng.Exit()
	if x.Next != "" {
		return fmt.Errorf("%s Next: %s", x.Text, x.Next)
	}
	return errors.New(x.Text)
}

// printCheck prints what check mode has found so far.
func (h *host) printCheck(ctx context.Context) {
	if h.c == nil {
		return
	}
	if s, err := h.c.Sample(ctx); err != nil {
		fmt.Fprintln(h.p.Err, "check: the engine does not answer:", err)
	} else if s.Engine.Check != "" {
		fmt.Fprintln(h.p.Err, "check:", s.Engine.Check)
	}
}

func (h *host) stop() {
	if h.c != nil {
		h.c.Close()
	}
	if h.eng != nil {
		h.eng.Stop()
	}
}

// progress tells a person who waits what is going on, on one line that is
// taken away again; nothing where nobody looks.
func (p *Program) progress() func(phase string, done, total int64) {
	if !isTerminal(p.Err) {
		return func(string, int64, int64) {}
	}
	c := p.paint(p.Err)
	began := time.Now()
	shown := false
	return func(phase string, done, total int64) {
		amount := size
		if total < 1<<16 { // layers, kernels
			amount = func(n int64) string { return fmt.Sprint(n) }
		}
		switch {
		case phase == "" || phase == "ready":
			if shown {
				fmt.Fprint(p.Err, "\r\x1b[K")
				shown = false
			}
		case time.Since(began) < 300*time.Millisecond:
		case total > 0:
			shown = true
			fmt.Fprint(p.Err, "\r\x1b[K"+c.dim(fmt.Sprintf("%s: %s of %s", phase, amount(done), amount(total))))
		default:
			shown = true
			fmt.Fprint(p.Err, "\r\x1b[K"+c.dim(phase))
		}
	}
}

// machine reads the machine at root: this one, a folder, or a machine file.
func machine(root string) (gpu.Machine, error) {
	dir, done, err := machineDir(root)
	if err != nil {
		return gpu.Machine{}, err
	}
	defer done()
	m, _, _, err := gpu.Open(dir)
	if err != nil {
		return m, fmt.Errorf("read the machine at %s: %w", root, err)
	}
	return m, nil
}

// machineNow reads a machine with the sensors of its cards.
func machineNow(root string) (gpu.Machine, []gpu.CardReadings, error) {
	dir, done, err := machineDir(root)
	if err != nil {
		return gpu.Machine{}, nil, err
	}
	defer done()
	m, fsys, live, err := gpu.Open(dir)
	if err != nil {
		return m, nil, fmt.Errorf("read the machine at %s: %w", root, err)
	}
	s := gpu.NewSampler(fsys, m, live)
	defer s.Close()
	return m, s.Sample(time.Now()), nil
}

// machineDir is the folder of a machine; a machine file is unpacked for the
// time being.
func machineDir(root string) (dir string, done func(), err error) {
	done = func() {}
	if root == "" || root == "/" {
		return "", done, nil
	}
	st, err := os.Stat(root)
	if err != nil {
		return "", nil, fmt.Errorf("read another machine: %w", err)
	}
	if st.IsDir() {
		return root, done, nil
	}
	dir, err = os.MkdirTemp("", "outcrop-machine-")
	if err != nil {
		return "", nil, err
	}
	done = func() { os.RemoveAll(dir) }
	if err := gpu.UnpackFile(root, dir); err != nil {
		done()
		return "", nil, fmt.Errorf("read the machine file %s: %w", root, err)
	}
	return dir, done, nil
}
