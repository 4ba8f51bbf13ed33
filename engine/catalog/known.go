package catalog

// Known is a pack that the program can suggest: where it is found, and what
// it is, in words. Sizes are approximate; the exact one and the digest come
// from the site's listing when it is fetched.
type Known struct {
	Name    string `json:"name"`
	Ref     string `json:"ref"`  // what Find takes
	Arch    string `json:"arch"` // family, as in engine.Families
	Bytes   int64  `json:"bytes"`
	Licence string `json:"licence"`
	About   string `json:"about"`
	MoE     bool   `json:"moe"`
}

// KnownPacks is the table of suggestions, smallest first. Every family in it
// is one that the engine runs.
var KnownPacks = []Known{
	{"Qwen3 0.6B", "Qwen/Qwen3-0.6B-GGUF:Q8_0", "qwen3", 640e6, "Apache-2.0", "small enough for any machine; short, simple answers", false},
	{"SmolLM2 1.7B Instruct", "HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF:Q4_K_M", "llama", 1060e6, "Apache-2.0", "English, light on memory", false},
	{"Qwen3 4B", "Qwen/Qwen3-4B-GGUF:Q4_K_M", "qwen3", 2500e6, "Apache-2.0", "good answers on 8 GiB of RAM", false},
	{"Qwen3 8B", "Qwen/Qwen3-8B-GGUF:Q4_K_M", "qwen3", 5030e6, "Apache-2.0", "better answers on 16 GiB of RAM", false},
	{"Qwen3 30B A3B", "Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M", "qwen3moe", 18600e6, "Apache-2.0", "a mixture of 128 experts of which 8 work at a time: as good as its size, as fast as a small one", true},
}
