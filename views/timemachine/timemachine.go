// Package timemachine shows a run as of any of its events, what that event changed, and whether the run
// replays.
package timemachine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/stepper"
	"acescope/sources/histories"
	"acescope/sources/playbooks"
	"acescope/sources/runs"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
	"acescope/views/timeline"
)

// machine is what the two panes of the time machine share.
type machine struct {
	nav       *console.Navigation
	forks     *console.Forks
	location  *time.Location
	feed      Feed
	artifacts *console.Artifacts
	data      *histories.Replay
	strip     *timeline.Strip
	panes     []*pane
	shown     int // how many of the panes are shown
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
	m.artifacts.Look(m.shown > 0)
}

// alone reports whether one pane is shown at a time: both then have the whole width.
func (m *machine) alone() bool { return m.panes[0].Width == m.panes[1].Width }

// Feed steps through the history of the selected run.
type Feed interface {
	console.Feed[*histories.Replay]
	StepTo(event int64)
	StepToPosition(pos int)
	StepMove(by stepper.By, forward bool)
	StepToWrong()
	WatchValue(expr string)
	NextWatched(forward bool)
	VerifyRun(strict bool)
	WritePage()
}

// Screen returns the time machine: the state of the run at an event, and the event.
func Screen(c *console.Console, feed Feed, artifacts *console.Artifacts) tui.Screen {
	m := &machine{nav: c.Navigation, forks: c.Forks, location: c.Location, feed: feed, artifacts: artifacts,
		strip: timeline.NewStrip()}
	m.panes = []*pane{newPane(m, "State", (*pane).drawState), newPane(m, "Event", (*pane).drawEvent)}
	return tui.Screen{Name: "replay", Keys: []string{"9"}, Aside: true, Share: 52,
		Argument: c.RunArgument("replay"),
		Help:     "time machine: the state of the run at any event; verify the run",
		Views:    []tui.View{m.panes[0], m.panes[1]}}
}

// pane is one of the panes: the state of the run at the selected event, or the event.
type pane struct {
	*machine
	console.Reader
	write    func(*pane, *widget.Writer)
	doc      widget.Document // of the head
	payloads widget.Payloads
	bullets  map[int]string // by the line that is about the bullet
	changed  int            // first line that the event changed, or -1
	seen     int            // position that was drawn last
}

func newPane(m *machine, name string, write func(*pane, *widget.Writer)) *pane {
	v := &pane{machine: m, Reader: console.NewReader(name, m.location), write: write}
	v.Pointer = true
	return v
}

func (v *pane) Title() string {
	if v.data == nil || v.data.Frame == nil {
		return v.Name()
	}
	name := cmp.Or(v.data.About.TaskID, v.data.WorkflowID)
	title := v.Name()
	title += widget.If(title == "State", " at event", "")
	title += " " + ace.Number(v.data.Frame.EventID) + " of " + text.Safe(name, " ")
	if c := v.data.Chain; len(c.RunIDs) > 1 {
		title += fmt.Sprintf(", run %d of %d", c.At+1, len(c.RunIDs))
	}
	return title
}

func (v *pane) Footer() string {
	if v.data == nil || v.data.Frame == nil {
		return ""
	}
	return ace.Number(v.data.Frame.Position) + "/" + ace.Number(v.data.About.Events)
}

// forkPoint returns the event that the time machine shows. At the event where the answer became wrong, it
// returns the phase that gave the answer, because a fork after that event would keep it.
func (v *pane) forkPoint() string {
	if v.data == nil || v.data.Frame == nil || !v.nav.Selected.Is(v.data.WorkflowID, v.data.RunID) {
		return ""
	}
	event := v.data.Frame.EventID
	if wrong := v.data.Wrong; wrong != nil && wrong.EventID == event {
		for _, span := range v.data.Log.Spans {
			if span.Last == event && ace.Phase(span.Name).Activity() != "" {
				return "phase=" + span.Name
			}
		}
	}
	return "at=" + strconv.FormatInt(event, 10)
}

