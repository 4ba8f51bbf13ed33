package engine

import (
	"testing"

	"outcrop/engine/plan"
)

// The planner's sizes must be those the engine will use.
func TestPlanFactsAgreeWithTheEngine(t *testing.T) {
	p, err := OpenPack("../assets/starter/starter.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	facts, err := p.PlanFacts()
	if err != nil {
		t.Fatal(err)
	}
	if len(facts.Layers) != 9 || !facts.Layers[8].Draft || facts.Layers[7].Draft {
		t.Fatalf("%d layers, want 8 and a draft block", len(facts.Layers))
	}
	var total int64 = facts.Embed + facts.Output
	for i, l := range facts.Layers {
		if l.Experts != 16 || l.Used != 2 || l.Expert == 0 {
			t.Errorf("layer %d: %d experts, %d used, %d bytes each", i, l.Experts, l.Used, l.Expert)
		}
		if full := i == 3 || i == 7 || i == 8; full != (l.KV == 2*(64+64)) || full == (l.State > 0) {
			t.Errorf("layer %d: %d cached values, %d bytes of state", i, l.KV, l.State)
		}
		total += l.Dense + int64(l.Experts)*l.Expert
	}
	var file int64
	for _, ten := range p.File().Tensors() {
		file += ten.Bytes
	}
	if total > file || file-total > 4096 {
		t.Errorf("%d of %d tensor bytes are in the plan", total, file)
	}
	pl, err := plan.Make(facts, plan.Machine{RAMTotal: plan.Known(8<<30, "test"), RAMAvailable: plan.Known(6<<30, "test")}, plan.Wishes{})
	if err != nil || !pl.Fits || pl.Placement != plan.AllRAM {
		t.Errorf("the starter on 8 GiB: %+v, %v", pl, err)
	}
}

// KV sizes are written down twice, in bytes here and as a factor in plan.
func TestPlanKVSizes(t *testing.T) {
	for k, name := range kvNames {
		facts := plan.Pack{Layers: []plan.Layer{{KV: 1024, Dense: 1}}}
		pl, err := plan.Make(facts, plan.Machine{RAMTotal: plan.Known(8<<30, ""), RAMAvailable: plan.Known(6<<30, "")}, plan.Wishes{Context: 1 << 16, KV: name})
		if err != nil {
			t.Fatal(err)
		}
		var got int64
		for _, s := range pl.RAM.Segments {
			if s.Kind == "kv" {
				got = s.Bytes
			}
		}
		if want := kvKind(k).rowBytes(1024) << 16; got != want {
			t.Errorf("%s: the plan counts %d bytes for 64 Ki tokens, the engine uses %d", name, got, want)
		}
	}
}
