package replay

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"acescope/engine/ace"
)

// value is one thing that can be watched. V is a text, a number or a truth value.
type value struct {
	path string
	v    any
}

// Change is what an event changed. Before and After are nil where there was, or is,
// nothing.
type Change struct {
	Path   string          `json:"path"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// Text is the change in a line.
func (c Change) Text() string {
	switch {
	case c.Before == nil:
		return c.Path + " = " + plain(c.After)
	case c.After == nil:
		return c.Path + " is gone, was " + plain(c.Before)
	}
	return c.Path + ": " + plain(c.Before) + " → " + plain(c.After)
}

// plain is a value without the quotes of a text.
func plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// values lists all that can be watched at a mark, each path once.
func (m *mark) values() []value {
	var l valueList
	switch {
	case m.session != nil:
		l.session(m.session)
	case m.run != nil:
		l.run(m.run)
	case m.experiment != nil:
		l.experiment(m.experiment)
	default:
		l.task(m.task)
	}
	return l.all
}

type valueList struct{ all []value }

// put adds a value unless it says nothing.
func (l *valueList) put(path string, v any) {
	switch v {
	case "", false, int64(0), 0, 0.0:
		return
	}
	l.all = append(l.all, value{path, v})
}

func (l *valueList) task(s *ace.State) {
	l.put("phase", string(s.Phase))
	l.put("exit_status", string(s.ExitStatus()))
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
	if s.Failure != nil {
		l.put("failure", strings.TrimPrefix(s.Failure.Type+": "+s.Failure.Message, ": "))
	}
	l.put("insights", s.Insights)
	l.put("rationale", s.Rationale)
	l.put("follow_up_actions", strings.Join(s.FollowUps, "; "))
	l.usage(s.Usage)
	l.skills(s)
	l.delta(s)
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
	l.put("playbook.before", s.PlaybookBefore)
	l.put("playbook.after", s.PlaybookAfter)
	l.put("playbook.bullets", s.Bullets)
	counts := map[ace.Fate]int{}
	for _, op := range s.Operations {
		counts[op.Fate]++
	}
	for _, fate := range []ace.Fate{ace.FateAccepted, ace.FateRejected, ace.FateIgnored, ace.FateUnparsable} {
		l.put("operations."+string(fate), counts[fate])
	}
	bullets, order := map[string][]string{}, []string(nil)
	note := func(id, text string) {
		if _, known := bullets[id]; !known {
			order = append(order, id)
		}
		bullets[id] = append(bullets[id], text)
	}
	for _, t := range s.BulletTags {
		note(t.ID, "tagged "+t.Tag)
	}
	for i, op := range s.Operations {
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

// Paths that are known by more than their text.
const (
	pathTotal  = "skills.total"
	pathBullet = "bullet."
)

func operationText(op ace.Operation) string {
	text := string(op.Type) + " " + string(op.Fate)
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

func (l *valueList) experiment(s *ace.ExperimentState) {
	p := &s.Progress
	l.put("stage", p.Stage)
	l.put("exit_status", string(s.ExitStatus()))
	l.put("epoch", p.Epoch)
	l.put("runs", p.Runs)
	for _, e := range p.Epochs {
		at := fmt.Sprintf("epochs.%d.", e.Epoch)
		l.put(at+"tasks", e.Tasks)
		l.put(at+"correct", e.Correct)
		l.put(at+"wrong", e.Wrong)
		l.put(at+"failed", e.Failed)
		l.put(at+"accuracy", e.Accuracy)
	}
	for _, e := range p.Eval {
		l.put(fmt.Sprintf("eval.%d.accuracy", e.Epoch), e.Accuracy)
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
}

// changesOf lists how two lists of values differ, in the order of the second.
func changesOf(before, after []value) []Change {
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
	if err != nil { // of a number that JSON cannot write
		raw, _ = json.Marshal(fmt.Sprint(v))
	}
	return raw
}

// Values lists all that is known at a position, as changes from nothing.
func (s *Stepper) Values(pos int) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return changesOf(nil, s.seek(pos).values())
}
