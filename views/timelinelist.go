package views

import (
	"strconv"
	"time"

	"acescope/sources"
	"acescope/tui/text"
)

// listPane is the events one by one. The cursor stays on its event, wherever rows come
// in; at the end it follows what happens.
type listPane struct {
	table *table
	event int64 // under the cursor
	end   bool
}

func eventHeadings() []heading {
	return []heading{
		{title: "EVENT", width: 8, right: true},
		{title: "TIME", width: 10, right: true},
		{title: "", width: 1},
		{title: "TYPE", minimum: 22},
		{title: "WHAT", minimum: 24},
		{title: "OF", width: 7, right: true, drop: 2},
		{title: "SIZE", width: 6, right: true, drop: 3},
	}
}

// rows is how many rows the list has, and row is one of them.
func (v *timeline) rows(l *sources.EventLog) int {
	if v.everything {
		return l.Len()
	}
	return l.Shown()
}

func (v *timeline) row(l *sources.EventLog, i int) *sources.Event {
	if v.everything {
		return l.Row(i)
	}
	return l.ShownRow(i)
}

// place is where an event stands in the list, or the first after it.
func (v *timeline) place(l *sources.EventLog, id int64) int {
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
func (p *listPane) sync(v *timeline, l *sources.EventLog) {
	n := v.rows(l)
	offset := p.table.cursor - p.table.top
	p.table.rows = n
	p.table.cursor = n - 1
	if !p.end {
		p.table.cursor = min(v.place(l, p.event), max(n-1, 0))
	}
	p.table.top = p.table.cursor - offset
	p.table.scroll(0)
	if n > 0 {
		p.event = v.row(l, p.table.cursor).ID
	}
}

func (p *listPane) scroll(v *timeline, l *sources.EventLog, by int) {
	p.sync(v, l)
	p.table.scroll(by)
	if p.table.rows > 0 {
		p.event = v.row(l, p.table.cursor).ID
		p.end = p.table.cursor == p.table.rows-1
	}
}

func (p *listPane) at(v *timeline, l *sources.EventLog) int64 {
	p.sync(v, l)
	if p.table.rows == 0 {
		return 0
	}
	return p.event
}

func (p *listPane) goTo(v *timeline, l *sources.EventLog, id int64) {
	p.event, p.end = id, false
	p.sync(v, l)
}

func (v *timeline) drawList(l *sources.EventLog, focused bool) []string {
	v.list.sync(v, l)
	if v.list.table.rows == 0 {
		return centre([]string{"no event matches"}, v.width, v.height, v.styles)
	}
	start := l.Start()
	lines := v.list.table.draw(v.styles, focused, func(i int) []cell { return v.cells(l, v.row(l, i), start) })
	return fill(append(lines, v.trouble(l)), v.width, v.height)
}

func (v *timeline) cells(l *sources.EventLog, e *sources.Event, start time.Time) []cell {
	s := v.styles
	mark, ink := " ", s.Text
	switch {
	case e.Error:
		mark, ink = s.Glyphs.Failed, s.Error
	case v.everything && l.Matches != nil && l.Matched(e.ID):
		mark, ink = s.Glyphs.Pointer, s.Accent
	case e.Kind == sources.EventTask:
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
	return []cell{
		{strconv.FormatInt(e.ID, 10), s.Muted}, {offset(e.At().Sub(start)), s.Muted}, {mark, ink}, {e.Name(), ink},
		{text.Safe(what, " "), ink}, {of, s.Muted}, {size(int64(e.Size)), s.Muted},
	}
}

// trouble is the last line: why the reading does not go on, or what is being waited for.
func (v *timeline) trouble(l *sources.EventLog) string {
	s := v.styles
	line := text.Line{Max: v.width, Tail: s.Glyphs.Ellipsis}
	switch {
	case l.Err != "":
		line.Add(s.Error, " "+s.Glyphs.Failed+" "+text.Safe(l.Err, " "))
	case v.want != 0:
		line.Add(s.Muted, " reading on to event "+text.Count(v.want)+s.Glyphs.Ellipsis)
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
