package agents

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/sources/sessions"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/views/console"
)

// runsOf are the runs of blueprints that a session started or was given, the newest first.
func (a *Agents) runsOf(r sessions.AgentSession) []runs.Run {
	if a.sessions == nil || r.Engine == nil {
		return nil
	}
	return a.sessions.RunsOf(r.Engine.ID)
}

// maxListed bounds the runs that a query names.
const maxListed = 50

// openRuns opens the run of the selected session, or lists several.
func (a *Agents) openRuns(s tui.Shell) tea.Cmd {
	r, ok := a.Row()
	if !ok {
		s.Note("no session is selected")
		return nil
	}
	switch list := a.runsOf(r); len(list) {
	case 0:
		s.Note("it has neither started a run nor was it given one, as far as is known")
	case 1:
		return a.nav.OpenRun(s, list[0])
	default:
		var ids []string
		for _, one := range list[:min(len(list), maxListed)] {
			if id := runs.Quote(one.WorkflowID); !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		a.controls.SetQuery("WorkflowId IN (" + strings.Join(ids, ", ") + ")")
		s.Open("runs")
		s.Note("the runs of session " + text.Safe(r.ID, " ") + "; / lists others")
	}
	return nil
}

// openCallback opens the run whose callback the cursor is on, else those of the session.
func (v *Conversation) openCallback(s tui.Shell) tea.Cmd {
	v.take()
	if e := v.Entry(v.At.Entry); e != nil && e.Callback {
		if id, ok := strings.CutPrefix(e.Name, "run "); ok && id != "" {
			return v.nav.OpenRun(s, runners.BlueprintRun(id))
		}
	}
	return v.openRuns(s)
}

// runs lists the newest runs of a session.
func (w agentWriter) runs(r sessions.AgentSession, list []runs.Run) {
	if len(list) == 0 {
		return
	}
	w.Section("Runs", plural(len(list), "run")+"; R opens them")
	for _, one := range list[:min(len(list), shownTurns)] {
		m := console.RunMark(one, w.S)
		how := "started here"
		if one.Parent != r.Engine.ID {
			how = "given to it"
		}
		w.End(w.Line().Add(m.Ink, "   "+m.Glyph+" "+text.Fit(m.Word, 10, "")).Add(w.S.Text, console.NameOf(one)).Add(w.S.Muted, "  "+how+", "+w.Ago(one.Start)))
	}
}
