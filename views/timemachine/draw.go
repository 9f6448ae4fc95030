package timemachine

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// slider draws the position in the run, with changes of phase and errors.
func (m *machine) slider(w *widget.Writer) {
	d := m.data
	width := max(w.Width-2, 1)
	total := max(d.About.Events, 1)
	place := func(pos int) int { return widget.Clamp((pos-1)*width/total, 0, width-1) }
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
	for i := range cells { // searches per cell: errors may be many
		from := i*total/width + 1
		if at := sort.SearchInts(d.Errors, from); at < len(d.Errors) && place(d.Errors[at]) == i {
			cells[i] = '!'
		}
	}
	l := w.Line().Add(w.S.Text, " ").Add(w.S.Accent, string(cells[:here])).Add(w.S.Selected, "#").
		Add(w.S.Muted, string(cells[here+1:]))
	w.End(l)
	w.End(w.Line().Add(w.S.Strong, fmt.Sprintf(" event %d of %d", d.Frame.EventID, d.About.LastEvent)).
		Add(w.S.Text, "  "+text.Safe(d.Frame.EventType, " ")).
		Add(w.S.Muted, fmt.Sprintf("  %.3f s  | = phase change, ! = error", d.Frame.ElapsedMS/1000)))
}

func (m *machine) drawState(w *widget.Writer) {
	d, f := m.data, m.data.Frame
	m.slider(w)
	switch {
	case d.Message != "":
		w.Say(w.S.Warning, " "+text.Safe(d.Message, " "))
	case d.Watched != "":
		w.End(w.Line().Add(w.S.Muted, " watching ").Add(w.S.Strong, text.Safe(d.Watched, " ")).
			Add(w.S.Text, " = "+text.Safe(d.WatchedValue, " ")))
	default:
		w.Say(w.S.Muted, " recorded history, no code runs: r verifies, w watches a value")
	}
	if f.Phase != nil && len(f.Phase.Steps) > 0 {
		m.phases(w, f.Phase)
	}
	if d.About.Foreign != "" {
		w.Say(w.S.Warning, " "+w.S.Glyphs.Unknown+" "+text.Safe(d.About.Foreign, " "))
	}
	switch {
	case d.Verifying:
		w.Say(w.S.Muted, " verify ("+Judged(d.Strict)+"): replaying with the current code"+w.S.Glyphs.Ellipsis)
	case d.Verdict != nil && d.Verdict.Divergence != nil:
		w.Say(w.S.Error, " verify: "+string(d.Verdict.Outcome)+" at event "+
			text.Count(d.Verdict.Divergence.EventID)+", see the Event pane (tab)")
	case d.Verdict != nil && d.Verdict.Outcome == histories.VerifyUnverified:
		w.Say(w.S.Warning, " verify: unverified, see the Event pane (tab)")
	case d.Verdict != nil:
		w.Say(w.S.Muted, " verify: "+string(d.Verdict.Outcome)+" ("+Judged(d.Strict)+")")
	}
	m.changed = -1
	isFlow := f.Flow != nil
	changed := map[string]bool{}
	for _, c := range f.Changes {
		changed[c.Path] = true
	}
	known := slices.SortedStableFunc(slices.Values(d.Known), func(a, b histories.StepChange) int {
		return cmp.Compare(sectionIn(isFlow, a.Path), sectionIn(isFlow, b.Path))
	})
	last := section(-1)
	for _, k := range known {
		if s := sectionIn(isFlow, k.Path); s != last {
			last = s
			w.Section(sectionNames[s], "")
		}
		ink, mark := w.S.Text, "   "
		if changed[k.Path] {
			if ink, mark = w.S.Updated, " * "; m.changed < 0 {
				m.changed = len(w.Lines)
			}
		}
		w.Prose(mark+text.Safe(k.Path, " ")+" ", ink, text.Safe(valueText(k), " "))
	}
}

// phases draws the phases as of the event.
func (m *machine) phases(w *widget.Writer, p *ace.PhaseAnswer) {
	l := w.Line().Add(w.S.Text, " ")
	for i, st := range p.Steps {
		if i > 0 {
			l.Add(w.S.Muted, " > ")
		}
		ink, mark := w.S.Muted, ""
		switch st.Status {
		case ace.StatusRunning:
			ink, mark = w.S.Strong, "*"
		case ace.StatusDone:
			ink, mark = w.S.Success, "+"
		case ace.StatusFailed, ace.StatusCanceled, ace.StatusTerminated, ace.StatusTimedOut:
			ink, mark = w.S.Error, "!"
		}
		l.Add(ink, mark+string(st.Phase))
	}
	w.End(l)
}

// section is a group of values, in the order of the screen.
type section int

const (
	sectionRun section = iota
	sectionProgress
	sectionUsage
	sectionSkills
	sectionPlaybook
)

var sectionNames = [...]string{"Run", "Progress", "Usage", "Skills", "Playbook"}

// sectionIn returns the section of a path. A flow has no playbook: its operations are those of its steps.
func sectionIn(isFlow bool, path string) section {
	if s := sectionOf(path); s != sectionPlaybook || !isFlow {
		return s
	}
	return sectionRun
}

// sectionOf returns the section of a path.
func sectionOf(path string) section {
	first, _, _ := strings.Cut(path, ".")
	switch first {
	case "skills":
		return sectionSkills
	case "playbook", "operations", "operation", "bullet", "rationale", "follow_up_actions":
		return sectionPlaybook
	case "usage":
		return sectionUsage
	case "epochs", "eval":
		return sectionProgress
	}
	return sectionRun
}

// valueText returns a value without its path.
func valueText(c histories.StepChange) string {
	return strings.TrimPrefix(c.Text(), c.Path+" = ")
}

