package views

import (
	"strconv"
	"strings"
	"time"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// barPane is the spans as lanes on a time axis.
type barPane struct {
	folded      map[foldKey]bool // spans whose state differs from the usual one
	cursor, top int              // lanes
	height      int              // lanes in sight
	window      sources.Window   // if zoomed; else all of the time
	zoomed      bool
	extent      sources.Window // all of the time, as drawn last

	lanes []int32 // places of the spans in sight, worked out from what follows
	spans []sources.Span
	of    *sources.EventLog
	made  laneKey
	dirty bool
}

type foldKey struct {
	kind  sources.SpanKind
	event int64
	name  string
}

type laneKey struct {
	filter     sources.EventFilter
	everything bool
}

func foldOf(s *sources.Span) foldKey { return foldKey{s.Kind, s.Event, s.Name} }

// shut tells whether what is within a span is hidden. Groups are shut at first: their
// own lane shows all that is in them.
func (p *barPane) shut(s *sources.Span) bool {
	return (s.Kind == sources.SpanGroup) != p.folded[foldOf(s)]
}

// arrange lists the lanes: what stands within no shut span and what the filter lets
// through, with all that they stand within.
func (v *timeline) arrange(l *sources.EventLog) {
	p := &v.bars
	key := laneKey{v.filter, v.everything}
	if p.of == l && p.made == key && !p.dirty {
		return
	}
	sameSpans := len(p.spans) > 0 && len(l.Spans) > 0 && &p.spans[0] == &l.Spans[0]
	if sameSpans && p.made == key && !p.dirty {
		p.of = l
		return
	}
	var on foldKey
	if p.cursor < len(p.lanes) {
		on = foldOf(&p.spans[p.lanes[p.cursor]])
	}
	p.spans, p.of, p.made, p.dirty = l.Spans, l, key, false
	keep := v.passing(l)
	p.lanes = p.lanes[:0]
	hidden := int8(-1)
	for i := range p.spans {
		s := &p.spans[i]
		if hidden >= 0 && s.Depth > hidden {
			continue
		}
		hidden = -1
		if keep != nil && !keep[i] {
			continue
		}
		if foldOf(s) == on {
			p.cursor = len(p.lanes)
		}
		p.lanes = append(p.lanes, int32(i))
		if p.shut(s) && (keep == nil || v.everything) {
			hidden = s.Depth
		}
	}
	p.scroll(0)
}

// passing is which spans the filter lets through, with those that hold them; nil for all.
func (v *timeline) passing(l *sources.EventLog) []bool {
	if v.filter.Empty() || v.everything {
		return nil
	}
	m, err := v.filter.Compile()
	if err != nil {
		return nil
	}
	keep := make([]bool, len(l.Spans))
	for i := range l.Spans {
		if l.Spans[i].Kind == sources.SpanGroup || !m.Span(&l.Spans[i]) {
			continue
		}
		for at := int32(i); at >= 0 && !keep[at]; at = l.Spans[at].Parent {
			keep[at] = true
		}
	}
	if len(keep) > 0 {
		keep[0] = true
	}
	return keep
}

func (p *barPane) scroll(by int) {
	p.cursor = clamp(p.cursor+by, 0, max(len(p.lanes)-1, 0))
	p.top = clamp(p.top, p.cursor-max(p.height, 1)+1, p.cursor)
	p.top = clamp(p.top, 0, max(len(p.lanes)-p.height, 0))
}

func (v *timeline) span() *sources.Span {
	if l := v.current(); l != nil {
		v.arrange(l)
	}
	if p := &v.bars; p.cursor < len(p.lanes) {
		return &p.spans[p.lanes[p.cursor]]
	}
	return nil
}

// goTo puts the cursor on the innermost span that an event tells of, unfolding what it
// stands in.
func (p *barPane) goTo(v *timeline, l *sources.EventLog, id int64) {
	root := id
	if e := l.Event(id); e != nil {
		root = e.Root
	}
	best := -1
	for i := range l.Spans {
		s := &l.Spans[i]
		switch {
		case s.Kind == sources.SpanGroup || s.Kind == sources.SpanRun && best >= 0:
		case s.Event == id, s.Last == id && best < 0, s.Event == root && best < 0:
			best = i
		}
	}
	if best >= 0 {
		p.show(v, l, best)
	}
}

// show puts the cursor on a span, unfolding what it stands in.
func (p *barPane) show(v *timeline, l *sources.EventLog, best int) {
	for at := l.Spans[best].Parent; at >= 0; at = l.Spans[at].Parent {
		if s := &l.Spans[at]; p.shut(s) {
			p.folded[foldOf(s)] = !p.folded[foldOf(s)]
			p.dirty = true
		}
	}
	v.arrange(l)
	for i, at := range p.lanes {
		if int(at) == best {
			p.cursor = i
		}
	}
	p.scroll(0)
}

// step goes to the next span, or the one before, of which ok holds; false where there is
// none.
func (v *timeline) step(l *sources.EventLog, by int, ok func(*sources.Span) bool) bool {
	p := &v.bars
	v.arrange(l)
	if p.cursor >= len(p.lanes) {
		return false
	}
	keep := v.passing(l)
	for i := int(p.lanes[p.cursor]) + by; i >= 0 && i < len(p.spans); i += by {
		if s := &p.spans[i]; s.Kind != sources.SpanGroup && (keep == nil || keep[i]) && ok(s) {
			p.show(v, l, i)
			v.look()
			return true
		}
	}
	return false
}

// matches is the filter over spans; without one there is nothing to step to.
func (v *timeline) matches() func(*sources.Span) bool {
	m, err := v.filter.Compile()
	if err != nil || v.filter.Empty() {
		return func(*sources.Span) bool { return false }
	}
	return m.Span
}

func (v *timeline) fold() {
	s := v.span()
	if s == nil || v.onList {
		return
	}
	v.bars.folded[foldOf(s)] = !v.bars.folded[foldOf(s)]
	v.bars.dirty = true
}

func (v *timeline) shown() sources.Window {
	if v.bars.zoomed {
		return v.bars.window
	}
	return v.bars.extent
}

// zoom changes how much time is in sight and keeps the selected span, or else the middle,
// where it is.
func (v *timeline) zoom(factor float64) {
	w := v.shown()
	length := w.To - w.From
	anchor := w.From + length/2
	if s := v.span(); s != nil && s.Kind != sources.SpanRun {
		end := max(s.End, s.Start)
		anchor = min(max((s.Start+end)/2, w.From), w.To)
	}
	next := int64(float64(length) * factor)
	from := anchor - int64(float64(anchor-w.From)*factor)
	v.setWindow(from, next)
}

func (v *timeline) zoomHere() {
	if s := v.span(); s != nil {
		end := s.End
		if end == 0 {
			end = v.bars.extent.To
		}
		length := max(end-s.Start, int64(100*time.Microsecond))
		v.setWindow(s.Start-length/8, length+length/4)
	}
}

// setWindow stays within all of the time.
func (v *timeline) setWindow(from, length int64) {
	all := v.bars.extent
	length = max(length, int64(10*time.Microsecond))
	if length >= all.To-all.From {
		v.bars.zoomed = false
		return
	}
	from = min(max(from, all.From), all.To-length)
	v.bars.window, v.bars.zoomed = sources.Window{From: from, To: from + length}, true
}

func (v *timeline) pan(part float64) {
	if w := v.shown(); v.bars.zoomed {
		v.setWindow(w.From+int64(part*float64(w.To-w.From)), w.To-w.From)
	}
}

// The columns before the bars.
const (
	durationWidth = 8
	laneGap       = 1
)

func laneNameWidth(width int) int { return clamp(width*36/100, 14, 44) }

func (v *timeline) drawBars(l *sources.EventLog, now time.Time, focused bool) []string {
	v.arrange(l)
	p := &v.bars
	p.height = max(v.height-3, 1)
	p.scroll(0)
	p.extent = sources.Extent(l.Spans[:1], now)
	for i := range l.Spans { // points and clocks may lie outside the run
		if s := &l.Spans[i]; s.Depth == 1 {
			p.extent.From, p.extent.To = min(p.extent.From, s.Start), max(p.extent.To, s.End)
		}
	}
	w, name := v.shown(), laneNameWidth(v.width)
	room := max(v.width-pointerWidth-name-durationWidth-2*laneGap, 1)
	zero := l.Spans[0].Start
	lines := []string{v.axis(w, zero, name, room)}
	for i := p.top; i < min(p.top+p.height, len(p.lanes)); i++ {
		lines = append(lines, v.lane(l, p.lanes[i], w, name, room, now, i == p.cursor, focused))
	}
	lines = fill(lines, v.width, v.height-2)
	return fill(append(lines, v.trouble(l), v.legend()), v.width, v.height)
}

// axis is the times of the window, each begun at its own cell.
func (v *timeline) axis(w sources.Window, zero int64, name, room int) string {
	line := []rune(strings.Repeat(" ", room))
	from := 0
	for _, t := range w.Ticks(zero, max(room/12, 1)) {
		x := w.Column(t, room)
		label := []rune(v.styles.Glyphs.Plain.Side + axisTime(time.Duration(t-zero)))
		if x < from || x+len(label) > room {
			continue
		}
		copy(line[x:], label)
		from = x + len(label) + 1
	}
	head := text.Fit(text.Spaces(pointerWidth)+"SPAN", pointerWidth+name+laneGap, "") + text.FitLeft("TOOK", durationWidth, "") + text.Spaces(laneGap)
	return v.styles.Muted.Paint(text.Fit(head+string(line), v.width, ""))
}

func axisTime(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < 0:
		return "-" + axisTime(-d)
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + "us"
	case d < time.Second || d%time.Second != 0 && d < time.Minute:
		return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64) + "ms"
	case d < time.Minute:
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	whole := d.Round(time.Second).String()
	for _, none := range []string{"m0s", "h0m"} { // the first letter stays: it is the unit before
		if strings.HasSuffix(whole, none) {
			whole = whole[:len(whole)-2]
		}
	}
	return whole
}

