package runs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/run"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runners"
	"acescope/sources/sessions"
	"acescope/sources/system"
	"acescope/tui/text"
	"acescope/views/console"
)

const (
	shownCalls = 20       // newest calls in the text of a run; --calls lists all
	shownText  = 16 << 10 // bytes of a long value
)

// WriteRun writes a run as a JSON line, or as text in the order of the console's run screen.
func WriteRun(a *cli.App, d *histories.Detail) error {
	p, l := &page{cli.NewLines(a)}, lineOf(d)
	if a.JSON {
		return p.Write(l)
	}
	start := startOf(d).Local().Format(time.DateTime)
	status := strings.TrimSpace(string(l.Status) + "  " + string(l.Verdict))
	p.Printf("%s  %s  %s (%s, %s)", l.WorkflowID, status, start, l.From, ace.Count(l.Events, "event"))
	p.problems(d)
	p.lineage(&d.Lineage)
	switch {
	case d.Experiment != nil:
		p.experiment(d)
	case d.Session != nil:
		p.session(d.Session)
		p.phases(d)
		p.skills(d)
	case d.BlueprintRun != nil:
		p.blueprintRun(d.BlueprintRun)
	case d.Flow != nil:
		p.flow(l.TaskID, d.Flow)
	case d.Sections != nil:
		p.Sections(d.Sections, 10)
	default:
		p.phases(d)
		p.usage(d)
		p.skills(d)
		p.delta(d)
		p.task(d)
		p.calls(d)
	}
	return p.Flush()
}

// page is text with headings.
type page struct{ *cli.Lines }

func (p *page) heading(format string, args ...any) {
	p.Printf("")
	p.Printf(format, args...)
}

// field writes a name and a value in one line.
func (p *page) field(name, format string, args ...any) {
	p.Printf("  %-10s %s", name, fmt.Sprintf(format, args...))
}

// text writes a name and the lines of a value, or nothing if the value is empty.
func (p *page) text(name, value string) {
	if value == "" {
		return
	}
	if size := len(value); size > shownText {
		value = fmt.Sprintf("%s…\n(%s in total; --json has all of it)",
			strings.ToValidUTF8(value[:shownText], ""), system.Bytes(uint64(size)))
	}
	for _, line := range text.Lines(value) {
		p.field(name, "%s", line)
		name = ""
	}
}

func (p *page) problems(d *histories.Detail) {
	if f := d.Phase.Failure; f != nil {
		kind := string(f.Kind)
		if f.Type != "" {
			kind += ", " + f.Type
		}
		p.text("failure", kind+": "+f.Message)
	}
	for _, c := range d.Causes {
		parts := []string{c.Kind}
		for _, part := range []string{c.Activity, c.Type, c.Retry} {
			if part != "" {
				parts = append(parts, part)
			}
		}
		p.text("cause", strings.Join(parts, ", ")+": "+c.Message)
		p.text("details", c.Details)
	}
	p.text("stopped", d.Phase.Stopped)
	p.text("read error", d.Err)
	p.text("clock", d.Skew.String())
	p.text("missing", strings.Join(d.Missing, ", "))
	for _, note := range d.Unread() {
		p.text("unread", note)
	}
	for _, x := range d.Encoded {
		p.field("payload", "%s at event %d: %s, %s, %s", x.What, x.Event, x.Encoding,
			ace.Count(x.Size, "byte"), x.Why())
	}
	for _, x := range d.Pending {
		state := fmt.Sprintf("%s %s, attempt %d since %s", x.Type, x.State, x.Attempt,
			x.Since.Local().Format(time.DateTime))
		p.field("pending", "%s", cluster.Join(state, x.LastError))
		p.text("heartbeat", x.Heartbeat)
	}
}

func (p *page) lineage(l *histories.Lineage) {
	if l.Prev != "" {
		how := l.How
		if l.Reset != nil {
			how = "before the run that this run was reset from"
		}
		p.field("continues", "run %s (%s)", l.Prev, how)
	}
	if r := l.Reset; r != nil {
		p.field("reset from", "run %s after event %d; the events up to it are from that run", r.RunID,
			r.Event)
	}
	if f := l.Fork; f != nil {
		p.field("forked", "%s at event %d, before %s (run %s)", f.WorkflowID, f.Event, f.Place(), f.RunID)
		for _, name := range slices.Sorted(maps.Keys(f.Changed)) {
			c := f.Changed[name]
			p.text("changed", name+": "+cmp.Or(c.From, "none")+" → "+cmp.Or(c.To, "none"))
		}
	}
	if l.ResetAs != "" {
		p.field("reset as", "run %s", l.ResetAs)
	}
	if l.Next != "" {
		p.field("next", "run %s", l.Next)
	}
}

