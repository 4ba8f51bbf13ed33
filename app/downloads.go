package app

import (
	"context"
	"errors"
	"time"

	"fyne.io/fyne/v2"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/widget"
	"outcrop/engine/catalog"
)

// downloads are the packs being fetched, looked up or left unfinished.
type downloads struct {
	p    *packsPage
	list []*download
}

// download is one of them.
type download struct {
	d      *downloads
	ref    string
	source catalog.Source
	state  string // looking, choose, ready, running, paused, failed
	err    error
	choice *catalog.ChoiceError
	now    catalog.Progress
	cancel context.CancelFunc
	drawn  time.Time

	bar   *widget.Bar
	words *widget.Text
}

func newDownloads(p *packsPage) *downloads { return &downloads{p: p} }

// resume lists what an earlier run left unfinished.
func (l *downloads) resume() {
	a := l.p.a
	if a.deps.Packs == nil {
		return
	}
	var left []catalog.Unfinished
	a.background(func() (err error) {
		left, err = a.deps.Packs.Unfinished()
		return err
	}, func(err error) {
		a.failIf(err)
		for _, u := range left {
			l.list = append(l.list, &download{d: l, ref: u.Source.Origin, source: u.Source, state: "paused", now: catalog.Progress{Done: u.Done, Total: u.Source.Size()}})
		}
		l.p.draw()
	})
}

// find looks a reference up.
func (l *downloads) find(ref string) {
	for _, d := range l.list {
		if d.ref == ref && d.state != "failed" {
			return
		}
	}
	d := &download{d: l, ref: ref, state: "looking"}
	l.list = append([]*download{d}, l.list...)
	l.p.draw()
	l.p.scroll.ScrollToTop()
	a := l.p.a
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	d.cancel = cancel
	a.long(func() {
		s, err := a.deps.Packs.Find(ctx, ref)
		cancel()
		a.ui(func() {
			var many *catalog.ChoiceError
			switch {
			case errors.As(err, &many):
				d.state, d.choice = "choose", many
			case err != nil:
				d.state, d.err = "failed", err
			default:
				d.source = s
				d.start()
				return
			}
			l.p.draw()
		})
	})
}

func (d *download) start() {
	a := d.d.p.a
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel, d.state, d.err = cancel, "running", nil
	d.now.Phase = "looking up"
	d.d.p.draw()
	a.long(func() {
		added, err := a.deps.Packs.Download(ctx, d.source, func(g catalog.Progress) {
			a.ui(func() { d.progress(g) })
		})
		a.ui(func() {
			switch {
			case err == nil:
				d.d.drop(d)
				if len(added) > 0 {
					name := added[0].Name
					a.notify(tr("%s is here", name), tr("Fetched and checked."))
					a.frame.toasts.Push(widget.Toast{State: widget.StateGood, Text: tr("%s is fetched and checked.", name), Button: tr("Start it"), For: widget.UndoTime, Do: func() {
						if e, ok := a.packs.named(name); ok {
							a.start(e)
						}
					}})
				}
				a.packs.reload(nil)
			case ctx.Err() != nil:
				d.state = "paused"
			default:
				d.state, d.err = "failed", err
			}
			d.d.p.draw()
		})
	})
}

// progress shows how far it is, at most five times a second.
func (d *download) progress(g catalog.Progress) {
	phase := d.now.Phase
	d.now = g
	if g.Phase == phase && time.Since(d.drawn) < 200*time.Millisecond {
		return
	}
	d.drawn = time.Now()
	if d.bar != nil && g.Total > 0 {
		d.bar.SetValue(float64(g.Done) / float64(g.Total))
	}
	if d.words != nil {
		d.words.Set(d.progressWords())
	}
}

