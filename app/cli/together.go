package cli

import (
	"context"
	"fmt"
	"strings"

	"outcrop/engine"
	"outcrop/gpu/compute"
	"outcrop/gpu/compute/light"
	"outcrop/gpu/doctor"
)

// together tests that cards of one driver can be used side by side: each is
// opened, with a context of its own, and each must give and keep 2 MiB while the
// others hold as much. What one driver offers of several cards is tested; cards
// of different drivers may be the same card twice.
func (p *Program) together(ctx context.Context, list []engine.DeviceInfo, tell func(doctor.LightLine)) (good bool, err error) {
	good = true
	for len(list) > 0 {
		var group, rest []engine.DeviceInfo
		for _, i := range list {
			if i.Driver == list[0].Driver {
				group = append(group, i)
			} else {
				rest = append(rest, i)
			}
		}
		list = rest
		if len(group) < 2 {
			continue
		}
		var ids []string
		for _, i := range group {
			ids = append(ids, i.ID)
		}
		r := p.allocateAll(ctx, group)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		ok := r.Passed == r.Total
		if err := engine.SetApart(kernelCache(), group, !ok); err != nil {
			return false, err
		}
		good = good && ok
		tell(doctor.LightLine{Device: strings.Join(ids, ","), Name: fmt.Sprintf("%d cards", len(group)), Step: &r})
		verdict := fmt.Sprintf("%s side by side: %d of %d, %s", strings.Join(ids, ","), r.Passed, r.Total, r.Detail)
		if !ok {
			verdict += "; --device=auto uses one card only"
		}
		tell(doctor.LightLine{Device: strings.Join(ids, ","), Name: fmt.Sprintf("%d cards", len(group)), Note: verdict})
	}
	return good, nil
}

// allocateAll opens the cards and runs the test.
func (p *Program) allocateAll(ctx context.Context, group []engine.DeviceInfo) doctor.StepResult {
	var open []*compute.Device
	defer func() {
		for _, d := range open {
			// What goes wrong here was seen in the test.
			_ = d.Close()
		}
	}()
	r := doctor.StepResult{Step: "together", Title: "an allocation on every card, one context each", Total: 2 * len(group)}
	var all []doctor.Device
	for _, i := range group {
		d, err := engine.OpenDevice(i, kernelCache())
		if err != nil {
			r.Detail = fmt.Sprintf("open %s beside %d others: %v", i.ID, len(open), err)
			return r
		}
		open = append(open, d)
		all = append(all, light.Memory(d))
	}
	got := doctor.Together(ctx, all)
	got.Step, got.Title = r.Step, r.Title
	return got
}
