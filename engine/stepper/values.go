package stepper

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"acescope/engine/ace"
)

// value is a value that can be watched. v is a string, a number or a bool.
type value struct {
	path string
	v    any
}

// Change is a value that an event changed. Before is nil for a new value and After for a
// removed one.
type Change struct {
	Path   string          `json:"path"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// Text returns the change in one line.
func (c Change) Text() string {
	switch {
	case c.Before == nil:
		return c.Path + " = " + plain(c.After)
	case c.After == nil:
		return c.Path + " removed, was " + plain(c.Before)
	}
	return c.Path + ": " + plain(c.Before) + " → " + plain(c.After)
}

// plain returns a value without the quotes of a string.
func plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

type valueList struct{ all []value }

// put adds a value unless it is zero.
func (l *valueList) put(path string, v any) {
	switch v {
	case "", false, int64(0), 0, 0.0:
		return
	}
	l.all = append(l.all, value{path, v})
}

func (f *taskFold) values() []value {
	var l valueList
	s := f.state
	l.put("phase", string(s.Phase))
	if s.Reported != "" { // the run has started
		l.put("status", string(s.Status()))
	}
	l.put("verdict", string(s.Verdict()))
	for _, st := range s.Steps {
		l.put("steps."+string(st.Phase), st.Status)
	}
	l.put("cancel_requested", s.CancelRequested)
	l.put("plan", s.Plan)
	l.put("trajectory_id", s.TrajectoryID)
	l.put("bullets_used", strings.Join(s.BulletIDs, " "))
	l.put("answer", s.Answer)
	if s.Correct != nil {
		l.put("correct", strconv.FormatBool(*s.Correct))
	}
	l.put("grade_reason", s.GradeReason)
	l.passes(s)
	if s.Failure != nil {
		l.put("failure", strings.TrimPrefix(s.Failure.Type+": "+s.Failure.Message, ": "))
	}
	l.put("insights", s.Insights)
	l.put("rationale", s.Delta.Rationale)
	l.put("follow_up_actions", strings.Join(s.Delta.FollowUpActions, "; "))
	l.usage(s.Usage)
	l.skills(s)
	l.delta(s)
	return l.all
}

// passes puts the answers after the first.
func (l *valueList) passes(s *ace.State) {
	for i := range s.Passes {
		again := &s.Passes[i]
		at := "again." + strings.ReplaceAll(again.Name(), " ", "_") + "."
		l.put(at+"answer", again.Answer)
		if again.Correct != nil {
			l.put(at+"correct", strconv.FormatBool(*again.Correct))
		}
		l.put(at+"grade_reason", again.GradeReason)
		l.put(at+"insights", again.Insights)
		for _, t := range again.BulletTags {
			l.put(at+"tags."+t.ID, t.Tag)
		}
	}
}

func (l *valueList) usage(u ace.Usage) {
	l.put("usage.input_tokens", u.InputTokens)
	l.put("usage.output_tokens", u.OutputTokens)
	l.put("usage.cache_read_tokens", u.CacheReadTokens)
	l.put("usage.cost_usd", u.CostUSD)
}

func (l *valueList) skills(s *ace.State) {
	total, dropped, unreadable := s.CallTotals()
	l.put(pathTotal, total)
	l.put("skills.dropped", dropped)
	l.put("skills.unreadable", unreadable)
	for _, u := range s.SkillCounts() {
		at := "skills." + u.Name + "."
		l.put(at+"calls", u.Calls)
		l.put(at+"ok", u.OK)
		l.put(at+"failed", u.Failed)
		l.put(at+"denied", u.Denied)
		l.put(at+"pending", u.Pending)
	}
}

func (l *valueList) delta(s *ace.State) {
	l.put("playbook.before", s.Delta.PlaybookBefore)
	l.put("playbook.after", s.Delta.PlaybookAfter)
	l.put("playbook.bullets", s.Delta.Bullets)
	counts := map[ace.Outcome]int{}
	for _, op := range s.Delta.Operations {
		counts[op.Outcome]++
	}
	for _, outcome := range ace.Outcomes() {
		l.put("operations."+string(outcome), counts[outcome])
	}
	bullets := map[string][]string{}
	var order []string
	note := func(id, text string) {
		if _, known := bullets[id]; !known {
			order = append(order, id)
		}
		bullets[id] = append(bullets[id], text)
	}
	for _, t := range s.BulletTags {
		note(t.ID, "tagged "+t.Tag)
	}
	for i, op := range s.Delta.Operations {
		if op.BulletID != "" {
			note(op.BulletID, operationText(op))
		} else {
			l.put(fmt.Sprintf("operation.%d", i+1), operationText(op))
		}
	}
	for _, id := range order {
		l.put(pathBullet+id, strings.Join(bullets[id], "; "))
	}
}

// Paths that [Watch] handles specially.
const (
	pathTotal  = "skills.total"
	pathBullet = "bullet."
)

func operationText(op ace.Operation) string {
	text := string(op.Type) + " " + string(op.Outcome)
	if op.Reason != "" {
		text += " (" + op.Reason + ")"
	}
	if op.Content != "" {
		text += ": " + op.Content
	}
	for _, counter := range []string{"helpful", "harmful", "neutral"} {
		if n := op.Metadata[counter]; n != 0 {
			text += fmt.Sprintf(" %s%+d", counter, n)
		}
	}
	return text
}

func (f *experimentFold) values() []value {
	var l valueList
	s := f.state
	p := &s.Progress
	l.put("stage", p.Stage)
	if p.Stage != "" { // the run has started
		l.put("status", string(s.Status()))
	}
	l.put("epoch", p.Epoch)
	l.put("runs", p.Runs)
	for _, e := range p.Epochs {
		at := fmt.Sprintf("epochs.%d.", e.Epoch)
		l.put(at+"tasks", e.Tasks)
		l.put(at+"correct", e.Correct)
		l.put(at+"wrong", e.Wrong)
		l.put(at+"failed", e.Failed)
		l.put(at+"canceled", e.Canceled)
		l.put(at+"unlabeled", e.Unlabeled)
		l.put(at+"ungraded", e.Ungraded)
		if e.Labeled() > 0 {
			l.put(at+"accuracy", e.Accuracy)
		}
	}
	for _, e := range p.Eval {
		if e.Labeled() > 0 {
			l.put(fmt.Sprintf("eval.%d.accuracy", e.Epoch), e.Accuracy)
		}
	}
	if s.Failure != nil {
		l.put("failure", strings.TrimPrefix(s.Failure.Type+": "+s.Failure.Message, ": "))
	}
	l.usage(p.Usage)
	l.put("operations.accepted", p.Accepted)
	l.put("operations.rejected", p.Rejected)
	l.put(pathTotal, p.Summary.Skills)
	l.put("playbook.before", p.Before)
	l.put("playbook.after", p.After)
	l.put("playbook.bullets", p.Bullets)
	return l.all
}

func (f *sessionFold) values() []value {
	var l valueList
	s := &f.state
	l.put("status", string(s.Status))
	l.put("workflow_status", string(s.Exit))
	l.put("turns", s.Turns)
	if c := s.Current; c != nil {
		l.put("turn.number", c.Turn)
		l.put("turn.messages", len(c.Messages))
		if len(c.Messages) > 0 {
			l.put("turn.prompt", c.Messages[0].Text)
		}
	}
	if n := len(s.Recent); n > 0 {
		last := s.Recent[n-1]
		l.put("last_turn.status", string(last.Status))
		l.put("last_turn.text", last.Text)
	}
	l.put("queue", len(s.Queue))
	for _, p := range s.Pending {
		l.put("pending."+p.ID, p.Name+" "+string(p.Args))
	}
	for _, p := range s.Running {
		l.put("running."+p.ID, p.Name)
	}
	for _, a := range s.Decided {
		l.put("decided."+a.ID, strings.TrimSpace(string(a.Action)+" by "+a.By+" "+a.Reason))
	}
	for _, c := range s.Tools {
		at := "tools." + c.Name + "."
		l.put(at+"asked", c.Asked)
		l.put(at+"allowed", c.Allowed)
		l.put(at+"denied", c.Denied)
		l.put(at+"failed", c.Failed)
	}
	l.usage(s.Usage)
	l.put("cursor", s.Cursor)
	l.put("acked", s.Acked)
	l.put("lost", s.Lost)
	l.put("agent_session_id", s.AgentSessionID)
	l.put("model", s.Model)
	if s.Host != nil {
		l.put("host", s.Host.Name)
	}
	if s.Failure != nil {
		l.put("failure", fmt.Sprintf("%s: %s", s.Failure.Type, s.Failure.Message))
	}
	if n := s.Stop; n != nil {
		l.request("stop", n.By, n.Reason)
	}
	if n := s.Interrupt; n != nil {
		l.request("interrupt", n.By, n.Reason)
	}
	l.put("runs", s.Runs)
	return l.all
}

func (f *runFold) values() []value {
	var l valueList
	s := &f.state
	l.put("status", string(s.Status))
	l.put("workflow_status", string(s.Exit))
	l.put("blueprint", s.Input.Name())
	l.put("session_id", s.Input.SessionID)
	l.put("try", s.Try)
	if c := s.Claim; c != nil {
		l.put("claim.number", c.Number)
		l.put("claim.runner", c.RunnerID)
		l.put("claim.queue", c.Queue)
	}
	if b := s.ProgramStart; b != nil {
		l.put("pid", b.PID)
	}
	for i, m := range s.Moves {
		l.put(fmt.Sprintf("moves.%d", i+1), m.Runner+": "+m.Reason)
	}
	if n := s.Stop; n != nil {
		l.request("stop", n.By, n.Reason)
	}
	if r := s.Result; r != nil {
		l.put("result.status", string(r.Status))
		l.put("result.reason", string(r.Reason))
		l.put("result.error", r.Error)
		l.put("result.output", string(r.Output))
		if r.ExitCode != nil {
			l.put("result.exit_code", *r.ExitCode)
		}
		l.put("result.duration_seconds", r.DurationSeconds)
		l.usage(r.Usage)
	}
	l.put("ignored", s.Ignored)
	l.put("told", s.Notified)
	return l.all
}

func (l *valueList) request(path, by, reason string) {
	l.put(path, strings.TrimSpace("requested by "+by+" "+reason))
}

// diffValues lists how two lists of values differ, in the order of the second.
func diffValues(before, after []value) []Change {
	old := make(map[string]any, len(before))
	for _, v := range before {
		old[v.path] = v.v
	}
	var list []Change
	for _, v := range after {
		was, known := old[v.path]
		delete(old, v.path)
		switch {
		case !known:
			list = append(list, Change{Path: v.path, After: rawOf(v.v)})
		case was != v.v:
			list = append(list, Change{Path: v.path, Before: rawOf(was), After: rawOf(v.v)})
		}
	}
	for _, v := range before {
		if _, gone := old[v.path]; gone {
			list = append(list, Change{Path: v.path, Before: rawOf(v.v)})
		}
	}
	return list
}

func rawOf(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil { // NaN or an infinity
		raw, _ = json.Marshal(fmt.Sprint(v))
	}
	return raw
}

// Values lists all values at a position, as changes from nothing.
func (s *Stepper) Values(pos int) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return diffValues(nil, s.seek(pos).values())
}
