package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

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

// cpuDevice is the name of the processor as a device of first light.
const cpuDevice = "cpu"

// firstLight tests the devices that name says: "" is every card and the CPU,
// else IDs, PCI addresses or "cpu" with commas between them; several cards are
// tested side by side at the end, or only that. It tells what happens line by line, keeps which
// devices passed, and fails when one did not.
func (p *Program) firstLight(ctx context.Context, name string, only bool, tell func(doctor.LightLine)) error {
	known, err := knownAnswers()
	if err != nil {
		return err
	}
	r, err := p.packs().Resolve(catalog.StarterName)
	if err != nil {
		return err
	}
	bad, tested := 0, 0
	golden := func(o engine.Options) func(context.Context, doctor.Device) (int, int, error) {
		return func(ctx context.Context, _ doctor.Device) (int, int, error) {
			o.Context = 1024
			return engine.Golden(ctx, r.Path, o, known)
		}
	}
	end := func(id, name string, l doctor.Light, err error) {
		tested++
		if err != nil {
			tell(doctor.LightLine{Device: id, Name: name, Error: err.Error()})
			bad++
			return
		}
		tell(doctor.LightLine{Device: id, Name: name, Result: &l})
		if !l.OK() {
			bad++
		}
	}
	var have []string
	var beside []engine.DeviceInfo
	wanted := func(i engine.DeviceInfo) (n int) {
		for _, w := range strings.Split(name, ",") {
			if w == i.ID || i.PCI != "" && strings.EqualFold(w, i.PCI) {
				n++
			}
		}
		return n
	}
	if name != cpuDevice {
		list, why := engine.Devices()
		for _, w := range why {
			tell(doctor.LightLine{Note: "no device: " + w.Error()})
		}
		for _, i := range list {
			have = append(have, i.ID)
			times := wanted(i) // twice is two contexts on one device
			if name != "" && times == 0 {
				continue
			}
			if i.CPU && name == "" {
				tell(doctor.LightLine{Device: i.ID, Name: i.Name, Note: fmt.Sprintf("%s is the processor itself, no card: not tested; --card %s does", i.ID, i.ID)})
				continue
			}
			for range max(times, 1) {
				beside = append(beside, i)
			}
			if only {
				continue
			}
			// What passed before counts no more once a test has begun: a driver that
			// crashes in it must not be used by --device=auto afterwards.
			before := engine.Lit(kernelCache(), i)
			kept := engine.SetLit(kernelCache(), i, false)
			l, err := p.lightOf(ctx, i, golden, tell)
			if ctx.Err() != nil { // perhaps because the driver hung: what passed before stays off
				if before {
					tell(doctor.LightLine{Device: i.ID, Name: i.Name, Note: fmt.Sprintf("stopped: --device=auto does not use %s until first light has run to its end", i.ID)})
				}
				return ctx.Err()
			}
			if err == nil {
				kept = engine.SetLit(kernelCache(), i, l.OK())
			}
			end(i.ID, i.Name, l, err)
			if kept != nil { // a full disk, a home that may not be written
				tell(doctor.LightLine{Device: i.ID, Name: i.Name, Note: fmt.Sprintf("the result cannot be kept, so --device=auto does not use %s: %v", i.ID, kept)})
				bad++
			}
		}
		if only && len(beside) < 2 {
			return fmt.Errorf("side by side: %d devices are chosen, two are needed; there are: %s", len(beside), strings.Join(have, ", "))
		}
		good, err := p.together(ctx, beside, tell)
		if err != nil {
			return err
		}
		if !good {
			bad++
		}
		if only {
			tested++
		}
	}
	if !only && (name == "" || slices.Contains(strings.Split(name, ","), cpuDevice)) {
		m, _, _, err := gpu.Open("")
		if err != nil {
			return err
		}
		d := doctor.CPU(m)
		l, err := doctor.FirstLight(ctx, d, doctor.LightOptions{MaxBytes: lightBytes / 4, Golden: golden(engine.Options{}), Emit: steps(cpuDevice, d.Name(), tell)})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		end(cpuDevice, d.Name(), l, err)
	}
	if tested == 0 {
		if have == nil {
			have = []string{"none"}
		}
		return fmt.Errorf("first light on %s: no driver offers that card; there are: %s; outcrop doctor says what is missing", name, strings.Join(have, ", "))
	}
	if bad > 0 {
		return errSilent
	}
	return nil
}

// steps tells the steps of one device as they end.
func steps(id, name string, tell func(doctor.LightLine)) func(doctor.StepResult) {
	return func(r doctor.StepResult) { tell(doctor.LightLine{Device: id, Name: name, Step: &r}) }
}

// lightOf tests one device.
func (p *Program) lightOf(ctx context.Context, i engine.DeviceInfo, golden func(engine.Options) func(context.Context, doctor.Device) (int, int, error), tell func(doctor.LightLine)) (doctor.Light, error) {
	tell(doctor.LightLine{Device: i.ID, Name: i.Name, Phase: "opening the device and compiling its kernels, which the first time takes up to a minute"})
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
		Emit:     steps(i.ID, i.Name, tell),
	})
}

// printLight writes first light for people: what happens on standard error,
// results and what failed on standard output.
func (p *Program) printLight(n doctor.LightLine) {
	switch {
	case n.Phase != "":
		fmt.Fprintf(p.Err, "%s (%s): %s\n", n.Device, n.Name, n.Phase)
	case n.Step != nil:
		r := n.Step
		switch {
		case r.Skipped != "":
			fmt.Fprintf(p.Err, "  %s: not run, %s\n", r.Title, r.Skipped)
		case r.Total > 0:
			fmt.Fprintf(p.Err, "  %s: %d of %d  %s\n", r.Title, r.Passed, r.Total, r.Detail)
		default:
			fmt.Fprintf(p.Err, "  %s: %s\n", r.Title, r.Detail)
		}
	case n.Result != nil:
		for _, s := range n.Result.Steps {
			if s.Passed != s.Total {
				fmt.Fprintf(p.Out, "  %s: %d of %d, %s\n", s.Title, s.Passed, s.Total, s.Detail)
			}
		}
		on := n.Result.Device
		if n.Device != cpuDevice {
			on = n.Device + " " + on
		}
		fmt.Fprintf(p.Out, "%d of %d on %s\n", n.Result.Passed, n.Result.Total, on)
	case n.Error != "":
		fmt.Fprintf(p.Out, "%s (%s): %s\n", n.Device, n.Name, n.Error)
	case n.Note != "":
		fmt.Fprintln(p.Out, n.Note)
	}
}

// offers lists what the drivers offer to compute on.
func offers() doctor.Offers {
	o := doctor.Offers{Devices: []doctor.Offer{}, Missing: []string{}}
	list, why := engine.Devices()
	for _, i := range list {
		o.Devices = append(o.Devices, doctor.Offer{ID: i.ID, Driver: i.Driver, Name: i.Name, PCI: gpu.PCI(i.PCI), CPU: i.CPU,
			Version: i.Version, API: i.API, Memory: i.Memory, Passed: engine.Lit(kernelCache(), i)})
	}
	for _, w := range why {
		o.Missing = append(o.Missing, w.Error())
	}
	return o
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
