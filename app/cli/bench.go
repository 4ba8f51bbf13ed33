package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"outcrop/engine"
	"outcrop/engine/token"
	"outcrop/engine/vitals"
)

// benchText is what the prompt of a measurement is made of: plain prose, so
// that a mixture of experts routes as it does at work.
const benchText = `A hill of layered stone stands above the valley. Rain has worn the soft beds away, and the hard ones stay as steps that a person can climb. At the foot lies the oldest layer, dark and broken; above it a band the colour of sand, and on the top a thin cap that catches the evening light. People who live here read the hill like a page. They say where water will be found after a dry summer, which slope is safe in winter, and how long ago the sea withdrew. `

// benchResult is what --json prints.
type benchResult struct {
	Pack        string    `json:"pack"`
	Arch        string    `json:"arch"`
	Prompt      int       `json:"prompt_tokens"`
	Generate    int       `json:"generate_tokens"`
	PrefillTokS float64   `json:"prefill_tok_s"`
	DecodeTokS  float64   `json:"decode_tok_s"`
	MSPerStep   float64   `json:"ms_per_step"`
	Threads     int       `json:"threads"`
	Kernel      string    `json:"kernel"`
	PeakRSS     *int64    `json:"peak_rss_bytes"` // null where the system does not tell
	LoadMS      float64   `json:"load_ms"`
	Context     int       `json:"context"`
	KV          string    `json:"kv"`
	Draft       string    `json:"draft"`
	Drafted     int       `json:"drafted"`
	Accepted    int       `json:"accepted"`
	Weights     int64     `json:"weight_bytes"`
	PerToken    int64     `json:"bytes_per_token"`
	GBs         float64   `json:"weight_gb_s"` // weight bytes read a second while decoding, in 1e9
	PrefillRuns []float64 `json:"prefill_runs"`
	DecodeRuns  []float64 `json:"decode_runs"`
	Version     string    `json:"version"`
}

func (p *Program) benchCommand() *cobra.Command {
	var prompt, generate, repeat int
	var asJSON bool
	l := loadFlags{kv: "f16", draft: "off"}
	c := &cobra.Command{
		Use: "bench [PACK]", Short: "Measure how fast a pack reads a prompt and writes an answer",
		Long: "Reads a prompt and generates after it, several times, and gives the median. The first pass, which touches\n" +
			"the file for the first time, is not counted. Drafts are off unless --draft asks for them.",
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: p.packNames,
		RunE: func(c *cobra.Command, args []string) error {
			if prompt < 1 || generate < 2 || repeat < 1 {
				return usage(c, "--prompt and --repeat must be at least 1, --generate at least 2")
			}
			arg := ""
			if len(args) == 1 {
				arg = args[0]
			}
			r, err := p.bench(c.Context(), arg, l, prompt, generate, repeat)
			if err != nil {
				return err
			}
			if asJSON {
				return p.printJSON(r)
			}
			peak := "n/a"
			if r.PeakRSS != nil {
				peak = size(*r.PeakRSS)
			}
			table(p.Out, [][]string{
				{"pack", r.Pack + " (" + r.Arch + ", " + size(r.Weights) + ")"},
				{"prompt", fmt.Sprintf("%d tokens, %.1f tok/s", r.Prompt, r.PrefillTokS)},
				{"answer", fmt.Sprintf("%d tokens, %.1f tok/s, %.2f ms a step", r.Generate, r.DecodeTokS, r.MSPerStep)},
				{"weights read", fmt.Sprintf("%s a token, %.2f GB/s", size(r.PerToken), r.GBs)},
				{"threads", fmt.Sprint(r.Threads)}, {"kernels", r.Kernel}, {"peak memory", peak},
			})
			return nil
		},
	}
	l.add(c)
	c.Flags().IntVar(&prompt, "prompt", 512, "tokens of the prompt")
	c.Flags().IntVar(&generate, "generate", 128, "tokens to generate")
	c.Flags().IntVar(&repeat, "repeat", 3, "times; the median counts")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (p *Program) bench(ctx context.Context, arg string, l loadFlags, prompt, generate, repeat int) (benchResult, error) {
	pack, res, err := p.open(arg)
	if err != nil {
		return benchResult{}, err
	}
	defer pack.Close()
	tok, err := pack.Tokenizer()
	if err != nil {
		return benchResult{}, err
	}
	if l.context == 0 {
		l.context = prompt + generate + 1
		if trained := pack.Info().Context; trained > 0 {
			l.context = min(l.context, trained)
		}
	}
	began := time.Now()
	m, s, err := load(ctx, pack, l.options())
	if err != nil {
		return benchResult{}, err
	}
	defer m.Close()
	defer s.Close()
	r := benchResult{
		Pack: res.Name, Arch: pack.Arch, Prompt: prompt, Generate: generate, LoadMS: ms(time.Since(began)),
		Threads: m.Threads(), Kernel: m.Kernel(), Context: m.Context(), KV: l.kv, Draft: l.draft, Weights: pack.Size(), Version: p.Version,
	}
	ids := benchPrompt(tok, prompt)
	var steps []float64
	for i := -1; i < repeat; i++ {
		s.Reset()
		// Sampling keeps a tiny model from falling into one repeated token.
		res, err := s.Generate(ctx, engine.Request{Prompt: ids, MaxTokens: generate, IgnoreEOG: true, Sampling: engine.Sampling{Temperature: 1, TopK: 40, Seed: 1}}, nil)
		if err != nil {
			return r, err
		}
		if i < 0 {
			continue // the first pass reads the file
		}
		// The first token comes out of the prompt's last logits.
		n := res.Generated - 1
		r.PrefillRuns = append(r.PrefillRuns, float64(res.Prompt)/res.PromptTime.Seconds())
		r.DecodeRuns = append(r.DecodeRuns, float64(n)/res.DecodeTime.Seconds())
		steps = append(steps, ms(res.DecodeTime)/float64(max(n-res.Accepted, 1)))
		r.Drafted += res.Drafted
		r.Accepted += res.Accepted
	}
	r.PrefillTokS, r.DecodeTokS, r.MSPerStep = median(r.PrefillRuns), median(r.DecodeRuns), median(steps)
	t := m.Telemetry()
	r.PerToken = t.BytesPerToken
	r.GBs = float64(t.BytesPerToken) * r.DecodeTokS / 1e9
	if peak := vitals.Process(vitals.Live(), 0).Peak; peak.Known {
		n := int64(peak.Value)
		r.PeakRSS = &n
	}
	return r, nil
}

// benchPrompt is n tokens of plain text.
func benchPrompt(tok *token.Tokenizer, n int) []token.ID {
	ids := tok.Encode(benchText, token.Options{AddBOS: true})
	for text := benchText; len(ids) < n; {
		text += strings.Repeat(benchText, 4)
		ids = tok.Encode(text, token.Options{AddBOS: true})
	}
	return ids[:n]
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
