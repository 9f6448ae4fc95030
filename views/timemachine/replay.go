// Package timemachine shows a run as of any of its events, what that event changed, and whether the run replays.
package timemachine

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// machine is what the two panes of the time machine share: the run as of an event,
// and what that event changed, with the verdict of verifying it.
type machine struct {
	*console.Console
	feed    Feed
	data    *histories.Replay
	shown   int // of its panes
	changed int // line of the state that the event changed first, -1 for none
}

// look reads the history while one of the panes is shown.
func (m *machine) look(shown bool) {
	if shown {
		m.shown++
		m.Following = false // or the run would be another one as soon as a newer begins
	} else {
		m.shown = max(m.shown-1, 0)
	}
	m.feed.Look(m.shown > 0)
}

// Feed steps through the history of the selected run.
type Feed interface {
	console.Feed[*histories.Replay]
	StepTo(event int64)
	StepToPosition(pos int)
	StepMove(by histories.StepBy, forward bool)
	WatchValue(expr string)
	NextWatched(forward bool)
	VerifyRun(strict bool)
}

func ReplayScreen(c *console.Console, feed Feed) tui.Screen {
	m := &machine{Console: c, feed: feed}
	return tui.Screen{Name: "replay", Keys: []string{"9"}, Help: "the time machine: the run as of any event; verify it", Aside: true, Share: 52,
		Views: []tui.View{newReplayPane(m, "State", m.drawState), newReplayPane(m, "Event", m.drawEvent)}}
}

// replayPane is one of the panes: a text that is drawn anew for each event.
type replayPane struct {
	*machine
	name          string
	draw          func(*widget.Writer)
	styles        theme.Styles
	width, height int
	top, lines    int
	seen          int // the position that was drawn last
	doc           widget.Document
}

func newReplayPane(m *machine, name string, draw func(*widget.Writer)) *replayPane {
	return &replayPane{machine: m, name: name, draw: draw}
}

func (v *replayPane) Name() string { return v.name }

func (v *replayPane) Title() string {
	if v.data == nil || v.data.Frame == nil {
		return v.name
	}
	title := fmt.Sprintf("%s %s %s", v.name, "of "+text.Safe(shortOf(v.data), " "), "as of event "+text.Count(v.data.Frame.EventID))
	if c := v.data.Chain; len(c.RunIDs) > 1 {
		title += fmt.Sprintf(", run %d of %d", c.At+1, len(c.RunIDs))
	}
	return title
}

func shortOf(d *histories.Replay) string {
	if d.About.TaskID != "" {
		return d.About.TaskID
	}
	return d.WorkflowID
}

func (v *replayPane) Footer() string {
	if v.data == nil || v.data.Frame == nil {
		return ""
	}
	return text.Count(int64(v.data.Frame.Position)) + "/" + text.Count(int64(v.data.About.Events))
}

// forkPoint is the event that the time machine stands at.
func (v *replayPane) forkPoint() string {
	if v.data == nil || v.data.Frame == nil || !v.Selected.Is(v.data.WorkflowID, v.data.RunID) {
		return ""
	}
	return "at=" + strconv.FormatInt(v.data.Frame.EventID, 10)
}

func (v *replayPane) SetShown(shown bool)       { v.look(shown) }
func (v *replayPane) SetStyles(s theme.Styles)  { v.styles = s }
func (v *replayPane) SetSize(width, height int) { v.width, v.height = width, height }
func (v *replayPane) Refresh()                  { v.data = v.feed.Value() }

func (v *replayPane) Scroll(by int) { v.top = widget.Clamp(v.top+by, 0, max(v.lines-v.height, 0)) }
func (v *replayPane) Page() int     { return v.height }

func (v *replayPane) Bindings() []tui.Binding {
	b := func(name, help, short string, do func(), keys ...string) tui.Binding {
		return tui.Binding{Action: "replay." + name, Keys: keys, Help: help, Short: short, Do: func(tui.Shell) tea.Cmd { do(); return nil }}
	}
	move := func(by histories.StepBy, forward bool) func() { return func() { v.feed.StepMove(by, forward) } }
	at := func(name, help, short string, do func(tui.Shell) tea.Cmd, keys ...string) tui.Binding {
		return tui.Binding{Action: "replay." + name, Keys: keys, Help: help, Short: short, Do: do}
	}
	return append([]tui.Binding{
		b("next", "the next event; past the last one, the run that continues this one", "event", move(histories.StepEvent, true), "right", "l"),
		b("previous", "the event before; before the first one, the run that this one continues", "", move(histories.StepEvent, false), "left", "h"),
		b("next_phase", "the next change of phase", "phase", move(histories.StepPhase, true), "]"),
		b("previous_phase", "the change of phase before", "", move(histories.StepPhase, false), "["),
		b("next_tool", "the next tool call; of an experiment the next task", "tool call", move(histories.StepTool, true), "}"),
		b("previous_tool", "the tool call before", "", move(histories.StepTool, false), "{"),
		b("next_error", "the next error", "error", move(histories.StepError, true), "e"),
		b("previous_error", "the error before", "", move(histories.StepError, false), "E"),
		b("first", "the first event", "", func() { v.feed.StepToPosition(1) }, "g", "home"),
		b("last", "the last event", "", func() { v.feed.StepTo(0) }, "G", "end"),
		at("at", "go to an event by its number; so does :42", "event 42", v.askAt, "#", "a"),
		at("watch", "watch a value: a path, a bullet's id, a JSON pointer", "watch", v.askWatch, "w"),
		b("next_change", "the next change of the value that is watched", "", func() { v.feed.NextWatched(true) }, "n"),
		b("previous_change", "the change before", "", func() { v.feed.NextWatched(false) }, "N"),
		b("verify", "verify: does today's code still decide the same?", "verify", func() { v.feed.VerifyRun(false) }, "r"),
		b("verify_strictly", "verify strictly: what Temporal lets pass counts too, another input, another length of a timer", "", func() { v.feed.VerifyRun(true) }, "S"),
		at("event", "go to the event on the timeline; esc leads back", "timeline", v.toTimeline, "J"),
		b("down", "down", "", func() { v.Scroll(1) }, "j", "down"),
		b("up", "up", "", func() { v.Scroll(-1) }, "k", "up"),
		b("page_down", "a page down", "", func() { v.Scroll(v.height - 1) }, "pgdown", "ctrl+d", "ctrl+f"),
		b("page_up", "a page up", "", func() { v.Scroll(1 - v.height) }, "pgup", "ctrl+u", "ctrl+b"),
	}, v.ForkAt("replay", v.forkPoint)...)
}

