package console

import (
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/tasks/run"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// NameOf returns the name of a run in lists, as safe text.
func NameOf(r runs.Run) string {
	switch {
	case r.Blueprint != "":
		return text.Safe(RawNameOf(r), " ")
	case r.TaskID != "":
		return text.Safe(r.TaskID, " ")
	case r.Type == ace.ExperimentWorkflow:
		return "experiment " + text.Safe(strings.TrimPrefix(r.WorkflowID, ace.ExperimentIDPrefix), " ")
	}
	return text.Safe(r.WorkflowID, " ")
}

// StatusMark returns the mark of a run's status. A run that retries an activity or its workflow task has its
// own mark.
func StatusMark(r runs.Run, s theme.Styles) theme.Mark {
	if r.Retries() {
		m := s.Retry()
		m.Word = "retry"
		if r.Retried == runs.WorkflowTask {
			m.Ink, m.Word = s.Failed, widget.If(r.Attempt == 1, "no worker", "failing")
		}
		if r.Attempt > 1 {
			m.Word += " #" + strconv.Itoa(int(r.Attempt))
		}
		return m
	}
	m := s.Status(string(r.Status))
	if m.Word == "" {
		m.Word = s.Glyphs.Dash
	}
	m.Word = text.Safe(m.Word, " ")
	return m
}

// SkillsCell shows successful tool calls over all tool calls: "7/8".
func SkillsCell(sum *ace.Summary, g theme.Glyphs) string {
	if sum == nil || sum.Skills == 0 {
		return g.Dash
	}
	return strconv.Itoa(sum.SkillsOK) + "/" + strconv.Itoa(sum.Skills)
}

// DeltaCell shows how a run changed the playbook: "+2 ~1 −1". It shows tags only if there are no other
// changes, and rejected operations only if there are no changes at all.
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
	add(g.Merged, sum.Merged)
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

// VersionDelta is [DeltaCell] of a version of a playbook.
func VersionDelta(v playbook.Version, g theme.Glyphs) string {
	return DeltaCell(&ace.Summary{Added: v.Added, Updated: v.Updated, Removed: v.Removed, Merged: v.Merged,
		Tagged: v.Tagged}, g)
}

// CostCell shows a cost, and a dash without usage data.
func CostCell(u ace.Usage, g theme.Glyphs) string {
	if u == (ace.Usage{}) {
		return g.Dash
	}
	return u.Cost()
}

// OrDash returns safe text, or a dash for "".
func OrDash(s string, g theme.Glyphs) string {
	return widget.If(s == "", g.Dash, text.Safe(s, " "))
}

// Percent formats a ratio with one decimal: "65.0%".
func Percent(f float64) string { return strconv.FormatFloat(f*100, 'f', 1, 64) + "%" }

// Short returns the first 12 characters of a hash or ID.
func Short(id string, g theme.Glyphs) string {
	id = text.Safe(id, " ")
	return widget.If(id == "", g.Dash, text.Cut(id, 12, ""))
}

// RawNameOf returns the name of a run as untrusted text. Lists sort by it.
func RawNameOf(r runs.Run) string {
	if r.Blueprint != "" {
		return r.Blueprint + " " + run.IDOf(r.WorkflowID)
	}
	if r.TaskID != "" {
		return r.TaskID
	}
	return r.WorkflowID
}

// CostOf shows the cost of a run.
func CostOf(r runs.Run, _ time.Time, s theme.Styles) string {
	if r.Summary == nil {
		return s.Glyphs.Dash
	}
	return CostCell(r.Summary.Usage, s.Glyphs)
}

// DurationOf shows the duration of a run, in whole seconds while it is open.
func DurationOf(r runs.Run, now time.Time) string {
	if age := r.Age(now); r.Open() && age < time.Minute {
		return text.Span(age)
	}
	return text.Duration(r.Age(now))
}

// BlueprintMarkOf returns the mark of a blueprint run by its phase, or that of its workflow status.
func BlueprintMarkOf(r runs.Run, s theme.Styles) theme.Mark {
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
	return StatusMark(r, s)
}

// runExit returns the exit status that corresponds to the phase of a closed blueprint run.
func runExit(p ace.Phase) ace.Status {
	return map[ace.Phase]ace.Status{"completed": ace.Completed, "failed": ace.Failed,
		"stopped": ace.Canceled}[p]
}

// OperationMark returns the mark of an operation: of its type, unless it is only proposed or had no effect.
func OperationMark(op *ace.Operation, s theme.Styles) theme.Mark {
	switch {
	case op.Refused():
		return s.Rejected()
	case op.Outcome == ace.OutcomeProposed:
		return s.Proposed()
	}
	return s.Operation(string(op.Type))
}

// TagText lists the changes of a TAG to a bullet's counters, in a fixed order.
func TagText(counts map[string]int) string {
	var parts []string
	for _, name := range []string{"helpful", "harmful", "neutral"} {
		if n := counts[name]; n != 0 {
			sign := widget.If(n > 0, "+", "")
			parts = append(parts, name+" "+sign+strconv.Itoa(n))
		}
	}
	return strings.Join(parts, ", ")
}

// MergeText names the bullets that a MERGE removes.
func MergeText(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return "merges [" + strings.Join(ids, "] [") + "]"
}

// Operation writes an operation with its outcome and reason.
func Operation(w *widget.Writer, op ace.Operation) {
	m := OperationMark(&op, w.S)
	label := "   " + m.Glyph + " "
	label += widget.If(op.Refused(), text.Safe(string(op.Outcome)+" "+string(op.Type), " ")+": ", "")
	label += widget.If(op.BulletID != "", "["+text.Safe(op.BulletID, " ")+"] ", "")
	content := op.Content
	if op.Type == ace.OpTag {
		content = TagText(op.Metadata)
	}
	if op.Type == ace.OpMerge {
		content = strings.TrimSpace(MergeText(op.SourceIDs) + " " + content)
	}
	if content == "" {
		content = strings.ToLower(string(op.Type))
	}
	if text.Width(label) > w.Width/2 {
		w.End(w.Line().Add(m.Ink, label))
		label = "     "
	}
	w.Prose(label, m.Ink, content)
	if op.Reason != "" {
		w.Prose("     because ", w.S.Muted, op.Reason)
	}
}

// HunkSpans returns hunks as they are shown: brackets say what the color says. Unchanged text has the ink
// plain.
func HunkSpans(hunks []playbook.Hunk, s theme.Styles, plain theme.Ink) (spans []widget.Span) {
	for _, h := range hunks {
		t := h.Text[:min(len(h.Text), widget.MaxText)]
		switch h.Kind {
		case playbook.HunkRemoved:
			spans = append(spans, widget.Span{Ink: s.Removed, Text: "[-" + t + "-]"})
		case playbook.HunkAdded:
			spans = append(spans, widget.Span{Ink: s.Added, Text: "{+" + t + "+}"})
		default:
			spans = append(spans, widget.Span{Ink: plain, Text: t})
		}
	}
	return spans
}

// Bytes formats a number of bytes in at most six cells: "812B", "1.2kB", "340MB".
func Bytes(n int64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	f, i, digits := float64(n), 0, 1
	for f >= 999.5 && i < len(units)-1 {
		f, i = f/1000, i+1
	}
	if i == 0 || f >= 99.95 {
		digits = 0
	}
	return strconv.FormatFloat(f, 'f', digits, 64) + units[i]
}
