package stepper

import (
	"acescope/engine/kind"
	"acescope/engine/kind/task"
)

// WrongAnswer is an answer that was graded wrong, with its plan and the bullets that it used.
type WrongAnswer struct {
	EventID  int64        `json:"event_id"`        // of the event that produced the answer
	GradedAt int64        `json:"graded_event_id"` // of the event that graded it
	Answer   string       `json:"answer"`
	Expected string       `json:"expected,omitempty"`
	Reason   string       `json:"grade_reason,omitempty"`
	Cause    string       `json:"cause,omitempty"`    // see ace.ReflectorResult
	Insights string       `json:"insights,omitempty"` // of the reflector
	Plan     string       `json:"plan,omitempty"`
	Bullets  []UsedBullet `json:"bullets,omitempty"`
}

// UsedBullet is a bullet that an answer used. Tag is the tag by the reflector, such as harmful.
type UsedBullet struct {
	ID      string `json:"bullet_id"`
	Content string `json:"content,omitempty"`
	Tag     string `json:"tag,omitempty"`
	AddedBy string `json:"added_by,omitempty"` // task, "" if it is unknown
}

// answerFinder finds the event that produced the first answer of a task, and the event that graded it.
type answerFinder struct {
	answer         string
	at, graded     int
	started, isBad bool
}

// look reads the answer after an event.
func (a *answerFinder) look(m *mark) {
	tasker, ok := m.fold.(kind.Tasker)
	if !ok {
		return
	}
	s := tasker.State()
	if s.Answer != a.answer || !a.started && s.Correct != nil {
		a.answer, a.at, a.started = s.Answer, m.at, true
	}
	isBad := s.Correct != nil && !*s.Correct
	if isBad != a.isBad {
		a.graded, a.isBad = m.at, isBad
	}
}

// WrongAt returns the position of the event that produced a wrong answer, or 0.
func (s *Stepper) WrongAt() int { return s.wrong }

// Wrong describes the wrong answer of a run, or returns nil.
func (s *Stepper) Wrong(b kind.Books) *WrongAnswer {
	if s.wrong == 0 {
		return nil
	}
	end := s.State(s.Len())
	w := &WrongAnswer{EventID: s.EventID(s.wrong), GradedAt: s.EventID(s.graded), Answer: end.Answer,
		Reason: end.GradeReason, Cause: end.Cause, Insights: end.Insights, Plan: end.Plan}
	if end.Input.Label != nil {
		w.Expected = *end.Input.Label
	}
	tags := task.Tags(end)
	for _, id := range end.BulletIDs {
		used := UsedBullet{ID: id, Content: b.Given.Content(id), Tag: tags[id]}
		if h := b.Given[id]; h != nil && h.Added != nil {
			used.AddedBy = h.Added.TaskID
		}
		w.Bullets = append(w.Bullets, used)
	}
	return w
}
