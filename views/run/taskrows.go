package run

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/learning/stats"
	"acescope/sources/experiments"
	"acescope/sources/histories"
	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

func taskRows(b *lister, d *histories.Detail) {
	generator := phaseEvent(d, ace.PhaseGenerator)
	b.text("input", 0, textRow{"input", string(d.RawInput), 1})
	b.text("result", 0, textRow{"result", string(d.RawResult), d.CloseEvent})
	if r := d.Input.PromptRef; r != nil {
		b.add("prompt", 0, promptRow{textRow{"artifact", r.SHA256, 1}, d})
	} else if d.Input.Prompt != "" {
		b.add("prompt", 0, promptRow{textRow{"prompt", d.Input.Prompt, 1}, d})
	}
	b.text("unread answer", 0, textRow{"answer", d.UnreadAnswer(), generator})
	if d.Phase.Answer != "" {
		b.add("answer", 0, answerRow{textRow{"answer", d.Phase.Answer,
			cmp.Or(phaseEvent(d, ace.PhaseSkills), generator)}, d})
	}
	if d.Input.Label != nil {
		b.add("expected", 0, expectedRow{answerRow{textRow{"expected answer", *d.Input.Label, 1}, d}})
	}
	b.text("reason", 0, textRow{"reason", d.Phase.GradeReason, phaseEvent(d, ace.PhaseReflector)})
	for i := range d.Phase.Passes {
		again := &d.Phase.Passes[i]
		b.text("again", i, textRow{"answer, " + again.Name(), again.Graded(), generator})
		b.text("insights again", i, textRow{"insights, " + again.Name(), again.Insights, generator})
	}
	b.text("plan", 0, textRow{"plan", d.Plan, generator})
	b.text("trajectory", 0, textRow{"trajectory id", d.TrajectoryID, generator})
	b.text("bullets", 0, textRow{"bullet ids", strings.Join(d.BulletIDs, "\n"), generator})
}

func taskTitle(d *histories.Detail, _ theme.Glyphs) string {
	return widget.If(d.BlueprintRun != nil, "Prompt", "Task")
}

func verdictRemark(d *histories.Detail, s theme.Styles) (string, theme.Ink) {
	m := verdict(d, s)
	if m.Word == "" {
		return "", s.Muted
	}
	return m.Glyph + " " + m.Word, m.Ink
}

// promptRow is the prompt of the task, or the artifact that contains it.
type promptRow struct {
	textRow
	d *histories.Detail
}

func (r promptRow) Draw(l *line) {
	t := r.d.Input.Prompt
	if ref := r.d.Input.PromptRef; ref != nil {
		t = console.RefText(*ref)
	}
	drawText(l, "prompt", l.S.Text, t)
}

func (r promptRow) Inspect(w *inspection) {
	if in := r.d.Input; in.Prompt != "" {
		w.Prose(" ", w.S.Text, in.Prompt)
	}
	w.refs(r.refs())
}

func (r promptRow) refs() []ace.Ref {
	if ref := r.d.Input.PromptRef; ref != nil {
		return []ace.Ref{*ref}
	}
	return nil
}

// answerRow is the answer of the run, with its verdict.
type answerRow struct {
	textRow
	d *histories.Detail
}

func (r answerRow) Draw(l *line) {
	ink, t := l.S.Text, r.d.Phase.Answer
	if r.d.Phase.Correct != nil {
		m := verdict(r.d, l.S)
		ink, t = m.Ink, m.Glyph+" "+t
	}
	drawText(l, "answer", ink, t)
}

func (r answerRow) Inspect(w *inspection) {
	remark, ink := verdictRemark(r.d, w.S)
	w.Say(ink, " "+cmp.Or(remark, "not graded"))
	if reason := r.d.Phase.GradeReason; reason != "" {
		w.Prose(" ", w.S.Muted, reason)
	}
	w.Section("Answer", "")
	w.Prose(" ", w.S.Text, r.d.Phase.Answer)
	if r.d.Input.Label != nil {
		w.Section("Expected", "")
		w.Prose(" ", w.S.Text, *r.d.Input.Label)
	}
}

