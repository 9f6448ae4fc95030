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
	"acescope/sources/cluster"
	"acescope/sources/runs"
	"acescope/sources/sessions"
)

// CourseStatus is a status of a run of a blueprint, under the document's name too where that
// is another.
func CourseStatus(s run.Status) string {
	if s == run.Running {
		return "running (started)"
	}
	return string(s)
}

// CourseNews is what has become known of a run, in lines of its log.
func CourseNews(before, now *run.State) (news []runs.LogLine) {
	say := func(kind, format string, args ...any) {
		news = append(news, runs.LogLine{Kind: kind, Text: fmt.Sprintf(format, args...)})
	}
	for _, m := range now.Moves[min(len(before.Moves), len(now.Moves)):] {
		say("error", "runner %s lost it: %s; it asks for another", m.Runner, m.Reason)
	}
	if now.Status != before.Status {
		text := CourseStatus(now.Status)
		if c := now.Claim; now.Status == run.Claimed && c != nil {
			text += " by " + cmp.Or(c.RunnerID, "queue "+c.Queue)
		}
		say("phase", "%s", text)
	}
	if b := now.ProgramStart; b != nil && before.ProgramStart == nil && b.PID > 0 {
		say("status", "process %d", b.PID)
	}
	if n := now.Stop; n != nil && before.Stop == nil {
		say("status", "%s", strings.TrimSpace("asked to stop by "+cmp.Or(n.By, "somebody")+": "+n.Reason))
	}
	if now.TimedOut && !before.TimedOut {
		say("error", "its time is up")
	}
	if now.Ignored > before.Ignored {
		say("error", "a signal that does not fit the claim in force was not heeded: late, or forged")
	}
	if r := now.Result; r != nil && before.Result == nil {
		kind := "status"
		if r.Status == run.Failed {
			kind = "error"
		}
		say(kind, "%s", ResultText(r))
	}
	if now.Notified != before.Notified && now.Notified != run.NotifiedNone {
		said := map[string]string{run.NotifiedSession: "was told", run.NotifiedEnded: "has ended: nobody could be told"}[now.Notified]
		say("status", "parent session %s %s", now.Input.ParentSessionID, said)
	}
	return news
}

// ResultText says in a line how a run ended.
func ResultText(r *run.Result) string {
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
		parts = append(parts, "took "+sessions.RoundTook(cluster.Took(r.DurationSeconds*1000)).String())
	}
	if r.Error != "" {
		parts = append(parts, r.Error)
	}
	return strings.Join(parts, ", ")
}

// CourseSteps is the life cycle of a run of a blueprint, as the steps of a task. began and
// ended are when its workflow did, ended zero while it runs.
func CourseSteps(s *run.State, began, ended time.Time) []ace.StepState {
	claimed, started := time.Time{}, time.Time{}
	reached := 0
	if s.Claim != nil {
		reached, claimed = 1, s.Claim.At
	}
	if s.ProgramStart != nil {
		started = s.ProgramStart.At
	}
	if r := s.Result; r != nil {
		started = latest(started, r.StartedAt)
	}
	if !started.IsZero() || s.Status == run.Running || s.Claim != nil && (s.Status == run.Completed || s.Status == run.Stopping) {
		reached = 2
	}
	over := s.Status.Over()
	at := []time.Time{began, claimed, started, ended}
	if r := s.Result; r != nil && !started.IsZero() {
		at[3] = started.Add(cluster.Took(r.DurationSeconds * 1000)) // what comes then is the telling
	}
	steps := make([]ace.StepState, 0, 4)
	for i, name := range []string{string(run.Pending), string(run.Claimed), CourseStatus(run.Running)} {
		st := ace.StepState{Phase: ace.Phase(name), Status: ace.StatusPending}
		switch {
		case i < reached:
			st.Status, st.Time = ace.StatusDone, stepTime(at[i], at[i+1:])
		case i == reached && over:
			st.Status, st.Time = endStatus(s.Status), stepTime(at[i], at[3:])
		case i == reached:
			st.Status = ace.StatusRunning
		}
		steps = append(steps, st)
	}
	last := ace.StepState{Phase: "ended", Status: ace.StatusPending}
	if over {
		last.Phase, last.Status = ace.Phase(s.Status), endStatus(s.Status)
	}
	return append(steps, last)
}

func latest(a, b time.Time) time.Time {
	if b.IsZero() {
		return a
	}
	return b
}

func endStatus(s run.Status) string {
	switch s {
	case run.Completed:
		return ace.StatusDone
	case run.Stopped:
		return ace.StatusCanceled
	}
	return ace.StatusFailed
}

