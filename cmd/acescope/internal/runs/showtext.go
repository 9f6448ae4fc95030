package runs

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/runners"
	"acescope/sources/sessions"
	"acescope/sources/system"
	"acescope/tui/text"
)

// shownCalls is how many calls the text of a run lists: the last; --calls lists all.
const shownCalls = 20

// shownText is how many bytes of a text it prints.
const shownText = 16 << 10

// PrintShow lays a run out for people, in the order of the console's run screen.
func PrintShow(w io.Writer, d *histories.Detail, l ShowLine) error {
	out := &sheet{Writer: bufio.NewWriter(w)}
	out.say("%s  %s  %s (%s, %d events)", cli.SafeText(l.WorkflowID), l.Status, l.Start.Local().Format(time.DateTime), l.From, l.Events)
	out.trouble(d)
	if d.Experiment != nil {
		out.experiment(d)
		return out.Flush()
	}
	if d.Session != nil {
		out.session(d.Session)
		out.phases(d)
		out.skills(d)
		return out.Flush()
	}
	if d.Course != nil {
		out.course(d.Course)
		return out.Flush()
	}
	out.phases(d)
	out.skills(d)
	out.delta(d)
	out.task(d)
	out.calls(d)
	return out.Flush()
}

// sheet is a text with headings.
type sheet struct{ *bufio.Writer }