type expectedRow struct{ answerRow }

func (r expectedRow) Draw(l *line) { drawText(l, "expected", l.S.Text, r.text) }

func aboutRows(b *lister, d *histories.Detail) {
	for i, l := range links(d) {
		b.add("link", i, l)
	}
	for i, f := range fields(d) {
		b.add("field", i, f)
	}
}

// linkRow is another run that belongs to this one.
type linkRow struct {
	textRow
	what string
	run  runs.Run
}

func newLinkRow(what string, r runs.Run) linkRow {
	copied := widget.If(r.RunID == "", textRow{"workflow id", r.WorkflowID, 1}, textRow{"run id", r.RunID, 1})
	return linkRow{copied, what, r}
}

// links returns the runs before and after a run, its parent, and the run that it was forked from.
func links(d *histories.Detail) []linkRow {
	var all []linkRow
	add := func(what, workflowID, runID string) {
		if runID != "" {
			all = append(all, newLinkRow(what, runs.Run{WorkflowID: workflowID, RunID: runID,
				TaskID: ace.TaskIDOf(workflowID)}))
		}
	}
	l := d.Lineage
	how := l.How
	if how == "" || l.Reset != nil {
		how = "continued"
	}
	if r := l.Reset; r != nil {
		add("reset at event "+strconv.FormatInt(r.Event, 10)+" from", d.WorkflowID, r.RunID)
	}
	add("previous run, "+how, d.WorkflowID, l.Prev)
	if l.First != l.Prev && l.First != d.RunID {
		add("first run of the chain", d.WorkflowID, l.First)
	}
	add("reset as", d.WorkflowID, l.ResetAs)
	add("next run", d.WorkflowID, l.Next)
	add("parent", l.Parent, l.ParentRun)
	all = append(all, blueprintLinks(d)...)
	if f := l.Fork; f != nil {
		add("forked at event "+strconv.FormatInt(f.Event, 10)+" from", f.WorkflowID, f.RunID)
	}
	return all
}

func (r linkRow) Draw(l *line) {
	l.add(l.S.Accent, r.what+" "+l.S.Glyphs.Arrow+" ").add(l.S.Text, text.Safe(r.run.WorkflowID, " ")+" ")
	if r.run.RunID != "" {
		l.add(l.S.Muted, "run "+text.Safe(r.run.RunID, " "))
	}
}

func (r linkRow) Inspect(w *inspection) {
	w.field("workflow", r.run.WorkflowID)
	w.field("run", r.run.RunID)
	if isSession(r.run) {
		w.hint("O", "shows the session on the agents screen; esc leads back")
		return
	}
	w.hint("O", "goes there; backspace leads back")
}

func (r linkRow) title() string            { return r.what }
func (r linkRow) target() (runs.Run, bool) { return r.run, true }

// fieldRow is a name and a value that describe the run.
type fieldRow struct {
	textRow
	at  time.Time // instead of a text
	run string    // run ID, if the text is a workflow ID that leads to the Web UI
}

func (r fieldRow) Draw(l *line) {
	value := text.Safe(r.text, " ")
	if !r.at.IsZero() {
		value = r.at.In(l.Loc).Format("2006-01-02 15:04:05 MST")
	}
	ink := l.S.Text
	if r.run != "" {
		ink = l.S.LinkedRun(ink, r.text, r.run)
	}
	l.add(l.S.Muted, text.Fit(r.name, 11, "")).add(ink, value)
}

