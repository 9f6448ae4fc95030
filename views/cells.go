package views

import (
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// nameOf is what a run is called in a list, as safe text.
func nameOf(r sources.Run) string {
	switch {
	case r.Blueprint != "":
		return text.Safe(nameOfRun(r), " ")
	case r.TaskID != "":
		return text.Safe(r.TaskID, " ")
	case r.Type == ace.ExperimentWorkflow:
		return "experiment " + text.Safe(strings.TrimPrefix(r.WorkflowID, ace.ExperimentIDPrefix), " ")
	}
	return text.Safe(r.WorkflowID, " ")
}

// markOf is a run's status; a run that is being retried stands out.
func markOf(r sources.Run, s theme.Styles) theme.Mark {
	if r.Open() && r.Attempt > 1 {
		m := s.Retry()
		m.Word = "retry #" + strconv.Itoa(int(r.Attempt))
		return m
	}
	m := s.Status(string(r.Exit))
	if m.Word == "" {
		m.Word = s.Glyphs.Dash
	}
	m.Word = text.Safe(m.Word, " ")
	return m
}

// skillsCell is accepted and finished calls over all calls: "7/8".
func skillsCell(sum *ace.Summary, g theme.Glyphs) string {
	if sum == nil || sum.Skills == 0 {
		return g.Dash
	}
	return strconv.Itoa(sum.SkillsOK) + "/" + strconv.Itoa(sum.Skills)
}

// deltaCell is how a run changed the playbook: "+2 ~1 −1"; tags only where nothing
// else changed, refusals only where nothing at all did.
func deltaCell(sum *ace.Summary, g theme.Glyphs) string {
	if sum == nil {
		return g.Dash
	}
	var parts []string
	add := func(glyph string, n int) {
		if n > 0 {
			parts = append(parts, glyph+strconv.Itoa(n))
		}
	}
	add(g.Added, sum.Added)
	add(g.Updated, sum.Updated)
	add(g.Removed, sum.Removed)
	if len(parts) == 0 {
		add(g.Tagged, sum.Tagged)
	}
	if len(parts) == 0 {
		add(g.Refused, sum.Rejected)
	}
	if len(parts) == 0 {
		return g.Dash
	}
	return strings.Join(parts, " ")
}

// costCell is what a run cost in US dollars; a dash where nobody counted anything, a
// question mark where no price is known.
func costCell(u ace.Usage, g theme.Glyphs) string {
	switch {
	case u == (ace.Usage{}):
		return g.Dash
	case u.CostUSD == 0 && u.Unpriced:
		return "?"
	case u.CostUSD == 0:
		return "$0"
	case u.CostUSD < 0.0005:
		return "<$.001"
	case u.CostUSD < 10:
		return "$" + strconv.FormatFloat(u.CostUSD, 'f', 3, 64)
	}
	return "$" + strconv.FormatFloat(u.CostUSD, 'f', 2, 64)
}

func orDash(s string, g theme.Glyphs) string {
	if s == "" {
		return g.Dash
	}
	return text.Safe(s, " ")
}

func percent(f float64) string { return strconv.FormatFloat(f*100, 'f', 1, 64) + "%" }

// short is the beginning of a hash or id, enough to tell it from its neighbours.
func short(id string, g theme.Glyphs) string {
	id = text.Safe(id, " ")
	if id == "" {
		return g.Dash
	}
	return text.Cut(id, 12, "")
}
