package timeline

import (
	"strconv"
	"time"

	"acescope/sources/histories"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// listPane is the events one by one. The cursor stays on its event, wherever rows come
// in; at the end it follows what happens.
type listPane struct {
	table *widget.Table
	event int64 // under the cursor
	end   bool
}

func eventHeadings() []widget.Heading {
	return []widget.Heading{
		{Title: "EVENT", Width: 8, Right: true},
		{Title: "TIME", Width: 10, Right: true},
		{Title: "", Width: 1},
		{Title: "TYPE", Minimum: 22},
		{Title: "WHAT", Minimum: 24},
		{Title: "OF", Width: 7, Right: true, Drop: 2},
		{Title: "SIZE", Width: 6, Right: true, Drop: 3},
	}
}

// rows is how many rows the list has, and row is one of them.
func (v *Timeline) rows(l *histories.EventLog) int {
	if v.everything {
		return l.Len()
	}
	return l.Shown()
}

func (v *Timeline) row(l *histories.EventLog, i int) *histories.Event {
	if v.everything {
		return l.Row(i)
	}
	return l.ShownRow(i)
}

// place is where an event stands in the list, or the first after it.
func (v *Timeline) place(l *histories.EventLog, id int64) int {
	if v.everything || l.Matches == nil {
		return l.Find(id)
	}
	low, high := 0, len(l.Matches)
	for low < high {
		if mid := (low + high) / 2; l.Matches[mid] < id {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// sync puts the cursor back on its event.
func (p *listPane) sync(v *Timeline, l *histories.EventLog) {
	n := v.rows(l)
	offset := p.table.Cursor - p.table.Top
	p.table.Rows = n
	p.table.Cursor = n - 1
	if !p.end {
		p.table.Cursor = min(v.place(l, p.event), max(n-1, 0))
	}
	p.table.Top = p.table.Cursor - offset
	p.table.Scroll(0)
	if n > 0 {
		p.event = v.row(l, p.table.Cursor).ID
	}
}

func (p *listPane) Scroll(v *Timeline, l *histories.EventLog, by int) {
	p.sync(v, l)
	p.table.Scroll(by)
	if p.table.Rows > 0 {
		p.event = v.row(l, p.table.Cursor).ID
		p.end = p.table.Cursor == p.table.Rows-1
	}
}

func (p *listPane) at(v *Timeline, l *histories.EventLog) int64 {
	p.sync(v, l)
	if p.table.Rows == 0 {
		return 0
	}
	return p.event
}

func (p *listPane) goTo(v *Timeline, l *histories.EventLog, id int64) {
	p.event, p.end = id, false
	p.sync(v, l)
}

func (v *Timeline) drawList(l *histories.EventLog, focused bool) []string {
	v.list.sync(v, l)
	if v.list.table.Rows == 0 {
		return widget.Centre([]string{"no event matches"}, v.width, v.height, v.styles)
	}
	start := l.Start()
	lines := v.list.table.Draw(v.styles, focused, func(i int) []widget.Cell { return v.cells(l, v.row(l, i), start) })
	return widget.Fill(append(lines, v.trouble(l)), v.width, v.height)
}

func (v *Timeline) cells(l *histories.EventLog, e *histories.Event, start time.Time) []widget.Cell {
	s := v.styles
	mark, ink := " ", s.Text
	switch {
	case e.Error:
		mark, ink = s.Glyphs.Failed, s.Error
	case v.everything && l.Matches != nil && l.Matched(e.ID):
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
		if what != "" {
			what += " " + s.Glyphs.Dot + " "
		}
		what += e.Message
	}
	return []widget.Cell{
		{strconv.FormatInt(e.ID, 10), s.Muted}, {offset(e.At().Sub(start)), s.Muted}, {mark, ink}, {e.Name(), ink},
		{text.Safe(what, " "), ink}, {of, s.Muted}, {size(int64(e.Size)), s.Muted},
	}
}

// trouble is the last line: why the reading does not go on, or what is being waited for.
func (v *Timeline) trouble(l *histories.EventLog) string {
	s := v.styles
	line := text.Line{Max: v.width, Tail: s.Glyphs.Ellipsis}
	switch {
	case l.Err != "":
		line.Add(s.Error, " "+s.Glyphs.Failed+" "+text.Safe(l.Err, " "))
	case v.Want != 0:
		line.Add(s.Muted, " reading on to event "+text.Count(v.Want)+s.Glyphs.Ellipsis)
	case l.Bare > 0:
		line.Add(s.Warning, " "+text.Count(int64(l.Bare))+" events are held in short only")
	case l.Left > 0 && l.Reading:
		line.Add(s.Muted, " "+text.Count(l.Left)+" older events are still being read")
	}
	return line.String(s.Text)
}

// offset is a time since the run began, to the millisecond while it is short.
func offset(d time.Duration) string {
	const sign = "+"
	d = max(d, 0) // a clock went back
	switch {
	case d < time.Minute:
		return sign + strconv.FormatFloat(d.Seconds(), 'f', 3, 64) + "s"
	case d < time.Hour:
		return sign + strconv.Itoa(int(d/time.Minute)) + "m" + strconv.FormatFloat((d%time.Minute).Seconds(), 'f', 1, 64) + "s"
	}
	return sign + text.Took(d)
}

// size is a number of bytes in at most six cells.
func size(n int64) string {
	switch {
	case n < 10_000:
		return strconv.FormatInt(n, 10) + "B"
	case n < 10_000_000:
		return strconv.FormatInt(n/1_000, 10) + "kB"
	}
	return strconv.FormatInt(n/1_000_000, 10) + "MB"
}
