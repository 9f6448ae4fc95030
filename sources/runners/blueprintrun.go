package runners

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/sources/cluster"
	"acescope/sources/runs"
	"acescope/sources/sessions"
)

// StatusText returns a status together with document 004's name for it, if that differs.
func StatusText(s run.Status) string {
	if s == run.Running {
		return "running (started)"
	}
	return string(s)
}

// ChangeLines returns the log lines for what has changed in a run.
func ChangeLines(before, now *run.State) (lines []runs.LogLine) {
	add := func(kind, format string, args ...any) {
		lines = append(lines, runs.LogLine{Kind: kind, Text: fmt.Sprintf(format, args...)})
	}
	for _, m := range now.Moves[min(len(before.Moves), len(now.Moves)):] {
		add("error", "runner %s lost the run: %s; the run asks for another runner", m.Runner, m.Reason)
	}
	if now.Status != before.Status {
		text := StatusText(now.Status)
		if c := now.Claim; now.Status == run.Claimed && c != nil {
			text += " by " + cmp.Or(c.RunnerID, "queue "+c.Queue)
		}
		add("phase", "%s", text)
	}
	if p := now.ProgramStart; p != nil && before.ProgramStart == nil && p.PID > 0 {
		add("status", "process %d", p.PID)
	}
	if before.Stop == nil && now.Stop != nil {
		add("status", "stop %s", stopText(now.Stop))
	}
	if now.TimedOut && !before.TimedOut {
		add("error", "time limit exceeded")
	}
	if now.Ignored > before.Ignored {
		add("error", "ignored a signal that is not for the current claim: late or forged")
	}
	if r := now.Result; r != nil && before.Result == nil {
		kind := "status"
		if r.Status == run.Failed {
			kind = "error"
		}
		add(kind, "%s", resultText(r))
	}
	if now.Notified != before.Notified && now.Notified != run.NotifiedNone {
		outcome := "was notified"
		if now.Notified == run.NotifiedEnded {
			outcome = "has ended and was not notified"
		}
		add("status", "parent session %s %s", now.Input.ParentSessionID, outcome)
	}
	return lines
}

// resultText describes in one line how a run ended.
func resultText(r *run.Result) string {
	parts := []string{string(r.Status)}
	if r.Reason != "" {
		parts[0] += ": " + string(r.Reason)
	}
	if r.ExitCode != nil {
		parts = append(parts, "exit code "+strconv.Itoa(*r.ExitCode))
	}
	if r.Signal != "" {
		parts = append(parts, "signal "+r.Signal)
	}
	if r.DurationSeconds > 0 {
		parts = append(parts, "took "+durationText(r))
	}
	if r.Error != "" {
		parts = append(parts, r.Error)
	}
	return strings.Join(parts, ", ")
}

func durationText(r *run.Result) string {
	if r.DurationSeconds <= 0 {
		return ""
	}
	return sessions.RoundDuration(cluster.Milliseconds(r.DurationSeconds * 1000)).String()
}

// Steps returns the life cycle of a blueprint run as steps: pending, claimed, running and its end. began and
// ended are the times of its workflow; ended is zero while it runs.
func Steps(s *run.State, began, ended time.Time) []ace.StepState {
	times := []time.Time{began, {}, {}, ended}
	reached := 0
	if s.Claim != nil {
		reached, times[1] = 1, s.Claim.At
	}
	if s.ProgramStart != nil {
		times[2] = s.ProgramStart.At
	}
	if r := s.Result; r != nil && !r.StartedAt.IsZero() {
		times[2] = r.StartedAt
	}
	started := !times[2].IsZero()
	if started || s.Status == run.Running || s.Claim != nil &&
		(s.Status == run.Completed || s.Status == run.Stopping) {
		reached = 2
	}
	if r := s.Result; r != nil && started { // the workflow ends after it has notified its parent
		times[3] = times[2].Add(cluster.Milliseconds(r.DurationSeconds * 1000))
	}
	over, outcome := s.Status.Over(), ace.StatusFailed
	switch s.Status {
	case run.Completed:
		outcome = ace.StatusDone
	case run.Stopped:
		outcome = ace.StatusCanceled
	}
	var steps []ace.StepState
	for i, name := range []string{string(run.Pending), string(run.Claimed), StatusText(run.Running)} {
		step := ace.StepState{Phase: ace.Phase(name), Status: ace.StatusPending}
		switch {
		case i < reached:
			step.Status, step.Time = ace.StatusDone, stepTime(times[i], times[i+1:])
		case i == reached && over:
			step.Status, step.Time = outcome, stepTime(times[i], times[3:])
		case i == reached:
			step.Status = ace.StatusRunning
		}
		steps = append(steps, step)
	}
	last := ace.StepState{Phase: "ended", Status: ace.StatusPending}
	if over {
		last.Phase, last.Status = ace.Phase(s.Status), outcome
	}
	return append(steps, last)
}

