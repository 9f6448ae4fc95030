// Package timemachine shows a run as of any of its events, what that event changed, and whether the run replays.
package timemachine

import (
	"cmp"
	"fmt"
	"slices"
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

// machine is what the two panes of the time machine share.
type machine struct {
	nav      *console.Navigation
	actor    *console.Actor
	location *time.Location
	feed     Feed
	data     *histories.Replay
	shown    int // how many of the panes are shown
	changed  int // first line of the state that the event changed, or -1
}

// look reads the history while at least one of the panes is shown.
func (m *machine) look(shown bool) {
	if shown {
		m.shown++
		m.nav.Following = false // keep the selected run when a newer one starts
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
	m := &machine{nav: c.Navigation, actor: c.Actor, location: c.Location, feed: feed}
	return tui.Screen{Name: "replay", Keys: []string{"9"}, Help: "time machine: the state of the run at any event; verify the run", Aside: true, Share: 52,
		Views: []tui.View{newReplayPane(m, "State", m.drawState), newReplayPane(m, "Event", m.drawEvent)}}
}

// replayPane is one of the panes: the state of the run at the selected event, or the event.
type replayPane struct {
	*machine
	name          string
	draw          func(*widget.Writer)
	styles        theme.Styles
	width, height int
	top, lines    int
	seen          int // position that was drawn last
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
	name := cmp.Or(v.data.About.TaskID, v.data.WorkflowID)
	title := v.name + " of " + text.Safe(name, " ") + " at event " + text.Count(v.data.Frame.EventID)
	if c := v.data.Chain; len(c.RunIDs) > 1 {
		title += fmt.Sprintf(", run %d of %d", c.At+1, len(c.RunIDs))
	}
	return title
}

func (v *replayPane) Footer() string {
	if v.data == nil || v.data.Frame == nil {
		return ""
	}
	return text.Count(int64(v.data.Frame.Position)) + "/" + text.Count(int64(v.data.About.Events))
}

// forkPoint returns the event that the time machine shows.
func (v *replayPane) forkPoint() string {
	if v.data == nil || v.data.Frame == nil || !v.nav.Selected.Is(v.data.WorkflowID, v.data.RunID) {
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
		return tui.Binding{Action: "replay." + name, Keys: keys, Help: help, Short: short,
			Do: func(tui.Shell) tea.Cmd { do(); return nil }}
	}
	move := func(by histories.StepBy, forward bool) func() { return func() { v.feed.StepMove(by, forward) } }
	at := func(name, help, short string, do func(tui.Shell) tea.Cmd, keys ...string) tui.Binding {
		return tui.Binding{Action: "replay." + name, Keys: keys, Help: help, Short: short, Do: do}
	}
	return append([]tui.Binding{
		b("next", "next event; after the last one, the next run of the chain", "event",
			move(histories.StepEvent, true), "right", "l"),
		b("previous", "previous event; before the first one, the previous run of the chain", "",
			move(histories.StepEvent, false), "left", "h"),
		b("next_phase", "next change of phase", "phase", move(histories.StepPhase, true), "]"),
		b("previous_phase", "previous change of phase", "", move(histories.StepPhase, false), "["),
		b("next_tool", "next tool call; of an experiment the next task", "tool call",
			move(histories.StepTool, true), "}"),
		b("previous_tool", "previous tool call or task", "", move(histories.StepTool, false), "{"),
		b("next_error", "next error", "error", move(histories.StepError, true), "e"),
		b("previous_error", "previous error", "", move(histories.StepError, false), "E"),
		b("first", "first event", "", func() { v.feed.StepToPosition(1) }, "g", "home"),
		b("last", "last event", "", func() { v.feed.StepTo(0) }, "G", "end"),
		at("at", "go to an event by number; also :42", "event 42", v.askAt, "#", "a"),
		at("watch", "watch a value: a path, a bullet ID or a JSON pointer", "watch", v.askWatch, "w"),
		b("next_change", "next change of the watched value", "", func() { v.feed.NextWatched(true) }, "n"),
		b("previous_change", "previous change of the watched value", "", func() { v.feed.NextWatched(false) }, "N"),
		b("verify", "verify that the current code makes the same decisions", "verify", func() { v.feed.VerifyRun(false) }, "r"),
		b("verify_strictly", "verify strictly: also compare inputs and timer durations, which Temporal ignores", "", func() { v.feed.VerifyRun(true) }, "S"),
		at("event", "go to the event on the timeline; esc leads back", "timeline", v.toTimeline, "J"),
		b("down", "down", "", func() { v.Scroll(1) }, "j", "down"),
		b("up", "up", "", func() { v.Scroll(-1) }, "k", "up"),
		b("page_down", "page down", "", func() { v.Scroll(v.height - 1) }, "pgdown", "ctrl+d", "ctrl+f"),
		b("page_up", "page up", "", func() { v.Scroll(1 - v.height) }, "pgup", "ctrl+u", "ctrl+b"),
	}, v.actor.ForkAt("replay", v.forkPoint)...)
}

// Commands returns the commands of the time machine. Only one of the panes offers them.
func (v *replayPane) Commands() []tui.Command {
	if v.name != "State" {
		return nil
	}
	return []tui.Command{
		{Name: "at", Args: "EVENT", Number: true, Help: "go to an event in the time machine",
			Do: func(s tui.Shell, args string) tea.Cmd { return v.goTo(s, args) }},
		{Name: "watch", Args: "VALUE", Help: "watch a value in the time machine; no value stops watching",
			Complete: func(string) []string { return v.names() },
			Do:       func(_ tui.Shell, args string) tea.Cmd { v.feed.WatchValue(strings.TrimSpace(args)); return nil }},
	}
}

func (v *replayPane) goTo(s tui.Shell, typed string) tea.Cmd {
	n, err := strconv.ParseInt(strings.TrimSpace(typed), 10, 64)
	if err != nil || n < 1 {
		s.Note("not an event number: " + text.Safe(typed, " "))
		return nil
	}
	v.feed.StepTo(n)
	return nil
}

func (v *replayPane) askAt(s tui.Shell) tea.Cmd {
	s.Ask(tui.Prompt{Label: "event ", Hint: "number", Done: func(typed string) tea.Cmd { return v.goTo(s, typed) }})
	return nil
}

func (v *replayPane) askWatch(s tui.Shell) tea.Cmd {
	value := ""
	if v.data != nil {
		value = v.data.Watched
	}
	s.Ask(tui.Prompt{Label: "watch ", Value: value,
		Hint: "phase   usage.cost_usd   skills.lookup   BULLET-ID   /delta/operations/0",
		Complete: func(line string, cursor int) (int, []string) {
			other := func(n string) bool { return !strings.HasPrefix(n, line[:cursor]) }
			return 0, slices.DeleteFunc(v.names(), other)
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
		v.nav.Show(runs.Run{WorkflowID: d.WorkflowID, RunID: d.RunID, TaskID: d.About.TaskID,
			Type: d.About.WorkflowType})
	}
	v.nav.Event = v.data.Frame.EventID
	s.Open("timeline")
	return nil
}

// Copy returns the watched value, or the event.
func (v *replayPane) Copy() (what, copied string) {
	switch d := v.data; {
	case d == nil || d.Frame == nil:
		return "", ""
	case d.Watched != "":
		return "value of " + d.Watched, d.WatchedValue
	default:
		return "event", fmt.Sprintf("%s event %d %s", d.WorkflowID, d.Frame.EventID, d.Frame.EventType)
	}
}

func (v *replayPane) Draw(now time.Time, _ bool) []string {
	switch d := v.data; {
	case d == nil:
		return widget.Centre([]string{"no run is selected", "press 1 to list runs, then t to open one here"},
			v.width, v.height, v.styles)
	case d.Frame == nil && d.Err != "":
		return widget.Centre([]string{"the history cannot be read", text.Safe(d.Err, " ")}, v.width, v.height,
			v.styles)
	case d.Frame == nil:
		return widget.Centre([]string{"reading the history" + v.styles.Glyphs.Ellipsis}, v.width, v.height,
			v.styles)
	}
	w := &widget.Writer{Doc: &v.doc, S: v.styles, Width: v.width, Now: now, Loc: v.location}
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
	lines := append(append([]string(nil), w.Lines[:min(head, len(w.Lines))]...),
		w.Lines[min(head+v.top, len(w.Lines)):]...)
	lines = lines[:min(len(lines), max(v.height, 0))]
	for i := range lines {
		lines[i] = text.Fit(lines[i], v.width, v.styles.Glyphs.Ellipsis)
	}
	return widget.Fill(lines, v.width, v.height)
}

// reveal scrolls to what the event changed unless that is visible.
func (v *replayPane) reveal(head int) {
	at := v.changed - head - v.top
	if v.changed < 0 || at >= 0 && at < v.height-head-1 {
		return
	}
	v.top = v.changed - v.height/2
}
