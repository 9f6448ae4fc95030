package views

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// diffNames are what the two runs are called.
type diffNames struct{ a, b string }

// DiffOnly chooses which pairs are written: all, those that differ, those whose input or
// whose result does.
type DiffOnly string

// Choices of pairs.
const (
	DiffEvery       DiffOnly = ""
	DiffOnlyChanged DiffOnly = "changed"
	DiffOnlyInput   DiffOnly = "input"
	DiffOnlyResult  DiffOnly = "result"
)

// Shows tells whether a pair is chosen.
func (o DiffOnly) Shows(p *sources.DiffPair) bool {
	one := p.Status == sources.DiffOnlyA || p.Status == sources.DiffOnlyB
	switch o {
	case DiffOnlyChanged:
		return sources.DiffDiffers(p.Status)
	case DiffOnlyInput:
		return one || len(p.Input) > 0
	case DiffOnlyResult:
		return one || sources.DiffDiffers(p.Status) && (len(p.Result) > 0 || len(p.Input) == 0)
	}
	return true
}

// DiffText is a comparison of two runs in lines: what it comes to, with pairs each pair and
// what changed in it, and the figures.
func DiffText(d *sources.Diff, a, b string, only DiffOnly, pairs bool, width int, s theme.Styles) []string {
	w := &writer{doc: &document{}, s: s, width: width, now: time.Now(), loc: time.Local}
	w.diffHead(d, diffNames{a, b})
	if pairs {
		w.say(s.Text, "")
		w.diffList(d, only)
	}
	w.say(s.Text, "")
	w.diffMetrics(d)
	return w.lines
}

// diffHead says who they are, where they first differ and what one must know.
func (w *writer) diffHead(d *sources.Diff, n diffNames) {
	w.diffSide("A", n.a, &d.A)
	w.diffSide("B", n.b, &d.B)
	w.diffVerdict(d)
	for _, note := range d.Notes {
		w.prose(" ", w.s.Warning, note)
	}
	w.end(w.line().Add(w.s.Muted, " "+diffCounts(d)))
}

func (w *writer) diffSide(side, name string, a *sources.DiffAbout) {
	g := w.s.Glyphs
	facts := []string{text.Safe(orDash(a.Type, g), " "), text.Count(int64(a.Events)) + " events", text.Count(int64(a.Steps)) + " steps"}
	if a.Runs > 1 {
		facts = append(facts, strconv.Itoa(a.Runs)+" runs")
	}
	// Of a path the end tells most.
	if name = text.Safe(name, " "); text.Width(name) > w.width/2 {
		name = g.Ellipsis + text.Last(name, w.width/2-1)
	}
	l := w.line().Add(w.s.Muted, " "+side+" ").Add(w.s.Strong, name)
	w.end(l.Add(diffOutcome(a.Status, w.s), "  "+text.Safe(a.Status, " ")).Add(w.s.Muted, "  "+strings.Join(facts, ", ")))
}

func diffOutcome(status string, s theme.Styles) theme.Ink {
	switch status {
	case "done":
		return s.Success
	case "open", "continued as new":
		return s.Running
	case "cancelled":
		return s.Cancelled
	}
	return s.Failed
}

// diffVerdict is the first difference, and the first that is one of what came out.
func (w *writer) diffVerdict(d *sources.Diff) {
	g := w.s.Glyphs
	if d.First == nil {
		w.prose(" "+g.Success+" ", w.s.Success, "no difference"+diffBut(d))
		return
	}
	w.prose(" ", w.s.Text, "first difference: "+d.First.Text)
	if r := d.FirstResult; r != nil && r.Text != d.First.Text {
		w.prose(" ", w.s.Text, "first other result: "+r.Text)
	}
}

// diffBut says what "no difference" leaves open.
func diffBut(d *sources.Diff) string {
	switch {
	case d.Counts[sources.DiffUnreadable] > 0:
		return " in what can be read"
	case d.Counts[sources.DiffNotReached] > 0:
		return " as far as both go"
	case d.All:
		return ", in no field"
	}
	return ": the runs decided the same"
}

