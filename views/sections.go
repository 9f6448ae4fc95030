package views

import (
	"acescope/theme"
	"acescope/tui/text"
)

// sectionList is a list in parts, each with a heading, that one cursor goes through. What
// its rows look like is the view's.
type sectionList struct {
	parts         []sectionPart
	cursor        sectionRow // of the selected row
	top           int        // the first visible line
	width, height int
	wide          map[string]bool // parts that are shown whole, by name
	spare         int             // rows that each part may have above its limit, as there is room
}

// sectionPart is a heading and rows. Of more than limit rows the rest is counted, unless the
// part is opened; limit 0 shows all.
type sectionPart struct {
	name   string
	remark string
	rows   int
	limit  int
}

// sectionRow is a row of a part.
type sectionRow struct{ part, row int }

func (s *sectionList) shown(p sectionPart) int {
	if p.limit == 0 || s.wide[p.name] {
		return p.rows
	}
	return min(p.rows, p.limit+s.spare)
}

// share gives the room that is left to the parts that have more rows than their limit,
// the same to each.
func (s *sectionList) share() {
	s.spare = 0
	room, short := s.height-len(s.lines()), 0
	for _, p := range s.parts {
		if s.shown(p) < p.rows {
			short++
		}
	}
	if short > 0 {
		s.spare = max(room/short, 0)
	}
}

// set replaces the parts; the cursor goes to the nearest row that there is.
func (s *sectionList) set(parts []sectionPart) {
	s.parts = parts
	s.share()
	s.settle()
}

func (s *sectionList) settle() {
	if s.cursor.part >= len(s.parts) || s.cursor.part < 0 {
		s.cursor = sectionRow{}
	}
	if len(s.parts) == 0 {
		return
	}
	if n := s.shown(s.parts[s.cursor.part]); n > 0 {
		s.cursor.row = clamp(s.cursor.row, 0, n-1)
	} else {
		s.cursor = s.near(s.cursor.part)
	}
	s.reveal()
}

// near is the first row of the next part that has any, else of any part.
func (s *sectionList) near(from int) sectionRow {
	for i := range s.parts {
		if at := (from + i) % len(s.parts); s.shown(s.parts[at]) > 0 {
			return sectionRow{at, 0}
		}
	}
	return sectionRow{}
}

// empty tells whether there is no row at all.
func (s *sectionList) empty() bool {
	for _, p := range s.parts {
		if p.rows > 0 {
			return false
		}
	}
	return true
}

func (s *sectionList) setSize(width, height int) {
	s.width, s.height = width, height
	s.share()
	s.reveal()
}

func (s *sectionList) page() int { return max(s.height, 1) }

// scroll moves the cursor by rows, over the headings.
func (s *sectionList) scroll(by int) {
	rows := s.flat()
	if len(rows) == 0 {
		return
	}
	at := 0
	for i, p := range rows {
		if p == s.cursor {
			at = i
		}
	}
	s.cursor = rows[clamp(at+by, 0, len(rows)-1)]
	s.reveal()
}

// flat lists the rows that can be selected, in order.
func (s *sectionList) flat() []sectionRow {
	var all []sectionRow
	for i, p := range s.parts {
		for row := range s.shown(p) {
			all = append(all, sectionRow{i, row})
		}
	}
	return all
}

// jump goes to the first row of the next part that has rows, or of the one before.
func (s *sectionList) jump(by int) {
	for at := s.cursor.part + by; at >= 0 && at < len(s.parts); at += by {
		if s.shown(s.parts[at]) > 0 {
			s.cursor = sectionRow{at, 0}
			s.reveal()
			return
		}
	}
	if by < 0 {
		s.cursor.row = 0
		s.reveal()
	}
}

// toggle shows the part under the cursor whole, or its beginning again.
func (s *sectionList) toggle() {
	if s.cursor.part >= len(s.parts) {
		return
	}
	if s.wide == nil {
		s.wide = map[string]bool{}
	}
	name := s.parts[s.cursor.part].name
	s.wide[name] = !s.wide[name]
	s.share()
	s.settle()
}

// kinds of line.
const (
	sectionHeading = iota
	sectionItem
	sectionMore
	sectionBlank
)