func (v *pane) SetShown(shown bool) { v.look(shown) }

func (v *pane) Refresh() {
	v.data = v.feed.Value()
	v.artifacts.Take()
}

// openRelated shows the requests to models that the event refers to, or the run of the task that it
// completes.
func (v *pane) openRelated(s tui.Shell) tea.Cmd {
	if v.data != nil && v.data.Frame != nil && v.data.Frame.Task != nil {
		id := v.data.Frame.Task.TaskID
		return v.leaveFor(s, runs.Run{WorkflowID: ace.WorkflowID(id), TaskID: id, Type: ace.TaskWorkflow})
	}
	refs := v.refs()
	if len(refs) == 0 {
		s.Note("no request to a model is on record at this event; ] goes to the next phase")
		return nil
	}
	v.artifacts.OpenFirst(s, refs)
	s.Focus(1)
	return nil
}

// leaveFor opens another run. esc leads back to the event.
func (v *pane) leaveFor(s tui.Shell, to runs.Run) tea.Cmd {
	from := v.run()
	event := v.data.Frame.EventID
	cmd := v.nav.OpenRun(s, to)
	s.OnReturn(func() {
		v.nav.Show(from)
		v.feed.StepTo(event)
	})
	return cmd
}

// refs returns the records of requests to models that the event refers to.
func (m *machine) refs() (refs []ace.Ref) {
	if m.data == nil {
		return nil
	}
	for _, c := range m.data.Calls {
		refs = append(refs, c.Log.Ref)
	}
	return refs
}

func (v *pane) Bindings() []tui.Binding {
	b := func(name, help, short string, do func(), keys ...string) tui.Binding {
		return console.Key("replay."+name, help, short, do, keys...)
	}
	move := func(by stepper.By, forward bool) func() { return func() { v.feed.StepMove(by, forward) } }
	at := func(name, help, short string, do func(tui.Shell), keys ...string) tui.Binding {
		return console.Key("replay."+name, help, short, do, keys...)
	}
	author := console.Key("replay.author",
		"open the run that added the bullet at the cursor; esc leads back", "author", v.openAuthor, "A")
	return append(v.forks.ForkAt("replay", v.forkPoint),
		b("next", "next event; after the last one, the next run of the chain", "event",
			move(stepper.ByEvent, true), "right", "l"),
		b("previous", "previous event; before the first one, the previous run of the chain", "",
			move(stepper.ByEvent, false), "left", "h"),
		b("next_phase", "next change of phase", "phase", move(stepper.ByPhase, true), "]"),
		b("previous_phase", "previous change of phase", "", move(stepper.ByPhase, false), "["),
		b("next_tool", "next tool call; of an experiment the next task", "tool call",
			move(stepper.ByTool, true), "}"),
		b("previous_tool", "previous tool call or task", "", move(stepper.ByTool, false), "{"),
		b("next_error", "next error, or the event that produced a wrong answer", "error",
			move(stepper.ByError, true), "e"),
		b("previous_error", "previous error or wrong answer", "", move(stepper.ByError, false), "E"),
		b("first", "first event", "", func() { v.feed.StepToPosition(1) }, "g", "home"),
		b("last", "last event", "", func() { v.feed.StepTo(0) }, "G", "end"),
		at("at", "go to an event by number; also :42", "event 42", v.askAt, "#"),
		at("watch", "watch a value: a path, a bullet ID or a JSON pointer", "watch", v.askWatch, "*"),
		b("next_match", "next change of the watched value", "", func() { v.feed.NextWatched(true) },
			"ctrl+n"),
		b("previous_match", "previous change of the watched value", "", func() { v.feed.NextWatched(false) },
			"ctrl+p"),
		b("verify", "verify that the current code makes the same decisions", "verify",
			func() { v.feed.VerifyRun(false) }, "r"),
		b("strict", "verify strictly: also compare inputs and timer durations, which Temporal ignores", "",
			func() { v.feed.VerifyRun(true) }, "&"),
		b("save", "write an HTML file with every event and the state after it, for a bug report", "",
			v.feed.WritePage, "ctrl+s"),
		at("event", "go to the event on the timeline; esc leads back", "timeline", v.toTimeline, "J"),
		console.Key("replay.related", "open the requests to the model of the phase that completed, or the "+
			"run of the task of an experiment", "requests", v.openRelated, "O"),
		author,
		at("bullets", "show the bullet at the cursor in its playbook", "bullet", v.openBullet, "b"),
		b("down", "down", "", func() { v.Scroll(1) }, "j", "down"),
		b("up", "up", "", func() { v.Scroll(-1) }, "k", "up"),
		b("half_down", "half a page down", "", func() { v.Scroll(max(v.Page()/2, 1)) }, "ctrl+d"),
		b("half_up", "half a page up", "", func() { v.Scroll(min(-v.Page()/2, -1)) }, "ctrl+u"),
		b("page_down", "page down", "", func() { v.Scroll(v.Page()) }, "pgdown", "ctrl+f"),
		b("page_up", "page up", "", func() { v.Scroll(-v.Page()) }, "pgup", "ctrl+b"),
	)
}