// session summarizes an agent session; acescope session show has the conversation.
func (p *page) session(st *session.State) {
	p.heading("Session")
	p.text("status", string(st.Status))
	p.text("agent", strings.TrimSpace(st.Input.Agent+" "+st.Model)+" in "+st.Input.WorkingDir)
	for _, c := range st.Pending {
		p.text("approval", c.ID+" "+c.Name+" "+string(c.Args))
	}
	for _, q := range st.Queue {
		p.text("queued", q.Text)
	}
	for _, t := range st.Recent {
		p.text(fmt.Sprintf("turn %d", t.Turn), fmt.Sprintf("%s: %s; %s", t.Status, t.Prompt,
			sessions.TurnText(t)))
	}
	p.Printf("  \"acescope session show %s\" shows the conversation", st.Input.SessionID)
}

func (p *page) blueprintRun(st *run.State) {
	p.heading("Run")
	p.fields(runners.Fields(st))
	p.text("prompt", st.Input.Prompt)
	if result := runners.ResultFields(st); len(result) > 0 {
		p.heading("Result")
		p.fields(result)
	}
}

func (p *page) fields(list []runners.Field) {
	for _, f := range list {
		value := f.Value
		if !f.At.IsZero() {
			value = strings.TrimSpace(value + " " + f.At.Local().Format(time.DateTime))
		}
		p.text(f.Name, value)
	}
}

func (p *page) phases(d *histories.Detail) {
	if len(d.Phase.Steps) == 0 {
		return
	}
	p.heading("Phases")
	requests := 0
	for _, step := range d.Phase.Steps {
		duration := ""
		if step.Time != nil {
			duration = formatMillis(step.Time.DurationMS)
		}
		line := fmt.Sprintf("  %-10s %-11s %9s", step.Phase, step.Status, duration)
		if step.Reused {
			line += "  reused"
		}
		if provider := runners.StepProvider(d.Input, step); provider != "" {
			line += "  by " + provider
		}
		if by, ok := runners.ServedBy(step); ok {
			line += ", " + by.WorkflowID
		}
		if v := step.Parsed.String(); v != "" {
			line += "  answer: " + v
		}
		for _, x := range d.Activities {
			if x.Phase == step.Phase {
				line += formatAttempts(x)
			}
		}
		p.Printf("%s", line)
		for _, log := range step.CallLogs() {
			requests += log.Requests
		}
	}
	if requests > 0 {
		p.Printf("  %s to models on record; see \"acescope prompts\"", ace.Count(requests, "request"))
	}
}

// startOf returns when a run started. An observed run may have started long before its workflow.
func startOf(d *histories.Detail) time.Time {
	if d.Input.Observed {
		for _, step := range d.Phase.Steps {
			if step.Time != nil && !step.Time.StartedAt.IsZero() {
				return step.Time.StartedAt
			}
		}
	}
	return d.Start
}

// usage writes the model of a run, its tokens and its cost.
func (p *page) usage(d *histories.Detail) {
	if u := d.Phase.Usage; u != (ace.Usage{}) {
		p.heading("Usage")
		p.text("model", d.Input.Model)
		p.field("tokens", "%s in, %s out", ace.Number(u.InputTokens), ace.Number(u.OutputTokens))
		p.field("cost", "%s", u.Cost())
	}
}

// formatAttempts returns how often an activity was attempted and its failure, or "".
func formatAttempts(x histories.Activity) string {
	if x.Attempt < 2 && x.Failure == nil {
		return ""
	}
	s := fmt.Sprintf("  %s, %s before the last", ace.Count(x.Attempt, "attempt"), text.Duration(x.Waited()))
	switch {
	case x.Failure != nil:
		s += "; " + x.Failure.Message + " (" + x.Retry + ")"
	case x.LastError != nil:
		s += "; " + x.LastError.Message
	}
	return s
}

func formatMillis(ms float64) string {
	return text.Duration(time.Duration(ms * float64(time.Millisecond)))
}

func (p *page) skills(d *histories.Detail) {
	if len(d.Skills.Commands) > 0 {
		p.heading("Slash commands")
		for _, name := range slices.Sorted(maps.Keys(d.Skills.Commands)) {
			p.Printf("  %s %6d", text.Fit(cli.SafeText(name), 16, "~"), d.Skills.Commands[name])
		}
	}
	if len(d.Skills.Skills) == 0 {
		return
	}
	p.heading("Skills")
	p.Printf("  %-16s %6s %6s %6s %6s %7s %8s %8s  %s",
		"", "calls", "ok", "failed", "denied", "pending", "p50", "p95", "last error")
	for _, u := range d.Skills.Skills {
		p.Printf("  %s %6d %6d %6d %6d %7d %8s %8s  %s", text.Fit(cli.SafeText(u.Name), 16, "~"), u.Calls,
			u.OK, u.Failed, u.Denied, u.Pending, formatMillis(u.P50MS), formatMillis(u.P95MS), u.LastError)
	}
}