type sectionLine struct {
	kind int
	at   sectionRow
}

func (s *sectionList) lines() []sectionLine {
	var all []sectionLine
	for i, p := range s.parts {
		if i > 0 {
			all = append(all, sectionLine{sectionBlank, sectionRow{i, 0}})
		}
		all = append(all, sectionLine{sectionHeading, sectionRow{i, 0}})
		n := s.shown(p)
		for row := range n {
			all = append(all, sectionLine{sectionItem, sectionRow{i, row}})
		}
		if n < p.rows {
			all = append(all, sectionLine{sectionMore, sectionRow{i, n}})
		}
	}
	return all
}

// reveal moves the visible part so that it holds the cursor, and the heading above it
// where the cursor is on the first row.
func (s *sectionList) reveal() {
	all := s.lines()
	at := 0
	for i, l := range all {
		if l.kind == sectionItem && l.at == s.cursor {
			at = i
		}
	}
	first := at
	if s.cursor.row == 0 {
		first = max(at-1, 0)
	}
	s.top = clamp(s.top, at-s.page()+1, first)
	s.top = clamp(s.top, 0, max(len(all)-s.page(), 0))
}

// draw is exactly height lines. row draws a row in width cells; marked ones are painted
// in one piece afterwards, so they come plain.
func (s *sectionList) draw(st theme.Styles, focused bool, row func(at sectionRow, width int, plain bool) string) []string {
	all := s.lines()
	out := make([]string, 0, s.height)
	for _, l := range all[min(s.top, len(all)):min(s.top+s.page(), len(all))] {
		out = append(out, s.line(st, focused, l, row))
	}
	return fill(out, s.width, s.height)
}

func (s *sectionList) line(st theme.Styles, focused bool, l sectionLine, row func(sectionRow, int, bool) string) string {
	p := s.parts[l.at.part]
	line := text.Line{Max: s.width, Tail: st.Glyphs.Ellipsis}
	switch l.kind {
	case sectionHeading:
		return line.Add(st.Strong, " "+p.name).Add(st.Muted, "  "+p.remark).String(st.Text)
	case sectionMore:
		return line.Add(st.Muted, "   "+text.Count(int64(p.rows-l.at.row))+" more: a shows them").String(st.Text)
	case sectionBlank:
		return text.Spaces(s.width)
	}
	if l.at != s.cursor {
		return text.Fit("  "+row(l.at, s.width-pointerWidth, false), s.width, "")
	}
	mark := rowCursor
	if focused {
		mark = rowSelected
	}
	return rowInk(mark, st).Paint(text.Fit(st.Glyphs.Pointer+" "+row(l.at, s.width-pointerWidth, true), s.width, ""))
}

// position is the row of the part under the cursor: "retrying 2/7".
func (s *sectionList) position() string {
	if s.cursor.part >= len(s.parts) || s.parts[s.cursor.part].rows == 0 {
		return ""
	}
	p := s.parts[s.cursor.part]
	return p.name + " " + text.Count(int64(s.cursor.row+1)) + "/" + text.Count(int64(p.rows))
}

// sizedCells joins cells of fixed widths: a width below 0 is flush right, 0 takes the rest.
func sizedCells(width int, plain bool, ellipsis string, cells ...sizedCell) string {
	rest := width - len(cells) + 1
	for _, c := range cells {
		if c.width < 0 {
			rest += c.width
		} else {
			rest -= c.width
		}
	}
	out := ""
	used := 0
	for i, c := range cells {
		if i > 0 {
			out += " "
			used++
		}
		w := c.width
		t := ""
		switch {
		case w < 0:
			w = -w
			t = text.FitLeft(c.text, w, ellipsis)
		case w == 0:
			w = max(rest, 0)
			t = text.Fit(c.text, w, ellipsis)
		default:
			t = text.Fit(c.text, w, ellipsis)
		}
		used += w
		if plain {
			out += t
		} else {
			out += c.ink.Paint(t)
		}
	}
	if used > width {
		return text.Cut(out, width, "")
	}
	return out
}

// sizedCell is a cell with its width.
type sizedCell struct {
	text  string
	width int
	ink   theme.Ink
}
