package views

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// ReplayControls steers the time machine. Its methods return at once.
type ReplayControls interface {
	StepTo(event int64)
	StepToPosition(pos int)
	StepMove(by sources.StepBy, forward bool)
	WatchValue(expr string)
	NextWatched(forward bool)
	VerifyRun(strict bool)
}

// timeMachine is what the two panes of the time machine share: the run as of an event,
// and what that event changed, with the verdict of verifying it.
type timeMachine struct {
	*console
	data    *sources.Replay
	shown   int // of its panes
	changed int // line of the state that the event changed first, -1 for none
}

// look reads the history while one of the panes is shown.
func (m *timeMachine) look(shown bool) {
	if shown {
		m.shown++
		m.following = false // or the run would be another one as soon as a newer begins
	} else {
		m.shown = max(m.shown-1, 0)
	}
	m.Controls.Look(sources.PartReplay, m.shown > 0)
}

func replayScreen(c *console) tui.Screen {
	m := &timeMachine{console: c}
	return tui.Screen{Name: "replay", Keys: []string{"9"}, Help: "the time machine: the run as of any event; verify it", Aside: true, Share: 52,
		Views: []tui.View{newReplayPane(m, "State", m.drawState), newReplayPane(m, "Event", m.drawEvent)}}
}

// replayPane is one of the panes: a text that is drawn anew for each event.
type replayPane struct {
	*timeMachine
	name          string
	draw          func(*writer)
	styles        theme.Styles
	width, height int
	top, lines    int
	seen          int // the position that was drawn last
	doc           document
}

func newReplayPane(m *timeMachine, name string, draw func(*writer)) *replayPane {
	return &replayPane{timeMachine: m, name: name, draw: draw}
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

func shortOf(d *sources.Replay) string {
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
	if v.data == nil || v.data.Frame == nil || !v.selected.is(v.data.WorkflowID, v.data.RunID) {
		return ""
	}
	return "at=" + strconv.FormatInt(v.data.Frame.EventID, 10)
}

func (v *replayPane) Update(tea.Msg) tea.Cmd { return nil }

func (v *replayPane) SetShown(shown bool)             { v.look(shown) }
func (v *replayPane) SetStyles(s theme.Styles)        { v.styles = s }
func (v *replayPane) SetSize(width, height int)       { v.width, v.height = width, height }
func (v *replayPane) SetSnapshot(s *sources.Snapshot) { v.data = s.Replay }

func (v *replayPane) scroll(by int) { v.top = clamp(v.top+by, 0, max(v.lines-v.height, 0)) }
func (v *replayPane) page() int     { return v.height }

func (v *replayPane) Bindings() []tui.Binding {
	b := func(name, help, short string, do func(), keys ...string) tui.Binding {
		return tui.Binding{Action: "replay." + name, Keys: keys, Help: help, Short: short, Do: func(tui.Shell) tea.Cmd { do(); return nil }}
	}
	move := func(by sources.StepBy, forward bool) func() { return func() { v.Controls.StepMove(by, forward) } }
	at := func(name, help, short string, do func(tui.Shell) tea.Cmd, keys ...string) tui.Binding {
		return tui.Binding{Action: "replay." + name, Keys: keys, Help: help, Short: short, Do: do}
	}
	return append([]tui.Binding{
		b("next", "the next event; past the last one, the run that continues this one", "event", move(sources.StepEvent, true), "right", "l"),
		b("previous", "the event before; before the first one, the run that this one continues", "", move(sources.StepEvent, false), "left", "h"),
		b("next_phase", "the next change of phase", "phase", move(sources.StepPhase, true), "]"),
		b("previous_phase", "the change of phase before", "", move(sources.StepPhase, false), "["),
		b("next_tool", "the next tool call; of an experiment the next task", "tool call", move(sources.StepTool, true), "}"),
		b("previous_tool", "the tool call before", "", move(sources.StepTool, false), "{"),
		b("next_error", "the next error", "error", move(sources.StepError, true), "e"),
		b("previous_error", "the error before", "", move(sources.StepError, false), "E"),
		b("first", "the first event", "", func() { v.Controls.StepToPosition(1) }, "g", "home"),
		b("last", "the last event", "", func() { v.Controls.StepTo(0) }, "G", "end"),
		at("at", "go to an event by its number; so does :42", "event 42", v.askAt, "#", "a"),
		at("watch", "watch a value: a path, a bullet's id, a JSON pointer", "watch", v.askWatch, "w"),
		b("next_change", "the next change of the value that is watched", "", func() { v.Controls.NextWatched(true) }, "n"),
		b("previous_change", "the change before", "", func() { v.Controls.NextWatched(false) }, "N"),
		b("verify", "verify: does today's code still decide the same?", "verify", func() { v.Controls.VerifyRun(false) }, "r"),
		b("verify_strictly", "verify strictly: what Temporal lets pass counts too, another input, another length of a timer", "", func() { v.Controls.VerifyRun(true) }, "S"),
		at("event", "go to the event on the timeline; esc leads back", "timeline", v.toTimeline, "J"),
		b("down", "down", "", func() { v.scroll(1) }, "j", "down"),
		b("up", "up", "", func() { v.scroll(-1) }, "k", "up"),
		b("page_down", "a page down", "", func() { v.scroll(v.height - 1) }, "pgdown", "ctrl+d", "ctrl+f"),
		b("page_up", "a page up", "", func() { v.scroll(1 - v.height) }, "pgup", "ctrl+u", "ctrl+b"),
	}, v.forkAt("replay", v.forkPoint)...)
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
			Do:       func(_ tui.Shell, args string) tea.Cmd { v.Controls.WatchValue(strings.TrimSpace(args)); return nil }},
	}
}

