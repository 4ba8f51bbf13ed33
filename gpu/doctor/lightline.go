package doctor

import "outcrop/gpu"

// Offer is a device that a driver offers to compute on.
type Offer struct {
	ID      string  `json:"id"` // name that --device and --card take: "cuda:0"
	Driver  string  `json:"driver"`
	Name    string  `json:"name"`
	PCI     gpu.PCI `json:"pci,omitempty"`
	CPU     bool    `json:"cpu,omitempty"` // the processor itself, behind a driver for cards
	Version string  `json:"version"`       // of the driver
	API     string  `json:"api"`
	Memory  int64   `json:"memory"`
	Passed  bool    `json:"passed"` // first light, with this version of the driver and these kernels
}

// Offers is what `outcrop cards --devices --json` prints. Missing says of
// drivers without devices why that is.
type Offers struct {
	Devices []Offer  `json:"devices"`
	Missing []string `json:"missing"`
}

// LightLine is one line of `outcrop doctor --light --json`: something that
// happens on a device. One of the fields after Name is set.
type LightLine struct {
	Device string      `json:"device,omitempty"` // ID of the device, "cpu" for the processor
	Name   string      `json:"name,omitempty"`
	Phase  string      `json:"phase,omitempty"`  // what goes on before the first step, in words
	Step   *StepResult `json:"step,omitempty"`   // a step that ended
	Result *Light      `json:"result,omitempty"` // the device is through
	Error  string      `json:"error,omitempty"`  // the device could not be tested
	Note   string      `json:"note,omitempty"`   // of a device that is left out, or a driver without devices
}