func (m *machine) drawEvent(w *widget.Writer) {
	d, f := m.data, m.data.Frame
	w.Section("Changed by event "+text.Count(f.EventID), "")
	for _, c := range f.Changes {
		w.Prose(" * ", w.S.Updated, text.Safe(c.Text(), " "))
	}
	if len(f.Changes) == 0 {
		w.Say(w.S.Muted, "   no change")
	}
	if f.ClockBackMS > 0 {
		w.Prose(" ! ", w.S.Warning, fmt.Sprintf("the clock went back %.3f s", f.ClockBackMS/1000))
	}
	for _, n := range f.Notes {
		w.Prose(" ! ", w.S.Warning, text.Safe(n, " "))
	}
	if d.Err != "" {
		w.Prose(" ! ", w.S.Error, text.Safe(d.Err, " "))
	}
	m.drawCalls(w)
	m.drawVerdict(w)
	m.drawChain(w)
}

// drawCalls shows the requests to models of the phase or step that the event completes.
func (m *machine) drawCalls(w *widget.Writer) {
	for _, c := range m.data.Calls {
		w.Section("Requests of "+text.Safe(c.Step, " "), text.Safe(c.Model, " "))
		w.Prose("   ", w.S.Text, console.RequestsText(c.Log))
		if c.Usage != nil {
			w.Prose("   ", w.S.Muted, console.UsageText(*c.Usage))
		}
	}
	m.artifacts.Write(w, m.refs(), cmp.Or(m.data.About.TaskID, m.data.WorkflowID))
}

// drawChain says which run of its chain is shown, and how to reach the others.
func (m *machine) drawChain(w *widget.Writer) {
	d := m.data
	c, reset := d.Chain, d.About.Reset
	if len(c.RunIDs) < 2 && reset == nil && c.Before == "" && c.After == "" {
		return
	}
	w.Section("Chain", fmt.Sprintf("run %d of %d: %s", c.At+1, max(len(c.RunIDs), 1), text.Safe(d.RunID, " ")))
	if len(c.RunIDs) > 1 {
		w.Prose("   ", w.S.Muted, "after the last event comes the next run, before the first event the previous run")
	}
	if reset != nil {
		w.Prose("   ", w.S.Text, fmt.Sprintf("reset from run %s: events 1 to %s come from that run. "+
			"The run screen links to it.", text.Safe(reset.RunID, " "), text.Count(reset.Event)))
	}
	for _, gone := range []string{c.Before, c.After} {
		if gone != "" {
			w.Prose(" ! ", w.S.Warning, text.Safe(gone, " "))
		}
	}
}

// drawVerdict shows the result of verifying the run.
func (m *machine) drawVerdict(w *widget.Writer) {
	d := m.data
	switch {
	case d.Verifying:
		w.Section("Verify", Judged(d.Strict)+": replaying with the current code"+w.S.Glyphs.Ellipsis)
	case d.Verdict == nil:
		w.Section("Verify",
			"r replays the run with the current code and shows the first different decision; S strictly")
	default:
		Verdict(w, d.Verdict, d.Strict)
	}
}

// Verdict writes a verdict, with expected and actual decision side by side.
func Verdict(w *widget.Writer, v *histories.ReplayVerdict, strict bool) {
	switch {
	case v.Divergence == nil && v.Why != "":
		w.Section("Verify", string(v.Outcome))
		w.Prose("   ", w.S.Warning, text.Safe(v.Why, " "))
	case v.Divergence == nil:
		w.Section("Verify", string(v.Outcome)+" ("+Judged(strict)+")")
		w.Prose("   ", w.S.Success, "Replay matches: the current code makes the same decisions ("+
			widget.Counted(v.Events, "event")+").")
	default:
		g := v.Divergence
		w.Section("Verify", string(v.Outcome)+" at event "+text.Count(g.EventID)+" "+
			text.Safe(g.EventType, " ")+" ("+Judged(strict)+")")
		sides(w, g)
		w.Prose("   ", w.S.Text, text.Safe(g.Sentence, " "))
		w.Prose("   ", w.S.Accent, text.Safe(g.Advice, " "))
		if g.SDK != "" {
			w.Prose("   Temporal says ", w.S.Muted,
				text.Cut(text.Safe(g.SDK, " "), maxSDKMessage, w.S.Glyphs.Ellipsis))
		}
	}
}

// maxSDKMessage bounds the message of the Temporal SDK, in cells. It lists every field; --json contains
// all of it.
const maxSDKMessage = 300

// sides writes what the history contains and what the code does, side by side.
func sides(w *widget.Writer, g *histories.VerifyDivergence) {
	half := max((w.Width-4)/2, 4)
	column := func(head, tail string) {
		w.End(w.Line().Add(w.S.Text, " ").
			Add(w.S.Removed, text.Fit(text.Safe(head, " "), half, w.S.Glyphs.Ellipsis)).Add(w.S.Muted, " | ").
			Add(w.S.Added, text.Fit(text.Safe(tail, " "), half, w.S.Glyphs.Ellipsis)))
	}
	column("expected (history)", "actual (code)")
	left, right := text.Wrap(text.Safe(g.Expected.String(), " "), half),
		text.Wrap(text.Safe(g.Actual.String(), " "), half)
	for i := range max(len(left), len(right)) {
		column(lineAt(left, i), lineAt(right, i))
	}
	column("recorded by "+g.Recorded, "code "+g.Code)
}

func lineAt(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

// Judged returns what a verdict compares.
func Judged(strict bool) string {
	if strict {
		return "strict: inputs and timer durations too"
	}
	return "as Temporal compares"
}
