// Package health lists the health checks of the server, the workers, the data directory and this process.
package health

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/cluster"
	"acescope/sources/system"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// health lists how the server, the workers, the sources, the calls and this process are.
type health struct {
	controls      console.Controls
	location      *time.Location
	feed          console.Feed[*system.System]
	styles        theme.Styles
	width, height int
	data          *system.System
	conn          cluster.Connection
	arranged      *system.System
	lostSince     time.Time      // that checks were made for
	checks        []system.Check // nil before the first time
	bySection     [][]system.Check
	list          widget.SectionList
}

func NewHealth(c *console.Console, feed console.Feed[*system.System]) *health {
	return &health{controls: c.Controls, location: c.Location, feed: feed}
}

func (v *health) Name() string { return "Health" }

func (v *health) Title() string { return "Health" }

func (v *health) Footer() string { return v.list.Position() }

func (v *health) Bindings() []tui.Binding {
	b := func(name, help, short string, do func(), keys ...string) tui.Binding {
		return tui.Binding{Action: "health." + name, Keys: keys, Help: help, Short: short, Do: func(tui.Shell) tea.Cmd { do(); return nil }}
	}
	return append(widget.Motions("health", v),
		b("next_part", "to the next part", "part", func() { v.list.Jump(1) }, "]"),
		b("previous_part", "to the part before", "", func() { v.list.Jump(-1) }, "["),
		b("whole", "show a part whole, or its beginning", "whole part", v.list.Toggle, "a"),
		b("next_wrong", "to the next row that is wrong", "wrong", func() { v.wrong(1) }, "e"),
		b("previous_wrong", "to the row before that is wrong", "", func() { v.wrong(-1) }, "E"))
}

func (v *health) SetShown(shown bool) { v.feed.Look(shown) }

func (v *health) SetStyles(s theme.Styles) { v.styles = s }

func (v *health) SetSize(width, height int) { v.width, v.height = width, height }

func (v *health) Refresh() { v.data, v.conn = v.feed.Value(), v.controls.Connection() }

func (v *health) Page() int { return v.list.Page() }

func (v *health) Scroll(by int) { v.list.Scroll(by) }

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
	rows := v.list.Flat()
	at := -1
	for i, r := range rows {
		if r == v.list.Cursor {
			at = i
		}
	}
	for i := at + by; i >= 0 && i < len(rows); i += by {
		if v.at(rows[i]).State != system.CheckFine {
			v.list.Cursor = rows[i]
			v.list.Reveal()
			return
		}
	}
}

func (v *health) at(r widget.SectionRow) system.Check {
	if r.Part < len(v.bySection) && r.Row < len(v.bySection[r.Part]) {
		return v.bySection[r.Part][r.Row]
	}
	return system.Check{}
}

func (v *health) selected() (system.Check, bool) {
	c := v.at(v.list.Cursor)
	return c, c.Name != ""
}

// arrange judges the newest data. A server that went away since it was read is told at
// once, from the connection.
func (v *health) arrange(now time.Time) {
	lost := time.Time{}
	if v.conn.State == cluster.ConnLost {
		lost = v.conn.Since
	}
	if v.checks != nil && v.data == v.arranged && lost == v.lostSince {
		return
	}
	v.arranged, v.lostSince = v.data, lost
	s := v.data
	if s == nil {
		s = &system.System{Loading: true, Mode: v.conn.Mode, Address: v.conn.Address, Space: v.conn.Namespace}
	}
	if !lost.IsZero() && s.Err == "" {
		c := *s
		c.Err, c.Loading = v.conn.Err, false
		if c.Err == "" {
			c.Err = "the connection is lost"
		}
		s = &c
	}
	was := v.at(v.list.Cursor).Name
	v.checks = s.Checks(now)
	v.bySection = nil
	var parts []widget.SectionPart
	for _, section := range system.Sections() {
		var rows []system.Check
		for _, c := range v.checks {
			if c.Section == section {
				rows = append(rows, c)
			}
		}
		if section == system.SectionAgents && len(rows) == 0 {
			continue // nobody calls any
		}
		v.bySection = append(v.bySection, rows)
		parts = append(parts, widget.SectionPart{strings.ToUpper(string(section[:1])) + string(section[1:]), v.partRemark(section, rows), len(rows), partLimit(section)})
	}
	v.list.Set(parts)
	for row, c := range v.bySection[v.list.Cursor.Part] {
		if c.Name == was {
			v.list.Cursor.Row = row
		}
	}
	v.list.Settle()
}

func partLimit(s system.Section) int {
	if s == system.SectionCalls {
		return 6
	}
	return 0
}

func (v *health) partRemark(s system.Section, rows []system.Check) string {
	if len(rows) > 0 {
		return ""
	}
	switch {
	case s == system.SectionWorkers && v.conn.Mode == cluster.ModeFile:
		return "none: there is no server"
	case s == system.SectionWorkers:
		return "not known while the server does not answer"
	case s == system.SectionCalls:
		return "none was made"
	}
	return "nothing is known"
}

func (v *health) Draw(now time.Time, focused bool) []string {
	v.arrange(now)
	head := append([]string{v.head(now)}, v.advice()...)
	v.list.SetSize(v.width, max(v.height-len(head), 0))
	return widget.Fill(append(head, v.list.Draw(v.styles, focused, func(at widget.SectionRow, width int, plain bool) string {
		return v.row(v.at(at), width, plain, now)
	})...), v.width, v.height)
}

// head is the verdict in a line.
func (v *health) head(now time.Time) string {
	s := v.styles
	wrong, odd := system.Wrong(v.checks), 0
	for _, c := range v.checks {
		if c.State == system.CheckOdd {
			odd++
		}
	}
	l := text.Line{Max: v.width, Tail: s.Glyphs.Ellipsis}
	switch {
	case v.arranged == nil && wrong == 0:
		l.Add(s.Muted, " asking"+s.Glyphs.Ellipsis)
	case wrong > 0:
		l.Add(s.Error, " "+s.Glyphs.Failed+" "+widget.HowMany(wrong, "thing")+" wrong").Add(s.Muted, " "+s.Glyphs.Dot+" e goes there")
	case odd > 0:
		l.Add(s.Warning, " "+s.Glyphs.Unknown+" all works, "+widget.HowMany(odd, "row")+" worth a look")
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
		if c.Advice == "" && other.State == system.CheckWrong {
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
func checkMark(state system.CheckState, s theme.Styles) theme.Mark {
	switch state {
	case system.CheckWrong:
		return theme.Mark{Glyph: s.Glyphs.Failed, Word: "wrong", Ink: s.Error}
	case system.CheckOdd:
		return theme.Mark{Glyph: s.Glyphs.Unknown, Word: "look", Ink: s.Warning}
	}
	return theme.Mark{Glyph: s.Glyphs.Success, Word: "ok", Ink: s.Success}
}

func (v *health) row(c system.Check, width int, plain bool, now time.Time) string {
	s := v.styles
	m := checkMark(c.State, s)
	age := ""
	if !c.At.IsZero() {
		age = text.Span(now.Sub(c.At))
	}
	ink := s.Text
	if c.State != system.CheckFine {
		ink = m.Ink
	}
	name := widget.Clamp(width/4, 14, 28)
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis,
		widget.SizedCell{m.Glyph + " " + m.Word, 7, m.Ink},
		widget.SizedCell{text.Safe(c.Name, " "), name, s.Text},
		widget.SizedCell{text.Safe(c.Text, " "), 0, ink},
		widget.SizedCell{age, -5, s.Muted})
}
