package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"outcrop/app/client"
	"outcrop/engine/launch"
	"outcrop/engine/wire"
)

// LiveEngine is the engine as a child process of this program.
type LiveEngine struct {
	mu      sync.Mutex
	state   EngineState
	life    int // counts starts: what belongs to an earlier one is stale
	child   *launch.Engine
	client  *client.Client
	cancel  context.CancelFunc
	ended   chan struct{} // closed when the child of this life was seen to end
	watch   map[int]func(EngineState)
	samples map[int]func(wire.Sample)
	next    int
	closed  bool
}

var _ Engine = (*LiveEngine)(nil)

// NewLiveEngine makes an engine that is off.
func NewLiveEngine() *LiveEngine {
	return &LiveEngine{watch: map[int]func(EngineState){}, samples: map[int]func(wire.Sample){}}
}

// State is what the engine does now.
func (l *LiveEngine) State() EngineState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// Watch calls f with every change of state.
func (l *LiveEngine) Watch(f func(EngineState)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	n := l.next
	l.watch[n] = f
	return func() { l.mu.Lock(); delete(l.watch, n); l.mu.Unlock() }
}

// Samples calls f with every reading.
func (l *LiveEngine) Samples(f func(wire.Sample)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	n := l.next
	l.samples[n] = f
	return func() { l.mu.Lock(); delete(l.samples, n); l.mu.Unlock() }
}

// set changes the state if the life it belongs to goes on.
func (l *LiveEngine) set(life int, edit func(*EngineState)) bool {
	l.mu.Lock()
	if life != l.life {
		l.mu.Unlock()
		return false
	}
	edit(&l.state)
	s := l.state
	fs := make([]func(EngineState), 0, len(l.watch))
	for _, f := range l.watch {
		fs = append(fs, f)
	}
	l.mu.Unlock()
	for _, f := range fs {
		f(s)
	}
	return true
}

// Start ends what runs and starts another.
func (l *LiveEngine) Start(s EngineSpec) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.life++
	life := l.life
	old, oldCancel := l.child, l.cancel
	l.child, l.client = nil, nil
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	ended := make(chan struct{})
	l.ended = ended
	l.state = EngineState{}
	l.mu.Unlock()
	if oldCancel != nil {
		oldCancel()
	}
	l.set(life, func(st *EngineState) {
		*st = EngineState{Phase: EngineStart, Pack: s.Name, Path: s.Path, Since: time.Now()}
	})
	go l.run(ctx, life, s, old, ended)
}

func (s EngineSpec) args() []string {
	args := []string{"--name=" + s.Name}
	if s.Threads > 0 {
		args = append(args, fmt.Sprintf("--threads=%d", s.Threads))
	}
	if s.Context > 0 {
		args = append(args, fmt.Sprintf("--context=%d", s.Context))
	}
	if s.KV != "" {
		args = append(args, "--kv="+s.KV)
	}
	if s.Guard != "" {
		args = append(args, "--guard="+s.Guard)
	}
	if s.Device != "" {
		args = append(args, "--device="+s.Device)
	}
	return append(args, placeArgs(s.Placement, s.Experts, int64(s.Slots)<<30, limitText(s.VRAMLimits), int64(s.RAMLimit)<<30)...)
}

// placeArgs are the flags that say where the parts of a pack are to lie.
func placeArgs(placement, experts string, slots int64, vram string, ram int64) (args []string) {
	if placement != "" {
		args = append(args, "--placement="+placement)
	}
	if experts != "" {
		args = append(args, "--experts="+experts)
	}
	if slots > 0 {
		args = append(args, fmt.Sprintf("--slots=%d", slots))
	}
	if vram != "" {
		args = append(args, "--vram-limit="+vram)
	}
	if ram > 0 {
		args = append(args, fmt.Sprintf("--ram-limit=%d", ram))
	}
	return args
}

func (l *LiveEngine) run(ctx context.Context, life int, s EngineSpec, old *launch.Engine, ended chan struct{}) {
	if old != nil {
		old.Stop()
	}
	child, err := launch.Start(ctx, launch.Spec{Pack: s.Path, Base: s.Env, Args: s.args()})
	if err != nil {
		close(ended)
		l.failed(life, ctx, err)
		return
	}
	l.mu.Lock()
	if life != l.life {
		l.mu.Unlock()
		close(ended)
		child.Stop()
		return
	}
	c := client.New(child.Addr(), child.Key())
	l.child, l.client = child, c
	l.mu.Unlock()
	go func() {
		<-child.Done()
		x := child.Exit()
		if !x.Stopped {
			l.set(life, func(st *EngineState) { explainExit(st, x) })
		}
		close(ended)
	}()
	l.set(life, func(st *EngineState) { st.Phase, st.PID = EngineLoading, child.PID() })
	err = child.WaitReady(ctx, func(h wire.Health) {
		l.set(life, func(st *EngineState) {
			if st.Phase == EngineLoading {
				st.Words, st.Done, st.Total = capital(h.Phase), h.Done, h.Total
			}
		})
	})
	if err != nil {
		if ctx.Err() != nil {
			child.Stop()
		}
		l.failed(life, ctx, err)
		return
	}
	l.describe(ctx, life, c)
	l.follow(ctx, life, c)
}