func (d *download) progressWords() string {
	g := d.now
	switch g.Phase {
	case "downloading":
		text := tr("%s", bytes64(g.Done))
		if g.Total > 0 {
			text = of(float64(g.Done), float64(g.Total))
		}
		if g.Rate > 0 {
			text += tr(", %s/s", size(g.Rate))
			if g.Total > g.Done {
				text += tr(", %s left", span(time.Duration(float64(g.Total-g.Done)/g.Rate*float64(time.Second))))
			}
		} else {
			text += tr(", measuring the rate")
		}
		return text
	case "waiting":
		return capital(g.Note)
	case "verifying":
		return tr("Checking the digest, %s", of(float64(g.Done), float64(max(g.Total, 1))))
	case "":
		return ""
	}
	return capital(g.Phase)
}

func (l *downloads) drop(d *download) {
	for i, x := range l.list {
		if x == d {
			l.list = append(l.list[:i:i], l.list[i+1:]...)
			return
		}
	}
}

// draw adds a card for each.
func (l *downloads) draw(box *fyne.Container) {
	for _, d := range l.list {
		box.Add(d.card())
	}
}

func (d *download) card() fyne.CanvasObject {
	name := d.ref
	if d.source.Name != "" {
		name = d.source.Name
	}
	state := widget.StateBusy
	switch d.state {
	case "failed":
		state = widget.StateAct
	case "choose", "paused":
		state = widget.StateInfo
	}
	head := widget.H(6, widget.NewLight(state), widget.Flex(widget.NewText(name).Bold().Cutting(80)))
	body := widget.V(8, head)
	close := func(tip string) *widget.IconButton {
		return widget.NewIconButton("close", tip, func() {
			if d.cancel != nil {
				d.cancel()
			}
			d.d.drop(d)
			d.d.p.draw()
		})
	}
	switch d.state {
	case "looking":
		body.Add(widget.NewNote(tr("Looking it up…")))
		head.Add(close(tr("Cancel")))
	case "choose":
		body.Add(widget.NewNote(tr("%s holds several packs. Which one?", d.choice.Repo)))
		flow := widget.Flow(6)
		for _, o := range d.choice.Options {
			flow.Add(widget.NewChip("download", o.Ref+", "+bytes64(o.Bytes), false, func() {
				d.d.drop(d)
				d.d.find(o.Ref)
			}))
		}
		body.Add(flow)
		head.Add(close(tr("Close")))
	case "failed":
		body.Add(widget.NewParagraph(plainly(d.err)).In(widget.ColorAct))
		again := func() {
			if len(d.source.Files) > 0 {
				d.start()
				return
			}
			d.d.drop(d)
			d.d.find(d.ref)
		}
		body.Add(widget.H(8, fynewidget.NewButton(tr("Try again"), again)))
		head.Add(close(tr("Close")))
	default:
		d.bar = widget.NewBar()
		if d.now.Total > 0 {
			d.bar.SetValue(float64(d.now.Done) / float64(d.now.Total))
		}
		words := d.progressWords()
		if d.state == "paused" {
			words = tr("Paused at %s", of(float64(d.now.Done), float64(max(d.now.Total, 1))))
		}
		d.words = widget.NewCaption(words).Mono().Cutting(80)
		if d.state == "paused" {
			head.Add(widget.NewIconButton("play", tr("Go on"), d.start).In(widget.ColorText))
		} else {
			head.Add(widget.NewIconButton("pause", tr("Pause"), func() { d.cancel() }).In(widget.ColorText))
		}
		head.Add(widget.NewIconButton("trash", tr("Give up and delete what was fetched"), d.discard))
		body.Add(d.bar)
		body.Add(d.words)
	}
	return widget.Box(body)
}

// discard deletes what was fetched, after ten seconds to think again.
func (d *download) discard() {
	a := d.d.p.a
	if d.cancel != nil {
		d.cancel()
	}
	d.d.drop(d)
	d.d.p.draw()
	a.frame.toasts.Undo(tr("Gave up %s.", d.source.Name), func() {
		d.state = "paused"
		d.d.list = append(d.d.list, d)
		d.d.p.draw()
	}, func() {
		a.background(func() error { return a.deps.Packs.Discard(d.source.Name) }, nil)
	})
}