func (v *replayPane) goTo(s tui.Shell, typed string) tea.Cmd {
	n, err := strconv.ParseInt(strings.TrimSpace(typed), 10, 64)
	if err != nil || n < 1 {
		s.Note("an event has a number from 1: " + text.Safe(typed, " "))
		return nil
	}
	v.Controls.StepTo(n)
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
		Done: func(typed string) tea.Cmd { v.Controls.WatchValue(strings.TrimSpace(typed)); return nil }})
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
		v.show(sources.Run{WorkflowID: d.WorkflowID, RunID: d.RunID, TaskID: d.About.TaskID, Type: d.About.WorkflowType})
	}
	v.jump = v.data.Frame.EventID
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
		return centre([]string{"no run is selected", "1 lists the runs, t on one opens it here"}, v.width, v.height, v.styles)
	case d.Frame == nil && d.Err != "":
		return centre([]string{"the history cannot be read", text.Safe(d.Err, " ")}, v.width, v.height, v.styles)
	case d.Frame == nil:
		return centre([]string{"reading the history …"}, v.width, v.height, v.styles)
	}
	w := &writer{doc: &v.doc, s: v.styles, width: v.width, now: now, loc: v.Location}
	v.draw(w)
	head := 4
	if v.name != "State" {
		head = 0
	}
	v.lines = len(w.lines)
	if pos := v.data.Frame.Position; pos != v.seen && head > 0 {
		v.seen = pos
		v.reveal(head)
	}
	v.top = clamp(v.top, 0, max(v.lines-v.height, 0))
	lines := append(append([]string(nil), w.lines[:min(head, len(w.lines))]...), w.lines[min(head+v.top, len(w.lines)):]...)
	lines = lines[:min(len(lines), max(v.height, 0))]
	for i := range lines {
		lines[i] = text.Fit(lines[i], v.width, v.styles.Glyphs.Ellipsis)
	}
	return fill(lines, v.width, v.height)
}

// reveal scrolls to what the event changed, where that is out of sight.
func (v *replayPane) reveal(head int) {
	at := v.changed - head - v.top
	if v.changed < 0 || at >= 0 && at < v.height-head-1 {
		return
	}
	v.top = v.changed - v.height/2
}

// slider draws where in the run one is: what lies behind, the place, changes of phase and
// errors.
func (m *timeMachine) slider(w *writer) {
	d := m.data
	width := max(w.width-2, 1)
	total := max(d.About.Events, 1)
	place := func(pos int) int { return clamp((pos-1)*width/total, 0, width-1) }
	here := place(d.Frame.Position)
	cells := make([]byte, width)
	for i := range cells {
		if cells[i] = '.'; i < here {
			cells[i] = '-'
		}
	}
	for _, pos := range d.Phases {
		cells[place(pos)] = '|'
	}
	for i := range cells { // an error in each cell is looked up, so that many cost no more
		from := i*total/width + 1
		if at := sort.SearchInts(d.Errors, from); at < len(d.Errors) && place(d.Errors[at]) == i {
			cells[i] = '!'
		}
	}
	l := w.line().Add(w.s.Text, " ").Add(w.s.Accent, string(cells[:here])).Add(w.s.Selected, "#").Add(w.s.Muted, string(cells[here+1:]))
	w.end(l)
	w.end(w.line().Add(w.s.Strong, fmt.Sprintf(" event %d of %d", d.Frame.EventID, d.About.LastEvent)).Add(w.s.Text, "  "+text.Safe(d.Frame.EventType, " ")).
		Add(w.s.Muted, fmt.Sprintf("  %.3f s  | phase ! error", d.Frame.ElapsedMS/1000)))
}

