package wire

// Tiers counts where the experts that were used were found, since the engine
// started, and what missing ones cost. Bytes are bytes, times milliseconds.
type Tiers struct {
	VRAM   int64   `json:"vram"`
	RAM    int64   `json:"ram"`
	File   int64   `json:"file"`
	WaitMS float64 `json:"wait_ms"` // a token, lately: for experts that came from the file, and for a card's
	FileMS float64 `json:"file_ms"` // of that, for the file
	LinkBS float64 `json:"link_b_s"`
	DiskBS float64 `json:"disk_b_s"`

	Held     int64 `json:"held"`     // bytes of copies in RAM now
	Limit    int64 `json:"limit"`    // bytes the copies may take now
	Linked   int64 `json:"linked"`   // of RAM: read by a card over the link
	Promoted int64 `json:"promoted"` // experts that moved into VRAM
	Evicted  int64 `json:"evicted"`  // experts that made room for others
	Given    int64 `json:"given"`    // bytes given back because RAM was short
	Guessed  int64 `json:"guessed"`  // experts read before their layer had chosen
	Right    int64 `json:"right"`    // of these, how many it then chose
}

// Residency says where every routed expert lives: 1 VRAM, 2 RAM, 3 file, layer
// by layer; and its share of its layer's choices, when that is counted.
type Residency struct {
	Layers  int       `json:"layers"`
	Experts int       `json:"experts"`
	Tier    []uint8   `json:"tier"` // base64 in JSON
	Use     []float64 `json:"use,omitempty"`
}
