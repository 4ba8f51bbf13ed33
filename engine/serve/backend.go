package serve

import (
	"context"
	"time"

	"outcrop/engine"
	"outcrop/engine/gguf"
	"outcrop/engine/wire"
)

// Load opens and loads a pack and makes the backend of it. name is what
// clients call it.
func Load(ctx context.Context, path, name string, demo bool, o engine.Options) (*Backend, error) {
	p, err := engine.OpenPack(path)
	if err != nil {
		return nil, err
	}
	b, err := load(ctx, p, name, demo, o)
	if err != nil {
		p.Close()
		return nil, err
	}
	return b, nil
}

func load(ctx context.Context, p *engine.Pack, name string, demo bool, o engine.Options) (*Backend, error) {
	// What every request needs is made first, so that a pack without a usable
	// tokenizer or template is an error at load and not at the first question.
	tok, err := p.Tokenizer()
	if err != nil {
		return nil, err
	}
	tpl, err := p.Template()
	if err != nil {
		return nil, err
	}
	m, err := engine.Load(ctx, p, o)
	if err != nil {
		return nil, err
	}
	sess, err := m.NewSession()
	if err != nil {
		m.Close()
		return nil, err
	}
	info := p.Info()
	b := &Backend{
		Name: name, Tokenizer: tok, Template: tpl, Session: sess, Telemetry: m.Telemetry, Relieve: m.Relieve,
		Defaults: defaultsOf(p.File().Meta()), Loaded: time.Now(),
		Info: wire.ModelInfo{
			Arch: p.Arch, Path: p.Path, Bytes: p.Size(), Context: m.Context(), ContextTrain: info.Context,
			Vocab: m.Vocab(), Threads: m.Threads(), Template: "pack", Demo: demo,
		},
	}
	if tpl.Fallback() {
		b.Info.Template = "chatml"
	}
	if name == "" {
		b.Name = p.Name
	}
	b.Close = func() error {
		sess.Close()
		err := m.Close()
		if cerr := p.Close(); err == nil {
			err = cerr
		}
		return err
	}
	return b, nil
}

// defaultsOf reads the settings that a pack's makers recommend
// (general.sampling.*, gguf specification); what they leave open gets values
// that suit small and large models alike.
func defaultsOf(m *gguf.Meta) Defaults {
	d := Defaults{Temperature: 0.8, TopP: 0.95, TopK: 40, MinP: 0.05}
	float := func(key string, out *float32) {
		if v, err := m.Float("general.sampling." + key); err == nil && v >= 0 && v < 100 {
			*out = float32(v)
		}
	}
	float("temp", &d.Temperature)
	float("top_p", &d.TopP)
	float("min_p", &d.MinP)
	float("penalty_repeat", &d.Repeat)
	if v, err := m.Int("general.sampling.top_k"); err == nil && v >= 0 && v < 1<<20 {
		d.TopK = int(v)
	}
	return d
}
