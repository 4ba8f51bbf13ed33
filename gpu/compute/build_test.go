package compute

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"outcrop/gpu/kernels"
)

func module(name string) kernels.Module { return kernels.Module{Name: name} }

// TestBuildsTogether: modules are compiled side by side, up to the limit; a
// spare one is not, one for later is when the others have ended.
func TestBuildsTogether(t *testing.T) {
	f := &Fake{Kernels: map[string]FakeKernel{"add": addOne}}
	d := fakeDevice(t, f, Options{Builders: 3})
	f.Break(Fault{BuildTakes: 20 * time.Millisecond})
	later, spare := d.Prepare(module("later"), Later), d.Prepare(module("spare"), Spare)
	<-later.Done()
	var list []*Program
	again := d.Prepare(module("again"), Now)
	late := d.Prepare(module("late"), Later)
	for i := range 8 {
		list = append(list, d.Prepare(module(fmt.Sprint(i)), Now))
	}
	for _, p := range append(list, again) {
		if late.ended() && !p.ended() {
			t.Error("what could wait was compiled first")
		}
		if err := p.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	<-late.Done()
	if all, most := f.Builds(); all != 11 || most != 3 {
		t.Errorf("%d modules were compiled, %d at once; want 11 and 3", all, most)
	}
	if spare.ended() {
		t.Error("a spare module was compiled")
	}
	if _, err := spare.Kernel("add"); err != nil {
		t.Errorf("a spare module that is wanted: %v", err)
	}
}

// TestLaunchWaits: a launch waits for its module, which comes before all others,
// and the time of the compiler is not counted as the device's.
func TestLaunchWaits(t *testing.T) {
	f := &Fake{Kernels: map[string]FakeKernel{"add": addOne}}
	d := fakeDevice(t, f, Options{Builders: 1, Watchdog: 40 * time.Millisecond})
	b, err := d.Alloc(4)
	if err != nil {
		t.Fatal(err)
	}
	f.Break(Fault{BuildTakes: 60 * time.Millisecond})
	for i := range 20 {
		d.Prepare(module(fmt.Sprint(i)), Now)
	}
	k := d.Prepare(module("wanted"), Spare).Entry("add")
	other := make(chan error)
	go func() {
		time.Sleep(10 * time.Millisecond)
		other <- d.Do(func(q *Queue) error { return nil }) // waits for its turn meanwhile
	}()
	got := make([]byte, 4)
	run := func(q *Queue) error {
		if err := q.Fill(b, 0, 4, 1); err != nil {
			return err
		}
		if err := q.Launch(k, Dim{X: 1}, Dim{X: 1}, Mem(b), Int(6)); err != nil {
			return err
		}
		return q.Read(got, b, 0)
	}
	if err := d.Do(run); err != nil || got[0] != 7 {
		t.Errorf("launch: %v, result %d, want 7", err, got[0])
	}
	if err := <-other; err != nil {
		t.Errorf("work that waited behind a compiler: %v", err)
	}
	if all, _ := f.Builds(); all > 5 {
		t.Errorf("%d modules came before the one that was waited for", all)
	}
}

// TestBuildFailsLater: a module that fails says so, with its name and the
// compiler's words, wherever it is noticed; the device works on.
func TestBuildFailsLater(t *testing.T) {
	f := &Fake{Kernels: map[string]FakeKernel{"add": addOne}}
	d := fakeDevice(t, f, Options{})
	b, err := d.Alloc(4)
	if err != nil {
		t.Fatal(err)
	}
	f.Break(Fault{BuildFails: "bad"})
	p := d.Prepare(module("bad"), Now)
	k := p.Entry("add")
	_, kernel := p.Kernel("add")
	launch := func(k *Kernel) error {
		return d.Do(func(q *Queue) error { return q.Launch(k, Dim{X: 1}, Dim{X: 1}, Mem(b), Int(1)) })
	}
	for what, err := range map[string]error{"wait": p.Wait(context.Background()), "kernel": kernel, "launch": launch(k)} {
		if !errors.Is(err, ErrBuild) || !strings.Contains(err.Error(), "load bad on") || !strings.Contains(err.Error(), "bad:1: error") {
			t.Errorf("%s: %v, want ErrBuild, the module and the log", what, err)
		}
	}
	good := d.Prepare(module("good"), Now)
	if err := launch(good.Entry("none")); !errors.Is(err, ErrMissing) {
		t.Errorf("launch of a kernel that is not there: %v, want ErrMissing", err)
	}
	if err := launch(good.Entry("add")); err != nil {
		t.Errorf("launch after the failures: %v", err)
	}
}

// TestCloseWhileBuilding: neither Close nor one who gave up waits for compilers, and nothing
// is left when they end.
func TestCloseWhileBuilding(t *testing.T) {
	f := &Fake{}
	d := fakeDevice(t, f, Options{Builders: 2})
	if _, err := d.Alloc(100); err != nil {
		t.Fatal(err)
	}
	f.Break(Fault{BuildTakes: closeGrace + 300*time.Millisecond})
	begin := time.Now()
	var list []*Program
	for i := range 6 {
		list = append(list, d.Prepare(module(fmt.Sprint(i)), Now))
	}
	spare := d.Prepare(module("spare"), Spare)
	list[5].Drop()
	spare.Drop()
	for _, p := range []*Program{list[5], spare} {
		if err := p.Wait(context.Background()); !errors.Is(err, ErrDropped) {
			t.Errorf("dropped: %v, want ErrDropped", err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := list[0].Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v, want context.Canceled", err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if took := time.Since(begin); took > closeGrace+200*time.Millisecond {
		t.Errorf("close took %v with compilers at work", took)
	}
	if used, _ := d.Used(); used != 0 {
		t.Errorf("%d bytes are held after close", used)
	}
	if err := d.Do(func(*Queue) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("work after close: %v, want ErrClosed", err)
	}
	if err := list[4].Wait(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("a module whose turn never came: %v, want ErrClosed", err)
	}
	if err := d.Prepare(module("late"), Now).Wait(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("a module after close: %v, want ErrClosed", err)
	}
	<-d.stop
	if all, _ := f.Builds(); all != 2 {
		t.Errorf("%d modules were compiled, want the 2 that had begun", all)
	}
	if n := f.Live(); n != 0 {
		t.Errorf("%d handles were not given back", n)
	}
}

// TestBuildLimit: a compiler that never ends is reported as a hung device.
func TestBuildLimit(t *testing.T) {
	f := &Fake{}
	d := fakeDevice(t, f, Options{Build: 30 * time.Millisecond})
	f.Break(Fault{BuildTakes: 300 * time.Millisecond})
	if _, err := d.Load(module("endless")); !errors.Is(err, ErrHung) || !strings.Contains(err.Error(), "endless") {
		t.Errorf("a compiler without end: %v, want ErrHung and the module", err)
	}
}
