package run

import (
	"encoding/json"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/sources/flows"
	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

func approvalRows(b *lister, d *histories.Detail) {
	if d.Flow == nil || !d.Close.IsZero() {
		return
	}
	for i, s := range d.Flow.Waiting() {
		b.add("approval", i, approvalRow{flowStepRow: newFlowStepRow(d, s)})
	}
}

func approvalRemark(_ *histories.Detail, s theme.Styles) (string, theme.Ink) {
	return "w decides, or acescope flow approve", s.Warning
}

func flowRows(b *lister, d *histories.Detail) {
	if d.Flow == nil {
		return
	}
	for i := range d.Flow.Steps {
		b.add("step", i, newFlowStepRow(d, &d.Flow.Steps[i]))
	}
	if d.Flow.Problem != "" {
		b.add("problem", 0, unreadRow{textRow{name: "unread", text: "the flow of the run: " +
			d.Flow.Problem}})
	}
}

func flowRemark(d *histories.Detail, s theme.Styles) (string, theme.Ink) {
	ended, all := d.Flow.Counts()
	summary := ace.Number(ended) + " of " + ace.Count(all, "step") + " ended, " +
		ace.Count(d.Flow.Operations, "operation")
	if n := d.Flow.Dropped; n > 0 {
		summary += ", " + ace.Number(n) + " older no longer listed"
	}
	return summary, s.Muted
}

// flowProgress describes where a run of a flow is.
func flowProgress(f *flows.View) string {
	ended, all := f.Counts()
	summary := text.Safe(f.Name, " ")
	summary += widget.If(f.ChainRun > 0, ", run "+ace.Number(f.ChainRun)+" of its chain", "")
	summary += ", " + ace.Number(ended) + " of " + ace.Count(all, "step")
	var open []string
	for i := range f.Steps {
		if s := &f.Steps[i]; s.Waits() {
			open = append(open, s.Path+" waits for approval")
		} else if s.Status == flow.StepRunning && s.Op != nil {
			open = append(open, s.Path)
		}
	}
	if len(open) > 0 {
		summary += ", " + text.Safe(strings.Join(open[:min(len(open), 3)], ", "), " ")
	}
	return summary
}

// flowStepRow is a step of a flow, or one of its executions in a loop.
type flowStepRow struct {
	textRow
	ages
	d *histories.Detail
	s *flows.Step
}

func newFlowStepRow(d *histories.Detail, s *flows.Step) flowStepRow {
	r := flowStepRow{textRow: textRow{name: "step", text: s.Path}, d: d, s: s}
	if s.Op != nil {
		r.event = s.Op.Event
	}
	return r
}

// flowStepMark returns the mark of a step's status.
func flowStepMark(f *flows.Step, s theme.Styles) theme.Mark {
	switch f.Status {
	case flow.StepCompleted:
		return stepMark(ace.StatusDone, s)
	case flow.StepFailed:
		return stepMark(ace.StatusFailed, s)
	case flow.StepCanceled:
		return stepMark(ace.StatusCanceled, s)
	case flow.StepRunning:
		return stepMark(ace.StatusRunning, s)
	case flow.StepWaiting:
		return theme.Mark{Glyph: s.Glyphs.Timeout, Word: string(f.Status),
			Ink: widget.If(!f.Approval, s.Running, s.Warning)}
	case flow.StepSkipped:
		return theme.Mark{Glyph: s.Glyphs.Dash, Word: string(f.Status), Ink: s.Muted}
	}
	return theme.Mark{Glyph: s.Glyphs.Pending, Ink: s.Muted}
}

// Widths of the columns of a step: the indented name, and the kind.
const (
	stepNameWidth = 26
	stepKindWidth = 10
)

func (r flowStepRow) Draw(l *line) {
	indent := text.Spaces(2 * r.s.Depth)
	if n := r.s.Earlier; n > 0 {
		l.add(l.S.Muted, indent+l.S.Glyphs.Ellipsis+" "+ace.Count(n, "earlier iteration")+", not listed")
		return
	}
	m := flowStepMark(r.s, l.S)
	ink := widget.If(r.s.Begun(), l.S.Muted, l.S.Text)
	if r.s.Begun() && r.s.Status == flow.StepSkipped {
		ink = l.S.Muted
	}
	width := max(widget.Clamp(l.Width/3, 14, stepNameWidth)-2*r.s.Depth, 8)
	l.add(l.S.Text, indent).add(m.Ink, m.Glyph+" ").add(ink,
		text.Fit(text.Safe(r.s.Label, " "), width, l.S.Glyphs.Ellipsis)+" ").
		add(l.S.Muted, text.Fit(text.Safe(r.s.Kind, " "), stepKindWidth, l.S.Glyphs.Ellipsis))
	if !r.s.Begun() {
		return
	}
	l.add(l.S.Muted, text.FitLeft(r.took(l.Now, l.S.Glyphs), 7, "")+" ")
	if p := r.s.Progress(); p != "" {
		l.add(l.S.Text, p+" ")
	}
	if u := r.s.Usage; u != nil && *u != (ace.Usage{}) {
		l.add(l.S.Muted, console.CostCell(*u, l.S.Glyphs)+" ")
	}
	if n := r.attempts(); n > 1 {
		l.add(l.S.Retrying, l.S.Glyphs.Retry+ace.Number(n)+" ")
	}
	if r.s.Name != "" {
		l.add(l.S.Text, oneLine(r.s.Name)+" ")
	}
	switch {
	case r.s.Error != "":
		l.add(l.S.Error, oneLine(r.s.Error))
	case r.s.Waits():
		l.add(l.S.Warning, "waits for approval: "+oneLine(r.s.Detail))
	case r.s.Status == flow.StepWaiting:
		l.add(l.S.Running, "waits: "+oneLine(r.s.Detail))
	case r.s.Detail != "":
		l.add(l.S.Muted, oneLine(r.s.Detail))
	case r.s.Status == flow.StepSkipped:
		l.add(l.S.Muted, "skipped")
	}
	if r.s.Reused {
		l.add(l.S.Muted, " reused")
	}
}

// took returns how long the step took, or has taken so far.
func (r flowStepRow) took(now time.Time, g theme.Glyphs) string {
	end := r.s.End
	switch {
	case r.s.Start.IsZero() || r.s.Status == flow.StepSkipped:
		return ""
	case end.IsZero() && !r.d.Close.IsZero():
		end = r.d.Close
	case end.IsZero():
		end = now
	}
	return durationText(end.Sub(r.s.Start), g)
}

func durationText(d time.Duration, g theme.Glyphs) string {
	return widget.Milliseconds(float64(max(d, 0))/float64(time.Millisecond), g)
}

// attempts returns the number of attempts of the operation, if it is known.
func (r flowStepRow) attempts() int32 {
	if r.s.Op == nil {
		return 0
	}
	if p := r.pending(); p != nil {
		return p.Attempt
	}
	return r.s.Op.Attempt
}

// pending returns the open activity of the operation, or nil.
func (r flowStepRow) pending() *histories.PendingActivity {
	for i := range r.d.Pending {
		if p := &r.d.Pending[i]; r.s.Op != nil && r.s.Op.EndEvent == 0 && p.ActivityID() == r.s.Op.ID {
			return p
		}
	}
	return nil
}

func (r flowStepRow) Inspect(w *inspection) {
	if n := r.s.Earlier; n > 0 {
		w.Prose(" ", w.S.Muted, ace.Count(n, "older iteration")+" of the loop. The timeline and "+
			w.showCommand("--json")+" list them, as far as the run keeps them.")
		return
	}
	m := flowStepMark(r.s, w.S)
	word := widget.If(!r.s.Begun(), "not begun", text.Safe(string(r.s.Status), " "))
	w.End(w.Line().Add(m.Ink, " "+m.Glyph+" "+word).Add(w.S.Strong, "  "+text.Safe(r.s.Path, " ")).
		Add(w.S.Muted, "  "+text.Safe(r.s.Kind, " ")))
	w.field("name", r.s.Name)
	w.field("took", r.took(w.Now, w.S.Glyphs))
	w.time("start", r.s.Start)
	w.time("end", r.s.End)
	w.field("iterations", r.s.Progress())
	if u := r.s.Usage; u != nil && *u != (ace.Usage{}) {
		w.field("usage", console.UsageText(*u))
	}
	if r.s.Reused {
		w.field("reused", "from the original of the fork")
	}
	if r.s.Error != "" {
		w.Prose(" error       ", w.S.Error, r.s.Error)
	}
	if r.s.Detail != "" {
		w.Section(map[bool]string{true: "Message", false: "Detail"}[r.s.Approval], "")
		w.Prose(" ", w.S.Text, r.s.Detail)
	}
	r.operation(w)
}

// operation writes the last operation of the step.
func (r flowStepRow) operation(w *inspection) {
	op := r.s.Op
	switch {
	case op == nil && r.s.Operation != "":
		w.Section("Operation", text.Safe(r.s.Operation, " "))
		w.Prose(" ", w.S.Muted, "An earlier run of the chain executed it, or the run reused its result.")
		return
	case op == nil:
		return
	}
	w.Section("Operation", text.Safe(op.ID, " "))
	w.field("type", string(op.Type))
	w.field("activity", op.Activity)
	if n := r.attempts(); n > 0 {
		w.field("attempt", ace.Number(n))
	}
	if op.Cached {
		w.field("cached", "yes, the handler was not called")
	}
	if !op.End.IsZero() {
		w.field("took", durationText(op.End.Sub(op.Start), w.S.Glyphs))
		w.field("end event", ace.Number(op.EndEvent))
	}
	if f := op.Failure; f != nil {
		w.Prose(" failure     ", w.S.Error, strings.TrimPrefix(f.Type+": "+f.Message, ": "))
	}
	if p := r.pending(); p != nil && p.LastError != "" {
		w.Prose(" last error  ", w.S.Error, p.LastError)
	}
	if op.Cut {
		w.Prose(" ", w.S.Warning, "Parameters and result are not kept here. The events have them.")
		return
	}
	w.payload("Parameters", op.Parameters, "--json")
	if op.EndEvent != 0 {
		w.payload("Result", op.Result, "--json")
	}
	w.refs(r.refs())
}

func (r flowStepRow) title() string {
	return widget.If(r.s.Earlier > 0, "Earlier iterations", "step "+text.Safe(r.s.Path, " "))
}

// forkPoint returns the start of the step. Iterations that are not listed have none.
func (r flowStepRow) forkPoint() string {
	return widget.If(r.s.Earlier > 0, "", "from="+r.s.Path)
}

func (r flowStepRow) failed() bool { return r.s.Status == flow.StepFailed }

func (r flowStepRow) refs() []ace.Ref {
	op := r.s.Op
	if op == nil {
		return nil
	}
	refs := append(histories.RefsIn(op.Parameters), histories.RefsIn(op.Result)...)
	if op.ResultRef != nil {
		refs = append(refs, *op.ResultRef)
	}
	return refs
}

func (r flowStepRow) find(has func(string) bool) bool {
	s := r.s
	return has(s.Path) || has(s.Kind) || has(s.Detail) || has(s.Error) || has(string(s.Status)) ||
		has(s.Operation) ||
		s.Op != nil && (has(string(s.Op.Parameters)) || has(string(s.Op.Result)))
}

// payload returns the result of the operation, or its parameters until there is a result.
func (r flowStepRow) payload() (what string, raw []byte) {
	switch {
	case r.s.Op == nil:
		return "", nil
	case len(r.s.Op.Result) == 0:
		return "parameters", r.s.Op.Parameters
	}
	return "result", r.s.Op.Result
}

// approvalRow is a step that waits for the user.
type approvalRow struct{ flowStepRow }

func (r approvalRow) Draw(l *line) {
	m := flowStepMark(r.s, l.S)
	l.add(m.Ink, m.Glyph+" "+text.Safe(r.s.Path, " ")+" waits for approval")
	if !r.s.Start.IsZero() {
		l.add(l.S.Muted, " for "+text.Span(max(l.Now.Sub(r.s.Start), 0)))
	}
	l.add(l.S.Text, ": "+oneLine(r.s.Detail))
}

func outputRows(b *lister, d *histories.Detail) {
	if d.Flow != nil {
		for i, name := range sortedNames(d.Flow.Outputs) {
			data, _ := json.Marshal(d.Flow.Outputs[name])
			b.add("output", i, newValueRow(name, data, d.CloseEvent))
		}
	}
}

func inputRows(b *lister, d *histories.Detail) {
	if d.Flow == nil {
		return
	}
	f := d.Flow
	for i, field := range []textRow{{"flow", f.Name + ", digest " + f.Digest[:min(len(f.Digest), 12)], 1},
		{"directory", f.Dir, 1},
		{"started by", f.By, 1}} {
		if field.text != "" {
			b.add("about", i, field)
		}
	}
	var inputs map[string]json.RawMessage
	if json.Unmarshal(f.Inputs, &inputs) != nil {
		return
	}
	for i, name := range sortedNames(inputs) {
		b.add("input", i, newValueRow(name, inputs[name], 1))
	}
}

// valueRow is a named JSON value. A text is shown without its quotes.
type valueRow struct {
	textRow
	json string
}

func newValueRow(name string, data []byte, event int64) valueRow {
	r := valueRow{textRow: textRow{name: text.Safe(name, " "), text: string(data), event: event},
		json: string(data)}
	var s string
	if json.Unmarshal(data, &s) == nil {
		r.text = s
	}
	return r
}

func (r valueRow) payload() (what string, raw []byte) { return r.name, []byte(r.json) }