// fields returns the fields that describe a run.
func fields(d *histories.Detail) []fieldRow {
	in := d.Input
	var all []fieldRow
	add := func(name, value string) {
		if value != "" {
			all = append(all, fieldRow{textRow: textRow{name, value, 1}})
		}
	}
	all = append(all, fieldRow{textRow: textRow{"workflow", d.WorkflowID, 1}, run: d.RunID})
	add("run", d.RunID)
	add("type", d.Type)
	if !d.Start.IsZero() {
		all = append(all, fieldRow{textRow: textRow{"started", d.Start.Format(time.RFC3339), 1}, at: d.Start})
	}
	add("started by", in.By)
	add("experiment", in.ExperimentID)
	add("dataset", in.DatasetID)
	add("provider", in.Provider)
	add("steps", runners.StepProviders(in))
	add("model", in.Model)
	add("prompts", in.Prompts.String())
	add("adapter", string(in.Adapter))
	add("playbook", in.PlaybookHash)
	add("branch", in.Branch)
	add("allowed", strings.Join(in.SkillsConfig.AllowedTools, ", "))
	add("permission", in.SkillsConfig.PermissionMode)
	if in.PaceMS > 0 {
		add("pace", "at least "+ace.Number(in.PaceMS)+" ms per phase")
	}
	add("clock", d.Skew.String())
	if f := d.Lineage.Fork; f != nil {
		for _, name := range sortedNames(f.Changed) {
			c := f.Changed[name]
			add("changed", name+": "+cmp.Or(c.From, "none")+" "+theme.Unicode().Arrow+" "+
				cmp.Or(c.To, "none"))
		}
	}
	return all
}

// maxNodes bounds the runs of a lineage on the run screen. The lineage screen shows all.
const maxNodes = 12

// lineageRows adds the runs around this one in its lineage.
func lineageRows(b *lister, d *histories.Detail) {
	if !d.Forks.Forks() {
		return
	}
	all := d.Forks.Nodes
	from := widget.Clamp(d.Forks.Find(d.RunID)-maxNodes/2, 0, max(len(all)-maxNodes, 0))
	for i := from; i < min(from+maxNodes, len(all)); i++ {
		n := &all[i]
		row := nodeRow{textRow{name: "workflow id", text: n.Run.WorkflowID}, d, n}
		if f := n.Run.Fork; f != nil && f.RunID == d.RunID {
			row.event = f.Event
		}
		b.add("lineage", n.Number, row)
	}
}

func lineageRemark(d *histories.Detail, s theme.Styles) (string, theme.Ink) {
	summary := ace.Count(d.Forks.Count(), "fork")
	if n := len(d.Forks.Nodes); n > maxNodes {
		summary += " (" + ace.Number(maxNodes) + " of " + ace.Number(n) + " runs here)"
	}
	return summary + ", " + s.Glyphs.Point + " is this run, T shows the tree", s.Muted
}

// nodeRow is a run of the lineage, in the columns of the lineage screen that fit.
type nodeRow struct {
	textRow
	d *histories.Detail
	n *histories.LineageNode
}

func (r nodeRow) Draw(l *line) {
	t := widget.NewTable(console.LineageHeadings()...)
	t.Arrange(l.Width + widget.PointerWidth - 2)
	here := widget.If(r.n.Run.RunID == r.d.RunID, l.S.Glyphs.Point, "")
	cells := console.LineageRow(r.n, here, t.Widths[0], l.S)
	for at, i := range t.Cols {
		if at > 0 {
			l.add(l.S.Text, " ")
		}
		l.add(cells[i].Ink, t.Fit(at, cells[i].Text, l.S.Glyphs.Ellipsis))
	}
}

func (r nodeRow) Inspect(w *inspection) {
	console.WriteLineageNode(w.Writer, r.d.Forks, r.n)
	w.Say(w.S.Text, "")
	if _, ok := r.target(); ok {
		w.hint("enter", "opens it; backspace leads back")
	}
	w.hint("=", "compares a fork with its original")
	w.hint("T", "shows the lineage on its own screen")
}

func (r nodeRow) title() string            { return console.NameOf(r.n.Run) }
func (r nodeRow) forkPoint() string        { return "" }
func (r nodeRow) target() (runs.Run, bool) { return r.n.Run, r.n.Run.RunID != r.d.RunID }

// measurement is one measured accuracy of an experiment.
type measurement struct {
	label string
	share float64
	// The accuracy is correct divided by labeled.
	correct, labeled int
	remark           string
	eval             bool
	curve            *ace.EpochResult // nil for an evaluation
}