// Commands returns the commands of the time machine. Only one of the panes offers them.
func (v *pane) Commands() []tui.Command {
	if v.Name() != "State" {
		return nil
	}
	return []tui.Command{
		{Name: "at", Args: "EVENT", Number: true, Help: "go to an event in the time machine",
			Check: func(args string) error { _, err := console.NumberOf(args); return err },
			Do:    func(s tui.Shell, args string) tea.Cmd { v.goTo(s, args); return nil }},
		{Name: "watch", Args: "VALUE", Help: "watch a value in the time machine; no value stops watching",
			Candidates: func() (list []tui.Candidate) {
				for _, name := range v.names() {
					list = append(list, tui.Candidate{Value: name})
				}
				return list
			},
			Do: func(_ tui.Shell, args string) tea.Cmd {
				v.feed.WatchValue(strings.TrimSpace(args))
				return nil
			}},
	}
}

func (v *pane) goTo(s tui.Shell, typed string) {
	n, err := console.NumberOf(typed)
	if err != nil {
		s.Note(err.Error())
		return
	}
	v.feed.StepTo(n)
}

func (v *pane) askAt(s tui.Shell) {
	s.Ask(tui.Prompt{Label: "event ", Hint: "number",
		Check: func(typed string) error { _, err := console.NumberOf(typed); return err },
		Done:  func(typed string) tea.Cmd { v.goTo(s, typed); return nil }})
}

func (v *pane) askWatch(s tui.Shell) {
	value := ""
	if v.data != nil {
		value = v.data.Watched
	}
	s.Ask(tui.Prompt{Label: "watch ", Value: value,
		Hint: "phase   usage.cost_usd   skills.look_up   BULLET-ID   /delta/operations/0",
		Complete: func(line string, cursor int) (int, []string) {
			other := func(n string) bool { return !strings.HasPrefix(n, line[:cursor]) }
			return 0, slices.DeleteFunc(v.names(), other)
		},
		Done: func(typed string) tea.Cmd { v.feed.WatchValue(strings.TrimSpace(typed)); return nil }})
}

func (v *pane) names() []string {
	if v.data == nil {
		return nil
	}
	var names []string
	for _, k := range v.data.Known {
		names = append(names, k.Path)
	}
	return names
}

func (v *pane) toTimeline(s tui.Shell) {
	if v.data == nil || v.data.Frame == nil {
		return
	}
	if v.data.RunID != v.data.Selected {
		v.nav.Show(v.run())
	}
	v.nav.Event = v.data.Frame.EventID
	s.Open("timeline")
}