// stepTime returns the time from a moment to the first known one of others, or nil if either is unknown. It
// is never negative, although the clocks of two machines may differ.
func stepTime(from time.Time, others []time.Time) *ace.StepTime {
	for _, to := range others {
		if !from.IsZero() && !to.IsZero() {
			elapsed := max(to.Sub(from), 0)
			return &ace.StepTime{StartedAt: from, DurationMS: cluster.Millis(elapsed)}
		}
	}
	return nil
}

// Field is a named value of a blueprint run. Value is untrusted and may have several lines. At is a time that
// belongs to the value. Refs are artifacts with the complete value.
type Field struct {
	Name  string
	Value string
	At    time.Time
	Bad   bool
	Refs  []ace.Ref
}

// Fields returns what is known of a run, except its result: always the same names in the same order,
// including those without a value.
func Fields(s *run.State) []Field {
	in := s.Input
	description := ""
	if in.Blueprint != nil {
		description = in.Blueprint.Description
	}
	return []Field{
		{Name: "status", Value: StatusText(s.Status)},
		{Name: "blueprint", Value: blueprintText(s)},
		{Name: "description", Value: description},
		{Name: "parameters", Value: indentJSON(in.Parameters), Refs: refs(in.ParametersRef)},
		{Name: "prompt", Value: refText(in.PromptRef), Refs: refs(in.PromptRef)},
		{Name: "command", Value: commandText(in.Blueprint)},
		{Name: "directory", Value: in.ProjectDir},
		{Name: "requires", Value: requirementsField(in)},
		{Name: "runner", Value: claimText(s)},
		processField(s),
		{Name: "moves", Value: movesText(s), Bad: true},
		matchField(s),
		limitField(s),
		{Name: "mode", Value: string(in.Mode)},
		{Name: "session", Value: in.SessionID},
		{Name: "parent", Value: parentText(s)},
		{Name: "parent run", Value: in.ParentRunID},
		{Name: "stop", Value: stopText(s.Stop)},
		{Name: "ignored", Value: ignoredText(s.Ignored), Bad: true},
		{Name: "started by", Value: in.By},
		{Name: "created", At: in.CreatedAt},
	}
}

// ResultFields returns the result of a run in the same way, or nil while there is no result.
func ResultFields(s *run.State) []Field {
	r := s.Result
	if r == nil {
		return nil
	}
	exitCode := ""
	if r.ExitCode != nil {
		exitCode = strconv.Itoa(*r.ExitCode)
	} else if r.Signal != "" {
		exitCode = "none: signal " + r.Signal
	}
	invalid := r.OutputIs == run.OutputInvalid
	outputName := "output"
	if invalid {
		outputName = "bad output"
	}
	outcome := string(r.Status)
	if r.Reason != "" {
		outcome += ", " + string(r.Reason)
	}
	if r.Error != "" {
		outcome += ": " + r.Error
	}
	dropped := ""
	if r.Dropped > 0 {
		dropped = ace.Count(r.Dropped, "byte") + " of output not stored"
	}
	turn := ""
	if r.Turn > 0 {
		turn = strconv.Itoa(r.Turn) + " of session " + r.SessionID
	}
	return []Field{
		{Name: "outcome", Value: outcome, Bad: r.Status == run.Failed},
		{Name: "exit code", Value: exitCode, Bad: r.ExitCode == nil || *r.ExitCode != 0},
		{Name: "duration", Value: durationText(r)},
		{Name: outputName, Value: cmp.Or(OutputText(r), refText(r.OutputRef)), Bad: invalid,
			Refs: refs(r.OutputRef)},
		{Name: "stdout", Value: stdoutText(r), Refs: refs(r.StdoutRef)},
		{Name: "stderr", Value: r.Stderr, Refs: refs(r.StderrRef)},
		{Name: "dropped", Value: dropped, Bad: true},
		{Name: "turn", Value: turn},
		{Name: "usage", Value: usageText(r.Usage)},
		{Name: "log", Value: r.LogPath, Refs: refs(r.Log)},
	}
}

// OutputText returns the output of a run as text: an agent's message, or JSON with a line for each value.
func OutputText(r *run.Result) string {
	var text string
	if json.Unmarshal(r.Output, &text) == nil {
		return text
	}
	return indentJSON(r.Output)
}

// stdoutText returns the standard output of a run, or "" if the output is the same.
func stdoutText(r *run.Result) string {
	if r.OutputIs == run.OutputJSON || strings.TrimSpace(OutputText(r)) == strings.TrimSpace(r.Stdout) {
		return ""
	}
	return r.Stdout
}

