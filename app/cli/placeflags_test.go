package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"outcrop/engine/plan"
)

func TestPlaceFlags(t *testing.T) {
	parse := func(args ...string) (*loadFlags, error) {
		l := &loadFlags{}
		c := &cobra.Command{Use: "x"}
		l.add(c)
		if err := c.ParseFlags(args); err != nil {
			return l, err
		}
		return l, l.check(c)
	}
	l, err := parse("--slots=8GB", "--experts=copy", "--ram-limit=16GiB", "--device=auto", "--vram-limit=12GB,8GB", "--placement=vram+pinned")
	if err != nil {
		t.Fatal(err)
	}
	if w := l.wish; w.Slots != 8e9 || w.Experts != plan.ExpertsCopy || w.RAMCap != 16<<30 || w.Placement != plan.VRAMPinned || !l.asked() {
		t.Errorf("wishes %+v", w)
	}
	args := l.args()
	slices.Sort(args)
	again, err := parse(args...) // what a child is given means the same
	if err != nil || again.wish.Slots != l.wish.Slots || again.wish.RAMCap != l.wish.RAMCap || again.wish.Experts != l.wish.Experts ||
		again.wish.Placement != l.wish.Placement || !slices.Equal(again.limits, l.limits) {
		t.Errorf("%v: %v, %+v", args, err, again.wish)
	}
	if l, err := parse(); err != nil || l.asked() || len(l.args()) != 0 {
		t.Errorf("nothing given: %v, %+v, %v", err, l.wish, l.args())
	}
	if l, err := parse("--slots=0"); err != nil || l.wish.Slots >= 0 {
		t.Errorf("no slots: %v, %d", err, l.wish.Slots)
	}
	if l, err := parse("--cpu-experts"); err != nil || l.wish.Experts != plan.ExpertsCPU {
		t.Errorf("experts on the CPU: %v, %q", err, l.wish.Experts)
	}
	if l, err := parse("--device=auto", "--vram-limit=none,8GB"); err != nil || !slices.Equal(l.limits, []int64{0, 8e9}) {
		t.Errorf("a limit for the second card only: %v, %v", err, l.limits)
	}
	for arg, want := range map[string]string{
		"--ram-limit=1":          "--ram-limit 1 is 1 byte, and the least that makes sense is 32.0 MiB",
		"--ram-limit=16":         "give a unit, such as 4GiB, or leave the flag out",
		"--ram-limit=20MiB":      "is 20.0 MiB, and",
		"--vram-limit=8GB,8":     "--vram-limit 8GB,8 is 8 bytes",
		"--slots=512":            "0: no slots",
		"--vram-limit=1GB,1,1GB": "is 1 byte",
		"--expert-ram=-5":        "-1 for all",
	} {
		if _, err := parse(arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it to say %q", arg, err, want)
		}
	}
	if _, err := parse("--cards=cuda:0,cuda:1", "--vram-limit=1GB,1GB,1GB"); err == nil || !strings.Contains(err.Error(), "--cards names 2") {
		t.Errorf("more limits than cards: %v", err)
	}
	for _, bad := range []string{"--slots=much", "--experts=gpu", "--ram-limit=-1", "--placement=cloud"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%s: taken", bad)
		}
	}
}