// run returns the run of the chain that is shown.
func (v *pane) run() runs.Run {
	d := v.data
	if d.RunID == d.Selected {
		return v.nav.Selected.Run
	}
	return runs.Run{WorkflowID: d.WorkflowID, RunID: d.RunID, TaskID: d.About.TaskID,
		Type: d.About.WorkflowType}
}

func (v *pane) Copy() (what, copied string) {
	switch d := v.data; {
	case d == nil || d.Frame == nil:
		return "", ""
	case d.Watched != "":
		return "value of " + d.Watched, d.WatchedValue
	default:
		return "event", fmt.Sprintf("%s event %d %s", d.WorkflowID, d.Frame.EventID, d.Frame.EventType)
	}
}

func (v *pane) Copies() []tui.Copy {
	d := v.data
	if d == nil || d.Frame == nil {
		return nil
	}
	at := strconv.FormatInt(d.Frame.EventID, 10)
	return []tui.Copy{{Key: "i", What: "workflow ID", Text: d.WorkflowID},
		{Key: "n", What: "event number", Text: at},
		console.JSONCopy(d.Frame), v.nav.CommandCopy("replay", "step", ace.TaskIDOf(d.WorkflowID), "--at",
			at)}
}

func (v *pane) Draw(now time.Time, focused bool) []string {
	switch d := v.data; {
	case d == nil:
		return v.Message(nil, "no run is selected", "press 1 to list runs, then t to open one here")
	case d.Frame == nil && d.Err != "":
		return v.Message(nil, "the history cannot be read", text.Safe(d.Err, " "))
	case d.Frame == nil:
		return v.Message(nil, "reading the history"+v.Styles.Glyphs.Ellipsis)
	}
	if v.Name() == "State" {
		v.Head = v.head(now)
	}
	of := struct {
		data      *histories.Replay
		artifacts console.ArtifactState
	}{v.data, v.artifacts.State()}
	fresh := v.data.Frame.Position != v.seen
	v.seen = v.data.Frame.Position
	if lines := v.Show(nil, of, now, focused, v.writeLines); !fresh {
		return lines
	}
	v.reveal()
	return v.Show(nil, of, now, focused, v.writeLines)
}

func (v *pane) writeLines(w *widget.Writer) {
	v.bullets = map[int]string{}
	v.write(v, w)
}

// reveal goes to the first change of the state by the event, or to the top of the event.
func (v *pane) reveal() {
	v.Cursor = max(v.changed, 0)
	v.Top = max(v.Cursor-v.Page()/3, 0)
}

// bullet returns the bullet at the cursor, or else the only one that the pane shows.
func (v *pane) bullet(s tui.Shell) string {
	if id := v.bullets[v.Cursor]; id != "" {
		return id
	}
	ids := slices.Compact(slices.Sorted(maps.Values(v.bullets)))
	if len(ids) == 1 {
		return ids[0]
	}
	s.Note("move to a bullet with j and k first")
	return ""
}

// author returns the merge that added the bullet at the cursor, or nil.
func (v *pane) author(s tui.Shell) (id string, by *playbook.Source) {
	if id = v.bullet(s); id == "" {
		return "", nil
	}
	h := v.data.Bullets[id]
	switch {
	case h == nil:
		s.Note("bullet " + text.Safe(id, " ") +
			" is not in the playbook that the run was given, or that cannot be read here")
		return "", nil
	case h.Added == nil:
		s.Note("bullet " + text.Safe(id, " ") + " is from the first version of its branch")
		return "", nil
	}
	return id, h.Added
}

func (v *pane) openAuthor(s tui.Shell) tea.Cmd {
	_, by := v.author(s)
	if by == nil {
		return nil
	}
	return v.leaveFor(s, runs.Run{WorkflowID: by.WorkflowID, RunID: by.RunID, TaskID: by.TaskID})
}

func (v *pane) openBullet(s tui.Shell) {
	id, by := v.author(s)
	if by == nil {
		return
	}
	v.nav.Version, v.nav.Bullet = playbooks.VersionRef{Branch: by.Branch, Seq: by.Seq}, id
	s.Open("playbook")
}
