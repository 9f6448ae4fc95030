package views

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// health lists how the server, the workers, the sources, the calls and this process are.
type health struct {
	*console
	styles        theme.Styles
	width, height int
	data          *sources.System
	conn          sources.Connection
	arranged      *sources.System
	lostSince     time.Time       // that checks were made for
	checks        []sources.Check // nil before the first time
	bySection     [][]sources.Check
	list          sectionList
}

func newHealth(c *console) *health { return &health{console: c} }

func (v *health) Name() string { return "Health" }

func (v *health) Title() string { return "Health" }

func (v *health) Footer() string { return v.list.position() }

func (v *health) Bindings() []tui.Binding {
	b := func(name, help, short string, do func(), keys ...string) tui.Binding {
		return tui.Binding{Action: "health." + name, Keys: keys, Help: help, Short: short, Do: func(tui.Shell) tea.Cmd { do(); return nil }}
	}
	return append(motions("health", v),
		b("next_part", "to the next part", "part", func() { v.list.jump(1) }, "]"),
		b("previous_part", "to the part before", "", func() { v.list.jump(-1) }, "["),
		b("whole", "show a part whole, or its beginning", "whole part", v.list.toggle, "a"),
		b("next_wrong", "to the next row that is wrong", "wrong", func() { v.wrong(1) }, "e"),
		b("previous_wrong", "to the row before that is wrong", "", func() { v.wrong(-1) }, "E"))
}

func (v *health) Update(tea.Msg) tea.Cmd { return nil }

func (v *health) SetShown(shown bool) { v.Controls.Look(sources.PartSystem, shown) }

func (v *health) SetStyles(s theme.Styles) { v.styles = s }

func (v *health) SetSize(width, height int) { v.width, v.height = width, height }

func (v *health) SetSnapshot(s *sources.Snapshot) { v.data, v.conn = s.System, s.Connection }

func (v *health) page() int { return v.list.page() }

func (v *health) scroll(by int) { v.list.scroll(by) }

// Copy is what to do about the row under the cursor, or what it says.
func (v *health) Copy() (what, copied string) {
	c, ok := v.selected()
	switch {
	case !ok:
		return "", ""
	case c.Advice != "":
		return "the advice", c.Advice
	}
	return "the row", c.Name + ": " + c.Text
}

// wrong goes to the next row that is not well.
func (v *health) wrong(by int) {
	rows := v.list.flat()
	at := -1
	for i, r := range rows {
		if r == v.list.cursor {
			at = i
		}
	}
	for i := at + by; i >= 0 && i < len(rows); i += by {
		if v.at(rows[i]).State != sources.CheckFine {
			v.list.cursor = rows[i]
			v.list.reveal()
			return
		}
	}
}

func (v *health) at(r sectionRow) sources.Check {
	if r.part < len(v.bySection) && r.row < len(v.bySection[r.part]) {
		return v.bySection[r.part][r.row]
	}
	return sources.Check{}
}

func (v *health) selected() (sources.Check, bool) {
	c := v.at(v.list.cursor)
	return c, c.Name != ""
}

// arrange judges the newest data. A server that went away since it was read is told at
// once, from the connection.
func (v *health) arrange(now time.Time) {
	lost := time.Time{}
	if v.conn.State == sources.ConnLost {
		lost = v.conn.Since
	}
	if v.checks != nil && v.data == v.arranged && lost == v.lostSince {
		return
	}
	v.arranged, v.lostSince = v.data, lost
	s := v.data
	if s == nil {
		s = &sources.System{Loading: true, Mode: v.conn.Mode, Address: v.conn.Address, Space: v.conn.Namespace}
	}
	if !lost.IsZero() && s.Err == "" {
		c := *s
		c.Err, c.Loading = v.conn.Err, false
		if c.Err == "" {
			c.Err = "the connection is lost"
		}
		s = &c
	}
	was := v.at(v.list.cursor).Name
	v.checks = s.Checks(now)
	v.bySection = nil
	var parts []sectionPart
	for _, section := range sources.Sections() {
		var rows []sources.Check
		for _, c := range v.checks {
			if c.Section == section {
				rows = append(rows, c)
			}
		}
		if section == sources.SectionAgents && len(rows) == 0 {
			continue // nobody calls any
		}
		v.bySection = append(v.bySection, rows)
		parts = append(parts, sectionPart{strings.ToUpper(string(section[:1])) + string(section[1:]), v.partRemark(section, rows), len(rows), partLimit(section)})
	}
	v.list.set(parts)
	for row, c := range v.bySection[v.list.cursor.part] {
		if c.Name == was {
			v.list.cursor.row = row
		}
	}
	v.list.settle()
}