func (m *timeMachine) drawState(w *writer) {
	d, f := m.data, m.data.Frame
	m.slider(w)
	switch {
	case d.Said != "":
		w.say(w.s.Warning, " "+text.Safe(d.Said, " "))
	case d.Watched != "":
		w.end(w.line().Add(w.s.Muted, " watching ").Add(w.s.Strong, text.Safe(d.Watched, " ")).Add(w.s.Text, " = "+text.Safe(d.Seen, " ")))
	default:
		w.say(w.s.Muted, " view: nothing is run again. r verifies, w watches a value")
	}
	if f.Phase != nil && len(f.Phase.Steps) > 0 {
		m.strip(w, f.Phase)
	}
	if d.About.Foreign != "" {
		w.say(w.s.Warning, " "+w.s.Glyphs.Unknown+" "+text.Safe(d.About.Foreign, " "))
	}
	switch {
	case d.Verifying:
		w.say(w.s.Muted, " verify ("+judged(d.Strict)+"): replaying with today's code "+w.s.Glyphs.Ellipsis)
	case d.Verdict != nil && d.Verdict.Divergence != nil:
		w.say(w.s.Error, " verify: "+string(d.Verdict.Outcome)+" at event "+text.Count(d.Verdict.Divergence.EventID)+", see the pane Event (tab)")
	case d.Verdict != nil && d.Verdict.Outcome == sources.VerifyUnverified:
		w.say(w.s.Warning, " verify: unverified, the pane Event says why (tab)")
	case d.Verdict != nil:
		w.say(w.s.Muted, " verify: "+string(d.Verdict.Outcome)+" ("+judged(d.Strict)+")")
	}
	m.changed = -1
	changed := map[string]bool{}
	for _, c := range f.Changes {
		changed[c.Path] = true
	}
	part := ""
	for _, k := range d.Known {
		if name := partOf(k.Path); name != part {
			part = name
			w.section(name, "")
		}
		ink, mark := w.s.Text, "   "
		if changed[k.Path] {
			if ink, mark = w.s.Updated, " * "; m.changed < 0 {
				m.changed = len(w.lines)
			}
		}
		w.prose(mark+text.Safe(k.Path, " ")+" ", ink, text.Safe(valueText(k), " "))
	}
}

// strip is the phases, with the one that was under way then.
func (m *timeMachine) strip(w *writer, p *ace.PhaseAnswer) {
	l := w.line().Add(w.s.Text, " ")
	for i, st := range p.Steps {
		if i > 0 {
			l.Add(w.s.Muted, " > ")
		}
		ink, mark := w.s.Muted, ""
		switch st.Status {
		case ace.StatusRunning:
			ink, mark = w.s.Strong, "*"
		case ace.StatusDone:
			ink, mark = w.s.Success, "+"
		case ace.StatusFailed, ace.StatusCancelled:
			ink, mark = w.s.Error, "!"
		}
		l.Add(ink, mark+string(st.Phase))
	}
	w.end(l)
}

// partOf is the heading that a path stands under.
func partOf(path string) string {
	first, _, _ := strings.Cut(path, ".")
	switch first {
	case "skills":
		return "Skills"
	case "playbook", "operations", "operation", "bullet", "rationale", "follow_up_actions":
		return "Playbook"
	case "usage":
		return "Usage"
	case "epochs", "eval":
		return "Progress"
	}
	return "Run"
}

// valueText is a value without the path.
func valueText(c sources.StepChange) string {
	return strings.TrimPrefix(c.Text(), c.Path+" = ")
}

func (m *timeMachine) drawEvent(w *writer) {
	d, f := m.data, m.data.Frame
	w.section("Changed by event "+text.Count(f.EventID), "")
	for _, c := range f.Changes {
		w.prose(" * ", w.s.Updated, text.Safe(c.Text(), " "))
	}
	if len(f.Changes) == 0 {
		w.say(w.s.Muted, "   nothing that is known of the run")
	}
	if f.ClockBackMS > 0 {
		w.prose(" ! ", w.s.Warning, fmt.Sprintf("the clock went back by %.3f s", f.ClockBackMS/1000))
	}
	for _, n := range f.Notes {
		w.prose(" ! ", w.s.Warning, text.Safe(n, " "))
	}
	if d.Err != "" {
		w.prose(" ! ", w.s.Error, text.Safe(d.Err, " "))
	}
	m.drawVerdict(w)
	m.drawChain(w)
}