// stepTime is the time from one moment to the first of others that is known; nil where
// either is not. The clocks of two machines may disagree: it is never below 0.
func stepTime(from time.Time, others []time.Time) *ace.StepTime {
	for _, to := range others {
		if !from.IsZero() && !to.IsZero() {
			return &ace.StepTime{StartedAt: from, DurationMS: float64(max(to.Sub(from), 0).Microseconds()) / 1000}
		}
	}
	return nil
}

// CourseField is one thing that is known of a run of a blueprint. Value is untrusted and may
// have many lines; At is a moment that belongs to it, shown as a time and how far it is from
// now; Refs are artifacts that hold it whole.
type CourseField struct {
	Name  string
	Value string
	At    time.Time
	Bad   bool
	Refs  []ace.Ref
}

// CourseFields lists what is known of a run, but for its result: always the same names in the
// same order, those without a value too.
func CourseFields(s *run.State) []CourseField {
	in := s.Input
	list := []CourseField{
		{Name: "status", Value: CourseStatus(s.Status)},
		{Name: "blueprint", Value: blueprintText(s)},
		{Name: "about", Value: described(in.Blueprint)},
		{Name: "parameters", Value: pretty(in.Parameters), Refs: refs(in.ParametersRef)},
		{Name: "prompt", Value: refText(in.PromptRef), Refs: refs(in.PromptRef)},
		{Name: "command", Value: commandText(in.Blueprint)},
		{Name: "directory", Value: in.ProjectDir},
		{Name: "demands", Value: demandText(in)},
		{Name: "runner", Value: claimText(s)},
		processField(s),
		{Name: "moves", Value: movesText(s), Bad: true},
		matchField(s),
		limitField(s),
		{Name: "mode", Value: string(in.Mode)},
		{Name: "session", Value: in.SessionID},
		{Name: "parent", Value: parentText(s)},
		{Name: "parent run", Value: in.ParentRunID},
		{Name: "stop", Value: stopText(s)},
		{Name: "ignored", Value: ignoredText(s.Ignored), Bad: true},
		{Name: "asked by", Value: in.By},
		{Name: "created", At: in.CreatedAt},
	}
	return list
}

// ResultFields lists what a run gave, in the same way; all are empty while there is nothing.
func ResultFields(s *run.State) []CourseField {
	r := s.Result
	if r == nil {
		return nil
	}
	code := ""
	if r.ExitCode != nil {
		code = strconv.Itoa(*r.ExitCode)
	} else if r.Signal != "" {
		code = "none: signal " + r.Signal
	}
	output := CourseOutput(r)
	if output == "" {
		output = refText(r.OutputRef)
	}
	name := "output"
	if r.OutputIs == "invalid" {
		name = "output (bad)"
	}
	end := string(r.Status)
	if r.Reason != "" {
		end += ", " + string(r.Reason)
	}
	if r.Error != "" {
		end += ": " + r.Error
	}
	took := ""
	if r.DurationSeconds > 0 {
		took = sessions.RoundTook(time.Duration(r.DurationSeconds * float64(time.Second))).String()
	}
	lost := ""
	if r.Dropped > 0 {
		lost = strconv.FormatInt(r.Dropped, 10) + " bytes of its output are kept nowhere"
	}
	turn := ""
	if r.Turn > 0 {
		turn = strconv.Itoa(r.Turn) + " of session " + r.SessionID
	}
	return []CourseField{
		{Name: "end", Value: end, Bad: r.Status == run.Failed},
		{Name: "exit code", Value: code, Bad: r.ExitCode == nil || *r.ExitCode != 0},
		{Name: "took", Value: took},
		{Name: name, Value: output, Bad: r.OutputIs == "invalid", Refs: refs(r.OutputRef)},
		{Name: "stdout", Value: stdoutText(r), Refs: refs(r.StdoutRef)},
		{Name: "stderr", Value: r.Stderr, Refs: refs(r.StderrRef)},
		{Name: "dropped", Value: lost, Bad: true},
		{Name: "turn", Value: turn},
		{Name: "usage", Value: courseUsage(r.Usage)},
		{Name: "log", Value: r.LogPath, Refs: refs(r.Log)},
	}
}

// CourseOutput is what a run gave, as text: what an agent said as it said it, other JSON with
// a line for each value; "" for nothing.
func CourseOutput(r *run.Result) string {
	var text string
	if json.Unmarshal(r.Output, &text) == nil {
		return text
	}
	return pretty(r.Output)
}

// stdoutText is what a program wrote, unless that is the output.
func stdoutText(r *run.Result) string {
	if r.OutputIs == "json" {
		return ""
	}
	if text := CourseOutput(r); text != "" && strings.TrimSpace(text) == strings.TrimSpace(r.Stdout) {
		return ""
	}
	return r.Stdout
}

