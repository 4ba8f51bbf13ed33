package catalog

// Known is a pack that the program can suggest: where it is found, and what
// it is, in words. The site's listing, read when it is fetched, has the last word
// on size and digest.
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
// is one that the engine runs. Names of files and their sizes are those that
// several public lists of these repositories give; nothing was fetched from the site itself.
var KnownPacks = []Known{
	{"Qwen3 0.6B", "Qwen/Qwen3-0.6B-GGUF:Q8_0", "qwen3", 639446688, "Apache-2.0", "small enough for any machine; short, simple answers", false},
	{"SmolLM2 1.7B Instruct", "HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF:Q4_K_M", "llama", 1055609536, "Apache-2.0", "English, light on memory", false},
	{"Qwen3 4B", "Qwen/Qwen3-4B-GGUF:Q4_K_M", "qwen3", 2497280256, "Apache-2.0", "good answers on 8 GiB of RAM", false},
	{"Qwen3 8B", "Qwen/Qwen3-8B-GGUF:Q4_K_M", "qwen3", 5027783488, "Apache-2.0", "better answers on 16 GiB of RAM", false},
	{"gpt-oss 20B", "ggml-org/gpt-oss-20b-GGUF:mxfp4", "gpt-oss", 12109566560, "Apache-2.0", "a mixture of 32 experts of which 4 work at a time, in 4-bit floats", true},
	{"Qwen3 30B A3B", "Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M", "qwen3moe", 18556685824, "Apache-2.0", "a mixture of 128 experts of which 8 work at a time: as good as its size, as fast as a small one", true},
}

// suggested says of a reference of the table that its place has changed, which
// an error of the site does not: it was right when this version was made.
func suggested(ref string) (Known, bool) {
	for _, k := range KnownPacks {
		if k.Ref == ref {
			return k, true
		}
	}
	return Known{}, false
}
