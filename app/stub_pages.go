package app

import (
	"fyne.io/fyne/v2"
	"outcrop/app/widget"
)

type blankPage struct{ o fyne.CanvasObject }

func (b *blankPage) object() fyne.CanvasObject { return b.o }

type settingsPage struct{ blankPage }

func (p *settingsPage) find(string) {}
func newSettings(a *App) page       { return &settingsPage{blankPage{widget.NewText("settings")}} }

type settingRow struct{ name, words string }

func settingTable() []settingRow { return nil }

func newMonitor(a *App) page { return &blankPage{widget.NewText("monitor")} }
func newServe(a *App) page   { return &blankPage{widget.NewText("serve")} }
