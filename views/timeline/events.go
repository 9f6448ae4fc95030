package timeline

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// eventInspector shows the selected event with all its fields.
type eventInspector struct {
	t *Timeline
	console.Reader
}

func (v *eventInspector) Title() string {
	id := v.t.at()
	if id == 0 {
		return "Event"
	}
	e := v.t.current().Event(id)
	if e == nil {
		return "Event"
	}
	return "Event " + ace.Number(id) + " " + e.Name()
}

func (v *eventInspector) Footer() string {
	o := v.event()
	if o == nil || o.Err != "" {
		return ""
	}
	if o.Size > len(o.Text) {
		shown := "the first " + console.Bytes(int64(len(o.Text))) + " of " + console.Bytes(int64(o.Size))
		return v.Join(shown, v.Reader.Footer())
	}
	return v.Reader.Footer()
}

func (v *eventInspector) Bindings() []tui.Binding {
	b := func(name, help, short string, do func(tui.Shell), key string) tui.Binding {
		return console.Key("event."+name, help, short, do, key)
	}
	return append(append(widget.Motions("event", v), v.t.forks.ForkAt("event", v.t.forkPoint)...),
		b("search", "show only matches of a regular expression, or of !expression all others", "",
			v.t.askInclude, "/"),
		b("next_error", "next error", "error", v.t.stepOr(failed, 1, nextError, "no later error"), "e"),
		b("previous_error", "previous error", "", v.t.stepOr(failed, -1, nextError, "no earlier error"), "E"),
		b("related", "open the run of the event: child, parent, previous or next run", "", v.t.openRun, "O"),
		console.Key("event.back", "back to the previous run", "", v.t.nav.Back, "backspace"))
}

// event returns the selected event, or nil until it is read.
func (v *eventInspector) event() *histories.OpenedEvent {
	l, id := v.t.current(), v.t.at()
	if l == nil || l.Opened == nil || l.Opened.ID != id {
		return nil
	}
	return l.Opened
}

func (v *eventInspector) Draw(now time.Time, focused bool) []string {
	l, id := v.t.current(), v.t.at()
	if l == nil || id == 0 {
		return v.Message(nil, "no event is selected")
	}
	v.t.look()
	v.Head = v.about(l, id, l.Clock(now))
	o := v.event()
	return v.Show(id, o, now, focused, func(w *widget.Writer) {
		switch {
		case o == nil:
			w.Say(w.S.Muted, " reading"+w.S.Glyphs.Ellipsis)
		case o.Err != "":
			w.Prose(" ", w.S.Error, o.Err)
		default:
			writeEvent(w, o)
		}
	})
}

// about returns the selected span, or the summary of the event, in a few lines.
func (v *eventInspector) about(l *histories.EventLog, id int64, now time.Time) []string {
	s := v.Styles
	fact := func(ink theme.Ink, label, what string) string {
		line := v.Line()
		return line.Add(s.Muted, text.Fit(" "+label, max(10, len(label)+2), "")).
			Add(ink, text.Safe(widget.Bounded(what, v.Width), " ")).String(s.Text)
	}
	if v.t.onList {
		e := l.Event(id)
		lines := []string{fact(s.Text, "at", e.At().In(v.t.location).Format("2006-01-02 15:04:05.000")+"  "+
			offset(e.At().Sub(l.Start())))}
		if e.Message != "" {
			ink := widget.If(e.Error, s.Error, s.Text)
			lines = append(lines, fact(ink, "message", e.Message))
		}
		return lines
	}
	sp := v.t.Span()
	if sp == nil {
		return nil
	}
	duration := text.Duration(sp.Ran(now))
	if wait := sp.Waited(now); wait > 0 && sp.Kind != histories.SpanRun {
		duration += ", after waiting for " + text.Duration(wait)
	}
	lines := []string{fact(v.t.bars.spanInk(sp), sp.Kind.String(), sp.Name),
		fact(s.Text, "state", sp.State.String()),
		fact(s.Text, "started", offset(time.Duration(sp.Start-l.Spans[0].Start))),
		fact(s.Text, "duration", duration)}
	if sp.Attempt > 1 {
		lines = append(lines, fact(s.Retrying, "attempt", ace.Number(sp.Attempt)))
	}
	if sp.Error != "" {
		lines = append(lines, fact(s.Error, "error", sp.Error))
	}
	if sp.Note != "" {
		lines = append(lines, fact(s.Text, "note", sp.Note))
	}
	return append(lines, s.Border.Paint(strings.Repeat(s.Glyphs.Plain.Top, v.Width)))
}

// writeEvent writes the JSON of an event, the names of fields in color.
func writeEvent(w *widget.Writer, o *histories.OpenedEvent) {
	for _, t := range text.Lines(o.Text) {
		for _, part := range strings.Split(ansi.Hardwrap(t, max(w.Width-1, 1), true), "\n") {
			l, name := w.Line().Add(w.S.Text, " "), 0
			if strings.HasPrefix(strings.TrimLeft(part, " "), `"`) {
				name = strings.Index(part, `": `) + 1
			}
			w.End(l.Add(w.S.Accent, part[:name]).Add(w.S.Text, part[name:]))
		}
	}
	if rest := o.Size - len(o.Text); rest > 0 {
		w.Say(w.S.Text, " ("+ace.Number(rest)+" more bytes)")
	}
}

func (v *eventInspector) Copy() (string, string) { return v.t.Copy() }
func (v *eventInspector) Copies() []tui.Copy     { return v.t.Copies() }

