package views

import (
	"encoding/json"
	"fmt"
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

// columnsFrom is the width from which values stand side by side.
const columnsFrom = 96

// maxDiffValue bounds the bytes of a value that are shown.
const maxDiffValue = 4096

// diffChanges writes changes by path, the values side by side where there is room.
func (w *writer) diffChanges(what string, list []sources.DiffChange, indent int) {
	pad := text.Spaces(indent)
	for i := range list {
		c := &list[i]
		path := c.Path
		if path == "" {
			path = "(the whole)"
		}
		w.end(w.line().Add(w.s.Strong, pad+what).Add(w.s.Accent, " "+text.Safe(path, " ")))
		a, b := diffValues(c, w.s)
		if w.width >= columnsFrom {
			w.beside(a, b, indent+2)
		} else {
			w.below(w.s.Glyphs.Removed, w.s.Removed, a, indent+2)
			w.below(w.s.Glyphs.Added, w.s.Added, b, indent+2)
		}
		if c.Cut {
			w.say(w.s.Muted, pad+"  (only the beginning)")
		}
	}
}

// inked is a piece of text in one ink.
type inked struct {
	ink  theme.Ink
	text string
}

// diffValues are both values of a change as pieces, nil where a side has none. Of two
// texts the words that differ stand out.
func diffValues(c *sources.DiffChange, s theme.Styles) (a, b []inked) {
	x, isText := diffValue(c.A)
	y, isText2 := diffValue(c.B)
	if isText && isText2 && c.A != nil && c.B != nil {
		for _, e := range diffWords(x, y) {
			switch e.kind {
			case editGone:
				a = append(a, inked{s.Removed, e.text})
			case editNew:
				b = append(b, inked{s.Added, e.text})
			default:
				a, b = append(a, inked{s.Text, e.text}), append(b, inked{s.Text, e.text})
			}
		}
		return orEmpty(a, s), orEmpty(b, s)
	}
	if c.A != nil {
		a = []inked{{s.Removed, x}}
	}
	if c.B != nil {
		b = []inked{{s.Added, y}}
	}
	return a, b
}

// orEmpty shows that a text is there and empty.
func orEmpty(list []inked, s theme.Styles) []inked {
	if len(list) == 0 {
		return []inked{{s.Muted, `""`}}
	}
	return list
}

// diffValue is a value to read, and whether it is text of several words.
func diffValue(raw json.RawMessage) (string, bool) {
	var s string
	if json.Unmarshal(raw, &s) == nil && len(raw) > 0 && raw[0] == '"' {
		if !strings.ContainsAny(s, " \n") {
			return bounded(string(raw), 0), false
		}
		return bounded(s, 0), true
	}
	if len(raw) > 60 {
		out, used := indent(raw, maxDiffValue)
		if rest := len(raw) - used; rest > 0 {
			return string(out) + fmt.Sprintf("\n(%s more bytes)", text.Count(int64(rest))), false
		}
		return string(out), false
	}
	return string(raw), false
}

// below writes a value under its path.
func (w *writer) below(glyph string, ink theme.Ink, list []inked, indent int) {
	if list == nil {
		return
	}
	head := text.Spaces(indent) + glyph + " "
	for i, l := range wrapInked(list, w.width-indent-3) {
		if i > 0 {
			head = text.Spaces(text.Width(head))
		}
		w.end(w.addInked(w.line().Add(ink, head), l))
	}
}

// beside writes both values side by side.
func (w *writer) beside(a, b []inked, indent int) {
	g := w.s.Glyphs
	half := (w.width - indent - 3) / 2
	left, right := wrapInked(a, half-3), wrapInked(b, half-3)
	for i := range max(len(left), len(right)) {
		l := w.line().Add(w.s.Text, text.Spaces(indent))
		put := func(glyph string, ink theme.Ink, lines [][]inked, until int) {
			if i < len(lines) {
				if i > 0 {
					glyph = " "
				}
				w.addInked(l.Add(ink, glyph+" "), lines[i])
			}
			l.Pad(w.s.Text, until)
		}
		put(g.Removed, w.s.Removed, left, indent+half)
		l.Add(w.s.Border, g.Plain.Side+" ")
		put(g.Added, w.s.Added, right, w.width)
		w.end(l)
	}
}

func (w *writer) addInked(l *text.Line, list []inked) *text.Line {
	for _, r := range list {
		l.Add(r.ink, r.text)
	}
	return l
}

// wrapInked breaks pieces into lines of a width, between words where it can.
func wrapInked(list []inked, width int) (lines [][]inked) {
	width = max(width, 8)
	var line []inked
	used := 0
	flush := func() { lines, line, used = append(lines, line), nil, 0 }
	put := func(ink theme.Ink, word string) {
		wide := text.Width(word)
		if used > 0 && used+wide > width {
			flush()
			if strings.TrimSpace(word) == "" {
				return
			}
		}
		for wide > width { // one word that has no room in any line
			head := text.Cut(word, width, "")
			if head == "" {
				break
			}
			line = append(line, inked{ink, head})
			flush()
			word = word[len(head):]
			wide = text.Width(word)
		}
		if word != "" {
			line = append(line, inked{ink, word})
			used += wide
		}
	}
	for _, r := range list {
		for i, l := range strings.Split(strings.ReplaceAll(r.text, "\r\n", "\n"), "\n") {
			if i > 0 {
				flush()
			}
			for _, word := range splitWords(l) {
				put(r.ink, text.Safe(word, " "))
			}
		}
	}
	if len(line) > 0 || len(list) > 0 && len(lines) == 0 {
		flush()
	}
	return lines
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
