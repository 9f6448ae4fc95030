package views

import (
	"fmt"
	"sort"
	"strings"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/tui/text"
)

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
