package task

import (
	"fmt"
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/kind"
)

func (f *fold) Values() []kind.Value {
	var l kind.ValueList
	s := f.state
	l.Put("phase", string(s.Phase))
	if s.Reported != "" { // the run has started
		l.Put("status", string(s.Status()))
	}
	l.Put("verdict", string(s.Verdict()))
	for _, st := range s.Steps {
		l.Put("steps."+string(st.Phase), st.Status)
	}
	l.Put("cancel_requested", s.CancelRequested)
	l.Put("plan", s.Plan)
	l.Put("trajectory_id", s.TrajectoryID)
	l.Put("bullets_used", strings.Join(s.BulletIDs, " "))
	l.Put("answer", s.Answer)
	if s.Correct != nil {
		l.Put("correct", strconv.FormatBool(*s.Correct))
	}
	l.Put("grade_reason", s.GradeReason)
	putPasses(&l, s)
	if s.Failure != nil {
		l.Put("failure", strings.TrimPrefix(s.Failure.Type+": "+s.Failure.Message, ": "))
	}
	l.Put("insights", s.Insights)
	l.Put("rationale", s.Delta.Rationale)
	l.Put("follow_up_actions", strings.Join(s.Delta.FollowUpActions, "; "))
	l.Usage(s.Usage)
	putSkills(&l, s)
	putDelta(&l, s)
	return l
}

// putPasses puts the answers after the first.
func putPasses(l *kind.ValueList, s *ace.State) {
	for i := range s.Passes {
		again := &s.Passes[i]
		at := "again." + strings.ReplaceAll(again.Name(), " ", "_") + "."
		l.Put(at+"answer", again.Answer)
		if again.Correct != nil {
			l.Put(at+"correct", strconv.FormatBool(*again.Correct))
		}
		l.Put(at+"grade_reason", again.GradeReason)
		l.Put(at+"insights", again.Insights)
		for _, t := range again.BulletTags {
			l.Put(at+"tags."+t.ID, t.Tag)
		}
	}
}

func putSkills(l *kind.ValueList, s *ace.State) {
	total, dropped, unreadable := s.CallTotals()
	l.Put(kind.PathTotal, total)
	l.Put("skills.dropped", dropped)
	l.Put("skills.unreadable", unreadable)
	for _, u := range s.SkillCounts() {
		at := "skills." + u.Name + "."
		l.Put(at+"calls", u.Calls)
		l.Put(at+"ok", u.OK)
		l.Put(at+"failed", u.Failed)
		l.Put(at+"denied", u.Denied)
		l.Put(at+"pending", u.Pending)
	}
}

func putDelta(l *kind.ValueList, s *ace.State) {
	l.Put("playbook.before", s.Delta.PlaybookBefore)
	l.Put("playbook.after", s.Delta.PlaybookAfter)
	l.Put("playbook.bullets", s.Delta.Bullets)
	counts := map[ace.Outcome]int{}
	for _, op := range s.Delta.Operations {
		counts[op.Outcome]++
	}
	for _, outcome := range ace.Outcomes() {
		l.Put("operations."+string(outcome), counts[outcome])
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
			l.Put(fmt.Sprintf("operation.%d", i+1), operationText(op))
		}
	}
	for _, id := range order {
		l.Put(kind.PathBullet+id, strings.Join(bullets[id], "; "))
	}
}

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