func (s *sheet) say(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

func (s *sheet) head(title string) { s.say("\n%s", title) }

// text writes a value below its name, further lines indented.
func (s *sheet) text(name, value string) {
	if value == "" {
		return
	}
	if size := len(value); size > shownText {
		value = fmt.Sprintf("%s…\n(%s in all; --json has it whole)", strings.ToValidUTF8(value[:shownText], ""), system.Bytes(uint64(size)))
	}
	for i, line := range text.Lines(value) {
		if i > 0 {
			name = ""
		}
		s.say("  %-10s %s", name, line)
	}
}

// session is an agent session in short; acescope session show has what was said.
func (s *sheet) session(st *sessions.TalkState) {
	s.head("Session")
	s.text("status", string(st.Status))
	s.text("agent", strings.TrimSpace(st.Input.Agent+" "+st.Model)+" in "+st.Input.WorkingDir)
	for _, p := range st.Pending {
		s.text("approval", p.ID+" "+p.Name+" "+string(p.Args))
	}
	for _, q := range st.Queue {
		s.text("waits", q.Text)
	}
	for _, t := range st.Recent {
		s.text(fmt.Sprintf("turn %d", t.Turn), fmt.Sprintf("%s: %s; %s", t.Status, t.Prompt, sessions.TurnText(t)))
	}
	s.say("  acescope session show %s has what was said", cli.SafeText(st.Input.SessionID))
}

// course is a run of a blueprint.
func (s *sheet) course(st *histories.CourseState) {
	s.head("Run")
	s.fields(runners.CourseFields(st))
	s.text("prompt", st.Input.Prompt)
	if result := runners.ResultFields(st); len(result) > 0 {
		s.head("Result")
		s.fields(result)
	}
}

func (s *sheet) fields(list []runners.CourseField) {
	for _, f := range list {
		value := f.Value
		if !f.At.IsZero() {
			value = strings.TrimSpace(value + " " + f.At.Local().Format("2006-01-02 15:04:05"))
		}
		s.text(f.Name, value)
	}
}

func (s *sheet) trouble(d *histories.Detail) {
	if f := d.Phase.Failure; f != nil {
		kind := string(f.Kind)
		if f.Type != "" {
			kind += ", " + f.Type
		}
		s.text("failure", kind+": "+f.Message)
	}
	for _, c := range d.Causes {
		parts := []string{c.Kind}
		for _, p := range []string{c.Activity, c.Type, c.Retry} {
			if p != "" {
				parts = append(parts, p)
			}
		}
		s.text("because", strings.Join(parts, ", ")+": "+c.Message)
	}
	s.text("reading", d.Err)
	s.text("clock", d.Skew.String())
	s.text("missing", strings.Join(d.Missing, ", "))
	for _, x := range d.Sealed {
		s.say("  %-10s %s at event %d: %s, %d bytes, %s", "payload", cli.SafeText(x.What), x.Event, cli.SafeText(x.Encoding), x.Size, cli.SafeText(x.Why()))
	}
	for _, p := range d.Pending {
		s.say("  %-10s %s %s, attempt %d %s", "pending", cli.SafeText(p.Type), p.State, p.Attempt, cli.SafeText(p.LastError))
	}
	l := d.Lineage
	if l.Prev != "" {
		how := l.How
		if l.Reset != nil {
			how = "before the run that it was reset from"
		}
		s.say("  %-10s run %s (%s)", "before", cli.SafeText(l.Prev), how)
	}
	if r := l.Reset; r != nil {
		s.say("  %-10s run %s after event %d; the events up to it are that run's", "reset from", cli.SafeText(r.RunID), r.Event)
	}
	s.forked(l.Fork)
	if l.ResetAs != "" {
		s.say("  %-10s run %s", "reset as", cli.SafeText(l.ResetAs))
	}
	if l.Next != "" {
		s.say("  %-10s run %s", "goes on as", cli.SafeText(l.Next))
	}
}

// forked says where a fork comes from and what was changed.
func (s *sheet) forked(f *ace.Forked) {
	if f == nil {
		return
	}
	s.say("  %-10s %s at event %d, before %s (run %s)", "forked", cli.SafeText(f.WorkflowID), f.Event, cli.SafeText(string(f.Phase)), cli.SafeText(f.RunID))
	for _, name := range slices.Sorted(maps.Keys(f.Changed)) {
		c := f.Changed[name]
		s.text("changed", name+": "+cmp.Or(c.From, "none")+" → "+cmp.Or(c.To, "none"))
	}
}

func (s *sheet) phases(d *histories.Detail) {
	if len(d.Phase.Steps) == 0 {
		return
	}
	s.head("Phases")
	for _, st := range d.Phase.Steps {
		line := fmt.Sprintf("  %-10s %-9s %9s", cli.SafeText(string(st.Phase)), st.Status, stepText(st))
		if st.Reused {
			line += "  taken over"
		}
		if by := runners.Server(d.Input, st); by != "" {
			line += "  by " + cli.SafeText(by)
		}
		if of, ok := runners.ServedBy(st); ok {
			line += ", " + cli.SafeText(of.WorkflowID)
		}
		if v := st.Verdict.String(); v != "" {
			line += "  answer: " + cli.SafeText(v)
		}
		for _, a := range d.Activities {
			if a.Phase != st.Phase || a.Attempt < 2 && a.Failure == nil {
				continue
			}
			line += fmt.Sprintf("  %s, %s before the last", cli.Numbered(int64(a.Attempt), "attempt"), text.Took(a.Waited()))
			switch {
			case a.Failure != nil:
				line += "; " + cli.SafeText(a.Failure.Message) + " (" + a.Retry + ")"
			case a.LastError != nil:
				line += "; " + cli.SafeText(a.LastError.Message)
			}
		}
		s.say("%s", strings.TrimRight(line, " "))
	}
}

func stepText(st ace.StepState) string {
	if st.Time == nil {
		return ""
	}
	return tookText(st.Time.DurationMS)
}

func tookText(ms float64) string { return text.Took(time.Duration(ms * float64(time.Millisecond))) }

func (s *sheet) skills(d *histories.Detail) {
	if len(d.Skills.Skills) == 0 {
		return
	}
	s.head("Skills")
	s.say("  %-16s %6s %6s %6s %6s %7s %8s %8s  %s", "", "calls", "ok", "failed", "denied", "pending", "p50", "p95", "last error")
	for _, u := range d.Skills.Skills {
		line := fmt.Sprintf("  %s %6d %6d %6d %6d %7d %8s %8s  %s", text.Fit(cli.SafeText(u.Name), 16, "~"), u.Calls, u.OK, u.Failed, u.Denied, u.Pending,
			tookText(u.P50MS), tookText(u.P95MS), cli.SafeText(u.LastError))
		s.say("%s", strings.TrimRight(line, " "))
	}
}

func (s *sheet) delta(d *histories.Detail) {
	if d.Delta.PlaybookAfter == "" && len(d.Delta.Operations) == 0 {
		return
	}
	s.head(fmt.Sprintf("Playbook  %s → %s", hashText(d.Delta.PlaybookBefore), hashText(d.Delta.PlaybookAfter)))
	for _, op := range d.Delta.Operations {
		line := fmt.Sprintf("  %-8s %-6s %s", op.Outcome, op.Type, cli.SafeText(op.BulletID))
		what := op.Content
		if op.Type == ace.OpTag {
			what = fmt.Sprint(op.Metadata)
		}
		line += " " + cli.SafeText(what)
		if op.Reason != "" {
			line += " (" + cli.SafeText(op.Reason) + ")"
		}
		s.say("%s", strings.TrimRight(line, " "))
		if old, ok := d.Old[op.BulletID]; ok && op.Type == ace.OpUpdate && op.Content != "" {
			s.say("  %-8s %-6s %s", "", "before", cli.SafeText(old.Content))
		}
	}
}

func hashText(h string) string {
	if h == "" {
		return "none"
	}
	return fmt.Sprintf("%.12s", h)
}

func (s *sheet) task(d *histories.Detail) {
	s.head("Task")
	s.text("prompt", d.Input.Prompt)
	if r := d.Input.PromptRef; r != nil {
		s.text("prompt", "artifact "+r.SHA256)
	}
	answer := d.Phase.Answer
	if c := d.Phase.Correct; c != nil {
		answer += map[bool]string{true: "  (correct)", false: "  (wrong)"}[*c]
	}
	s.text("answer", answer)
	if d.Input.Label != nil {
		s.text("expected", *d.Input.Label)
	}
	s.text("plan", d.Plan)
	s.text("insights", d.Delta.Insights)
	s.text("rationale", d.Delta.Rationale)
}

func (s *sheet) calls(d *histories.Detail) {
	n := d.Calls.Len()
	if n == 0 {
		return
	}
	first := max(0, n-shownCalls)
	title := fmt.Sprintf("Tool calls  %d", n)
	if first > 0 {
		title += fmt.Sprintf(", the last %d", shownCalls)
	}
	s.head(title)
	for i := first; i < n; i++ {
		s.say("  %s", callText(d.Calls.At(i)))
	}
}

// callText is a call in a line.
func callText(c *histories.ToolCall) string {
	state := "failed"
	switch {
	case !c.Accepted:
		state = "denied"
	case c.Pending:
		state = "pending"
	case c.OK:
		state = "ok"
	}
	at := "            "
	if !c.At.IsZero() {
		at = c.At.Local().Format("15:04:05.000")
	}
	line := fmt.Sprintf("%s  %-7s %8s  %s %s", at, state, tookText(c.DurationMS), cli.SafeText(c.Name), cli.SafeText(cli.Cut(c.Args, 120)))
	switch {
	case c.Error != "":
		line += "  " + cli.SafeText(c.Error)
	case len(c.Result) > 0:
		line += " → " + cli.SafeText(cli.Cut(c.Result, 120))
	}
	return line + "  [" + cli.SafeText(c.ID) + "]"
}

func (s *sheet) experiment(d *histories.Detail) {
	// What is written to a buffer fails at its flush.
	_ = printExperiment(s, *d.Experiment)
	if len(d.FailedTasks) == 0 {
		return
	}
	s.head(fmt.Sprintf("Failed tasks  %d", len(d.FailedTasks)+d.FailedDropped))
	for _, f := range d.FailedTasks {
		s.say("  %-28s %s", cli.SafeText(f.Result.TaskID), cli.SafeText(f.Failure.Message))
	}
}

func printExperiment(w io.Writer, p ace.ExperimentProgress) error {
	for _, e := range p.Eval {
		when := fmt.Sprintf("after epoch %d", e.Epoch)
		if e.Epoch == 0 {
			when = "before"
		}
		fmt.Fprintf(w, "eval     %s: %d of %d correct, %.3f\n", when, e.Correct, e.Tasks, e.Accuracy)
	}
	for _, e := range p.Epochs {
		fmt.Fprintf(w, "epoch    %d: %d tasks, %d correct, %d wrong, %d failed, %d without label, accuracy %.3f\n", e.Epoch, e.Tasks, e.Correct, e.Wrong, e.Failed, e.Unlabeled, e.Accuracy)
	}
	_, err := fmt.Fprintf(w, "playbook %.12s → %.12s, %d bullets, %d operations accepted, %d rejected\n", p.Before, p.After, p.Bullets, p.Accepted, p.Rejected)
	return err
}