// lane is a span: its name in the tree, how long it took, and its bar.
func (v *timeline) lane(l *sources.EventLog, at int32, w sources.Window, name, room int, now time.Time, cursor, focused bool) string {
	s, g, p := v.styles, v.styles.Glyphs, &v.bars
	sp := &p.spans[at]
	label := text.Spaces(2*int(sp.Depth)) + v.spanGlyph(at) + " " + text.Safe(bounded(sp.Name, v.width), " ")
	if sp.Kind == sources.SpanGroup {
		label += " " + text.Count(int64(sp.Members))
	}
	if sp.Kind == sources.SpanActivity && sp.Attempt > 1 {
		label += " " + g.Retry + text.Count(int64(sp.Attempt))
	}
	long := g.Dash
	if d := sp.Ran(now); !sp.Point && (sp.Run != 0 || sp.State.Open()) {
		if sp.Run == 0 {
			d = sp.Waited(now)
		}
		long = text.Took(d)
		if sp.Cut {
			long = ">" + long
		}
	}
	cells := make([]sources.Cell, room)
	w.Draw(cells, sp, now)
	if sp.Kind == sources.SpanGroup && p.shut(sp) {
		clear(cells)
		for i := int(at) + 1; i < len(p.spans) && p.spans[i].Depth > sp.Depth; i++ {
			w.Draw(cells, &p.spans[i], now)
		}
	}
	ink := v.spanInk(sp)
	mark := rowPlain
	pointer := text.Spaces(pointerWidth)
	if cursor {
		mark, pointer = rowCursor, g.Pointer+" "
		if focused {
			mark = rowSelected
		}
	}
	label, long = text.Fit(label, name, g.Ellipsis), text.FitLeft(long, durationWidth, "")
	if mark == rowPlain {
		label, long = ink.Paint(label), s.Muted.Paint(long)
	} else {
		label, long = rowInk(mark, s).Paint(pointer+label), rowInk(mark, s).Paint(long)
		pointer = ""
	}
	line := pointer + label + text.Spaces(laneGap) + long + text.Spaces(laneGap) + v.paintCells(cells, sp)
	return text.Fit(line, v.width, "")
}

