package timeline

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/run"
)

// eventInspector is the event under the timeline's cursor, whole.
type eventInspector struct {
	t             *Timeline
	width, height int
	panel         widget.Panel
	opened        *histories.OpenedEvent // as wrapped
	wrapped       int                    // to this width
	lines         []string               // safe
	styles        theme.Styles
}

func (v *eventInspector) Name() string { return "Event" }

func (v *eventInspector) Title() string {
	id := v.t.at()
	if id == 0 {
		return "Event"
	}
	e := v.t.current().Event(id)
	if e == nil {
		return "Event"
	}
	return "Event " + text.Count(id) + " " + e.Name()
}

func (v *eventInspector) Footer() string {
	o := v.event()
	if o == nil || o.Err != "" {
		return ""
	}
	if o.Size > len(o.Text) {
		return "the first " + size(int64(len(o.Text))) + " of " + size(int64(o.Size)) + " " + v.styles.Glyphs.Dot + " " + run.Position(&v.panel)
	}
	return run.Position(&v.panel)
}

func (v *eventInspector) Bindings() []tui.Binding {
	return append(append(widget.Motions("event", v), v.t.ForkAt("event", v.t.forkPoint)...),
		tui.Binding{Action: "event.include", Keys: []string{"/"}, Help: "show only events that match a regular expression; ! before it: that do not", Do: v.t.askInclude},
		tui.Binding{Action: "event.next_error", Keys: []string{"e"}, Help: "next error", Short: "error", Do: v.t.stepOr(wrong, 1, (*histories.EventLog).NextError, "no error after this")},
		tui.Binding{Action: "event.previous_error", Keys: []string{"E"}, Help: "error before", Do: v.t.stepOr(wrong, -1, (*histories.EventLog).NextError, "no error before this")},
		tui.Binding{Action: "event.open", Keys: []string{"o"}, Help: "open the run that the event names: the child, the parent, the one before or after", Do: v.t.openRun},
		tui.Binding{Action: "event.back", Keys: []string{"backspace"}, Help: "back to the run that another was opened from", Do: v.t.Back},
		tui.Binding{Action: "event.run", Keys: []string{"J"}, Help: "to the run",
			Do: func(s tui.Shell) tea.Cmd { s.Open("run"); return nil }})
}

func (v *eventInspector) Refresh() {}

func (v *eventInspector) SetStyles(s theme.Styles) {
	v.styles, v.opened = s, nil
}

func (v *eventInspector) SetSize(width, height int) { v.width, v.height = width, height }

func (v *eventInspector) Scroll(by int) { v.panel.Scroll(by) }
func (v *eventInspector) Page() int     { return max(v.panel.Height, 1) }

// event is the event under the cursor, nil until it is ready.
func (v *eventInspector) event() *histories.OpenedEvent {
	l, id := v.t.current(), v.t.at()
	if l == nil || l.Opened == nil || l.Opened.ID != id {
		return nil
	}
	return l.Opened
}

func (v *eventInspector) Draw(now time.Time, _ bool) []string {
	l, id := v.t.current(), v.t.at()
	if l == nil || id == 0 {
		return widget.Centre([]string{"no event is selected"}, v.width, v.height, v.styles)
	}
	v.t.look()
	lines := v.about(l, id, l.Clock(now))
	o := v.event()
	switch {
	case o == nil:
		lines = append(lines, v.styles.Muted.Paint(text.Fit(" reading"+v.styles.Glyphs.Ellipsis, v.width, "")))
	case o.Err != "":
		for _, t := range text.Wrap(o.Err, max(v.width-2, 1)) {
			lines = append(lines, v.styles.Error.Paint(text.Fit(" "+t, v.width, "")))
		}
	default:
		v.wrap(o)
		v.panel.Lines, v.panel.Height = len(v.lines), max(v.height-len(lines), 0)
		v.panel.Scroll(0)
		for _, t := range v.lines[v.panel.Top:min(v.panel.Top+v.panel.Height, len(v.lines))] {
			lines = append(lines, v.paint(t))
		}
	}
	return widget.Fill(lines, v.width, v.height)
}

// about is the span that is selected, in a few lines.
func (v *eventInspector) about(l *histories.EventLog, id int64, now time.Time) []string {
	s := v.styles
	say := func(ink theme.Ink, label, what string) string {
		line := text.Line{Max: v.width, Tail: s.Glyphs.Ellipsis}
		return line.Add(s.Muted, text.Fit(" "+label, 10, "")).Add(ink, text.Safe(widget.Bounded(what, v.width), " ")).String(s.Text)
	}
	if v.t.onList {
		e := l.Event(id)
		lines := []string{say(s.Text, "at", e.At().In(v.t.Location).Format("2006-01-02 15:04:05.000")+"  "+offset(e.At().Sub(l.Start())))}
		if e.Message != "" {
			ink := s.Text
			if e.Error {
				ink = s.Error
			}
			lines = append(lines, say(ink, "says", e.Message))
		}
		return append(lines, "")[:len(lines)]
	}
	sp := v.t.Span()
	if sp == nil {
		return nil
	}
	took := text.Took(sp.Ran(now))
	if wait := sp.Waited(now); wait > 0 && sp.Kind != histories.SpanRun {
		took += ", after waiting for " + text.Took(wait)
	}
	lines := []string{say(v.t.spanInk(sp), sp.Kind.String(), sp.Name), say(s.Text, "state", sp.State.String()),
		say(s.Text, "began", offset(time.Duration(sp.Start-l.Spans[0].Start))), say(s.Text, "took", took)}
	if sp.Attempt > 1 {
		lines = append(lines, say(s.Retrying, "attempt", text.Count(int64(sp.Attempt))))
	}
	if sp.Error != "" {
		lines = append(lines, say(s.Error, "error", sp.Error))
	}
	return append(lines, s.Border.Paint(strings.Repeat(s.Glyphs.Plain.Top, v.width)))
}

// wrap makes the lines of an event, once for each event and width.
func (v *eventInspector) wrap(o *histories.OpenedEvent) {
	if v.opened == o && v.wrapped == v.width {
		return
	}
	if v.opened == nil || v.opened.ID != o.ID {
		v.panel.Top = 0
	}
	v.opened, v.wrapped, v.lines = o, v.width, nil
	for _, t := range text.Lines(o.Text) {
		if text.Width(t) <= v.width-1 {
			v.lines = append(v.lines, t)
			continue
		}
		v.lines = append(v.lines, strings.Split(ansi.Hardwrap(t, max(v.width-1, 1), true), "\n")...)
	}
	if o.Size > len(o.Text) {
		v.lines = append(v.lines, "("+text.Count(int64(o.Size-len(o.Text)))+" more bytes)")
	}
}

// paint gives the names of fields another ink.
func (v *eventInspector) paint(t string) string {
	s := v.styles
	l := text.Line{Max: v.width, Tail: s.Glyphs.Ellipsis}
	l.Add(s.Text, " ")
	if i := strings.Index(t, `": `); i > 0 && strings.HasPrefix(strings.TrimLeft(t, " "), `"`) {
		return l.Add(s.Accent, t[:i+1]).Add(s.Text, t[i+1:]).String(s.Text)
	}
	return l.Add(s.Text, t).String(s.Text)
}

// Copy is the event, whole.
func (v *eventInspector) Copy() (string, string) { return v.t.Copy() }
