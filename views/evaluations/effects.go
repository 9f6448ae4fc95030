package evaluations

import (
	"strconv"
	"time"

	"acescope/engine/ace"
	"acescope/engine/learning/ablation"
	"acescope/engine/learning/stats"
	"acescope/sources/evaluations"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// effectsView lists the effects of the parts of a playbook, the largest first.
type effectsView struct {
	*page
	console.List[ablation.Effect]
	of *evaluations.Evaluated // that the rows are of
}

func (v *effectsView) Title() string { return "Effects by " + v.name() }

func (v *effectsView) Bindings() []tui.Binding {
	return append(widget.Motions("effects", v),
		console.Key("effects.bullet", "read the bullet", "bullet", func(s tui.Shell) { s.Focus(1) }, "enter"),
		console.Key("effects.next_error", "next part that hurts", "", v.toHurting(1), "e"),
		console.Key("effects.previous_error", "previous part that hurts", "", v.toHurting(-1), "E"),
		console.Key("effects.versions", "show the items", "items", func(s tui.Shell) {
			s.Open("evaluations")
		}, "v"))
}

func (v *effectsView) toHurting(by int) func(tui.Shell) {
	return func(s tui.Shell) {
		v.Next(s, by, func(e ablation.Effect) bool { return e.Pairs.Hurt > e.Pairs.Helped },
			"no other part hurts")
	}
}

func (v *effectsView) SetShown(shown bool) {
	v.page.SetShown(shown)
	v.Refresh()
}

func (v *effectsView) Refresh() {
	if !v.refresh(v.of) {
		return
	}
	v.of = v.data
	var rows []ablation.Effect
	if v.data != nil {
		rows = v.data.Effects
	}
	v.Refill(rows, func(a, b ablation.Effect) bool { return a.Kind == b.Kind && a.Name == b.Name })
}

func (v *effectsView) Draw(_ time.Time, focused bool) []string {
	g, why := v.grid(v.Styles)
	if g == nil {
		return v.Message(nil, why...)
	}
	if g.Input.Ablation == nil {
		return v.Message(nil, v.name()+" is no ablation", "start one with \"acescope playbook ablate\"")
	}
	head := append(v.problem(&v.Pane), v.head(g.Progress.Ablation)...)
	if len(v.Rows) == 0 {
		return v.Message(head, "no answer without a part of the playbook yet")
	}
	return v.DrawRows(head, focused, func(e ablation.Effect) []widget.Cell {
		return effectCells(e, v.Styles)
	})
}

// head shows the progress of the ablation and the result of pruning.
func (v *effectsView) head(p *ace.AblationProgress) []string {
	s := v.Styles
	done, planned := p.Answers()
	l := v.Line().Add(s.Muted, " "+ace.Number(done)+" of "+ace.Count(planned, "answer")+" to "+
		ace.Count(v.data.Labeled, "item"))
	if p.Skipped > 0 {
		l.Add(s.Warning, "  "+ace.Count(p.Skipped, "trial")+" beyond the budget")
	}
	lines := []string{l.String(s.Text)}
	if pruned := p.Pruned; pruned != nil {
		l := v.Line()
		verdict, ink := "kept", s.Success
		if !pruned.Kept {
			verdict, ink = "not kept", s.Failed
		}
		l.Add(ink, " pruned, "+verdict).Add(s.Text, "  "+ace.Number(pruned.Bullets)+" of "+
			ace.Count(pruned.Before, "bullet")+"; accuracy on "+ace.Count(pruned.HeldOut, "held-out item")+
			" "+widget.Points(stats.Share(pruned.Fixed-pruned.Broken, pruned.HeldOut))+" points")
		lines = append(lines, l.String(s.Text))
	}
	return lines
}

func effectCells(e ablation.Effect, s theme.Styles) []widget.Cell {
	name, votes := e.Name, "+"+strconv.Itoa(e.Helpful)+" -"+strconv.Itoa(e.Harmful)
	if e.Kind != ace.TrialBullet {
		name, votes = string(e.Kind)+": "+e.Name, ""
	}
	ink := s.Text
	effect, interval, p, overall, halves := "", "", "", "", ""
	switch {
	case e.Cited == 0:
		effect, ink = "uncited", s.Muted
	case e.Difference == nil:
		effect, ink = s.Glyphs.Dash, s.Muted
	default:
		effect = widget.Points(*e.Difference)
		interval = widget.Points(*e.Low) + " to " + widget.Points(*e.High)
		p = strconv.FormatFloat(*e.P, 'g', 2, 64)
		overall = widget.Points(*e.Overall)
		switch {
		case *e.Low > 0:
			ink = s.Success
		case *e.Difference < 0:
			ink = s.Failed
		}
	}
	if e.Halves != nil {
		halves = widget.Points(e.Halves.Effect)
	}
	correct := widget.Quantity(stats.Share(e.Correct, e.Cited), "rate", s.Glyphs)
	return []widget.Cell{{Text: text.Safe(name, " "), Ink: s.Text},
		{Text: strconv.Itoa(e.Cited), Ink: s.Muted},
		{Text: correct, Ink: s.Muted}, {Text: effect, Ink: ink}, {Text: interval, Ink: ink},
		{Text: p, Ink: s.Muted},
		{Text: overall, Ink: ink}, {Text: halves, Ink: s.Muted}, {Text: votes, Ink: s.Muted}}
}

func (v *effectsView) Copy() (what, content string) {
	e, _ := v.Current()
	return string(e.Kind), e.Name
}

// effectDetail shows the bullets of the part under the cursor.
type effectDetail struct {
	console.Reader
	list *effectsView
}

func (v *effectDetail) Bindings() []tui.Binding { return widget.Motions("bullet", v) }

func (v *effectDetail) Draw(now time.Time, focused bool) []string {
	e, ok := v.list.Current()
	if !ok {
		return v.Message(nil, "no part is selected")
	}
	book := v.list.data.Books[v.list.data.Grid.Input.PlaybookHash]
	return v.Show([2]any{e.Kind, e.Name}, v.list.data, now, focused, func(w *widget.Writer) {
		w.Section(text.Safe(e.Name, " "), string(e.Kind))
		w.Prose(" items     ", w.S.Text, ace.Count(e.Cited, "item")+" cite it, the whole playbook answers "+
			ace.Number(e.Correct)+" correctly")
		if e.Difference != nil {
			helped, hurt := ace.Count(e.Pairs.Helped, "item"), ace.Count(e.Pairs.Hurt, "item")
			w.Prose(" helped    ", w.S.Success, helped+" that only the whole playbook answers correctly")
			w.Prose(" hurt      ", w.S.Failed, hurt+" that only the rest answers correctly")
			w.Prose(" effect    ", w.S.Strong, widget.Points(*e.Difference)+
				" points on these items, 95% interval "+
				widget.Points(*e.Low)+" to "+widget.Points(*e.High)+"; "+widget.Points(*e.Overall)+" on all")
		}
		if h := e.Halves; h != nil && h.Low != nil {
			w.Prose(" halves    ", w.S.Text, widget.Points(h.Effect)+" points on all items, 95% interval "+
				widget.Points(*h.Low)+" to "+widget.Points(*h.High)+", by "+ace.Count(h.Pairs, "pair")+
				" of random halves")
		}
		for _, id := range e.Bullets {
			if book == nil {
				break
			}
			if bullet, ok := book.Find(id); ok {
				w.Section(text.Safe(id, " "), text.Safe(bullet.Section, " "))
				w.Prose("   ", w.S.Text, bullet.Content)
			}
		}
	})
}