func (v *timeline) paintCells(cells []sources.Cell, sp *sources.Span) string {
	var b strings.Builder
	for i := 0; i < len(cells); {
		j := i
		for j < len(cells) && cells[j] == cells[i] {
			j++
		}
		glyph, ink := v.cellLook(cells[i], sp)
		b.WriteString(ink.Paint(strings.Repeat(glyph, j-i)))
		i = j
	}
	return b.String()
}

func (v *timeline) cellLook(c sources.Cell, sp *sources.Span) (string, theme.Ink) {
	s, g := v.styles, v.styles.Glyphs
	switch c {
	case sources.CellWait:
		return g.Empty, s.Muted
	case sources.CellRetry:
		return g.Shade, s.Retrying
	case sources.CellRun:
		if sp.State == sources.SpanCancelled {
			return g.Full, s.Cancelled
		}
		return g.Full, s.Success
	case sources.CellOpen:
		return g.Full, s.Running
	case sources.CellFailed:
		return g.Full, s.Failed
	case sources.CellPoint:
		return g.Point, s.Accent
	case sources.CellBad:
		return g.Failed, s.Error
	}
	return " ", s.Text
}

// legend says what the characters of the bars mean.
func (v *timeline) legend() string {
	s, g := v.styles, v.styles.Glyphs
	l := text.Line{Max: v.width, Tail: g.Ellipsis}
	for _, x := range []struct {
		ink         theme.Ink
		glyph, word string
	}{{s.Muted, g.Empty, "waiting"}, {s.Retrying, g.Shade, "tried again"}, {s.Success, g.Full, "ran"}, {s.Accent, g.Point, "moment"}, {s.Error, g.Failed, "error"}} {
		l.Add(x.ink, " "+x.glyph).Add(s.Muted, " "+x.word+" ")
	}
	return l.String(s.Text)
}

