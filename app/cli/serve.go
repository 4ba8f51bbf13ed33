package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"outcrop/engine"
	"outcrop/engine/catalog"
	"outcrop/engine/guard"
	"outcrop/engine/launch"
	"outcrop/engine/serve"
	"outcrop/engine/wire"
	"outcrop/gpu"
)

// serveFlags are what `outcrop serve` takes beside the pack.
type serveFlags struct {
	loadFlags
	listen, socket, key, name string
	remote, parent, quiet     bool
	origins                   []string
	queue                     int
	guard                     string
	force                     bool
}

const defaultListen = "127.0.0.1:8080"

func (p *Program) serveCommand() *cobra.Command {
	f := serveFlags{loadFlags: loadFlags{device: "auto"}}
	c := &cobra.Command{
		Use: "serve [PACK]", Short: "Answer programs over HTTP: OpenAI's and Anthropic's interfaces, telemetry",
		Long: "Loads a pack and answers /v1/chat/completions, /v1/completions, /v1/messages, /v1/models, /tokenize, /detokenize,\n" +
			"/health and /telemetry. Requests queue; a client that goes away cancels its own. Only this machine can reach it\n" +
			"unless --allow-remote and a key say otherwise. Ctrl-C lets running answers end; a second one does not.",
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: p.packNames,
		RunE: func(c *cobra.Command, args []string) error {
			if f.listen != "" && f.socket != "" {
				return usage(c, "--listen and --socket exclude each other")
			}
			if !guardPreset(f.guard) {
				return usage(c, "--guard %s: want full, daily, busy or off", f.guard)
			}
			if f.queue < 0 {
				return usage(c, "--queue is %d, want 0 or more", f.queue)
			}
			if err := f.check(c); err != nil {
				return err
			}
			arg := ""
			if len(args) == 1 {
				arg = args[0]
			}
			return p.serve(c.Context(), arg, f)
		},
	}
	f.add(c)
	fl := c.Flags()
	fl.StringVar(&f.listen, "listen", "", "HOST:PORT to listen on (default "+defaultListen+"); port 0 takes a free one")
	fl.StringVar(&f.socket, "socket", "", "unix socket to listen on instead: for this user only, in a private folder that is made when it is not there")
	fl.StringVar(&f.key, "key", "", "API key that clients must send (default: the variable "+launch.KeyVariable+")")
	fl.BoolVar(&f.remote, "allow-remote", false, "allow an address that other machines can reach; needs a key")
	fl.StringArrayVar(&f.origins, "origin", nil, "web origin whose pages may call, such as http://localhost:3000; may be repeated")
	fl.StringVar(&f.name, "name", "", "name that clients see for the pack")
	fl.IntVar(&f.queue, "queue", 0, "requests that may wait; 0: 64")
	fl.StringVar(&f.guard, "guard", "daily", "how much memory stays free for others: full (least), daily, busy (most), or off")
	fl.BoolVar(&f.force, "force", false, forceHelp)
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "do not log requests")
	fl.BoolVar(&f.parent, strings.TrimPrefix(launch.ParentFlag, "--"), false, "end when standard input does")
	fl.MarkHidden(strings.TrimPrefix(launch.ParentFlag, "--"))
	return c
}