// listPane shows the events one by one. The cursor stays on its event while rows are added. On the last
// event it follows the run.
type listPane struct {
	*scope
	table *widget.Table
	event int64 // selected
	end   bool  // the last event is selected
}

func eventHeadings() []widget.Heading {
	return []widget.Heading{
		{Title: "EVENT", Width: 8, Right: true},
		{Title: "TIME", Width: 10, Right: true},
		{Title: "", Width: 1},
		{Title: "TYPE", Minimum: 22},
		{Title: "DETAIL", Minimum: 24},
		{Title: "OF", Width: 7, Right: true, Drop: 2},
		{Title: "SIZE", Width: 6, Right: true, Drop: 3},
	}
}

// rows returns the number of rows of the list.
func (p *listPane) rows(l *histories.EventLog) int {
	if p.everything {
		return l.Len()
	}
	return l.Shown()
}

func (p *listPane) row(l *histories.EventLog, i int) *histories.Event {
	if p.everything {
		return l.Row(i)
	}
	return l.ShownRow(i)
}

// place returns the row of an event, or of the first event after it.
func (p *listPane) place(l *histories.EventLog, id int64) int {
	if p.everything || l.Matches == nil {
		return l.Find(id)
	}
	at, _ := slices.BinarySearch(l.Matches, id)
	return at
}

// sync moves the cursor to its event.
func (p *listPane) sync(l *histories.EventLog) {
	n := p.rows(l)
	offset := p.table.Cursor - p.table.Top
	p.table.Rows = n
	p.table.Cursor = n - 1
	if !p.end {
		p.table.Cursor = min(p.place(l, p.event), max(n-1, 0))
	}
	p.table.Top = p.table.Cursor - offset
	p.table.Scroll(0)
	if n > 0 {
		p.event = p.row(l, p.table.Cursor).ID
	}
}

func (p *listPane) scroll(l *histories.EventLog, by int) {
	p.sync(l)
	p.table.Scroll(by)
	if p.table.Rows > 0 {
		p.event = p.row(l, p.table.Cursor).ID
		p.end = p.table.Cursor == p.table.Rows-1
	}
}

func (p *listPane) page() int { return p.table.Page() }

func (p *listPane) at(l *histories.EventLog) int64 {
	p.sync(l)
	return widget.If(p.table.Rows == 0, 0, p.event)
}

func (p *listPane) goTo(l *histories.EventLog, id int64) {
	p.event, p.end = id, false
	p.sync(l)
}

func (p *listPane) draw(l *histories.EventLog, _ time.Time, focused bool, status string) []string {
	p.sync(l)
	if p.table.Rows == 0 {
		return p.Message(nil, "no event matches")
	}
	start := l.Start()
	lines := p.table.Draw(p.Styles, focused, func(i int) []widget.Cell {
		return p.cells(l, p.row(l, i), start)
	})
	return widget.Fill(append(lines, status), p.Width, p.Height)
}

func (p *listPane) cells(l *histories.EventLog, e *histories.Event, start time.Time) []widget.Cell {
	s := p.Styles
	mark, ink := " ", s.Text
	switch {
	case e.Error:
		mark, ink = s.Glyphs.Failed, s.Error
	case p.everything && l.Matches != nil && l.Matched(e.ID):
		mark, ink = s.Glyphs.Pointer, s.Accent
	case e.Kind == histories.EventTask:
		ink = s.Muted
	}
	of := ""
	if e.Root != e.ID {
		of = strconv.FormatInt(e.Root, 10)
	}
	what := l.Title(e)
	if e.Message != "" {
		what += widget.If(what != "", " "+s.Glyphs.Dot+" ", "")
		what += e.Message
	}
	return []widget.Cell{
		{strconv.FormatInt(e.ID, 10), s.Muted}, {offset(e.At().Sub(start)), s.Muted}, {mark, ink},
		{e.Name(), ink},
		{text.Safe(what, " "), ink}, {of, s.Muted}, {console.Bytes(int64(e.Size)), s.Muted},
	}
}

// status returns the last line: why reading stopped, or what is being read.
func (v *Timeline) status(l *histories.EventLog, now time.Time) string {
	s := v.Styles
	line := v.Line()
	switch {
	case l.Err != "":
		line.Add(s.Error, " "+s.Glyphs.Failed+" "+text.Safe(l.Err, " "))
	case v.Want != 0:
		line.Add(s.Muted, " reading up to event "+ace.Number(v.Want)+s.Glyphs.Ellipsis)
	case l.Unread > 0 && l.Reading:
		line.Add(s.Muted, " "+ace.Number(l.Unread)+" older events are still being read")
	}
	if t := histories.TotalsOf(l.Spans, now); t != nil && l.Err == "" && v.Want == 0 {
		line.Add(s.Muted, " "+t.Text(text.Duration, " "+s.Glyphs.Dot+" "))
	}
	return line.String(s.Text)
}

// offset formats a time since the start of the run, to the millisecond within the first minute.
func offset(d time.Duration) string {
	const sign = "+"
	d = max(d, 0) // clocks may go back
	switch {
	case d < time.Minute:
		return sign + strconv.FormatFloat(d.Seconds(), 'f', 3, 64) + "s"
	case d < time.Hour:
		return sign + strconv.Itoa(int(d/time.Minute)) + "m" +
			strconv.FormatFloat((d%time.Minute).Seconds(), 'f', 1, 64) + "s"
	}
	return sign + text.Duration(d)
}
