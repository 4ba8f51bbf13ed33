package doctor

import (
	"context"
	"fmt"
	"time"

	"outcrop/gpu"
)

// First light is the known-answer test a device passes before a model runs on
// it. A clean build and a sane speed proved nothing in Niko1221/Strata#1545:
// every token was 0. The steps are data ([LightSteps]); a device is anything
// that has the methods of [Device], so that the CPU, OpenCL, CUDA and Level Zero
// are tested by the same text.

// Space is where a buffer lives.
type Space string

// Spaces.
const (
	DeviceMemory Space = "device"
	PinnedHost   Space = "pinned host"
)

// Buffer is memory of a device that the host can write and read by copies.
type Buffer interface {
	Size() int64
	Write(off int64, p []byte) error // returns when the copy is complete
	Read(off int64, p []byte) error
	Free() error
}

// Kernel is one kernel with a known answer. Run computes it on the device and
// beside it the Go reference, on the same inputs at every call.
type Kernel interface {
	Name() string
	// Run gives the device's result as bytes (for repeatability) and the largest
	// error against the reference, relative to the reference's root mean square;
	// want is the most that is right for this kernel.
	Run(ctx context.Context) (out []byte, err, want float64, fail error)
}

// Device is what first light needs of a device.
type Device interface {
	Name() string   // as shown
	Driver() string // API and version: "OpenCL, NEO 26.35.39758"; history is kept by it
	PCI() gpu.PCI   // empty for the CPU
	Memory() int64  // bytes; 0 unknown
	Alloc(ctx context.Context, s Space, n int64) (Buffer, error)
	Kernels() []Kernel
	Launch(ctx context.Context) error // an empty kernel and a read-back of 4 bytes
}

// LightOptions are the parts of first light that come from elsewhere.
type LightOptions struct {
	AllocMax     int64 // what the recipe promises for one device allocation; 0: nothing promised
	HostAllocMax int64 // the same for pinned host memory
	MaxBytes     int64 // most memory to touch or ask for; 0: 60 % of the device's
	Repeat       int   // how often the same kernel must give the same bytes; 0: 20
	// Golden runs the starter pack on the device and gives how many of its known
	// tokens came out right. nil: skipped, with the reason said.
	Golden func(ctx context.Context, d Device) (right, total int, err error)
	// Others are the devices of the other cards, each with its own context: an
	// allocation on each must work while all are open.
	Others []Device
	Emit   func(StepResult) // called as steps end, and for each check of a step; may be nil
}

// StepResult is one line of first light.
type StepResult struct {
	Step    string             `json:"step"`  // id of the step
	Title   string             `json:"title"` // what was checked
	Passed  int                `json:"passed"`
	Total   int                `json:"total"` // 0: nothing to count, a measurement or a skip
	Detail  string             `json:"detail"`
	Skipped string             `json:"skipped,omitempty"` // why it was not run
	Values  map[string]float64 `json:"values,omitempty"`  // measurements by name with unit, such as "h2d_gb_s"
	Seconds float64            `json:"seconds"`
}

// Light is the result of first light on one device.
type Light struct {
	Device string       `json:"device"`
	PCI    gpu.PCI      `json:"pci"`
	Driver string       `json:"driver"`
	Time   time.Time    `json:"time"`
	Passed int          `json:"passed"`
	Total  int          `json:"total"`
	Steps  []StepResult `json:"steps"`
}

// OK says whether every check passed and there were some.
func (l Light) OK() bool { return l.Total > 0 && l.Passed == l.Total }

// String is the summary line: "41 of 41 on Arc A770".
func (l Light) String() string { return fmt.Sprintf("%d of %d on %s", l.Passed, l.Total, l.Device) }

// lightStep is one step: it adds results to the run.
type lightStep struct {
	ID    string
	Title string
	run   func(ctx context.Context, r *lightRun) StepResult
}

// lightSteps is the test, in order: cheap and telling first.
var lightSteps = []lightStep{
	{"patterns", "patterns written and read back, past 4 GiB where there is room", patterns},
	{"alloc-device", "allocation ladder, device memory", func(ctx context.Context, r *lightRun) StepResult {
		return ladder(ctx, r, DeviceMemory, r.o.AllocMax)
	}},
	{"alloc-host", "allocation ladder, pinned host memory", func(ctx context.Context, r *lightRun) StepResult {
		return ladder(ctx, r, PinnedHost, r.o.HostAllocMax)
	}},
	{"kernels", "every kernel against the Go reference", kernels},
	{"repeat", "the same kernel gives the same bytes", repeat},
	{"units", "small products on matrix units", units},
	{"bandwidth", "host to device and back", bandwidth},
	{"launch", "launch and read-back", launch},
	{"together", "an allocation on every card, one context each", together},
	{"golden", "the starter pack's known tokens", golden},
}

// LightSteps lists the steps of first light as (id, title).
func LightSteps() [][2]string {
	out := make([][2]string, len(lightSteps))
	for i, s := range lightSteps {
		out[i] = [2]string{s.ID, s.Title}
	}
	return out
}

type lightRun struct {
	d Device
	o LightOptions
}

// FirstLight runs the steps on a device. A step that fails does not stop the
// next ones, so that one run tells all; a cancelled context does.
func FirstLight(ctx context.Context, d Device, o LightOptions) (Light, error) {
	if o.Repeat <= 0 {
		o.Repeat = 20
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = d.Memory() * 6 / 10
	}
	l := Light{Device: d.Name(), PCI: d.PCI(), Driver: d.Driver(), Time: time.Now(), Steps: []StepResult{}}
	r := &lightRun{d: d, o: o}
	for _, s := range lightSteps {
		if err := ctx.Err(); err != nil {
			return l, fmt.Errorf("first light on %s: stopped at %q: %w", l.Device, s.ID, err)
		}
		t := time.Now()
		res := s.run(ctx, r)
		res.Step, res.Title, res.Seconds = s.ID, s.Title, time.Since(t).Seconds()
		l.Steps = append(l.Steps, res)
		l.Passed += res.Passed
		l.Total += res.Total
		if o.Emit != nil {
			o.Emit(res)
		}
	}
	return l, nil
}