func (p *Program) serve(ctx context.Context, arg string, f serveFlags) error {
	r, err := p.packs().Resolve(arg)
	if err != nil {
		return err
	}
	if f.name == "" {
		f.name = r.Name
	}
	if f.key == "" {
		f.key = os.Getenv(launch.KeyVariable)
	}
	level := slog.LevelInfo
	if f.quiet || f.parent {
		level = slog.LevelWarn
	}
	o := serve.Options{
		Key: f.key, Origins: f.origins, MaxQueue: f.queue, Version: p.Version, Guard: f.guard,
		Log: slog.New(slog.NewTextHandler(p.Err, &slog.HandlerOptions{Level: level})),
	}
	l, addr, err := f.listener(&o)
	if err != nil {
		return err
	}
	defer l.Close()
	var c cards
	go c.find()
	defer c.close()
	o.Cards = c.now

	unload := make(chan string, 1)
	o.Unload = func(words string) {
		select {
		case unload <- words:
		default:
		}
	}
	srv := serve.New(o)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	end := watchSignals(ctx)
	if f.parent {
		gone := make(chan struct{})
		launch.WithParent(os.Stdin, 4*time.Second, func() { close(gone) })
		end = either(end, gone)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	if err := launch.Announce(p.Out, addr); err != nil {
		return fmt.Errorf("announce the address: %w", err)
	}

	loaded := make(chan error, 1)
	go func() {
		opt := f.options()
		opt.Progress = func(phase string, done, total int64) {
			words := map[string]string{"load": "reading weights", "experts": "copying experts to RAM", "relay": "laying weights out for this processor", "measure": "measuring this machine",
				"kernels": "compiling kernels for the card, once", "upload": "copying layers to the card"}
			if w := words[phase]; w != "" {
				srv.Loading(w, done, total)
			}
		}
		opt.Deviates = func(d engine.Deviation) { o.Log.Error("the device differs from the CPU", "first", d.String()) }
		b, err := serve.Load(ctx, serve.Spec{Path: r.Path, Name: f.name, Demo: r.Demo, Guard: f.guard, Profile: profilePath(r), Force: f.force, Options: opt,
			Rates: ratesFile(), Wishes: f.wish})
		if err == nil {
			for _, n := range b.Info.Notes {
				o.Log.Warn(n)
			}
			srv.Ready(b)
		}
		loaded <- err
	}()

	grace := 10 * time.Second
	if f.parent {
		grace = 0 // nobody is left to read the answer
	}
	for {
		select {
		case err := <-loaded:
			if err != nil {
				srv.Failed(err)
				srv.Shutdown(ended())
				return err
			}
			loaded = nil
			if !f.parent {
				fmt.Fprintf(p.Err, "%s is ready at %s\n", f.name, addr)
			}
		case err := <-served:
			if err != nil {
				return fmt.Errorf("serve %s: %w", addr, err)
			}
			return errors.New("the listener was closed")
		case words := <-unload:
			srv.Shutdown(ended())
			return errors.New(words)
		case <-end:
			cancel(errors.New("asked to end"))
			sctx, done := context.WithTimeout(context.WithoutCancel(ctx), grace)
			again := watchSignals(sctx)
			go func() {
				select {
				case <-again:
					done() // a second Ctrl-C does not wait
				case <-sctx.Done():
				}
			}()
			err := srv.Shutdown(sctx)
			done()
			return err
		}
	}
}

// profilePath is where the use of a pack's experts is kept, by the pack's
// path. The starter keeps none: its experts are used evenly by design.
func profilePath(r catalog.Resolved) string {
	if r.Demo {
		return ""
	}
	dir := filepath.Join(catalog.DataDir(), "profiles")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(r.Path))
	return filepath.Join(dir, hex.EncodeToString(sum[:8])+".profile")
}

// guardPreset says whether the guard knows a preset of this name.
func guardPreset(name string) bool {
	for _, g := range guard.Presets {
		if g.Name == name {
			return true
		}
	}
	return name == "off"
}

// ended is a context that is over.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// listener opens what the flags say, and sets who may call it.
func (f *serveFlags) listener(o *serve.Options) (net.Listener, string, error) {
	if f.socket != "" {
		path, err := filepath.Abs(f.socket)
		if err != nil {
			return nil, "", err
		}
		l, err := serve.ListenUnix(path)
		return l, "unix:" + path, err
	}
	addr := f.listen
	if addr == "" {
		addr = defaultListen
	}
	l, err := serve.ListenTCP(addr, f.remote, f.key)
	if err != nil {
		return nil, "", err
	}
	if host, _, err := net.SplitHostPort(addr); err == nil && serve.Loopback(host) {
		o.Hosts = serve.LoopbackHosts
	}
	return l, "http://" + l.Addr().String(), nil
}

// cards reads the graphics cards for the telemetry. They are looked for in
// the background: drivers may take a while, and requests do not wait for it.
type cards struct {
	read    atomic.Pointer[func(time.Time) []wire.Card]
	sampler atomic.Pointer[gpu.Sampler]
}

func (c *cards) find() {
	m, fsys, live, err := gpu.Open("")
	if err != nil || len(m.Cards) == 0 {
		return
	}
	s := gpu.NewSampler(fsys, m, live)
	s.Watch(strconv.Itoa(os.Getpid())) // what it holds of a card is read every time, others' use now and then
	read := serve.CardReader(m, s, os.Getpid(), func(gpu.PCI) (bool, string) { return false, "the engine was not asked to run on it" })
	c.sampler.Store(s)
	c.read.Store(&read)
}

func (c *cards) now(t time.Time) []wire.Card {
	if read := c.read.Load(); read != nil {
		return (*read)(t)
	}
	return nil
}

func (c *cards) close() {
	if s := c.sampler.Load(); s != nil {
		s.Close()
	}
}

// watchSignals closes its channel at the first request to end.
func watchSignals(ctx context.Context) <-chan struct{} {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	out := make(chan struct{})
	go func() {
		defer signal.Stop(c)
		select {
		case <-c:
			close(out)
		case <-ctx.Done():
		}
	}()
	return out
}

// either is closed when one of two channels is.
func either(a, b <-chan struct{}) <-chan struct{} {
	out := make(chan struct{})
	go func() {
		defer close(out)
		select {
		case <-a:
		case <-b:
		}
	}()
	return out
}