func partLimit(s sources.Section) int {
	if s == sources.SectionCalls {
		return 6
	}
	return 0
}

func (v *health) partRemark(s sources.Section, rows []sources.Check) string {
	if len(rows) > 0 {
		return ""
	}
	switch {
	case s == sources.SectionWorkers && v.conn.Mode == sources.ModeFile:
		return "none: there is no server"
	case s == sources.SectionWorkers:
		return "not known while the server does not answer"
	case s == sources.SectionCalls:
		return "none was made"
	}
	return "nothing is known"
}

func (v *health) Draw(now time.Time, focused bool) []string {
	v.arrange(now)
	head := append([]string{v.head(now)}, v.advice()...)
	v.list.setSize(v.width, max(v.height-len(head), 0))
	return fill(append(head, v.list.draw(v.styles, focused, func(at sectionRow, width int, plain bool) string {
		return v.row(v.at(at), width, plain, now)
	})...), v.width, v.height)
}

// head is the verdict in a line.
func (v *health) head(now time.Time) string {
	s := v.styles
	wrong, odd := sources.Wrong(v.checks), 0
	for _, c := range v.checks {
		if c.State == sources.CheckOdd {
			odd++
		}
	}
	l := text.Line{Max: v.width, Tail: s.Glyphs.Ellipsis}
	switch {
	case v.arranged == nil && wrong == 0:
		l.Add(s.Muted, " asking"+s.Glyphs.Ellipsis)
	case wrong > 0:
		l.Add(s.Error, " "+s.Glyphs.Failed+" "+howMany(wrong, "thing")+" wrong").Add(s.Muted, " "+s.Glyphs.Dot+" e goes there")
	case odd > 0:
		l.Add(s.Warning, " "+s.Glyphs.Unknown+" all works, "+howMany(odd, "row")+" worth a look")
	default:
		l.Add(s.Success, " "+s.Glyphs.Success+" all is well")
	}
	if v.arranged != nil && !v.arranged.Loading {
		l.Add(s.Muted, " "+s.Glyphs.Dot+" read "+text.Span(now.Sub(v.arranged.At))+" ago")
	}
	return l.String(s.Text)
}

// advice is what to do about the row under the cursor, or else about the first that is
// wrong.
func (v *health) advice() []string {
	c, _ := v.selected()
	for _, other := range v.checks {
		if c.Advice == "" && other.State == sources.CheckWrong {
			c = other
		}
	}
	if c.Advice == "" {
		return nil
	}
	s := v.styles
	l := text.Line{Max: v.width, Tail: s.Glyphs.Ellipsis}
	l.Add(s.Muted, "   "+text.Safe(c.Name, " ")+" "+s.Glyphs.Arrow+" ").Add(s.Accent, text.Safe(c.Advice, " "))
	return []string{l.String(s.Text)}
}

// checkMark is how a row is, as a glyph with a word.
func checkMark(state sources.CheckState, s theme.Styles) theme.Mark {
	switch state {
	case sources.CheckWrong:
		return theme.Mark{Glyph: s.Glyphs.Failed, Word: "wrong", Ink: s.Error}
	case sources.CheckOdd:
		return theme.Mark{Glyph: s.Glyphs.Unknown, Word: "look", Ink: s.Warning}
	}
	return theme.Mark{Glyph: s.Glyphs.Success, Word: "ok", Ink: s.Success}
}

func (v *health) row(c sources.Check, width int, plain bool, now time.Time) string {
	s := v.styles
	m := checkMark(c.State, s)
	age := ""
	if !c.At.IsZero() {
		age = text.Span(now.Sub(c.At))
	}
	ink := s.Text
	if c.State != sources.CheckFine {
		ink = m.Ink
	}
	name := clamp(width/4, 14, 28)
	return sizedCells(width, plain, s.Glyphs.Ellipsis,
		sizedCell{m.Glyph + " " + m.Word, 7, m.Ink},
		sizedCell{text.Safe(c.Name, " "), name, s.Text},
		sizedCell{text.Safe(c.Text, " "), 0, ink},
		sizedCell{age, -5, s.Muted})
}
