package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"outcrop/app/client"
	"outcrop/engine/wire"
)

// chatOptions are the flags of `outcrop chat`.
type chatOptions struct {
	loadFlags
	pack, root       string
	prompt, system   string
	raw, json, force bool
	thinking, think  bool
	noThink          bool
	address, key     string
	maxTokens        int
	temperature      float64
	topP, minP       float64
	repeat           float64
	presence, freq   float64
	topK             int
	seed             int64
	stop             []string
	ignoreEOS, quiet bool

	given map[string]bool // flags that were given
}

func (p *Program) chatCommand() *cobra.Command {
	var o chatOptions
	c := &cobra.Command{
		Use: "chat [PACK]", Short: "Chat in the terminal, or answer one prompt",
		Long: "Starts the engine as a child process and talks to it. Without --prompt it is a conversation (/help lists what can\n" +
			"be typed), or, when text is piped in, one answer to that text. Ctrl-C stops an answer, not the program.\n" +
			"Without a pack the starter answers, a tiny demo that is part of the program.",
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: p.packNames,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.pack = args[0]
			}
			o.given = map[string]bool{}
			for _, name := range []string{"prompt", "temperature", "top-p", "top-k", "min-p", "repeat-penalty", "presence-penalty", "frequency-penalty", "seed"} {
				o.given[name] = c.Flags().Changed(name)
			}
			switch {
			case o.maxTokens < 0:
				return usage(c, "--max-tokens is %d, want 0 (no limit) or more", o.maxTokens)
			case o.json && !o.given["prompt"] && p.terminal():
				return usage(c, "--json needs --prompt or text on standard input")
			case o.think && o.noThink:
				return usage(c, "--think and --no-think exclude each other")
			}
			for name, v := range map[string]float64{"temperature": o.temperature, "top-p": o.topP, "min-p": o.minP} {
				if !(v >= 0 && v <= 100) { // also no number at all
					return usage(c, "--%s is %v, want 0 or more", name, v)
				}
			}
			if err := o.check(c); err != nil {
				return err
			}
			return p.chat(c.Context(), o)
		},
	}
	o.add(c)
	f := c.Flags()
	f.StringVarP(&o.prompt, "prompt", "p", "", "answer this and exit; - reads standard input")
	f.StringVarP(&o.system, "system", "s", "", "system prompt")
	f.BoolVar(&o.raw, "raw", false, "continue the text itself, without the chat template")
	f.BoolVar(&o.force, "force", false, forceHelp)
	f.BoolVar(&o.json, "json", false, "print one JSON object: ids, text, timings, finish reason")
	f.IntVarP(&o.maxTokens, "max-tokens", "n", 0, "tokens an answer may have; 0: until it ends or the context is full")
	f.Float64Var(&o.temperature, "temperature", 0, "0 always takes the likeliest token (default: the pack's)")
	f.Float64Var(&o.topP, "top-p", 0, "keep the likeliest tokens up to this sum")
	f.Float64Var(&o.minP, "min-p", 0, "drop tokens less likely than this times the best")
	f.IntVar(&o.topK, "top-k", 0, "keep so many tokens; 0: all")
	f.Float64Var(&o.repeat, "repeat-penalty", 1, "above 1: less repetition")
	f.Float64Var(&o.presence, "presence-penalty", 0, "less of what was said at all")
	f.Float64Var(&o.freq, "frequency-penalty", 0, "less of what was said often")
	f.Int64Var(&o.seed, "seed", 0, "the same seed gives the same answer")
	f.StringArrayVar(&o.stop, "stop", nil, "end the answer before this text; may be repeated")
	f.BoolVar(&o.ignoreEOS, "ignore-eos", false, "go on after the end of the answer (for measuring)")
	f.BoolVar(&o.think, "think", false, "ask the model to think first")
	f.BoolVar(&o.noThink, "no-think", false, "ask the model not to think first")
	f.BoolVar(&o.thinking, "show-thinking", false, "print the thinking also where no person reads")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no line of figures after an answer")
	f.StringVar(&o.address, "address", "", "talk to a server that runs already: unix:PATH, HOST:PORT or an URL")
	f.StringVar(&o.key, "key", "", "its API key (default: the variable OUTCROP_KEY)")
	f.StringVar(&o.root, "root", "", rootHelp)
	return c
}

// sampling is the flags as a request.
func (o *chatOptions) sampling() wire.Sampling {
	s := wire.Sampling{Stop: o.stop, IgnoreEOS: o.ignoreEOS, ReturnTokens: o.json, ReturnProgress: true}
	if o.maxTokens > 0 {
		s.MaxTokens = &o.maxTokens
	}
	for name, set := range map[string]func(){
		"temperature":       func() { s.Temperature = &o.temperature },
		"top-p":             func() { s.TopP = &o.topP },
		"min-p":             func() { s.MinP = &o.minP },
		"top-k":             func() { s.TopK = &o.topK },
		"repeat-penalty":    func() { s.RepeatPenalty = &o.repeat },
		"presence-penalty":  func() { s.PresencePenalty = &o.presence },
		"frequency-penalty": func() { s.FrequencyPenalty = &o.freq },
		"seed":              func() { s.Seed = &o.seed },
	} {
		if o.given[name] {
			set()
		}
	}
	return s
}

