package app

// Settings are what a person chose. The zero value of a field means "decide
// for me", which the Settings page shows with what that is.
type Settings struct {
	Threads  int     `json:"threads,omitempty"`
	Context  int     `json:"context,omitempty"`
	KV       string  `json:"kv,omitempty"`
	Device   string  `json:"device,omitempty"` // "cpu", a card's PCI address, or a driver's name of a device
	Look     Look    `json:"look,omitempty"`
	Scale    float32 `json:"scale,omitempty"`
	Folder   string  `json:"folder,omitempty"` // for downloaded packs
	Language string  `json:"language,omitempty"`
	Start    string  `json:"start,omitempty"` // when the engine starts by itself: "", always, never
	Tray     bool    `json:"tray,omitempty"`  // closing the window keeps Outcrop in the tray
	Quiet    bool    `json:"quiet,omitempty"` // no notifications
	Guard    string  `json:"guard,omitempty"` // preset of floors
	Pack     string  `json:"pack,omitempty"`  // last used
	// Placements are those chosen instead of the plan's, by pack. Limits are
	// whole GiB, 0 none; Slots is GiB of experts on each card, 0 what is left.
	Placements map[string]string `json:"placements,omitempty"`
	Experts    string            `json:"experts,omitempty"` // who computes missed experts: "", cpu, copy
	Slots      int               `json:"slots,omitempty"`
	VRAMLimit  int               `json:"vram_limit,omitempty"`
	RAMLimit   int               `json:"ram_limit,omitempty"`
	// VRAMLimits are limits of single cards by address, GiB, instead of VRAMLimit.
	VRAMLimits map[string]int `json:"vram_limits,omitempty"`
	Site       string         `json:"site,omitempty"` // where packs are looked for
	Address    string         `json:"address,omitempty"`
	Key        string         `json:"key,omitempty"`
	Serve      bool           `json:"serve,omitempty"`
	Preset     string         `json:"preset,omitempty"`
	NewLine    bool           `json:"new_line,omitempty"` // Enter breaks the line, Ctrl+Enter sends
	Thinking   bool           `json:"thinking,omitempty"` // thinking is shown unfolded
	PlainCode  bool           `json:"plain_code,omitempty"`
	// Devices is where each pack runs, by its name, with "auto" for "decide for
	// me"; a pack that is not there runs as Device says.
	Devices map[string]string `json:"devices,omitempty"`
	// Off lists recipe variables that were switched off, On those switched on,
	// by target.
	Recipe map[string]map[string]bool `json:"recipe,omitempty"`
}

const settingsKey = "settings"
