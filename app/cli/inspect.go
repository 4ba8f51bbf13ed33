package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"outcrop/engine"
	"outcrop/engine/gguf"
)

// inspection is what `packs inspect --json` prints: everything known of a pack
// without loading it.
type inspection struct {
	engine.Info
	ListName  string         `json:"list_name,omitempty"`
	OnCPU     []string       `json:"on_cpu,omitempty"` // what the CPU computes when a card has the layers, and why
	Metadata  map[string]any `json:"metadata"`
	Files     []shardInfo    `json:"files"`
	Directory []tensorInfo   `json:"tensor_list,omitempty"`
}

type shardInfo struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

type tensorInfo struct {
	Name   string  `json:"name"`
	Type   string  `json:"type"`
	Shape  []int64 `json:"shape"`
	Bytes  int64   `json:"bytes"`
	Offset int64   `json:"offset"`
	Shard  int     `json:"shard"`
}

// longList is how many values of an array are printed unless all are wanted.
const longList = 32

func (p *Program) packsInspect() *cobra.Command {
	var asJSON, tensors, full bool
	c := &cobra.Command{
		Use: "inspect PACK", Short: "Show everything known of a pack without loading it",
		Args: cobra.ExactArgs(1), ValidArgsFunction: p.packNames,
		RunE: func(_ *cobra.Command, args []string) error {
			pack, r, err := p.open(args[0])
			if err != nil {
				return err
			}
			defer pack.Close()
			in := inspection{Info: pack.Info(), ListName: r.Name, Metadata: metadata(pack.File().Meta(), full)}
			if in.Known {
				// Without it the load says what is wrong with the tensors.
				in.OnCPU, _ = pack.OnCPU()
			}
			for _, s := range pack.File().Shards() {
				in.Files = append(in.Files, shardInfo{s.Path, s.Size})
			}
			if asJSON || tensors {
				for _, t := range pack.File().Tensors() {
					in.Directory = append(in.Directory, tensorInfo{t.Name, t.Type.String(), t.Shape, t.Bytes, t.Offset, t.Shard})
				}
			}
			if asJSON {
				return p.printJSON(in)
			}
			p.printInspection(in, pack.File().Meta())
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&tensors, "tensors", false, "list every tensor")
	c.Flags().BoolVar(&full, "full", false, "print long arrays of the metadata whole")
	return c
}

// metadata gathers all keys; long arrays become their length and beginning.
func metadata(m *gguf.Meta, full bool) map[string]any {
	out := map[string]any{}
	for _, k := range m.Keys() {
		v, _ := m.Any(k)
		if !full {
			v = shorten(v)
		}
		out[k] = v
	}
	return out
}

// shorten keeps the beginning of a long array.
func shorten(v any) any {
	switch v := v.(type) {
	case []string:
		return cut(v)
	case []bool:
		return cut(v)
	case []int8:
		return cut(v)
	case []uint8:
		// encoding/json would write bytes as base64
		w := make([]int, len(v))
		for i := range v {
			w[i] = int(v[i])
		}
		return cut(w)
	case []int16:
		return cut(v)
	case []uint16:
		return cut(v)
	case []int32:
		return cut(v)
	case []uint32:
		return cut(v)
	case []int64:
		return cut(v)
	case []uint64:
		return cut(v)
	case []float32:
		return cut(v)
	case []float64:
		return cut(v)
	}
	return v
}

func cut[T any](v []T) any {
	if len(v) <= longList {
		return v
	}
	return map[string]any{"length": len(v), "first": v[:8]}
}

func (p *Program) printInspection(in inspection, m *gguf.Meta) {
	c := p.paint(p.Out)
	rows := [][]string{}
	add := func(k, format string, args ...any) {
		rows = append(rows, []string{k, visibleLine(fmt.Sprintf(format, args...))})
	}
	add("name", "%s", in.Name)
	add("family", "%s", in.Arch)
	if !in.Known {
		add("problem", "%s", in.Problem)
	}
	add("size", "%s in %d file(s), %d tensors", size(in.Bytes), in.Shards, in.Tensors)
	add("parameters", "%s, %s used per token", count(in.Params), count(in.ActiveParams))
	if in.Known {
		add("layers", "%d of width %d, %d recurrent, %d draft", in.Layers, in.Width, in.Recurrent, in.DraftLayers)
		add("attention", "%d heads, %d for keys and values", in.Heads, in.KVHeads)
		if in.Experts > 0 {
			add("experts", "%d a layer in %d layers, %d used per token, %d shared; one is %s", in.Experts, in.MoELayers, in.ExpertsUsed, in.SharedExperts, size(in.OneExpert))
		}
		add("context", "%d tokens trained", in.Context)
		for _, n := range in.OnCPU {
			add("with a card", "%s", n)
		}
		var kv []string
		for _, k := range slices.Sorted(maps.Keys(in.KVPerToken)) {
			kv = append(kv, fmt.Sprintf("%s %d B", k, in.KVPerToken[k]))
		}
		add("KV per token", "%s", strings.Join(kv, ", "))
		add("read per token", "%s", size(in.Active))
	}
	add("weights", "dense %s, experts %s", size(in.Dense), size(in.Expert))
	var formats []string
	for _, f := range in.Formats {
		formats = append(formats, fmt.Sprintf("%s %.0f %%", f.Name, 100*float64(f.Bytes)/float64(max(in.Bytes, 1))))
	}
	add("formats", "%s", strings.Join(formats, ", "))
	add("tokenizer", "%s, %d tokens", in.Tokenizer, in.Vocab)
	if in.ChatTemplate {
		add("chat template", "in the pack")
	} else {
		add("chat template", "none: ChatML stands in")
	}
	for _, x := range [][2]string{{"licence", in.Licence}, {"author", in.Author}, {"made from", in.Base}, {"quantised", in.Quantised}, {"about", in.Description}} {
		if x[1] != "" {
			add(x[0], "%s", x[1])
		}
	}
	for _, f := range in.Files {
		add("file", "%s (%s)", f.Path, size(f.Bytes))
	}
	table(p.Out, rows)
	fmt.Fprintln(p.Out, "\n"+c.bold("Metadata"))
	rows = nil
	for _, k := range m.Keys() {
		rows = append(rows, []string{visibleLine(k), oneLine(in.Metadata[k])})
	}
	table(p.Out, rows)
	if len(in.Directory) > 0 {
		fmt.Fprintln(p.Out, "\n"+c.bold("Tensors"))
		rows = nil
		for _, t := range in.Directory {
			rows = append(rows, []string{visibleLine(t.Name), t.Type, fmt.Sprint(t.Shape), size(t.Bytes)})
		}
		table(p.Out, rows)
	}
}

// oneLine writes a metadata value in one line.
func oneLine(v any) string {
	s := fmt.Sprint(v)
	if m, ok := v.(map[string]any); ok {
		s = fmt.Sprintf("%v values: %v ...", m["length"], m["first"])
	}
	s = visibleLine(s)
	if r := []rune(s); len(r) > 100 {
		s = string(r[:97]) + "..."
	}
	return s
}