// spanGlyph is a span's state, or whether a group is shut.
func (v *timeline) spanGlyph(at int32) string {
	sp, g := &v.bars.spans[at], v.styles.Glyphs
	if sp.State.Bad() || sp.Kind == sources.SpanGroup && sp.Error != "" {
		return g.Failed
	}
	if int(at)+1 < len(v.bars.spans) && v.bars.spans[at+1].Depth > sp.Depth && v.bars.shut(sp) {
		return "+"
	}
	switch sp.State {
	case sources.SpanScheduled:
		return g.Pending
	case sources.SpanRunning:
		return g.Running
	case sources.SpanRetrying:
		return g.Retry
	case sources.SpanCancelled:
		return g.Cancelled
	case sources.SpanContinued:
		return g.Refresh
	}
	return g.Success
}

func (v *timeline) spanInk(sp *sources.Span) theme.Ink {
	s := v.styles
	switch {
	case sp.State.Bad():
		return s.Error
	case sp.State == sources.SpanRetrying:
		return s.Retrying
	case sp.State.Open():
		return s.Running
	case sp.Kind == sources.SpanPhase || sp.Kind == sources.SpanRun:
		return s.Strong
	case sp.Kind == sources.SpanGroup:
		return s.Muted
	}
	return s.Text
}