// drawChain says which run of its chain it is, and how one comes to the others.
func (m *timeMachine) drawChain(w *writer) {
	d := m.data
	c, reset := d.Chain, d.About.Reset
	if len(c.RunIDs) < 2 && reset == nil && c.Before == "" && c.After == "" {
		return
	}
	w.section("Chain", fmt.Sprintf("run %d of %d: %s", c.At+1, max(len(c.RunIDs), 1), text.Safe(d.RunID, " ")))
	if len(c.RunIDs) > 1 {
		w.prose("   ", w.s.Muted, "a step past the last event goes on into the next run, one before the first into the run before")
	}
	if reset != nil {
		w.prose("   ", w.s.Text, fmt.Sprintf("reset from run %s: events 1 to %s are that run's. The run screen leads there", text.Safe(reset.RunID, " "), text.Count(reset.Event)))
	}
	for _, gone := range []string{c.Before, c.After} {
		if gone != "" {
			w.prose(" ! ", w.s.Warning, text.Safe(gone, " "))
		}
	}
}

// drawVerdict shows what verifying came to.
func (m *timeMachine) drawVerdict(w *writer) {
	d := m.data
	switch {
	case d.Verifying:
		w.section("Verify", judged(d.Strict)+": replaying with today's code "+w.s.Glyphs.Ellipsis)
	case d.Verdict == nil:
		w.section("Verify", "r replays the run with today's code and says where it decides otherwise; S strictly")
	default:
		w.verdict(d.Verdict, d.Strict)
	}
}

// verdict shows a verdict: expected and actual side by side.
func (w *writer) verdict(v *sources.ReplayVerdict, strict bool) {
	switch {
	case v.Divergence == nil && v.Why != "":
		w.section("Verify", string(v.Outcome))
		w.prose("   ", w.s.Warning, text.Safe(v.Why, " "))
	case v.Divergence == nil:
		w.section("Verify", "same ("+judged(strict)+")")
		w.prose("   ", w.s.Success, "today's code decides as the history says ("+text.Count(int64(v.Events))+" events)")
	default:
		g := v.Divergence
		w.section("Verify", string(v.Outcome)+" at event "+text.Count(g.EventID)+" "+text.Safe(g.EventType, " ")+" ("+judged(strict)+")")
		w.sides(g)
		w.prose("   ", w.s.Text, text.Safe(g.Sentence, " "))
		w.prose("   ", w.s.Accent, text.Safe(g.Advice, " "))
		if g.SDK != "" {
			w.prose("   Temporal says ", w.s.Muted, text.Cut(text.Safe(g.SDK, " "), maxSaid, w.s.Glyphs.Ellipsis))
		}
	}
}

// maxSaid bounds what is shown of the replayer's own words, in cells. They list every
// field; --json has them whole.
const maxSaid = 300

// sides shows what the history has and what the code does beside each other.
func (w *writer) sides(g *sources.VerifyDivergence) {
	half := max((w.width-4)/2, 4)
	column := func(head, tail string) {
		w.end(w.line().Add(w.s.Text, " ").Add(w.s.Removed, text.Fit(text.Safe(head, " "), half, w.s.Glyphs.Ellipsis)).Add(w.s.Muted, " | ").
			Add(w.s.Added, text.Fit(text.Safe(tail, " "), half, w.s.Glyphs.Ellipsis)))
	}
	column("expected (history)", "actual (code)")
	left, right := text.Wrap(text.Safe(g.Expected.String(), " "), half), text.Wrap(text.Safe(g.Actual.String(), " "), half)
	for i := range max(len(left), len(right)) {
		column(at(left, i), at(right, i))
	}
	column("recorded by "+g.Recorded, "code "+g.Code)
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

// openReplay shows the selected run in the time machine.
func (c *console) openReplay(s tui.Shell) tea.Cmd {
	c.openTimeMachine(s)
	return nil
}

// openTimeMachine tells whether there is a run to show in it.
func (c *console) openTimeMachine(s tui.Shell) bool {
	if !c.selected.ok {
		s.Note("no run is selected")
		return false
	}
	s.Open("replay")
	return true
}
