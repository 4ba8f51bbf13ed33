package app

import (
	"slices"

	"fyne.io/fyne/v2"
)

// deviceSetting is where the engine runs.
func deviceSetting() setting {
	return setting{groupEngine, "Runs on", "which graphics card computes, for packs that have no choice of their own in the engine's menu; a change counts from the next start", func(a *App) string {
		if len(a.machine.machine.Cards) == 0 {
			return tr("the CPU, for no card was found")
		}
		return tr("every card that has passed first light, else the CPU")
	}, func(a *App) fyne.CanvasObject {
		ids, names := a.deviceChoices()
		if !slices.Contains(ids, a.settings.Device) { // a card that is not there now
			ids, names = append(ids, a.settings.Device), append(names, tr("%s, not there now", a.settings.Device))
		}
		return choice(a, names, at(ids, a.settings.Device), func(i int) {
			a.change(func(s *Settings) { s.Device = ids[i] })
			redraw(a)
		})
	}, func(s *Settings) bool { return s.Device != "" }, func(s *Settings) { s.Device = "" }}
}
