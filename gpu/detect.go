package gpu

import "io/fs"

// Machine is everything a recipe, a plan and the doctor want to know.
type Machine struct {
	Cards    []Card   `json:"cards"`
	Host     Host     `json:"host"`
	UserMode UserMode `json:"user_mode"`
	Notes    []string `json:"notes,omitempty"`
}

// UserMode is the user-mode half of the drivers: what is installed, by file
// and by the package manager's own records.
type UserMode struct {
	NEO        Reading[string] `json:"neo"` // Intel compute-runtime
	IGC        Reading[string] `json:"igc"` // Intel graphics compiler
	ROCm       Reading[string] `json:"rocm"`
	NVIDIA     Reading[string] `json:"nvidia"`
	Mesa       Reading[string] `json:"mesa"`
	OneAPI     Reading[string] `json:"oneapi"`
	LevelZero  Library         `json:"level_zero"`        // loader
	ZeIntel    Library         `json:"level_zero_driver"` // Intel's driver under the loader
	OpenCL     Library         `json:"opencl"`            // loader
	ICDs       []ICD           `json:"icds"`              // OpenCL drivers
	Vulkan     Library         `json:"vulkan"`            // loader
	VulkanICDs []string        `json:"vulkan_icds"`
	CUDA       Library         `json:"cuda"` // libcuda.so.1
	HIP        Library         `json:"hip"`
}

// Library is a shared library looked for in the usual places.
type Library struct {
	Name  string `json:"name"`
	Path  string `json:"path,omitempty"` // empty: not found
	Found bool   `json:"found"`
}

// ICD is one OpenCL driver file of /etc/OpenCL/vendors.
type ICD struct {
	File    string `json:"file"`
	Library string `json:"library"`
	Found   bool   `json:"found"` // the library it names exists
}

// Detect reads the machine below root. It fails only when root itself cannot
// be read; a machine with no card is a machine, and what is missing is said in
// the readings.
func Detect(root fs.FS) (Machine, error) {
	if _, err := fs.Stat(root, "."); err != nil {
		return Machine{}, err
	}
	return Machine{}, nil
}

// Card gives the card at an address, or nil.
func (m *Machine) Card(p PCI) *Card {
	for i := range m.Cards {
		if m.Cards[i].PCI == p {
			return &m.Cards[i]
		}
	}
	return nil
}
