package timeline

import (
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// barPane shows the spans as lanes on a time axis.
type barPane struct {
	*scope
	folded      map[foldKey]bool // spans that the user folded or unfolded
	cursor, top int              // lanes
	lanesShown  int              // number of visible lanes
	window      histories.Window // if zoomed
	zoomed      bool
	extent      histories.Window // of the whole run, as drawn last
	marked      int64            // time that a line marks, 0 for none

	lanes []int32 // indexes of the listed spans, which depend on the fields below
	spans []histories.Span
	made  laneKey
	dirty bool
}

type foldKey struct {
	kind  histories.SpanKind
	event int64
	name  string
}

type laneKey struct {
	filter     histories.EventFilter
	everything bool
}

func foldOf(s *histories.Span) foldKey { return foldKey{s.Kind, s.Event, s.Name} }

func newBarPane(s *scope) *barPane { return &barPane{scope: s, folded: map[foldKey]bool{}} }

// isFolded reports whether the spans within a span are hidden. Groups are folded by default: their lane
// shows all that they contain.
func (p *barPane) isFolded(s *histories.Span) bool {
	return (s.Kind == histories.SpanGroup) != p.folded[foldOf(s)]
}

// arrange lists the lanes: the spans that match the filter and the spans that contain them, without the
// content of folded spans.
func (p *barPane) arrange(l *histories.EventLog) {
	key := laneKey{p.filter, p.everything}
	sameSpans := len(p.spans) > 0 && len(p.spans) == len(l.Spans) && &p.spans[0] == &l.Spans[0]
	if sameSpans && p.made == key && !p.dirty {
		return
	}
	var on foldKey
	if p.cursor < len(p.lanes) {
		on = foldOf(&p.spans[p.lanes[p.cursor]])
	}
	p.spans, p.made, p.dirty = l.Spans, key, false
	keep := p.passing(l)
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
		if p.isFolded(s) && (keep == nil || p.everything) {
			hidden = s.Depth
		}
	}
	p.moveBy(0)
}