func (o *chatOptions) chatRequest(msgs []wire.Message) wire.ChatRequest {
	r := wire.ChatRequest{Messages: msgs, Sampling: o.sampling()}
	if o.think || o.noThink {
		r.TemplateArgs = map[string]any{"enable_thinking": o.think}
	}
	return r
}

// chat runs the command: one answer, or a conversation.
func (p *Program) chat(ctx context.Context, o chatOptions) error {
	if o.key == "" {
		o.key = os.Getenv("OUTCROP_KEY")
	}
	interactive := !o.given["prompt"] && p.terminal()
	if !interactive && (!o.given["prompt"] || o.prompt == "-") {
		b, err := io.ReadAll(p.In)
		if err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
		o.prompt = strings.TrimRight(string(b), "\r\n")
		if o.prompt == "" {
			return errors.New("standard input is empty: pipe a prompt in, or use --prompt")
		}
	}
	e := newHost(p, &o)
	defer e.stop()
	if o.compare {
		defer e.printCheck(context.WithoutCancel(ctx))
	}
	if interactive {
		return p.talk(ctx, e, &o)
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt)
	defer cancel()
	c, err := e.client(ctx)
	if err == nil {
		err = p.once(ctx, e, c, &o)
	}
	if err != nil && ctx.Err() != nil { // wherever Ctrl-C came
		return errors.New("stopped")
	}
	return err
}

// onceResult is what --json prints.
type onceResult struct {
	Pack      string          `json:"pack,omitempty"`
	PromptIDs []int32         `json:"prompt_ids"`
	IDs       []int32         `json:"ids"`
	Text      string          `json:"text"`
	Reasoning string          `json:"reasoning,omitempty"`
	ToolCalls []wire.ToolCall `json:"tool_calls,omitempty"`
	Finish    string          `json:"finish_reason"` // stop, length; context when it filled up
	StopText  string          `json:"stop_text,omitempty"`
	Usage     *wire.Usage     `json:"usage"`
	Timings   *wire.Timings   `json:"timings"`
	Notes     []string        `json:"notes,omitempty"`
}

// once answers one prompt.
func (p *Program) once(ctx context.Context, e *host, c *client.Client, o *chatOptions) error {
	var s *client.Stream
	var err error
	if o.raw {
		s, err = c.Complete(ctx, wire.CompletionRequest{Prompt: wire.Prompt{Text: o.system + o.prompt}, Sampling: o.sampling()})
	} else {
		var msgs []wire.Message
		if o.system != "" {
			msgs = append(msgs, wire.Message{Role: "system", Content: wire.Content(o.system)})
		}
		s, err = c.Chat(ctx, o.chatRequest(append(msgs, wire.Message{Role: "user", Content: wire.Content(o.prompt)})))
	}
	if err != nil {
		return e.explain(err)
	}
	defer s.Close()
	out := onceResult{Pack: e.name, IDs: []int32{}, PromptIDs: []int32{}}
	w := newWriter(p, o)
	for {
		ev, err := s.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			w.end()
			return e.explain(err)
		}
		out.Text += ev.Text
		out.Reasoning += ev.Reasoning
		if !o.json {
			if w.event(ev); w.err != nil {
				return fmt.Errorf("print the answer: %w", w.err) // nobody can read the rest
			}
		}
		for _, tc := range ev.ToolCalls {
			tc.Index = nil
			out.ToolCalls = append(out.ToolCalls, tc)
		}
		if ev.Finish != "" {
			out.Finish = ev.Finish
		}
		if ev.Usage != nil {
			out.Usage = ev.Usage
		}
		if x := ev.Extra; x != nil && x.Timings != nil {
			out.Timings, out.StopText, out.Notes = x.Timings, x.StopText, x.Notes
			if x.Finish == "context" {
				out.Finish = "context"
			}
			out.IDs, out.PromptIDs = append(out.IDs, x.IDs...), append(out.PromptIDs, x.PromptIDs...)
		}
	}
	if o.json {
		e := json.NewEncoder(p.Out) // one line: the arrays of ids are long
		e.SetEscapeHTML(false)
		return e.Encode(out)
	}
	w.end()
	for _, n := range out.Notes {
		fmt.Fprintln(p.Err, "outcrop: "+n)
	}
	if w.err != nil {
		return fmt.Errorf("print the answer: %w", w.err)
	}
	return nil
}