// describe reads what the engine is like and calls it ready.
func (l *LiveEngine) describe(ctx context.Context, life int, c *client.Client) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var info *wire.ModelInfo
	if ms, err := c.Models(ctx); err == nil && len(ms) > 0 {
		info = ms[0].Outcrop
	}
	sample, err := c.Sample(ctx)
	l.set(life, func(st *EngineState) {
		st.Phase, st.Words, st.Done, st.Total = EngineReady, "", 0, 0
		if info != nil {
			st.Context, st.Threads = info.Context, info.Threads
		}
		if err == nil {
			st.Device = sample.Engine.Device
		}
	})
}

// follow hands readings on until the life ends.
func (l *LiveEngine) follow(ctx context.Context, life int, c *client.Client) {
	for u := range c.Telemetry(ctx) {
		if u.Err != nil {
			continue
		}
		l.mu.Lock()
		stale := life != l.life
		fs := make([]func(wire.Sample), 0, len(l.samples))
		for _, f := range l.samples {
			fs = append(fs, f)
		}
		l.mu.Unlock()
		if stale {
			return
		}
		for _, f := range fs {
			f(u.Sample)
		}
	}
}

// failed says why a start did not work.
func (l *LiveEngine) failed(life int, ctx context.Context, err error) {
	if ctx.Err() != nil {
		l.set(life, func(st *EngineState) { *st = EngineState{} })
		return
	}
	var x *launch.ExitError
	l.set(life, func(st *EngineState) {
		if errors.As(err, &x) {
			explainExit(st, x.Exit)
			return
		}
		st.Phase, st.Text = EngineEnded, sentence(err)
	})
}

// explainExit takes the words for the end of a process.
func explainExit(st *EngineState, x launch.Exit) {
	st.Phase, st.Words, st.Done, st.Total = EngineEnded, "", 0, 0
	st.Text, st.Next, st.Log = capital(x.Text), capital(x.Next), slices.Clone(x.Log)
	if _, what, ok := strings.Cut(x.Text, "ended with an error: "); ok && strings.Contains(what, " does not fit: ") {
		// The plan's words, without what only the terminal has.
		what = strings.Replace(what, "; or load it all the same with --force", "", 1)
		st.Refused, st.Text, st.Next, st.Log = true, capital(what), "", nil
	}
}

// Stop ends the engine and gives its memory back.
func (l *LiveEngine) Stop() {
	l.mu.Lock()
	l.life++
	life := l.life
	child, cancel, c := l.child, l.cancel, l.client
	l.child, l.client, l.cancel = nil, nil, nil
	l.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	l.set(life, func(st *EngineState) { *st = EngineState{} })
	if child != nil {
		go child.Stop()
	}
	if c != nil {
		c.Close()
	}
}

// Close ends the engine and waits for its end.
func (l *LiveEngine) Close() {
	l.mu.Lock()
	l.closed = true
	child := l.child
	l.mu.Unlock()
	l.Stop()
	if child != nil {
		child.Stop()
	}
}

// Target is the engine's address and key for the gateway; "" while there is
// none that answers.
func (l *LiveEngine) Target() (addr, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.child == nil || l.state.Phase != EngineReady {
		return "", ""
	}
	return l.child.Addr(), l.child.Key()
}

// Chat asks and hands pieces on. When the engine goes away in the middle it
// waits until it is known why.
func (l *LiveEngine) Chat(ctx context.Context, r wire.ChatRequest, emit func(ChatEvent)) error {
	l.mu.Lock()
	c, ended := l.client, l.ended
	l.mu.Unlock()
	if c == nil {
		return errors.New("no engine is running; start one and ask again")
	}
	err := chat(ctx, c, r, emit)
	if errors.Is(err, client.ErrGone) && ended != nil {
		select {
		case <-ended:
		case <-time.After(3 * time.Second):
		}
	}
	return err
}

func chat(ctx context.Context, c *client.Client, r wire.ChatRequest, emit func(ChatEvent)) error {
	s, err := c.Chat(ctx, r)
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		e, err := s.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		out := ChatEvent{Text: e.Text, Reasoning: e.Reasoning, Finish: e.Finish, Usage: e.Usage}
		if x := e.Extra; x != nil {
			out.Phase, out.Ahead, out.Done, out.Total = x.Phase, x.QueueAhead, x.Done, x.Total
			out.Timings, out.Notes = x.Timings, x.Notes
			if x.Finish != "" {
				out.Finish = x.Finish
			}
		}
		if len(e.ToolCalls) > 0 {
			out.Text += toolText(e.ToolCalls)
		}
		emit(out)
	}
}

// toolText shows a call that a model asked for as text: the window has no
// tools of its own.
func toolText(calls []wire.ToolCall) string {
	var b strings.Builder
	for _, c := range calls {
		b.WriteString(c.Function.Name)
		b.WriteString(c.Function.Arguments)
	}
	return b.String()
}
