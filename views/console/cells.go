package console

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// NameOf is what a run is called in a list, as safe text.
func NameOf(r runs.Run) string {
	switch {
	case r.Blueprint != "":
		return text.Safe(NameOfRun(r), " ")
	case r.TaskID != "":
		return text.Safe(r.TaskID, " ")
	case r.Type == ace.ExperimentWorkflow:
		return "experiment " + text.Safe(strings.TrimPrefix(r.WorkflowID, ace.ExperimentIDPrefix), " ")
	}
	return text.Safe(r.WorkflowID, " ")
}

// MarkOf is a run's status; a run that is being retried stands out.
func MarkOf(r runs.Run, s theme.Styles) theme.Mark {
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

// SkillsCell is accepted and finished calls over all calls: "7/8".
func SkillsCell(sum *ace.Summary, g theme.Glyphs) string {
	if sum == nil || sum.Skills == 0 {
		return g.Dash
	}
	return strconv.Itoa(sum.SkillsOK) + "/" + strconv.Itoa(sum.Skills)
}

// DeltaCell is how a run changed the playbook: "+2 ~1 −1"; tags only where nothing
// else changed, refusals only where nothing at all did.
func DeltaCell(sum *ace.Summary, g theme.Glyphs) string {
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
		add(g.Rejected, sum.Rejected)
	}
	if len(parts) == 0 {
		return g.Dash
	}
	return strings.Join(parts, " ")
}

// CostCell is what a run cost in US dollars; a dash where nobody counted anything, a
// question mark where no price is known.
func CostCell(u ace.Usage, g theme.Glyphs) string {
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

func OrDash(s string, g theme.Glyphs) string {
	if s == "" {
		return g.Dash
	}
	return text.Safe(s, " ")
}

func Percent(f float64) string { return strconv.FormatFloat(f*100, 'f', 1, 64) + "%" }

// Short is the beginning of a hash or id, enough to tell it from its neighbours.
func Short(id string, g theme.Glyphs) string {
	id = text.Safe(id, " ")
	if id == "" {
		return g.Dash
	}
	return text.Cut(id, 12, "")
}

func NameOfRun(r runs.Run) string {
	if r.Blueprint != "" {
		return r.Blueprint + " " + runners.BlueprintRunID(r.WorkflowID)
	}
	if r.TaskID != "" {
		return r.TaskID
	}
	return r.WorkflowID
}

func CostOf(r runs.Run, _ time.Time, s theme.Styles) string {
	if r.Summary == nil {
		return s.Glyphs.Dash
	}
	return CostCell(r.Summary.Usage, s.Glyphs)
}

// TookOf is how long a run took; in whole seconds while it is open.
func TookOf(r runs.Run, now time.Time) string {
	if age := r.Age(now); r.Open() && age < time.Minute {
		return text.Span(age)
	}
	return text.Took(r.Age(now))
}

// RunMark is how a run of a blueprint stands: by its status, else as any run.
func RunMark(r runs.Run, s theme.Styles) theme.Mark {
	word := text.Cut(text.Safe(string(r.Phase), " "), 9, "")
	switch r.Phase {
	case "pending":
		return theme.Mark{Glyph: s.Glyphs.Pending, Word: word, Ink: s.Muted}
	case "claimed":
		return theme.Mark{Glyph: s.Glyphs.Pending, Word: word, Ink: s.Running}
	case "running", "stopping":
		return theme.Mark{Glyph: s.Glyphs.Running, Word: word, Ink: s.Running}
	case "completed", "failed", "stopped":
		m := s.Status(string(runExit(r.Phase)))
		m.Word = word
		return m
	}
	return MarkOf(r, s)
}

// runExit is the exit status in whose colours a status of a run stands, "" while it is
// open.
func runExit(p ace.Phase) ace.ExitStatus {
	return map[ace.Phase]ace.ExitStatus{"completed": ace.Success, "failed": ace.Failed, "stopped": ace.Canceled}[p]
}

// ChangedNames lists the fields that were changed for a fork.
func ChangedNames(f *ace.Forked) []string { return slices.Sorted(maps.Keys(f.Changed)) }

func OpMark(t ace.OperationType, s theme.Styles) (string, theme.Ink) {
	switch t {
	case ace.OpAdd:
		return s.Glyphs.Added, s.Added
	case ace.OpUpdate, ace.OpMerge:
		return s.Glyphs.Updated, s.Updated
	case ace.OpRemove:
		return s.Glyphs.Removed, s.Removed
	case ace.OpTag:
		return s.Glyphs.Tagged, s.Tagged
	}
	return s.Glyphs.Unknown, s.Muted
}

// TagText is what a TAG adds to a bullet's counters, in a fixed order.
func TagText(counts map[string]int) string {
	var parts []string
	for _, name := range []string{"helpful", "harmful", "neutral"} {
		if n := counts[name]; n != 0 {
			sign := ""
			if n > 0 {
				sign = "+"
			}
			parts = append(parts, name+" "+sign+strconv.Itoa(n))
		}
	}
	return strings.Join(parts, ", ")
}

func Operation(w *widget.Writer, op ace.Operation) {
	glyph, ink := OpMark(op.Type, w.S)
	fate := ""
	if op.Outcome != "" && op.Outcome != ace.OutcomeAccepted {
		glyph, ink = w.S.Glyphs.Rejected, w.S.Muted
		fate = text.Safe(string(op.Outcome), " ") + " " + text.Safe(string(op.Type), " ") + ": "
	}
	label := "   " + glyph + " " + fate
	if op.BulletID != "" {
		label += "[" + text.Safe(op.BulletID, " ") + "] "
	}
	what := op.Content
	if op.Type == ace.OpTag {
		what = TagText(op.Metadata)
	}
	if what == "" {
		what = strings.ToLower(string(op.Type))
	}
	if text.Width(label) > w.Width/2 {
		w.End(w.Line().Add(ink, label))
		label = "     "
	}
	w.Prose(label, ink, what)
	if op.Reason != "" {
		w.Prose("     because ", w.S.Muted, op.Reason)
	}
}