// Commands are those of the time machine.
func (v *replayPane) Commands() []tui.Command {
	if v.name != "State" { // both panes have the same: they are offered once
		return nil
	}
	return []tui.Command{
		{Name: "at", Args: "EVENT", Number: true, Help: "the time machine goes to an event", Do: func(s tui.Shell, args string) tea.Cmd { return v.goTo(s, args) }},
		{Name: "watch", Args: "VALUE", Help: "the time machine watches a value; none without one",
			Complete: func(string) []string { return v.names() },
			Do:       func(_ tui.Shell, args string) tea.Cmd { v.feed.WatchValue(strings.TrimSpace(args)); return nil }},
	}
}

func (v *replayPane) goTo(s tui.Shell, typed string) tea.Cmd {
	n, err := strconv.ParseInt(strings.TrimSpace(typed), 10, 64)
	if err != nil || n < 1 {
		s.Note("an event has a number from 1: " + text.Safe(typed, " "))
		return nil
	}
	v.feed.StepTo(n)
	return nil
}

func (v *replayPane) askAt(s tui.Shell) tea.Cmd {
	s.Ask(tui.Prompt{Label: "event ", Hint: "its number", Done: func(typed string) tea.Cmd { return v.goTo(s, typed) }})
	return nil
}

func (v *replayPane) askWatch(s tui.Shell) tea.Cmd {
	value := ""
	if v.data != nil {
		value = v.data.Watched
	}
	s.Ask(tui.Prompt{Label: "watch ", Value: value, Hint: "phase   usage.cost_usd   skills.lookup   a bullet's id   /delta/operations/0",
		Complete: func(line string, cursor int) (int, []string) {
			var fit []string
			for _, n := range v.names() {
				if strings.HasPrefix(n, line[:cursor]) {
					fit = append(fit, n)
				}
			}
			return 0, fit
		},
		Done: func(typed string) tea.Cmd { v.feed.WatchValue(strings.TrimSpace(typed)); return nil }})
	return nil
}

func (v *replayPane) names() []string {
	if v.data == nil {
		return nil
	}
	var names []string
	for _, k := range v.data.Known {
		names = append(names, k.Path)
	}
	return names
}

func (v *replayPane) toTimeline(s tui.Shell) tea.Cmd {
	if v.data == nil || v.data.Frame == nil {
		return nil
	}
	if d := v.data; d.RunID != d.Selected {
		v.Show(runs.Run{WorkflowID: d.WorkflowID, RunID: d.RunID, TaskID: d.About.TaskID, Type: d.About.WorkflowType})
	}
	v.Event = v.data.Frame.EventID
	s.Open("timeline")
	return nil
}

// Copy is the value that is watched, or the event.
func (v *replayPane) Copy() (what, copied string) {
	switch d := v.data; {
	case d == nil || d.Frame == nil:
		return "", ""
	case d.Watched != "":
		return "the value of " + d.Watched, d.Seen
	default:
		return "the event", fmt.Sprintf("%s event %d %s", d.WorkflowID, d.Frame.EventID, d.Frame.EventType)
	}
}

func (v *replayPane) Draw(now time.Time, _ bool) []string {
	switch d := v.data; {
	case d == nil:
		return widget.Centre([]string{"no run is selected", "1 lists the runs, t on one opens it here"}, v.width, v.height, v.styles)
	case d.Frame == nil && d.Err != "":
		return widget.Centre([]string{"the history cannot be read", text.Safe(d.Err, " ")}, v.width, v.height, v.styles)
	case d.Frame == nil:
		return widget.Centre([]string{"reading the history …"}, v.width, v.height, v.styles)
	}
	w := &widget.Writer{Doc: &v.doc, S: v.styles, Width: v.width, Now: now, Loc: v.Location}
	v.draw(w)
	head := 4
	if v.name != "State" {
		head = 0
	}
	v.lines = len(w.Lines)
	if pos := v.data.Frame.Position; pos != v.seen && head > 0 {
		v.seen = pos
		v.reveal(head)
	}
	v.top = widget.Clamp(v.top, 0, max(v.lines-v.height, 0))
	lines := append(append([]string(nil), w.Lines[:min(head, len(w.Lines))]...), w.Lines[min(head+v.top, len(w.Lines)):]...)
	lines = lines[:min(len(lines), max(v.height, 0))]
	for i := range lines {
		lines[i] = text.Fit(lines[i], v.width, v.styles.Glyphs.Ellipsis)
	}
	return widget.Fill(lines, v.width, v.height)
}

// reveal scrolls to what the event changed, where that is out of sight.
func (v *replayPane) reveal(head int) {
	at := v.changed - head - v.top
	if v.changed < 0 || at >= 0 && at < v.height-head-1 {
		return
	}
	v.top = v.changed - v.height/2
}