func (m measurement) ink(s theme.Styles) theme.Ink {
	return widget.If(m.eval, s.Success, s.Running)
}

// measurements returns the accuracy of the epochs, then of the evaluations.
func measurements(p *ace.ExperimentProgress) []measurement {
	var all []measurement
	for i := range p.Epochs {
		e := &p.Epochs[i]
		remark := labeledRemark(e.Correct, e.Labeled(), e.Unlabeled)
		remark += widget.If(e.Failed > 0, ", "+ace.Number(e.Failed)+" failed", "")
		all = append(all, measurement{label: "epoch " + strconv.Itoa(e.Epoch), share: e.Accuracy,
			correct: e.Correct, labeled: e.Labeled(), remark: remark, curve: e})
	}
	for _, e := range p.Eval {
		label := widget.If(e.Epoch == 0, "eval before", "eval after "+strconv.Itoa(e.Epoch))
		if e.Learned > 0 {
			label = "eval " + strconv.Itoa(e.Epoch) + ", " + ace.Number(e.Learned)
		}
		remark := labeledRemark(e.Correct, e.Labeled(), e.Unlabeled)
		remark += widget.If(e.Failed > 0, ", "+ace.Number(e.Failed)+" failed", "")
		remark += widget.If(e.Incomplete, ", incomplete", "")
		all = append(all, measurement{label: label, share: e.Accuracy,
			correct: e.Correct, labeled: e.Labeled(), remark: remark, eval: true})
	}
	return all
}

// labeledRemark counts the correct answers among those with a label, and those without one.
func labeledRemark(correct, labeled, unlabeled int) string {
	var parts []string
	if labeled > 0 || unlabeled == 0 {
		parts = append(parts, ace.Number(correct)+" of "+ace.Number(labeled)+" correct")
	}
	if unlabeled > 0 {
		parts = append(parts, ace.Number(unlabeled)+" unlabeled")
	}
	return strings.Join(parts, ", ")
}

func progressRows(b *lister, d *histories.Detail) {
	if d.Experiment == nil {
		return
	}
	all := measurements(d.Experiment)
	for i, m := range all {
		b.add("progress", i, progressRow{measurement: m, p: d.Experiment})
	}
	b.add("progress", len(all), mergedRow{progressRow{p: d.Experiment}})
}

func progressRemark(d *histories.Detail, s theme.Styles) (string, theme.Ink) {
	return experimentProgress(d.Experiment), s.Muted
}

// experimentProgress returns the stage of an experiment and how many of its tasks are done.
func experimentProgress(p *ace.ExperimentProgress) string {
	summary := text.Safe(p.Stage, " ")
	if summary == "" {
		summary = "unknown stage"
	}
	summary += ", " + ace.Number(p.Done()) + " of " + ace.Count(p.TotalTasks, "task")
	if canceled := p.Closed() - p.Done(); canceled > 0 {
		summary += " and " + ace.Number(canceled) + " canceled"
	}
	if p.TotalEpochs > 1 {
		summary += " of epoch " + strconv.Itoa(p.Epoch) + " of " + strconv.Itoa(p.TotalEpochs)
	}
	return summary
}

// curveText returns the accuracy of each bucket of tasks in order, one character each, or "" for a single
// bucket.
func curveText(e *ace.EpochResult, g theme.Glyphs) string {
	if e == nil || len(e.Curve) < 2 {
		return ""
	}
	levels := []rune(g.Levels)
	var b strings.Builder
	for _, p := range e.Curve {
		b.WriteRune(levels[widget.Clamp(p.Correct*(len(levels)-1)/max(p.Tasks, 1), 0, len(levels)-1)])
	}
	return b.String()
}

// progressRow is one measured accuracy of an experiment.
type progressRow struct {
	textRow
	measurement
	p *ace.ExperimentProgress
}

