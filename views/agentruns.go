package views

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/tui"
	"acescope/tui/text"
)

// runsOf are the runs of blueprints that a session started or was given, the newest first.
func (a *agents) runsOf(r sources.AgentSession) []sources.Run {
	if a.sessions == nil || r.Engine == nil {
		return nil
	}
	return a.sessions.RunsOf(r.Engine.ID)
}

// maxListed bounds the runs that a query names.
const maxListed = 50

// openRuns opens the run of the selected session, or lists several.
func (a *agents) openRuns(s tui.Shell) tea.Cmd {
	r, ok := a.row()
	if !ok {
		s.Note("no session is selected")
		return nil
	}
	switch list := a.runsOf(r); len(list) {
	case 0:
		s.Note("it has neither started a run nor was it given one, as far as is known")
	case 1:
		return a.openRun(s, list[0])
	default:
		var ids []string
		for _, one := range list[:min(len(list), maxListed)] {
			if id := sources.Quote(one.WorkflowID); !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		a.Controls.SetQuery("WorkflowId IN (" + strings.Join(ids, ", ") + ")")
		s.Open("runs")
		s.Note("the runs of session " + text.Safe(r.ID, " ") + "; / lists others")
	}
	return nil
}

// openCallback opens the run whose callback the cursor is on, else those of the session.
func (v *agentTalk) openCallback(s tui.Shell) tea.Cmd {
	v.take()
	if e := v.entry(v.at.entry); e != nil && e.Callback {
		if id, ok := strings.CutPrefix(e.Name, "run "); ok && id != "" {
			return v.openRun(s, sources.BlueprintRun(id))
		}
	}
	return v.openRuns(s)
}

// runs lists the newest runs of a session.
func (w agentWriter) runs(r sources.AgentSession, list []sources.Run) {
	if len(list) == 0 {
		return
	}
	w.section("Runs", plural(len(list), "run")+"; R opens them")
	for _, one := range list[:min(len(list), shownTurns)] {
		m := courseMark(one, w.s)
		how := "started here"
		if one.Parent != r.Engine.ID {
			how = "given to it"
		}
		w.end(w.line().Add(m.Ink, "   "+m.Glyph+" "+text.Fit(m.Word, 10, "")).Add(w.s.Text, nameOf(one)).Add(w.s.Muted, "  "+how+", "+w.ago(one.Start)))
	}
}