// indentJSON returns JSON with a line for each value. Other text is returned unchanged.
func indentJSON(raw json.RawMessage) string {
	if string(raw) == "null" {
		return ""
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

func refs(r *ace.Ref) []ace.Ref {
	if r == nil {
		return nil
	}
	return []ace.Ref{*r}
}

func refText(r *ace.Ref) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("an artifact of %s: %.12s", ace.Count(r.Size, "byte"), r.SHA256)
}

func blueprintText(s *run.State) string {
	b, name := s.Input.Blueprint, s.Input.Name()
	switch {
	case b != nil:
		return fmt.Sprintf("%s (%s), digest %.12s", name, b.Type, b.Digest)
	case s.Input.BlueprintRef != nil:
		return name + ", " + refText(s.Input.BlueprintRef)
	case s.Input.Type == run.ResumeSession && name == "":
		return "none: the run resumes a session"
	}
	return name
}

func commandText(b *run.Blueprint) string {
	switch {
	case b == nil:
		return ""
	case b.Script != "":
		return "agent.command.sh\n" + b.Script
	case b.Shell:
		return "/bin/sh -c " + b.Command
	case len(b.Argv) == 0:
		return b.Model
	}
	var words []string
	for _, w := range b.Argv {
		words = append(words, ShellWord(w))
	}
	command := strings.Join(words, " ")
	if b.Strategy != "" {
		command += "   (parameters by " + string(b.Strategy) + ")"
	}
	return command
}

// RequirementsText returns requirements in one line, such as "executor codex, tags gpu,linux".
func RequirementsText(r runner.Requirements) string {
	var parts []string
	for _, p := range [][2]string{{"executor", r.ExecutorType}, {"host", r.Hostname},
		{"project", r.ProjectDir},
		{"tags", strings.Join(r.Tags, ",")}} {
		if p[1] != "" {
			parts = append(parts, p[0]+" "+p[1])
		}
	}
	return strings.Join(parts, ", ")
}

func requirementsField(in run.Input) string {
	text := RequirementsText(in.Requirements)
	if in.Queue == "" {
		return text
	}
	return strings.TrimPrefix(text+", any worker of queue "+in.Queue, ", ")
}

func claimText(s *run.State) string {
	c := s.Claim
	switch {
	case c == nil:
		return ""
	case c.RunnerID == "":
		return "a worker of queue " + c.Queue
	}
	text := fmt.Sprintf("%s, claim %d", c.RunnerID, c.Number)
	if host := c.Capabilities.Hostname; host != "" {
		text += ", on " + host
	}
	if s.Try > 1 {
		text += fmt.Sprintf(", attempt %d", s.Try)
	}
	return text
}

func processField(s *run.State) Field {
	f := Field{Name: "process"}
	if p := s.ProgramStart; p != nil {
		f.Value, f.At = "started", p.At
		if p.PID > 0 {
			f.Value = strconv.Itoa(p.PID) + ", started"
		}
	}
	return f
}

func movesText(s *run.State) string {
	var lines []string
	for _, m := range s.Moves {
		lines = append(lines, fmt.Sprintf("%s (claim %d): %s", m.Runner, m.Claim, m.Reason))
	}
	return strings.Join(lines, "\n")
}

// matchField says until when the run waits for a runner.
func matchField(s *run.State) Field {
	f := Field{Name: "fails"}
	if s.Status == run.Pending && !s.Input.CreatedAt.IsZero() {
		f.Value, f.At = "without a runner by", s.Input.CreatedAt.Add(s.MatchTimeout())
	}
	return f
}

func limitField(s *run.State) Field {
	f := Field{Name: "time limit", Value: s.TimeLimit().String(), Bad: s.TimedOut}
	if !s.TimeoutAt.IsZero() && !s.Status.Over() {
		f.Value += ", until"
		f.At = s.TimeoutAt
	}
	if s.TimedOut {
		f.Value += ": exceeded"
	}
	return f
}

func parentText(s *run.State) string {
	in := s.Input
	if in.ParentSessionID == "" {
		return ""
	}
	text := "not notified"
	switch {
	case s.Notified == run.NotifiedSession:
		text = "notified of the outcome"
	case s.Notified == run.NotifiedEnded:
		text = "it has ended and was not notified"
	case s.Notified == "" && in.Mode == run.AsyncCallback:
		text = "will be notified of the outcome"
	}
	return in.ParentSessionID + ": " + text
}

// stopText says who requested a stop and why: "requested by ada: the wrong site". It returns "" for nil.
func stopText(r *run.StopRequest) string {
	if r == nil {
		return ""
	}
	text := "requested"
	if r.By != "" {
		text += " by " + r.By
	}
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}

func ignoredText(n int) string {
	if n == 0 {
		return ""
	}
	return ace.Count(n, "signal") + " not for the current claim: late or forged"
}

func usageText(u ace.Usage) string {
	if u == (ace.Usage{}) {
		return ""
	}
	return fmt.Sprintf("%s in, %s out, %s", ace.Count(u.InputTokens, "token"), ace.Number(u.OutputTokens),
		u.Cost())
}

// ShellWord quotes a word for a shell if necessary.
func ShellWord(s string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') &&
			!strings.ContainsRune("-_./,:=@+{}", r)
	}
	if s != "" && !strings.ContainsFunc(s, special) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
