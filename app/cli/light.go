package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"outcrop/assets"
	"outcrop/engine"
	"outcrop/engine/catalog"
	"outcrop/engine/quant"
	"outcrop/engine/token"
	"outcrop/gpu"
	"outcrop/gpu/compute"
	"outcrop/gpu/compute/light"
	"outcrop/gpu/doctor"
)

// kernelCache is the folder for compiled kernels.
func kernelCache() string { return filepath.Join(catalog.CacheDir(), "kernels") }

// lightBytes is the most memory that first light touches on one device.
const lightBytes = 1 << 30

// firstLight tests the devices that name says ("" every one) and the CPU, prints
// "N of N" for each, and keeps which passed. It fails when one does not.
func (p *Program) firstLight(ctx context.Context, name string) error {
	list, why := engine.Devices()
	for _, w := range why {
		fmt.Fprintln(p.Out, "no device:", w)
	}
	known, err := knownAnswers()
	if err != nil {
		return err
	}
	r, err := p.packs().Resolve(catalog.StarterName)
	if err != nil {
		return err
	}
	bad := 0
	show := func(l doctor.Light) {
		for _, s := range l.Steps {
			if s.Passed != s.Total {
				fmt.Fprintf(p.Out, "  %s: %d of %d, %s\n", s.Title, s.Passed, s.Total, s.Detail)
			}
		}
		fmt.Fprintln(p.Out, l)
		if !l.OK() {
			bad++
		}
	}
	golden := func(o engine.Options) func(context.Context, doctor.Device) (int, int, error) {
		return func(ctx context.Context, _ doctor.Device) (int, int, error) {
			o.Context = 1024
			return engine.Golden(ctx, r.Path, o, known)
		}
	}
	for _, i := range list {
		if name != "" && name != i.ID && name != i.PCI {
			continue
		}
		if i.CPU && name == "" {
			fmt.Fprintf(p.Out, "%s is the processor itself, no card: not tested; --card %s does\n", i.ID, i.ID)
			continue
		}
		l, err := p.lightOf(ctx, i, golden)
		if err != nil {
			fmt.Fprintf(p.Out, "%s (%s): %v\n", i.ID, i.Name, err)
			bad++
			continue
		}
		l.Device = i.ID + " " + l.Device
		show(l)
		if err := engine.SetLit(kernelCache(), i, l.OK()); err != nil {
			return err
		}
	}
	m, _, _, err := gpu.Open("")
	if err != nil {
		return err
	}
	l, err := doctor.FirstLight(ctx, doctor.CPU(m), doctor.LightOptions{MaxBytes: lightBytes / 4, Golden: golden(engine.Options{})})
	if err != nil {
		return err
	}
	show(l)
	if bad > 0 {
		return errSilent
	}
	return nil
}

// lightOf tests one device.
func (p *Program) lightOf(ctx context.Context, i engine.DeviceInfo, golden func(engine.Options) func(context.Context, doctor.Device) (int, int, error)) (doctor.Light, error) {
	d, err := engine.OpenDevice(i, kernelCache())
	if err != nil {
		return doctor.Light{}, err
	}
	defer d.Close()
	c, err := light.New(d, decodeBlocks)
	if err != nil {
		return doctor.Light{}, err
	}
	return doctor.FirstLight(ctx, c, doctor.LightOptions{
		MaxBytes: min(lightBytes, max(c.Memory()/2, 1)),
		Golden:   golden(engine.Options{Devices: []*compute.Device{d}}),
		Emit: func(r doctor.StepResult) {
			switch {
			case r.Skipped != "":
				fmt.Fprintf(p.Err, "  %s: not run, %s\n", r.Title, r.Skipped)
			case r.Total > 0:
				fmt.Fprintf(p.Err, "  %s: %d of %d  %s\n", r.Title, r.Passed, r.Total, r.Detail)
			default:
				fmt.Fprintf(p.Err, "  %s: %s\n", r.Title, r.Detail)
			}
		},
	})
}

// decodeBlocks gives first light the values of weights of any format.
func decodeBlocks(typ uint32, dst []float32, src []byte) error {
	f, err := quant.Of(quant.Type(typ))
	if err == nil {
		f.Decode(dst, src)
	}
	return err
}

// knownAnswers are the starter's prompts with the tokens up to their end.
func knownAnswers() ([]engine.Known, error) {
	var file struct {
		Prompts []struct {
			Prompt []token.ID `json:"prompt_ids"`
			IDs    []token.ID `json:"ids"`
			Answer int        `json:"answer_tokens"`
		} `json:"prompts"`
	}
	if err := json.Unmarshal(assets.Golden, &file); err != nil {
		return nil, fmt.Errorf("read the known answers: %w", err)
	}
	var out []engine.Known
	for _, k := range file.Prompts {
		out = append(out, engine.Known{Prompt: k.Prompt, IDs: k.IDs[:min(max(k.Answer, 1), len(k.IDs))]})
	}
	return out, nil
}