// pretty is JSON with a line for each value; what is none stays.
func pretty(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
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
	return fmt.Sprintf("an artifact of %d bytes: %.12s", r.Size, r.SHA256)
}

func described(b *run.Blueprint) string {
	if b == nil {
		return ""
	}
	return b.Description
}

func blueprintText(s *run.State) string {
	b := s.Input.Blueprint
	name := s.Input.Name()
	switch {
	case b != nil:
		return fmt.Sprintf("%s (%s), digest %.12s", name, b.Type, b.Digest)
	case s.Input.BlueprintRef != nil:
		return name + ", " + refText(s.Input.BlueprintRef)
	case s.Input.Type == run.ResumeSession && name == "":
		return "none: the session is resumed"
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
	case len(b.Argv) > 0:
		words := make([]string, len(b.Argv))
		for i, w := range b.Argv {
			words[i] = ShellWord(w)
		}
		said := strings.Join(words, " ")
		if b.Strategy != "" {
			said += "   (parameters by " + string(b.Strategy) + ")"
		}
		return said
	}
	return b.Model
}

func demandText(in run.Input) string {
	d := in.Requirements
	var parts []string
	for _, p := range []struct{ name, value string }{{"executor", d.ExecutorType}, {"tags", strings.Join(d.Tags, ",")}, {"host", d.Hostname}, {"project", d.ProjectDir}} {
		if p.value != "" {
			parts = append(parts, p.name+" "+p.value)
		}
	}
	if in.Queue != "" {
		parts = append(parts, "nobody matches it: queue "+in.Queue)
	}
	return strings.Join(parts, ", ")
}

func claimText(s *run.State) string {
	c := s.Claim
	switch {
	case c == nil:
		return ""
	case c.RunnerID == "":
		return "whoever serves queue " + c.Queue
	}
	said := fmt.Sprintf("%s, claim %d", c.RunnerID, c.Number)
	if host := c.Capabilities.Hostname; host != "" {
		said += ", on " + host
	}
	if s.Try > 1 {
		said += fmt.Sprintf(", try %d", s.Try)
	}
	return said
}

func processField(s *run.State) CourseField {
	f := CourseField{Name: "process"}
	if b := s.ProgramStart; b != nil {
		f.Value, f.At = "started", b.At
		if b.PID > 0 {
			f.Value = strconv.Itoa(b.PID) + ", started"
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

// matchField is until when the run waits for a runner.
func matchField(s *run.State) CourseField {
	f := CourseField{Name: "gives up"}
	if s.Status == run.Pending && !s.Input.CreatedAt.IsZero() {
		f.Value, f.At = "where there is no runner by", s.Input.CreatedAt.Add(s.MatchTimeout())
	}
	return f
}

func limitField(s *run.State) CourseField {
	f := CourseField{Name: "time limit", Value: s.TimeLimit().String(), Bad: s.TimedOut}
	if !s.TimeoutAt.IsZero() && !s.Status.Over() {
		f.Value += ", until"
		f.At = s.TimeoutAt
	}
	if s.TimedOut {
		f.Value += ": its time was up"
	}
	return f
}

func parentText(s *run.State) string {
	in := s.Input
	if in.ParentSessionID == "" {
		return ""
	}
	said := map[string]string{run.NotifiedSession: "it was told how this ended", run.NotifiedEnded: "it has ended: it could not be told", run.NotifiedNone: "it is not told"}[s.Notified]
	switch {
	case said != "":
	case in.Mode == run.AsyncCallback:
		said = "it will be told how this ends"
	default:
		said = "it is not told"
	}
	return in.ParentSessionID + ": " + said
}

func stopText(s *run.State) string {
	n := s.Stop
	if n == nil {
		return ""
	}
	said := "asked for"
	if n.By != "" {
		said += " by " + n.By
	}
	if n.Reason != "" {
		said += ": " + n.Reason
	}
	return said
}

func ignoredText(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 signal that did not fit the claim in force: late, or forged"
	}
	return strconv.Itoa(n) + " signals that did not fit the claim in force: late, or forged"
}

func courseUsage(u ace.Usage) string {
	if u == (ace.Usage{}) {
		return ""
	}
	said := fmt.Sprintf("%d tokens in, %d out", u.InputTokens, u.OutputTokens)
	if u.CostUSD > 0 {
		said += fmt.Sprintf(", $%.4f", u.CostUSD)
	}
	return said
}

// ShellWord is a word as a shell is given it.
func ShellWord(s string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./,:=@+{}", r)
	}
	if s != "" && !strings.ContainsFunc(s, special) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