func (p *page) delta(d *histories.Detail) {
	if d.Delta.PlaybookAfter == "" && len(d.Delta.Operations) == 0 {
		return
	}
	p.heading("Playbook  %s → %s", shortHash(d.Delta.PlaybookBefore), shortHash(d.Delta.PlaybookAfter))
	p.review(d)
	for _, op := range d.Delta.Operations {
		p.Printf("  %-8s %-6s %s %s", op.Outcome, op.Type, op.BulletID, proposalText(op))
		if old, ok := d.OldBullets[op.BulletID]; ok && op.Type == ace.OpUpdate && op.Content != "" {
			p.Printf("  %-8s %-6s %s", "", "before", old.Content)
		}
	}
}

// proposalText returns the content of an operation and its reason.
func proposalText(op ace.Operation) string {
	content := op.Content
	if op.Type == ace.OpTag {
		content = console.TagText(op.Metadata)
	}
	if op.Type == ace.OpMerge {
		content = strings.TrimSpace(console.MergeText(op.SourceIDs) + " " + content)
	}
	if op.Reason != "" {
		content += " (" + op.Reason + ")"
	}
	return content
}

// review writes the state of the review of the operations.
func (p *page) review(d *histories.Detail) {
	r := d.Phase.Review
	switch {
	case len(d.UnderReview()) > 0:
		p.field("review", "%s", ReviewText(d, time.Now()))
	case r.Status != "":
		p.field("review", "%s", r.String())
	}
	if r.Ignored > 0 {
		p.field("ignored", "%s; the last: %s", ace.Count(r.Ignored, "decision"), r.LastIgnored)
	}
}

func shortHash(h string) string {
	if h == "" {
		return "none"
	}
	return fmt.Sprintf("%.12s", h)
}

func (p *page) task(d *histories.Detail) {
	if d.Type == ace.TaskWorkflow {
		p.heading("Task")
	} else {
		p.heading("Workflow  %s", d.Type)
	}
	p.text("input", string(d.RawInput))
	p.text("result", string(d.RawResult))
	p.text("prompt", d.Input.Prompt)
	if r := d.Input.PromptRef; r != nil {
		p.text("prompt", "artifact "+r.SHA256)
	}
	p.text("prompts", d.Input.Prompts.String())
	answer := cmp.Or(d.Phase.Answer, d.UnreadAnswer())
	if c := d.Phase.Correct; c != nil {
		answer += map[bool]string{true: "  (correct)", false: "  (wrong)"}[*c]
	}
	if s := d.Phase.Score; s != nil {
		answer += fmt.Sprintf("  score %.3f by %s", *s, d.Input.Grader)
	}
	p.text("answer", answer)
	p.text("reason", d.Phase.GradeReason)
	if d.Input.Label != nil {
		p.text("expected", *d.Input.Label)
	}
	p.text("plan", d.Plan)
	p.text("insights", d.Delta.Insights)
	for i := range d.Phase.Passes {
		again := &d.Phase.Passes[i]
		p.text(again.Name(), again.Graded())
		p.text("insights", again.Insights)
	}
	p.text("rationale", d.Delta.Rationale)
}

func (p *page) calls(d *histories.Detail) {
	n := d.Calls.Len()
	first := max(0, n-shownCalls)
	switch {
	case n == 0:
		return
	case first > 0:
		p.heading("Tool calls  %d, the last %d", n, shownCalls)
	default:
		p.heading("Tool calls  %d", n)
	}
	for i := first; i < n; i++ {
		p.Printf("  %s", formatCall(d.Calls.At(i)))
	}
}

// formatCall formats a tool call as one line.
func formatCall(c *histories.ToolCall) string {
	at := ""
	if !c.At.IsZero() {
		at = c.At.Local().Format(clockTime)
	}
	line := fmt.Sprintf("%12s  %-7s %8s  %s %s", at, c.State(), formatMillis(c.DurationMS), c.Name,
		ace.Cut(string(c.Args), 120))
	switch {
	case c.Error != "":
		line += "  " + c.Error
	case len(c.Result) > 0:
		line += " → " + ace.Cut(string(c.Result), 120)
	}
	return line + "  [" + c.ID + "]"
}

func (p *page) experiment(d *histories.Detail) {
	printExperiment(p.Lines, &d.ExperimentInput, *d.Experiment)
	if len(d.FailedTasks) == 0 {
		return
	}
	p.heading("Tasks not completed  %d", len(d.FailedTasks)+d.FailedDropped)
	for _, f := range d.FailedTasks {
		why := f.Failure.Message
		if f.Status == ace.Canceled {
			why = "" // the message says the same already
		}
		p.Printf("  %-28s %-10s %s", f.Result.TaskID, f.Status, why)
	}
}
