package widget

import (
	"slices"

	"acescope/engine/ace"
	"acescope/theme"
	"acescope/tui/text"
)

// Section is a heading with rows. It shows at most Limit rows and counts the others, unless there is room for
// more or the section is expanded; Limit 0 shows all.
type Section[R any] struct {
	Name   string
	Remark string
	Limit  int
	Rows   []R
}

// SectionList is a list of sections with one cursor for all of them. The view draws the rows.
type SectionList[R any] struct {
	List
	Sections []Section[R]
	Key      func(R) string  // identifies a row of a section; nil if the cursor stays on its place
	wide     map[string]bool // expanded sections, by name
	spare    int             // rows that each section shows beyond its limit, because there is room
	lines    []sectionLine
}

// sectionLine is a line of a section. row is that of an item, or the first row that is not shown.
type sectionLine struct{ kind, section, row int }

const (
	sectionHeading = iota
	sectionItem
	sectionMore
	sectionBlank
)

func (s *SectionList[R]) shown(of Section[R]) int {
	n := len(of.Rows)
	return If(of.Limit == 0 || s.wide[of.Name], n, min(n, of.Limit+s.spare))
}

// Set replaces the sections. The cursor stays on its row, or goes to the nearest one.
func (s *SectionList[R]) Set(sections []Section[R]) {
	was, had := s.Current()
	at := s.line()
	s.Sections = sections
	if had && s.Key != nil && at.section < len(sections) {
		same := func(r R) bool { return s.Key(r) == s.Key(was) }
		if row := slices.IndexFunc(sections[at.section].Rows, same); row >= 0 {
			at.row = row
		}
	}
	s.arrange(at)
}

func (s *SectionList[R]) SetSize(width, height int) {
	at := s.line()
	s.width, s.height = width, height
	s.arrange(at)
}

// arrange lists the lines. The remaining ones are divided equally among the sections that have more rows than
// their limit. The cursor goes to a row, or to the nearest one.
func (s *SectionList[R]) arrange(at sectionLine) {
	s.spare = 0
	s.list()
	short := 0
	for _, of := range s.Sections {
		if s.shown(of) < len(of.Rows) {
			short++
		}
	}
	if short > 0 {
		s.spare = max((s.height-len(s.lines))/short, 0)
		s.list()
	}
	s.Rows = len(s.lines)
	s.Skip = func(i int) bool { return s.lines[i].kind != sectionItem }
	s.goTo(at.section, at.row)
}

// list lists the lines of all sections, separated by blank lines if there is room for them.
func (s *SectionList[R]) list() {
	s.lines = nil
	for i, of := range s.Sections {
		if i > 0 {
			s.lines = append(s.lines, sectionLine{sectionBlank, i, 0})
		}
		s.lines = append(s.lines, sectionLine{sectionHeading, i, 0})
		n := s.shown(of)
		for row := range n {
			s.lines = append(s.lines, sectionLine{sectionItem, i, row})
		}
		if n < len(of.Rows) {
			s.lines = append(s.lines, sectionLine{sectionMore, i, n})
		}
	}
	if len(s.lines) > s.height {
		s.lines = slices.DeleteFunc(s.lines, func(l sectionLine) bool { return l.kind == sectionBlank })
	}
}

// line returns the line under the cursor.
func (s *SectionList[R]) line() (at sectionLine) {
	if s.Cursor < len(s.lines) {
		at = s.lines[s.Cursor]
	}
	return at
}

// goTo moves the cursor to a row of a section, or to the last row before it. From a section without rows, it
// goes to the next one with rows, starting over after the last.
func (s *SectionList[R]) goTo(section, row int) {
	at := s.firstRow(section, 1)
	if at < 0 {
		at = max(s.firstRow(0, 1), 0)
	}
	if at < len(s.lines) && s.lines[at].section == section {
		at += min(row, s.shown(s.Sections[section])-1)
	}
	s.Cursor = at
	s.Reveal()
}