func (r progressRow) Draw(l *line) {
	full := widget.Clamp(int(r.share*20+0.5), 0, 20)
	interval := widget.Range(stats.Wilson(r.correct, r.labeled), "rate", l.S.Glyphs)
	l.add(l.S.Muted, text.Fit(r.label, 14, "")).add(r.ink(l.S), strings.Repeat(l.S.Glyphs.Full, full)).
		add(l.S.Border, strings.Repeat(l.S.Glyphs.Empty, 20-full)).
		add(l.S.Strong, " "+text.FitLeft(console.Percent(r.share), 6, "")).
		add(l.S.Muted, widget.InParentheses(interval)+"  "+r.remark)
	if curve := curveText(r.curve, l.S.Glyphs); curve != "" {
		l.add(l.S.Muted, ", by "+ace.Count(r.curve.Bucket, "task")+" ").add(l.S.Running, curve)
	}
}

func (r progressRow) Inspect(w *inspection) {
	var b lister
	progressRows(&b, w.d)
	writeRows(w.Writer, b.rows, allRows)
}

func (r progressRow) title() string { return "Progress" }

// mergedRow is the playbook of an experiment, before and after.
type mergedRow struct{ progressRow }

func (r mergedRow) Draw(l *line) {
	p, g := r.p, l.S.Glyphs
	l.add(l.S.Muted, text.Fit("playbook", 14, "")+ace.Count(p.Bullets, "bullet")+", "+
		console.Short(p.Before, g)+" "+g.Arrow+" "+
		console.Short(p.After, g)+", "+ace.Count(p.Accepted, "operation")+" accepted, "+
		ace.Number(p.Rejected)+" rejected")
}

func failedTaskRows(b *lister, d *histories.Detail) {
	for i := range d.FailedTasks {
		t := &d.FailedTasks[i]
		b.add("failed task", i, failedTaskRow{textRow{"task", t.WorkflowID, t.Event}, t})
	}
}

func failedTasksRemark(d *histories.Detail, s theme.Styles) (string, theme.Ink) {
	return ace.Count(len(d.FailedTasks)+d.FailedDropped, "task") + widget.Dropped(d.FailedDropped),
		s.Failed
}

// failedTaskRow is a task of an experiment that failed.
type failedTaskRow struct {
	textRow
	t *experiments.Finished
}

func (r failedTaskRow) Draw(l *line) {
	m := l.S.Status(string(r.t.Status))
	l.add(m.Ink, m.Glyph+" "+text.Fit(text.Safe(r.t.Result.TaskID, " "), 24, l.S.Glyphs.Ellipsis))
	if r.t.Failure != nil {
		l.add(l.S.Error, " "+oneLine(r.t.Failure.Message))
	}
}

func (r failedTaskRow) Inspect(w *inspection) {
	m := w.S.Status(string(r.t.Status))
	w.End(w.Line().Add(m.Ink, " "+m.Glyph+" "+console.OrDash(m.Word, w.S.Glyphs)))
	w.field("task", r.t.Result.TaskID)
	w.field("workflow", r.t.WorkflowID)
	w.field("run", r.t.RunID)
	w.time("closed", r.t.At)
	if r.t.Took > 0 {
		w.field("duration", widget.Duration(r.t.Took, w.S.Glyphs))
	}
	if r.t.Failure != nil {
		w.Section("Failure", text.Safe(r.t.Failure.Type, " "))
		w.Prose(" ", w.S.Error, r.t.Failure.Message)
	}
	if r.t.WorkflowID != "" {
		w.hint("O", "goes to its run; backspace leads back")
	}
}

func (r failedTaskRow) title() string { return "task " + text.Safe(r.t.Result.TaskID, " ") }
func (r failedTaskRow) failed() bool  { return true }

func (r failedTaskRow) find(has func(string) bool) bool {
	return has(r.t.Result.TaskID) || r.t.Failure != nil && has(r.t.Failure.Message)
}

func (r failedTaskRow) target() (runs.Run, bool) {
	return runs.Run{WorkflowID: r.t.WorkflowID, RunID: r.t.RunID, TaskID: r.t.Result.TaskID},
		r.t.WorkflowID != ""
}
