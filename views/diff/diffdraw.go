package diff

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

func (v *diffList) Draw(now time.Time, focused bool) []string {
	if v.stale {
		v.refill()
	}
	d := v.diff()
	if d == nil {
		return widget.Centre(v.nothing(), v.width, v.height, v.styles)
	}
	lines := v.head(d, now)
	v.table.SetSize(v.width, v.height-len(lines))
	return append(lines, v.table.Draw(v.styles, focused, func(i int) []widget.Cell { return v.cells(d, v.rows[i]) })...)
}

// head is who they are and where they first differ, in as many lines as there is room for.
func (v *diffList) head(d *histories.Diff, now time.Time) []string {
	s := v.styles
	w := &widget.Writer{Doc: &widget.Document{}, S: s, Width: v.width, Now: now, Loc: v.Location}
	diffSide(w, "A", v.of.A.Name(), &d.A)
	diffSide(w, "B", v.of.B.Name(), &d.B)
	room := max(v.height/5, 2)
	from := len(w.Lines)
	diffVerdict(w, d)
	for _, note := range d.Notes {
		w.Prose(" ", s.Warning, note)
	}
	if len(w.Lines)-from > room {
		w.Lines = w.Lines[:from+room-1]
		w.Say(s.Muted, " … the rest stands beside the first row")
	}
	w.End(w.Line().Add(s.Muted, " "+diffCounts(d)+"; "+shortMetrics(d, s.Glyphs)))
	return w.Lines[:min(len(w.Lines), max(v.height-4, 0))]
}

// shortMetrics are the figures that matter most, in a line.
func shortMetrics(d *histories.Diff, g theme.Glyphs) string {
	var parts []string
	for _, m := range d.Metrics {
		switch m.Name {
		case "duration", "input tokens", "output tokens", "cost", "skills":
			if r := diffMetric(m, g); r.By != "=" {
				parts = append(parts, r.Name+" "+r.A+" "+g.Arrow+" "+r.B)
			}
		}
	}
	if len(parts) == 0 {
		return "no figure of note differs"
	}
	return strings.Join(parts, ", ")
}

func (v *diffList) nothing() []string {
	g := v.styles.Glyphs
	if v.of == nil {
		return []string{"no two runs are chosen", "mark two with space in the list of runs, then d"}
	}
	say := []string{text.Safe(v.of.A.Name(), " "), "and", text.Safe(v.of.B.Name(), " "), ""}
	if v.of.Reading {
		return append(say, fmt.Sprintf("reading%s %s and %s events", g.Ellipsis, text.Count(int64(v.of.ReadA)), text.Count(int64(v.of.ReadB))))
	}
	for _, x := range []struct{ name, err string }{{"A", v.of.ErrA}, {"B", v.of.ErrB}} {
		if x.err != "" {
			say = append(say, g.Failed+" "+x.name+" cannot be read: "+text.Safe(x.err, " "))
		}
	}
	return append(say, "", "ctrl+r tries again; o and O open what is there")
}

func (v *diffList) cells(d *histories.Diff, r pairRow) []widget.Cell {
	s, g := v.styles, v.styles.Glyphs
	if r.pair < 0 {
		return []widget.Cell{{"", s.Muted}, {"the whole: first difference, figures", s.Strong}, {"", s.Muted}, {"", s.Muted}}
	}
	p := &d.Pairs[r.pair]
	m := pairMark(p.Status, s)
	if r.n > 0 {
		return []widget.Cell{{m.Glyph + " " + m.Word, m.Ink}, {g.Pointer + " " + text.Count(int64(r.n)) + " steps", s.Muted},
			{strconv.FormatInt(p.Step().Event, 10) + "…", s.Muted}, {"", s.Muted}}
	}
	step := p.Step()
	ink, name := s.Text, text.Safe(step.Key, " ")
	if p.Status == histories.DiffSame {
		ink = s.Muted
	}
	if step.Kind == "tool call" {
		name = "  " + strings.TrimPrefix(name, "tool call ")
	}
	if where := takenOver(p); where != "" {
		name += " (" + where + ")"
	}
	took := ""
	if p.A != nil && p.A.DurationMS > 0 || p.B != nil && p.B.DurationMS > 0 {
		took = besides(p, g, func(x *histories.DiffStep) string { return stepTookMS(x, g) })
	}
	return []widget.Cell{{m.Glyph + " " + m.Word, m.Ink}, {name, ink},
		{besides(p, g, func(x *histories.DiffStep) string { return strconv.FormatInt(x.Event, 10) }), s.Muted},
		{took, s.Muted}}
}

// besides is something of both sides in a cell.
func besides(p *histories.DiffPair, g theme.Glyphs, of func(*histories.DiffStep) string) string {
	a, b := g.Dash, g.Dash
	if p.A != nil {
		a = of(p.A)
	}
	if p.B != nil {
		b = of(p.B)
	}
	return a + " | " + b
}