// diffCounts is how many pairs there are of each kind.
func diffCounts(d *sources.Diff) string {
	var parts []string
	for _, k := range diffKinds {
		if n := d.Counts[k.status]; n > 0 || k.status == sources.DiffSame {
			parts = append(parts, text.Count(int64(n))+" "+k.word)
		}
	}
	return strings.Join(parts, ", ")
}

// diffKinds are the ways in which a pair is, as words.
var diffKinds = []struct{ status, word string }{
	{sources.DiffSame, "same"}, {sources.DiffChanged, "changed"}, {sources.DiffOnlyA, "only in A"}, {sources.DiffOnlyB, "only in B"},
	{sources.DiffMoved, "moved"}, {sources.DiffNotReached, "not reached"}, {sources.DiffUnreadable, "unreadable"},
}

// pairMark is how a pair is, as a mark.
func pairMark(status string, s theme.Styles) theme.Mark {
	g := s.Glyphs
	m := theme.Mark{Glyph: "=", Ink: s.Muted}
	switch status {
	case sources.DiffChanged:
		m = theme.Mark{Glyph: g.Updated, Ink: s.Updated}
	case sources.DiffOnlyA:
		m = theme.Mark{Glyph: g.Removed, Ink: s.Removed}
	case sources.DiffOnlyB:
		m = theme.Mark{Glyph: g.Added, Ink: s.Added}
	case sources.DiffMoved:
		m = theme.Mark{Glyph: g.Arrow, Ink: s.Warning}
	case sources.DiffNotReached:
		m = theme.Mark{Glyph: g.Pending, Ink: s.Muted}
	case sources.DiffUnreadable:
		m = theme.Mark{Glyph: g.Unknown, Ink: s.Warning}
	}
	for _, k := range diffKinds {
		if k.status == status {
			m.Word = k.word
		}
	}
	return m
}

// diffWord is the widest word of a mark.
const diffWord = 11

// foldFrom is how many same pairs in a row become one line.
const foldFrom = 4

// diffList writes the pairs; many in a row that are the same become one line.
func (w *writer) diffList(d *sources.Diff, only DiffOnly) {
	for i := 0; i < len(d.Pairs); i++ {
		p := &d.Pairs[i]
		if !only.Shows(p) {
			continue
		}
		if n := sameFrom(d, i); n >= foldFrom {
			w.end(w.line().Add(w.s.Muted, " = "+text.Count(int64(n))+" steps are the same: "+text.Safe(p.Step().Key, " ")+" … "+text.Safe(d.Pairs[i+n-1].Step().Key, " ")))
			i += n - 1
			continue
		}
		w.diffLine(p)
		if only != DiffOnlyResult {
			w.diffChanges("input", p.Input, 4)
		}
		if only != DiffOnlyInput {
			w.diffChanges("result", p.Result, 4)
		}
		w.diffRest(p, 4)
	}
}

// sameFrom is how many pairs from i on are the same, none of which is moved.
func sameFrom(d *sources.Diff, i int) int {
	n := 0
	for ; i+n < len(d.Pairs) && d.Pairs[i+n].Status == sources.DiffSame && !d.Pairs[i+n].Moved; n++ {
	}
	return n
}

// diffLine is a pair in a line: how it is, what it is, and the facts of both.
func (w *writer) diffLine(p *sources.DiffPair) {
	m := pairMark(p.Status, w.s)
	l := w.line().Add(m.Ink, " "+m.Glyph+" "+text.Fit(m.Word, diffWord, "")).Add(w.s.Text, " "+text.Safe(p.Step().Key, " "))
	w.end(l.Add(w.s.Muted, "  "+diffFacts(p, w.s.Glyphs)))
}

