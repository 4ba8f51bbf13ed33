package cli

import (
	"slices"
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
	l, err := parse("--slots=8GB", "--experts=copy", "--ram-limit=16GiB", "--vram-limit=12GB,8GB", "--placement=vram+pinned")
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
	for _, bad := range []string{"--slots=much", "--experts=gpu", "--ram-limit=-1", "--placement=cloud"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%s: taken", bad)
		}
	}
}