// passing returns which spans match the filter or contain a match, or nil for all.
func (p *barPane) passing(l *histories.EventLog) []bool {
	if p.filter.Empty() || p.everything {
		return nil
	}
	m, err := p.filter.Compile()
	if err != nil {
		return nil
	}
	keep := make([]bool, len(l.Spans))
	for i := range l.Spans {
		if l.Spans[i].Kind == histories.SpanGroup || !m.Span(&l.Spans[i]) {
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

func (p *barPane) scroll(l *histories.EventLog, by int) {
	p.arrange(l)
	p.moveBy(by)
}

func (p *barPane) page() int { return max(p.lanesShown, 1) }

func (p *barPane) moveBy(by int) {
	p.cursor = widget.Clamp(p.cursor+by, 0, max(len(p.lanes)-1, 0))
	p.top = widget.TopOf(p.top, p.cursor, p.page(), len(p.lanes))
}

// span returns the selected span, or nil.
func (p *barPane) span(l *histories.EventLog) *histories.Span {
	if l != nil {
		p.arrange(l)
	}
	if p.cursor < len(p.lanes) {
		return &p.spans[p.lanes[p.cursor]]
	}
	return nil
}

func (p *barPane) at(l *histories.EventLog) int64 {
	if s := p.span(l); s != nil {
		return s.Event
	}
	return 0
}

// goTo selects the innermost span of an event.
func (p *barPane) goTo(l *histories.EventLog, id int64) {
	if at := spanOf(l, id); at >= 0 {
		p.show(l, at)
	}
}

// spanOf returns the index of the innermost span of an event, or -1.
func spanOf(l *histories.EventLog, id int64) int {
	root := id
	if e := l.Event(id); e != nil {
		root = e.Root
	}
	best := -1
	for i := range l.Spans {
		s := &l.Spans[i]
		switch {
		case s.Kind == histories.SpanGroup || s.Kind == histories.SpanRun && best >= 0:
		case s.Event == id, s.Last == id && best < 0, s.Event == root && best < 0:
			best = i
		}
	}
	return best
}

// show selects a span and unfolds the spans that contain it.
func (p *barPane) show(l *histories.EventLog, best int) {
	for at := l.Spans[best].Parent; at >= 0; at = l.Spans[at].Parent {
		if s := &l.Spans[at]; p.isFolded(s) {
			p.folded[foldOf(s)] = !p.folded[foldOf(s)]
			p.dirty = true
		}
	}
	p.arrange(l)
	for i, at := range p.lanes {
		if int(at) == best {
			p.cursor = i
		}
	}
	p.moveBy(0)
}

// step selects the next span that satisfies ok, or with by -1 the previous one. It reports whether
// such a span exists.
func (p *barPane) step(l *histories.EventLog, by int, ok func(*histories.Span) bool) bool {
	p.arrange(l)
	if p.cursor >= len(p.lanes) {
		return false
	}
	keep := p.passing(l)
	for i := int(p.lanes[p.cursor]) + by; i >= 0 && i < len(p.spans); i += by {
		if s := &p.spans[i]; s.Kind != histories.SpanGroup && (keep == nil || keep[i]) && ok(s) {
			p.show(l, i)
			return true
		}
	}
	return false
}

func (p *barPane) fold(l *histories.EventLog) {
	s := p.span(l)
	if s == nil {
		return
	}
	p.folded[foldOf(s)] = !p.folded[foldOf(s)]
	p.dirty = true
}

// shown returns the visible time.
func (p *barPane) shown() histories.Window {
	return widget.If(p.zoomed, p.window, p.extent)
}

// zoom scales the visible time around the selected span, or around the middle.
func (p *barPane) zoom(l *histories.EventLog, factor float64) {
	w := p.shown()
	length := w.To - w.From
	anchor := w.From + length/2
	if s := p.span(l); s != nil && s.Kind != histories.SpanRun {
		end := max(s.End, s.Start)
		anchor = min(max((s.Start+end)/2, w.From), w.To)
	}
	next := int64(float64(length) * factor)
	from := anchor - int64(float64(anchor-w.From)*factor)
	p.setWindow(from, next)
}

func (p *barPane) zoomHere(l *histories.EventLog) {
	if s := p.span(l); s != nil {
		end := s.End
		if end == 0 {
			end = p.extent.To
		}
		length := max(end-s.Start, int64(100*time.Microsecond))
		p.setWindow(s.Start-length/8, length+length/4)
	}
}

// setWindow zooms to a window within the run.
func (p *barPane) setWindow(from, length int64) {
	all := p.extent
	length = max(length, int64(10*time.Microsecond))
	if length >= all.To-all.From {
		p.zoomed = false
		return
	}
	from = min(max(from, all.From), all.To-length)
	p.window, p.zoomed = histories.Window{From: from, To: from + length}, true
}

func (p *barPane) pan(part float64) {
	if w := p.shown(); p.zoomed {
		p.setWindow(w.From+int64(part*float64(w.To-w.From)), w.To-w.From)
	}
}

// The columns before the bars.
const (
	durationWidth = 8
	laneGap       = 1
)

// laneNameWidth returns the width of the names: more than usual if a name needs it.
func laneNameWidth(width, needed int) int {
	usual := widget.Clamp(width*36/100, 14, 44)
	return max(usual, min(needed, width*45/100))
}

func (p *barPane) draw(l *histories.EventLog, now time.Time, focused bool, status string) []string {
	lines := widget.Fill(p.drawLanes(l, now, focused, p.Height-3), p.Width, p.Height-2)
	return widget.Fill(append(lines, status, p.legend()), p.Width, p.Height)
}

// drawLanes returns the axis and at most lanes lanes around the cursor.
func (p *barPane) drawLanes(l *histories.EventLog, now time.Time, focused bool, lanes int) []string {
	p.arrange(l)
	p.lanesShown = max(lanes, 1)
	p.moveBy(0)
	p.extent = histories.Extent(l.Spans[:1], now)
	for i := range l.Spans { // times may be outside the run if clocks differ
		if s := &l.Spans[i]; s.Depth == 1 {
			p.extent.From, p.extent.To = min(p.extent.From, s.Start), max(p.extent.To, s.End)
		}
	}
	w, name := p.shown(), laneNameWidth(p.Width, p.needed())
	space := max(p.Width-widget.PointerWidth-name-durationWidth-2*laneGap, 1)
	lines := []string{p.axis(w, l.Spans[0].Start, name, space)}
	for i := p.top; i < min(p.top+p.lanesShown, len(p.lanes)); i++ {
		lines = append(lines, p.lane(p.lanes[i], w, name, space, now, i == p.cursor, focused))
	}
	return lines
}

// axis returns the line of times. Each time starts at the cell that it names.
func (p *barPane) axis(w histories.Window, zero int64, name, space int) string {
	line := []rune(strings.Repeat(" ", space))
	from := 0
	for _, t := range w.Ticks(zero, max(space/12, 1)) {
		x := w.Column(t, space)
		label := []rune(p.Styles.Glyphs.Plain.Side + axisTime(time.Duration(t-zero)))
		if x < from || x+len(label) > space {
			continue
		}
		copy(line[x:], label)
		from = x + len(label) + 1
	}
	head := text.Fit(text.Spaces(widget.PointerWidth)+"SPAN", widget.PointerWidth+name+laneGap, "") +
		text.FitLeft("DURATION", durationWidth, "") + text.Spaces(laneGap)
	return p.Styles.Muted.Paint(text.Fit(head+string(line), p.Width, ""))
}

// axisTime formats a time since the start of the run.
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
	for _, none := range []string{"m0s", "h0m"} { // drops a zero after a larger unit: 1h0m becomes 1h
		if strings.HasSuffix(whole, none) {
			whole = whole[:len(whole)-2]
		}
	}
	return whole
}

// label returns the name of a span at its place in the tree.
func (p *barPane) label(at int32) string {
	sp, g := &p.spans[at], p.Styles.Glyphs
	label := text.Spaces(2*int(sp.Depth)) + p.spanGlyph(at) + " " +
		text.Safe(widget.Bounded(sp.Name, p.Width), " ")
	label += widget.If(sp.Kind == histories.SpanGroup, " "+ace.Number(sp.Members), "")
	if sp.Kind == histories.SpanActivity && sp.Attempt > 1 {
		label += " " + g.Retry + ace.Number(sp.Attempt)
	}
	return label
}

// needed returns the width that the names of the calls of agents on the screen need.
func (p *barPane) needed() (width int) {
	for i := p.top; i < min(p.top+p.lanesShown, len(p.lanes)); i++ {
		if p.spans[p.lanes[i]].Agent != nil {
			width = max(width, text.Width(p.label(p.lanes[i])))
		}
	}
	return width
}

// lane returns the line of a span: its name in the tree, its duration and its bar.
func (p *barPane) lane(at int32, w histories.Window, name, space int, now time.Time, cursor,
	focused bool) string {
	s, g := p.Styles, p.Styles.Glyphs
	sp, label := &p.spans[at], p.label(at)
	long := g.Dash
	if d := sp.Ran(now); !sp.Point && (sp.Run != 0 || sp.State.Open()) {
		if sp.Run == 0 {
			d = sp.Waited(now)
		}
		long = text.Duration(d)
		if sp.Cut {
			long = ">" + long
		}
	}
	cells := make([]histories.Cell, space)
	w.Draw(cells, sp, now)
	if sp.Kind == histories.SpanGroup && p.isFolded(sp) {
		clear(cells)
		for i := int(at) + 1; i < len(p.spans) && p.spans[i].Depth > sp.Depth; i++ {
			w.Draw(cells, &p.spans[i], now)
		}
	}
	label = text.Fit(text.Middle(label, name, g.Ellipsis), name, g.Ellipsis)
	long = text.FitLeft(long, durationWidth, "")
	if cursor {
		ink := widget.RowInk(widget.MarkOf(true, focused), s)
		label, long = ink.Paint(g.Pointer+" "+label), ink.Paint(long)
	} else {
		label, long = text.Spaces(widget.PointerWidth)+p.spanInk(sp).Paint(label), s.Muted.Paint(long)
	}
	line := label + text.Spaces(laneGap) + long + text.Spaces(laneGap) +
		p.paintCells(cells, sp, p.markedColumn(w, space))
	return text.Fit(line, p.Width, "")
}

// markedColumn returns the cell of the marked time, or -1.
func (p *barPane) markedColumn(w histories.Window, width int) int {
	if p.marked == 0 {
		return -1
	}
	return widget.Clamp(w.Column(p.marked, width), 0, width-1)
}

// paintCells paints the cells of a bar, and the line that marks a time.
func (p *barPane) paintCells(cells []histories.Cell, sp *histories.Span, marked int) string {
	var b strings.Builder
	for i := 0; i < len(cells); {
		glyph, ink := p.cellLook(cells[i], sp)
		if i == marked {
			b.WriteString(p.Styles.Title.Paint(p.Styles.Glyphs.Trunk))
			i++
			continue
		}
		j := i
		for j < len(cells) && cells[j] == cells[i] && j != marked {
			j++
		}
		b.WriteString(ink.Paint(strings.Repeat(glyph, j-i)))
		i = j
	}
	return b.String()
}

func (p *barPane) cellLook(c histories.Cell, sp *histories.Span) (string, theme.Ink) {
	s, g := p.Styles, p.Styles.Glyphs
	switch c {
	case histories.CellWait:
		return g.Empty, s.Muted
	case histories.CellRetry:
		return g.Shade, s.Retrying
	case histories.CellRun:
		if sp.State == histories.SpanCanceled {
			return g.Full, s.Canceled
		}
		return g.Full, s.Success
	case histories.CellOpen:
		return g.Full, s.Running
	case histories.CellFailed:
		return g.Full, s.Failed
	case histories.CellPoint:
		return g.Point, s.Accent
	case histories.CellBad:
		return g.Failed, s.Error
	}
	return " ", s.Text
}

// legend explains the characters of the bars.
func (p *barPane) legend() string {
	s := p.Styles
	l := p.Line()
	for _, m := range s.Bars() {
		l.Add(m.Ink, " "+m.Glyph).Add(s.Muted, " "+m.Word+" ")
	}
	return l.String(s.Text)
}

// spanGlyph returns the state of a span, or + if it is folded.
func (p *barPane) spanGlyph(at int32) string {
	sp, g := &p.spans[at], p.Styles.Glyphs
	if sp.State.Bad() || sp.Kind == histories.SpanGroup && sp.Error != "" {
		return g.Failed
	}
	if int(at)+1 < len(p.spans) && p.spans[at+1].Depth > sp.Depth && p.isFolded(sp) {
		return "+"
	}
	switch sp.State {
	case histories.SpanScheduled:
		return g.Pending
	case histories.SpanRunning:
		return g.Running
	case histories.SpanRetrying:
		return g.Retry
	case histories.SpanCanceled:
		return g.Canceled
	case histories.SpanContinued:
		return g.Refresh
	}
	if sp.Kind == histories.SpanRun { // completed says nothing about the answer
		return g.Completed
	}
	return g.Success
}

func (p *barPane) spanInk(sp *histories.Span) theme.Ink {
	s := p.Styles
	switch {
	case sp.State.Bad():
		return s.Error
	case sp.State == histories.SpanRetrying:
		return s.Retrying
	case sp.State.Open():
		return s.Running
	case sp.Kind == histories.SpanPhase || sp.Kind == histories.SpanRun:
		return s.Strong
	case sp.Kind == histories.SpanGroup:
		return s.Muted
	}
	return s.Text
}