// firstRow returns the line of the first row of a section, or of the next one that has rows, or -1.
func (s *SectionList[R]) firstRow(from, by int) int {
	for ; from >= 0 && from < len(s.Sections); from += by {
		if at := slices.Index(s.lines, sectionLine{sectionItem, from, 0}); at >= 0 {
			return at
		}
	}
	return -1
}

// GoTo moves the cursor to the row of a section with a key, and reports whether there is one.
func (s *SectionList[R]) GoTo(section int, key string) bool {
	for row, r := range s.Sections[section].Rows {
		if s.Key(r) == key {
			s.goTo(section, row)
			return true
		}
	}
	return false
}

// Current returns the row under the cursor.
func (s *SectionList[R]) Current() (row R, ok bool) {
	if at := s.line(); at.kind == sectionItem {
		return s.Sections[at.section].Rows[at.row], true
	}
	return row, false
}

// Section returns the name of the section under the cursor, "" for an empty list.
func (s *SectionList[R]) Section() string {
	if at := s.line(); at.kind == sectionItem {
		return s.Sections[at.section].Name
	}
	return ""
}

// Empty reports whether the list has no rows.
func (s *SectionList[R]) Empty() bool {
	return !slices.ContainsFunc(s.Sections, func(of Section[R]) bool { return len(of.Rows) > 0 })
}

// Next moves the cursor to the next row that satisfies the function is, or with by -1 to the previous one.
func (s *SectionList[R]) Next(by int, is func(R) bool) {
	for i := s.Cursor + by; i >= 0 && i < len(s.lines); i += by {
		if l := s.lines[i]; l.kind == sectionItem && is(s.Sections[l.section].Rows[l.row]) {
			s.Cursor = i
			s.Reveal()
			return
		}
	}
}

// Jump goes to the first row of the next section that has rows, or with by -1 of the previous one.
func (s *SectionList[R]) Jump(by int) {
	section := s.line().section
	if at := s.firstRow(section+by, by); at >= 0 {
		s.Cursor = at
	} else if by < 0 {
		s.goTo(section, 0)
	}
	s.Reveal()
}

// Toggle shows all rows of the section under the cursor, or again only the first ones.
func (s *SectionList[R]) Toggle() {
	at := s.line()
	if at.section >= len(s.Sections) {
		return
	}
	if s.wide == nil {
		s.wide = map[string]bool{}
	}
	name := s.Sections[at.section].Name
	s.wide[name] = !s.wide[name]
	s.arrange(at)
}

// Draw returns exactly height lines. row gives the cells of a row of a given width.
func (s *SectionList[R]) Draw(st theme.Styles, focused bool, row func(r R, width int) []SizedCell) []string {
	return s.List.Draw(focused, func(i int, mark RowMark) string {
		at := s.lines[i]
		of := s.Sections[at.section]
		line := text.Line{Max: s.width, Tail: st.Glyphs.Ellipsis}
		switch at.kind {
		case sectionHeading:
			return line.Add(st.Strong, " "+of.Name).Add(st.Muted, "  "+of.Remark).String(st.Text)
		case sectionMore:
			return line.Add(st.Muted, "   "+ace.Number(len(of.Rows)-at.row)+" more: a shows them").String(st.Text)
		case sectionBlank:
			return text.Spaces(s.width)
		}
		width := s.width - PointerWidth
		cells := sizedCells(width, mark != RowPlain, st.Glyphs.Ellipsis, row(of.Rows[at.row], width))
		pointer := If(mark == RowPlain, " ", st.Glyphs.Pointer)
		return RowInk(mark, st).Paint(text.Fit(pointer+" "+cells, s.width, ""))
	})
}

// Position returns the name of the section under the cursor and the position in it: "retrying 2/7".
func (s *SectionList[R]) Position() string {
	at := s.line()
	if at.kind != sectionItem {
		return ""
	}
	of := s.Sections[at.section]
	return of.Name + " " + ace.Number(at.row+1) + "/" + ace.Number(len(of.Rows))
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
