package widget

import (
	"slices"

	"acescope/engine/ace"
	"acescope/theme"
	"acescope/tui/text"
)

// SectionList is a list in parts, each with a heading, with one cursor for all of them. The
// view draws the rows.
type SectionList struct {
	Parts         []SectionPart
	Cursor        SectionRow // of the selected row
	top           int        // the first visible line
	width, height int
	wide          map[string]bool // parts that are shown whole, by name
	spare         int             // rows that each part shows beyond its limit, because there is room
}

// SectionPart is a heading and rows. It shows at most limit rows and counts the others, unless
// the part is opened; limit 0 shows all.
type SectionPart struct {
	Name   string
	Remark string
	Rows   int
	Limit  int
}

// SectionRow is a row of a part.
type SectionRow struct{ Part, Row int }

func (s *SectionList) shown(p SectionPart) int {
	return If(p.Limit == 0 || s.wide[p.Name], p.Rows, min(p.Rows, p.Limit+s.spare))
}

// share divides the remaining lines equally among the parts that have more rows than their
// limit.
func (s *SectionList) share() {
	s.spare = 0
	space, short := s.height-len(s.lines()), 0
	for _, p := range s.Parts {
		if s.shown(p) < p.Rows {
			short++
		}
	}
	if short > 0 {
		s.spare = max(space/short, 0)
	}
}

// Set replaces the parts. The cursor goes to the nearest row that exists.
func (s *SectionList) Set(parts []SectionPart) {
	s.Parts = parts
	s.share()
	s.Settle()
}

func (s *SectionList) Settle() {
	if s.Cursor.Part >= len(s.Parts) || s.Cursor.Part < 0 {
		s.Cursor = SectionRow{}
	}
	if len(s.Parts) == 0 {
		return
	}
	if n := s.shown(s.Parts[s.Cursor.Part]); n > 0 {
		s.Cursor.Row = Clamp(s.Cursor.Row, 0, n-1)
	} else {
		s.Cursor = s.near(s.Cursor.Part)
	}
	s.Reveal()
}

// near returns the first row of the next part that has rows, starting over after the last part.
func (s *SectionList) near(from int) SectionRow {
	for i := range s.Parts {
		if at := (from + i) % len(s.Parts); s.shown(s.Parts[at]) > 0 {
			return SectionRow{at, 0}
		}
	}
	return SectionRow{}
}

// Empty reports whether the list has no rows.
func (s *SectionList) Empty() bool {
	return !slices.ContainsFunc(s.Parts, func(p SectionPart) bool { return p.Rows > 0 })
}

func (s *SectionList) SetSize(width, height int) {
	s.width, s.height = width, height
	s.share()
	s.Reveal()
}

func (s *SectionList) Page() int { return max(s.height, 1) }

// Scroll moves the cursor by rows; it skips the headings.
func (s *SectionList) Scroll(by int) {
	rows := s.Flat()
	if len(rows) == 0 {
		return
	}
	at := max(slices.Index(rows, s.Cursor), 0)
	s.Cursor = rows[Clamp(at+by, 0, len(rows)-1)]
	s.Reveal()
}

// Flat lists the rows that can be selected, in order.
func (s *SectionList) Flat() []SectionRow {
	var all []SectionRow
	for i, p := range s.Parts {
		for row := range s.shown(p) {
			all = append(all, SectionRow{i, row})
		}
	}
	return all
}

// Jump goes to the first row of the next part that has rows, or with by -1 of the previous part.
func (s *SectionList) Jump(by int) {
	for at := s.Cursor.Part + by; at >= 0 && at < len(s.Parts); at += by {
		if s.shown(s.Parts[at]) > 0 {
			s.Cursor = SectionRow{at, 0}
			s.Reveal()
			return
		}
	}
	if by < 0 {
		s.Cursor.Row = 0
		s.Reveal()
	}
}

// Toggle shows all rows of the part under the cursor, or again only the first ones.
func (s *SectionList) Toggle() {
	if s.Cursor.Part >= len(s.Parts) {
		return
	}
	if s.wide == nil {
		s.wide = map[string]bool{}
	}
	name := s.Parts[s.Cursor.Part].Name
	s.wide[name] = !s.wide[name]
	s.share()
	s.Settle()
}

const (
	sectionHeading = iota
	sectionItem
	sectionMore
	sectionBlank
)

type sectionLine struct {
	kind int
	at   SectionRow
}

// lines returns the lines of all parts, separated by blank lines if there is room for them.
func (s *SectionList) lines() []sectionLine {
	all := s.allLines()
	if len(all) > s.height {
		all = slices.DeleteFunc(all, func(l sectionLine) bool { return l.kind == sectionBlank })
	}
	return all
}

