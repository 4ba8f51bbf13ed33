package wire

// Tiers counts where the experts that were used were found, since the engine
// started, and what missing ones cost.
type Tiers struct {
	VRAM   int64   `json:"vram"`
	RAM    int64   `json:"ram"`
	File   int64   `json:"file"`
	WaitMS float64 `json:"wait_ms"` // of the last token, for experts that were not in VRAM
	LinkBS float64 `json:"link_b_s"`
	DiskBS float64 `json:"disk_b_s"`
}

// Residency says where every routed expert lives: 1 VRAM, 2 RAM, 3 file, layer
// by layer; and its share of its layer's choices, when that is counted.
type Residency struct {
	Layers  int       `json:"layers"`
	Experts int       `json:"experts"`
	Tier    []uint8   `json:"tier"` // base64 in JSON
	Use     []float64 `json:"use,omitempty"`
}
