// Package health lists the health checks of the server, the workers, the data directory and this process.
package health

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/system"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// health lists the checks of the server, the workers, the sources, the calls and this process.
type health struct {
	controls console.Controls
	feed     console.Feed[*system.System]
	console.Pane
	data      *system.System
	conn      cluster.Connection
	arranged  *system.System
	lostSince time.Time      // connection loss that checks were made for
	checks    []system.Check // nil before the first data
	list      widget.SectionList[system.Check]
}

// Screen returns the list of checks with the selected one beside it.
func Screen(c *console.Console, feed console.Feed[*system.System]) tui.Screen {
	v := &health{Pane: console.NewPane("Health"), controls: c.Controls, feed: feed}
	v.list.Key = func(c system.Check) string { return c.Name }
	pane := &detail{from: v, Reader: console.NewReader("Detail", c.Location)}
	pane.Pointer = true
	return tui.Screen{Name: "health", Keys: []string{"8"}, Help: "the server, the workers, the sources",
		Views: []tui.View{v, pane}}
}

func (v *health) Footer() string { return v.list.Position() }

func (v *health) Bindings() []tui.Binding {
	problem := func(c system.Check) bool { return c.State == system.CheckError || c.State == system.CheckWarning }
	return slices.Concat(widget.Motions("health", &v.list),
		console.SectionKeys("health", "part", "section", "expand", &v.list),
		[]tui.Binding{
			console.Key("health.next_error", "next error or warning", "next problem",
				func() { v.list.Next(1, problem) }, "e"),
			console.Key("health.previous_error", "previous error or warning", "",
				func() { v.list.Next(-1, problem) }, "E"),
		})
}

func (v *health) SetShown(shown bool) { v.feed.Look(shown) }
func (v *health) Refresh()            { v.data, v.conn = v.feed.Value(), v.controls.Connection() }

func (v *health) Copy() (what, copied string) {
	c, ok := v.list.Current()
	switch {
	case c.Advice != "":
		return "advice", c.Advice
	case ok:
		return "check", c.Name + ": " + c.Text
	}
	return "", ""
}

// arrange checks the newest data. A connection lost since then is shown at once.
func (v *health) arrange() {
	lost := widget.If(v.conn.State == cluster.ConnLost, v.conn.Since, time.Time{})
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
		c.Err, c.Loading = cmp.Or(v.conn.Err, "the connection is lost"), false
		s = &c
	}
	v.checks = s.Checks()
	var sections []widget.Section[system.Check]
	for _, section := range system.Sections() {
		var rows []system.Check
		for _, c := range v.checks {
			if c.Section == section {
				rows = append(rows, c)
			}
		}
		if section == system.SectionAgents && len(rows) == 0 {
			continue // no agent was called
		}
		sections = append(sections, widget.Section[system.Check]{
			Name:   strings.ToUpper(string(section[:1])) + string(section[1:]),
			Remark: v.partRemark(section, rows), Limit: widget.If(section == system.SectionCalls, 6, 0), Rows: rows,
		})
	}
	v.list.Set(sections)
}

func (v *health) partRemark(s system.Section, rows []system.Check) string {
	if len(rows) > 0 {
		return ""
	}
	switch {
	case s == system.SectionWorkers && v.conn.Mode == cluster.ModeFile:
		return "none, because a history file is read without a server"
	case s == system.SectionWorkers:
		return "unknown: the server does not answer"
	case s == system.SectionCalls:
		return "no calls"
	}
	return "no data"
}

func (v *health) Draw(now time.Time, focused bool) []string {
	v.arrange()
	head := append([]string{v.head(now)}, v.advice()...)
	v.list.SetSize(v.Width, max(v.Height-len(head), 0))
	rows := v.list.Draw(v.Styles, focused, func(c system.Check, width int) []widget.SizedCell {
		return v.cells(c, width, now)
	})
	return widget.Fill(append(head, rows...), v.Width, v.Height)
}

func (v *health) head(now time.Time) string {
	s := v.Styles
	errors, warnings := system.CountErrors(v.checks), 0
	for _, c := range v.checks {
		if c.State == system.CheckWarning {
			warnings++
		}
	}
	l := v.Line()
	switch {
	case v.arranged == nil && errors == 0:
		l.Add(s.Muted, " checking"+s.Glyphs.Ellipsis)
	case errors > 0:
		l.Add(s.Error, " "+s.Glyphs.Failed+" "+ace.Count(errors, "error")).
			Add(s.Muted, " "+s.Glyphs.Dot+" e goes there")
	case warnings > 0:
		l.Add(s.Warning, " "+s.Glyphs.Unknown+" "+ace.Count(warnings, "warning"))
	default:
		l.Add(s.Success, " "+s.Glyphs.Success+" all checks passed")
	}
	if v.arranged != nil && !v.arranged.Loading {
		l.Add(s.Muted, " "+s.Glyphs.Dot+" read "+text.Span(now.Sub(v.arranged.At))+" ago")
	}
	return l.String(s.Text)
}

// advice shows the advice for the row under the cursor, or for the last error.
func (v *health) advice() []string {
	c, _ := v.list.Current()
	for _, other := range v.checks {
		if c.Advice == "" && other.State == system.CheckError {
			c = other
		}
	}
	if c.Advice == "" {
		return nil
	}
	s := v.Styles
	return []string{v.Line().Add(s.Muted, "   "+text.Safe(c.Name, " ")+" "+s.Glyphs.Arrow+" ").
		Add(s.Accent, text.Safe(c.Advice, " ")).String(s.Text)}
}

// checkMark returns the mark of a check.
func checkMark(state system.CheckState, s theme.Styles) theme.Mark {
	switch state {
	case system.CheckError:
		return theme.Mark{Glyph: s.Glyphs.Failed, Word: "error", Ink: s.Error}
	case system.CheckWarning:
		return theme.Mark{Glyph: s.Glyphs.Unknown, Word: "warn", Ink: s.Warning}
	case system.CheckInfo:
		return theme.Mark{Glyph: s.Glyphs.Dot, Word: "info", Ink: s.Muted}
	}
	return theme.Mark{Glyph: s.Glyphs.Success, Word: "ok", Ink: s.Success}
}

func (v *health) cells(c system.Check, width int, now time.Time) []widget.SizedCell {
	s := v.Styles
	m := checkMark(c.State, s)
	age := widget.If(c.At.IsZero(), "", text.Span(now.Sub(c.At)))
	return []widget.SizedCell{{m.Glyph + " " + m.Word, 7, m.Ink},
		{text.Safe(c.Name, " "), widget.Clamp(width/4, 14, 28), s.Text},
		{text.Safe(c.Text, " "), 0, widget.If(c.State == system.CheckOK, s.Text, m.Ink)}, {age, -5, s.Muted}}
}