func (s *SectionList) allLines() []sectionLine {
	var all []sectionLine
	for i, p := range s.Parts {
		if i > 0 {
			all = append(all, sectionLine{sectionBlank, SectionRow{i, 0}})
		}
		all = append(all, sectionLine{sectionHeading, SectionRow{i, 0}})
		n := s.shown(p)
		for row := range n {
			all = append(all, sectionLine{sectionItem, SectionRow{i, row}})
		}
		if n < p.Rows {
			all = append(all, sectionLine{sectionMore, SectionRow{i, n}})
		}
	}
	return all
}

// Reveal scrolls so that the cursor is visible, and also the heading if the cursor is on the
// first row of a part.
func (s *SectionList) Reveal() {
	all := s.lines()
	at := max(slices.Index(all, sectionLine{sectionItem, s.Cursor}), 0)
	first := If(s.Cursor.Row == 0, max(at-1, 0), at)
	s.top = Clamp(Clamp(s.top, at-s.Page()+1, first), 0, max(len(all)-s.Page(), 0))
}

// rowCells returns the cells of a row of a given width.
type rowCells = func(at SectionRow, width int) []SizedCell

// Draw returns exactly height lines.
func (s *SectionList) Draw(st theme.Styles, focused bool, row rowCells) []string {
	all := s.lines()
	out := make([]string, 0, s.height)
	for _, l := range all[min(s.top, len(all)):min(s.top+s.Page(), len(all))] {
		out = append(out, s.line(st, focused, l, row))
	}
	return Fill(out, s.width, s.height)
}

func (s *SectionList) line(st theme.Styles, focused bool, l sectionLine, row rowCells) string {
	p := s.Parts[l.at.Part]
	line := text.Line{Max: s.width, Tail: st.Glyphs.Ellipsis}
	switch l.kind {
	case sectionHeading:
		return line.Add(st.Strong, " "+p.Name).Add(st.Muted, "  "+p.Remark).String(st.Text)
	case sectionMore:
		return line.Add(st.Muted, "   "+ace.Number(p.Rows-l.at.Row)+" more: a shows them").String(st.Text)
	case sectionBlank:
		return text.Spaces(s.width)
	}
	width, selected := s.width-PointerWidth, l.at == s.Cursor
	cells := sizedCells(width, selected, st.Glyphs.Ellipsis, row(l.at, width))
	if !selected {
		return text.Fit("  "+cells, s.width, "")
	}
	return RowInk(MarkOf(true, focused), st).Paint(text.Fit(st.Glyphs.Pointer+" "+cells, s.width, ""))
}

// SelectedRow returns the row under the cursor, or the zero value. rows holds the rows by part.
func SelectedRow[R any](s *SectionList, rows [][]R) (row R) {
	if at := s.Cursor; at.Part < len(rows) && at.Row < len(rows[at.Part]) {
		row = rows[at.Part][at.Row]
	}
	return row
}

// Position returns the name of the part under the cursor and the position in it: "retrying 2/7".
func (s *SectionList) Position() string {
	if s.Cursor.Part >= len(s.Parts) || s.Parts[s.Cursor.Part].Rows == 0 {
		return ""
	}
	p := s.Parts[s.Cursor.Part]
	return p.Name + " " + ace.Number(s.Cursor.Row+1) + "/" + ace.Number(p.Rows)
}

// sizedCells joins cells. Plain cells have no colors, because their row is painted as a whole afterward.
func sizedCells(width int, plain bool, ellipsis string, cells []SizedCell) string {
	rest := Rest(width, cells)
	line := text.Line{Max: width}
	for i, c := range cells {
		if i > 0 {
			line.Add(theme.Ink{}, " ")
		}
		if plain {
			c.Ink = theme.Ink{}
		}
		fit, w := text.Fit, c.Width
		switch {
		case w < 0:
			fit, w = text.FitLeft, -w
		case w == 0:
			w = rest
		}
		line.Add(c.Ink, fit(c.Text, w, ellipsis))
	}
	return line.String(theme.Ink{})
}

// Rest returns the width that cells and the spaces between them leave.
func Rest(width int, cells []SizedCell) int {
	width -= len(cells) - 1
	for _, c := range cells {
		width -= max(c.Width, -c.Width)
	}
	return max(width, 0)
}

// SizedCell is a cell with its width: a negative width aligns the text on the right, 0 takes the remaining
// width.
type SizedCell struct {
	Text  string
	Width int
	Ink   theme.Ink
}
