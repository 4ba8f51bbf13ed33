package wire

// ModelList is the answer to GET /v1/models.
type ModelList struct {
	Object string  `json:"object"` // "list"
	Data   []Model `json:"data"`
}

// Model is one entry: the loaded pack.
type Model struct {
	ID      string     `json:"id"`
	Object  string     `json:"object"` // "model"
	Created int64      `json:"created"`
	OwnedBy string     `json:"owned_by"`
	Outcrop *ModelInfo `json:"outcrop,omitempty"`
}

// ModelInfo is what a client needs to know of the loaded pack.
type ModelInfo struct {
	Arch         string `json:"arch"`
	Path         string `json:"path,omitempty"`
	Bytes        int64  `json:"bytes"`
	Context      int    `json:"context"`       // of this engine
	ContextTrain int    `json:"context_train"` // of the pack, 0 unknown
	Vocab        int    `json:"vocab"`
	Threads      int    `json:"threads"`
	Template     string `json:"template"` // "pack" or "chatml" when the pack has none
	Demo         bool   `json:"demo,omitempty"`
	// Notes say what a person should know of how it was placed in memory.
	Notes []string `json:"notes,omitempty"`
}

// Health is the answer to GET /health: 200 when Status is "ok", 503 otherwise.
type Health struct {
	Status  string `json:"status"` // loading, ok, stopping, failed
	Phase   string `json:"phase"`  // in words
	Pack    string `json:"pack,omitempty"`
	Done    int64  `json:"done,omitempty"` // of a loading phase
	Total   int64  `json:"total,omitempty"`
	Version string `json:"version,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Error   string `json:"error,omitempty"`
}

// TokenizeRequest is the body of POST /tokenize.
type TokenizeRequest struct {
	Content    string `json:"content"`
	AddSpecial bool   `json:"add_special,omitempty"` // BOS/EOS as the vocabulary says
	// ParseSpecial recognises special tokens in the text; off by default.
	ParseSpecial bool `json:"parse_special,omitempty"`
	WithPieces   bool `json:"with_pieces,omitempty"`
}

// TokenizeResponse lists ids, and their texts when asked.
type TokenizeResponse struct {
	Tokens []int32  `json:"tokens"`
	Pieces []string `json:"pieces,omitempty"`
}

// DetokenizeRequest is the body of POST /detokenize.
type DetokenizeRequest struct {
	Tokens  []int32 `json:"tokens"`
	Special bool    `json:"special,omitempty"` // print special tokens
}

// DetokenizeResponse is the text of ids.
type DetokenizeResponse struct {
	Content string `json:"content"`
}