// diffFacts are the events, and what differs in duration, attempts and outcome.
func diffFacts(p *sources.DiffPair, g theme.Glyphs) string {
	of := func(say func(*sources.DiffStep) string) string {
		a, b := g.Dash, g.Dash
		if p.A != nil {
			a = say(p.A)
		}
		if p.B != nil {
			b = say(p.B)
		}
		if a == b {
			return a
		}
		return a + " | " + b
	}
	parts := []string{"event " + of(func(s *sources.DiffStep) string { return strconv.FormatInt(s.Event, 10) })}
	if p.Step().DurationMS > 0 || p.B != nil && p.B.DurationMS > 0 {
		parts = append(parts, of(func(s *sources.DiffStep) string { return stepTookMS(s, g) }))
	}
	if p.A != nil && p.B != nil && p.A.Attempt != p.B.Attempt && takenOver(p) == "" {
		parts = append(parts, "attempts "+of(func(s *sources.DiffStep) string { return strconv.Itoa(int(s.Attempt)) }))
	}
	if status := of(func(s *sources.DiffStep) string { return s.Status }); status != "done" {
		parts = append(parts, status)
	}
	if p.Moved {
		parts = append(parts, "moved")
	}
	if where := takenOver(p); where != "" {
		parts = append(parts, where)
	}
	return strings.Join(parts, "  ")
}

// takenOver says where a step was taken over rather than executed, "" where it was not.
func takenOver(p *sources.DiffPair) string {
	a, b := p.A != nil && p.A.Taken, p.B != nil && p.B.Taken
	switch {
	case a && b:
		return "taken over in both"
	case a:
		return "taken over in A"
	case b:
		return "taken over in B"
	}
	return ""
}

// stepTookMS is how long a step took; one that was taken over took nothing here.
func stepTookMS(s *sources.DiffStep, g theme.Glyphs) string {
	if s.Taken {
		return "taken"
	}
	return tookMS(s.DurationMS, g)
}

// diffRest says what a pair has beside its payloads.
func (w *writer) diffRest(p *sources.DiffPair, indent int) {
	pad := text.Spaces(indent)
	say := func(glyph string, ink theme.Ink, s *sources.DiffStep) {
		if s != nil && s.Error != "" {
			w.prose(pad+"  "+glyph+" ", ink, s.Error)
		}
	}
	if a, b := p.A, p.B; (a == nil || b == nil || a.Error != b.Error) && (a != nil && a.Error != "" || b != nil && b.Error != "") {
		w.end(w.line().Add(w.s.Strong, pad+"error"))
		say(w.s.Glyphs.Removed, w.s.Removed, a)
		say(w.s.Glyphs.Added, w.s.Added, b)
	}
	if p.More > 0 {
		w.say(w.s.Muted, pad+text.Count(int64(p.More))+" more changes are not listed")
	}
	if p.Partial {
		w.prose(pad, w.s.Muted, "the payload has more values than are looked at one by one: the last ones are compared as wholes")
	}
}

// diffMetrics is the table of figures.
func (w *writer) diffMetrics(d *sources.Diff) {
	taken := slices.ContainsFunc(d.Metrics, func(m sources.DiffMetric) bool { return m.TakenA != 0 || m.TakenB != 0 })
	wide := 16
	if taken {
		wide = 19
	}
	w.comparedCells(comparedNumber{"", "A", "B", "B" + w.s.Glyphs.Dash + "A"}, wide, w.s.Muted)
	for _, m := range d.Metrics {
		r := diffMetric(m, w.s.Glyphs)
		ink := w.s.Text
		if m.A == m.B && m.TakenA == m.TakenB {
			ink = w.s.Muted
		}
		w.comparedCells(r, wide, ink)
	}
	if taken {
		w.prose(" ", w.s.Muted, "(+N) came with steps that were taken over: it belongs to the original. The difference counts it.")
	}
}

// diffMetric is a figure, written.
func diffMetric(m sources.DiffMetric, g theme.Glyphs) comparedNumber {
	write := func(f float64) string { return text.Count(int64(f)) }
	switch m.Unit {
	case "ms":
		write = func(f float64) string { return tookMS(f, g) }
	case "USD":
		write = func(f float64) string { return "$" + strconv.FormatFloat(f, 'f', 4, 64) }
	}
	with := func(own, taken float64) string {
		if taken == 0 {
			return write(own)
		}
		return write(own) + " (+" + write(taken) + ")"
	}
	return comparedNumber{m.Name, with(m.A, m.TakenA), with(m.B, m.TakenB), signed(m.B+m.TakenB-m.A-m.TakenA, write)}
}
