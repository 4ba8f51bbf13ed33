package app

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"fyne.io/fyne/v2"

	"outcrop/app/widget"
	"outcrop/gpu"
	"outcrop/gpu/recipe"
)

// Numbers of the settings, and what is accepted of them: a limit that changes
// nothing or under which nothing runs is not taken, and the field says why.

// intField is a field for a whole number, empty for 0. check says what is wrong
// with a number, in two sentences; the field keeps what was typed then.
func intField(a *App, value int, hint string, check func(int) error, set func(*Settings, int)) fyne.CanvasObject {
	e := a.field(hint)
	e.SetText(textOf(value))
	wrong := widget.NewNote("")
	box := widget.V(2, e, wrong)
	wrong.Hide()
	save := func(s string) {
		s = strings.TrimSpace(s)
		n, err := 0, error(nil)
		if s != "" {
			n, err = strconv.Atoi(s)
			switch {
			case err != nil || n < 0:
				err = errors.New(tr("%q is no whole number. Write digits only, or leave the field empty.", s))
			case n > 0 && check != nil:
				err = check(n)
			}
		}
		if err != nil {
			wrong.SetIn(err.Error(), widget.ColorAct)
			wrong.Show()
			widget.Relayout(box) // wrapped at its width, before its height is asked for
			if p, ok := a.built["settings"].(*settingsPage); ok {
				widget.Relayout(p.body)
				p.scroll.Refresh()
			}
			return
		}
		a.change(func(x *Settings) { set(x, n) })
		redraw(a)
	}
	e.OnSubmitted = save
	e.OnFocus = func(in bool) {
		if !in && e.Text != textOf(value) {
			save(e.Text)
		}
	}
	return box
}

func textOf(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// leastContext is a question and an answer of a few lines.
const leastContext = 256

// mostContext is beyond what any model was trained for.
const mostContext = 16 << 20

func checkContext(n int) error {
	switch {
	case n < leastContext:
		return errors.New(tr("%d tokens hold no conversation. The least that makes sense is %d.", n, leastContext))
	case n > mostContext:
		return errors.New(tr("%d tokens are more than any model was trained for. The most that is taken is %d.", n, mostContext))
	}
	return nil
}

// threadsHere is how many threads the machine runs at a time.
func (a *App) threadsHere() int {
	if n := a.machine.machine.Host.CPU.Threads; a.machine.known && n > 0 {
		return n
	}
	return runtime.NumCPU()
}

func (a *App) checkThreads(n int) error {
	if most := a.threadsHere(); n > most {
		return errors.New(tr("This machine runs %d threads at a time, so %d would wait for each other. Give %d or less.", most, n, most))
	}
	return nil
}

// checkGiB refuses more GiB than there are of something, when that is known.
func checkGiB(n int, total int64, what string) error {
	if total <= 0 || int64(n) <= (total+1<<30-1)>>30 {
		return nil
	}
	return errors.New(tr("%s has %s, so a limit of %d GiB changes nothing. Give less, or leave the field empty.", what, bytes64(total), n))
}

func (a *App) checkRAM(n int) error {
	r := a.machine.machine.Host.RAM()
	if !a.machine.known || !r.Known {
		return checkGiB(n, 1<<46, tr("No machine")) // 64 TiB
	}
	return checkGiB(n, r.Value, tr("This machine"))
}

// checkVRAM is for the card at an address, or with "" for the biggest one.
func (a *App) checkVRAM(n int, pci gpu.PCI) error {
	most, name := int64(0), tr("The card")
	for _, c := range a.machine.machine.Cards {
		if t := c.Memory.Total; (pci == "" || c.PCI == pci) && t.Known && t.Value > most {
			most, name = t.Value, c.Name
		}
	}
	if most == 0 {
		most = 1 << 42 // 4 TiB: no card is bigger
	}
	return checkGiB(n, most, name)
}

// severalCards are the cards that can have limits of their own: where there are
// at least two with memory of their own.
func (a *App) severalCards() []gpu.Card {
	var out []gpu.Card
	for _, c := range a.machine.machine.Cards {
		if c.Discrete && !c.Virtual {
			out = append(out, c)
		}
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

// limitOf is the limit of one card in GiB; 0: none.
func (s *Settings) limitOf(pci gpu.PCI) int {
	if n, ok := s.VRAMLimits[string(pci)]; ok {
		return n
	}
	return s.VRAMLimit
}

// vramLimits gives where the engine runs and the limits of these devices in
// their order, nil for none. Limits go by position, so where they differ "every
// card that has passed first light" is written out.
func (a *App) vramLimits(device string) (string, []int) {
	s := &a.settings
	cards := a.severalCards()
	if len(s.VRAMLimits) == 0 || cards == nil {
		if s.VRAMLimit == 0 || device == deviceCPU {
			return device, nil
		}
		return device, []int{s.VRAMLimit}
	}
	var list []string
	switch device {
	case deviceCPU:
		return device, nil
	case "", deviceAuto:
		for _, c := range cards {
			if ok, _ := a.passed(c.PCI); ok {
				list = append(list, string(c.PCI))
			}
		}
		// Of several Intel cards the recipe shows the engine one.
		if best := recipe.Best(a.machine.machine); best != nil && best.Vendor == gpu.Intel {
			list = []string{string(best.PCI)}
		} else if len(list) > 0 {
			device = strings.Join(list, ",")
		}
	default:
		list = strings.Split(device, ",")
	}
	limits := make([]int, len(list))
	for i, id := range list {
		pci := gpu.PCI(id)
		if o := a.offer(id); o != nil {
			pci = o.PCI
		}
		limits[i] = s.limitOf(pci)
	}
	if !slices.ContainsFunc(limits, func(n int) bool { return n > 0 }) {
		return device, nil
	}
	return device, limits
}

// limitText writes limits as the engine takes them, in bytes.
func limitText(gib []int) string {
	var out []string
	for _, n := range gib {
		if n == 0 {
			out = append(out, "none")
		} else {
			out = append(out, fmt.Sprint(int64(n)<<30))
		}
	}
	return strings.Join(out, ",")
}

// vramField is one field, or a row for each of several cards.
func vramField(a *App) fyne.CanvasObject {
	cards := a.severalCards()
	if cards == nil {
		return intField(a, a.settings.VRAMLimit, tr("no limit"), func(n int) error { return a.checkVRAM(n, "") }, func(s *Settings, n int) { s.VRAMLimit = n; a.replan() })
	}
	box := widget.V(8)
	for _, c := range cards {
		box.Add(widget.V(2, widget.NewCaption(tr("%s at %s", c.Name, shortPCI(string(c.PCI)))).Cutting(40),
			intField(a, a.settings.limitOf(c.PCI), tr("no limit"), func(n int) error { return a.checkVRAM(n, c.PCI) }, func(s *Settings, n int) {
				m := maps.Clone(s.VRAMLimits)
				if m == nil {
					m = map[string]int{}
				}
				m[string(c.PCI)] = n
				s.VRAMLimits = m
				a.replan()
			})))
	}
	return box
}
