package plan

import "time"

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// pack builds a model of equal layers. Every interval-th layer keeps a KV
// cache, the others a recurrent state.
func pack(name string, layers, interval int, dense, state int64, kv, experts, used int, expert int64, width, hidden, vocab, trained int, draft bool) Pack {
	p := Pack{Name: name, Width: width, Hidden: hidden, Vocab: vocab, Trained: trained, Draft: draft, CanDevice: true, CanExperts: true}
	for i := range layers {
		l := Layer{Dense: dense, Experts: experts, Used: used, Expert: expert}
		if (i+1)%interval == 0 {
			l.KV = kv
		} else {
			l.State = state
		}
		p.Layers = append(p.Layers, l)
	}
	if draft {
		p.Layers = append(p.Layers, Layer{Dense: dense, Experts: experts, Used: used, Expert: expert, KV: kv, Draft: true})
	}
	p.Embed = int64(vocab) * int64(width) * 9 / 16
	p.Output = p.Embed
	return p
}

// coder has the sizes of the model of issue #1545: 23.42 GiB of experts in 48
// layers, 12 of them with attention (2 heads of 256 for keys and for values).
var coder = func() Pack {
	p := pack("coder-a6b", 48, 4, 60*mib, 3*mib, 1024, 256, 10, 0, 2560, 640, 248320, 262144, false)
	for i := range p.Layers {
		p.Layers[i].Expert = 23*gib/48/256 + 450*1024*1024/48/256
	}
	return p
}()

var packs = []Pack{
	coder,
	pack("qwen36-35b-a3b-q4", 40, 4, 36*mib, 2*mib, 1024, 256, 8, 1769472, 2048, 512, 248320, 262144, true),
	pack("qwen3-30b-a3b-q4", 48, 1, 20*mib, 0, 1024, 128, 8, 2654208, 2048, 768, 151936, 40960, false),
	pack("glm45-air-q4", 46, 1, 90*mib, 0, 2048, 128, 8, 9732096, 4096, 1408, 151552, 131072, true),
	pack("llama-8b-q4", 32, 1, 125*mib, 0, 2048, 0, 0, 0, 4096, 14336, 128256, 131072, false),
	pack("starter", 8, 4, mib/5, 32*1024, 256, 16, 2, 45000, 256, 128, 4096, 2048, true),
}

func rate(gbs float64) Rate { return Rate{gbs * 1e9, true} }

func card(pci, name, driver, backend string, totalGiB, freeGiB, deviceGBs, linkGBs float64) Card {
	return Card{PCI: pci, Name: name, Driver: driver, Backend: backend,
		Total: Known(int64(totalGiB*float64(gib)), "test"), Free: Known(int64(freeGiB*float64(gib)), "test"),
		MaxAlloc: 4*gib - 8192, MaxPinned: 2 * gib, Device: rate(deviceGBs), HostToDevice: rate(linkGBs), HandOff: 80 * time.Microsecond}
}

func computer(totalGiB, availGiB, cpuGBs, diskGBs float64, cards ...Card) Machine {
	return Machine{Cards: cards, RAMTotal: Known(int64(totalGiB*float64(gib)), "meminfo"), RAMAvailable: Known(int64(availGiB*float64(gib)), "meminfo"),
		CPU: rate(cpuGBs), Threads: 8, DiskRandom: rate(diskGBs), DiskStream: rate(diskGBs * 2)}
}

var a770 = card("0000:03:00.0", "Arc A770", "xe", "level zero", 15.9, 15.1, 400, 12)

var machines = []struct {
	name string
	m    Machine
}{
	{"a770-29g", computer(28.3, 25, 25, 1.2, a770)},
	{"two-a770-64g", computer(62.5, 55, 30, 1.2, a770, card("0000:07:00.0", "Arc A770", "xe", "level zero", 15.9, 15.6, 400, 12))},
	{"b580-32g", computer(31, 26, 35, 2, card("0000:03:00.0", "Arc B580", "xe", "level zero", 11.9, 11.4, 400, 13))},
	{"3070ti-32g", computer(31, 24, 30, 2, card("0000:01:00.0", "RTX 3070 Ti", "nvidia", "cuda", 8, 7.2, 500, 22))},
	{"4090-128g", computer(125, 110, 60, 3, card("0000:01:00.0", "RTX 4090", "nvidia", "cuda", 24, 23, 900, 25))},
	{"h200-128g", computer(126, 120, 100, 3, card("0000:01:00.0", "H200", "nvidia", "cuda", 140, 139, 4000, 50))},
	{"9070xt-64g", computer(62, 52, 45, 3, func() Card {
		c := card("0000:03:00.0", "RX 9070 XT", "amdgpu", "opencl", 15.9, 14.6, 550, 25)
		c.Display = true
		return c
	}())},
	{"igpu-16g", computer(15.3, 11, 20, 1, func() Card {
		c := card("0000:00:02.0", "Iris Xe", "i915", "opencl", 7.6, 7, 40, 20)
		c.Integrated = true
		return c
	}())},
	{"no-card-8g", computer(7.6, 5, 15, 0.5)},
	{"denied-32g", computer(31, 26, 30, 2, Card{PCI: "0000:03:00.0", Name: "Arc A750", Driver: "i915", Unusable: "the render node may not be opened", Total: Known(8*gib, "test")})},
	{"free-unknown", func() Machine {
		c := a770
		c.Free = Amount{Source: "DRM query", Why: "free equals total without CAP_PERFMON"}
		return computer(62, 50, 25, 1.2, c)
	}()},
	{"ram-unknown", Machine{Cards: []Card{a770}}},
}
