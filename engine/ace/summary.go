package ace

import (
	"cmp"
)

// PhaseAnswer is the answer of [QueryPhase]. Status is the status with which the run itself will close; a
// reader shows the server's record instead.
type PhaseAnswer struct {
	Phase           Phase       `json:"phase"`
	Status          Status      `json:"status"`
	Verdict         Verdict     `json:"verdict,omitempty"`
	CancelRequested bool        `json:"cancel_requested,omitempty"`
	Steps           []StepState `json:"steps"`
	Answer          string      `json:"answer,omitempty"`
	Correct         *bool       `json:"correct,omitempty"`
	Score           *float64    `json:"score,omitempty"`        // see ReflectorResult
	GradeReason     string      `json:"grade_reason,omitempty"` // see ReflectorResult
	Usage           Usage       `json:"usage,omitzero"`         // left out if none is recorded
	Failure         *Failure    `json:"failure,omitempty"`
	Stopped         string      `json:"stopped,omitempty"` // see TaskResult
	// Passes are the answers after the first one, which alone counts.
	Passes Passes      `json:"passes,omitempty"`
	Review ReviewState `json:"review,omitzero"`
	// Unread names the parts of the input that could not be read.
	Unread []string `json:"unread,omitempty"`
}

// DeltaAnswer is the answer of [QueryDelta].
type DeltaAnswer struct {
	PlaybookBefore  string      `json:"playbook_before"`
	PlaybookAfter   string      `json:"playbook_after,omitempty"`
	Operations      []Operation `json:"operations"`
	BulletTags      []BulletTag `json:"bullet_tags,omitempty"`
	Insights        string      `json:"insights,omitempty"`
	Cause           string      `json:"cause,omitempty"` // see ReflectorResult
	Rationale       string      `json:"rationale,omitempty"`
	FollowUpActions []string    `json:"follow_up_actions,omitempty"`
	Bullets         int         `json:"bullets,omitempty"`
}

// CurrentPhase answers [QueryPhase].
func (s *State) CurrentPhase() PhaseAnswer {
	return PhaseAnswer{
		Phase: s.Phase, Status: s.Reported, Verdict: s.Verdict(), CancelRequested: s.CancelRequested,
		Steps: s.expected(s.observed != nil), Answer: s.Answer, Correct: s.Correct, Score: s.Score,
		GradeReason: s.GradeReason, Usage: s.Usage, Failure: s.Failure, Stopped: s.Stopped, Passes: s.Passes,
		Unread: s.Unread, Review: s.Review,
	}
}

// PlaybookDelta answers [QueryDelta].
func (s *State) PlaybookDelta() DeltaAnswer {
	return DeltaAnswer{
		PlaybookBefore: s.Delta.PlaybookBefore, PlaybookAfter: s.Delta.PlaybookAfter,
		Operations: append([]Operation{}, s.Delta.Operations...), Bullets: s.Delta.Bullets,
		BulletTags: s.BulletTags, Insights: s.Insights, Cause: s.Cause,
		Rationale: s.Delta.Rationale, FollowUpActions: s.Delta.FollowUpActions,
	}
}

// minMS is the duration of a step that was too short to measure; 0 means not measured.
const minMS = 0.001

// phaseMS returns the measured durations of the steps that the run itself executed.
func (x *Execution) phaseMS() (took PhaseMS) {
	for _, st := range x.Steps {
		at := took.at(st.Phase)
		if at == nil || st.Time == nil || st.Reused {
			continue
		}
		if st.Time.DurationMS > 0 || !st.Time.StartedAt.IsZero() {
			*at = max(st.Time.DurationMS, minMS)
		}
	}
	return took
}

// Summary returns the counts of the run for a list of runs.
func (s *State) Summary() Summary {
	sum := Summary{Usage: s.Usage}
	if s.observed != nil {
		sum.EndedAt = s.observed.ended
	}
	if s.Input.Revision > 0 {
		sum.Verdict = s.Verdict()
	}
	if s.Input.Revision > 1 {
		sum.Metered = s.metered()
	}
	if s.Input.Revision > 2 {
		s.describe(&sum)
	}
	sum.PhaseMS = s.phaseMS()
	for _, u := range s.SkillCounts() {
		sum.Skills += u.Calls
		sum.SkillsOK += u.OK
	}
	sum.count(s.counted())
	return sum
}

// Bounds of the texts of a summary in bytes.
const (
	maxSentence = 160 // subject, cause
	maxValue    = 80  // answer, expected answer
)

// describe sets the texts of a summary.
func (s *State) describe(sum *Summary) {
	sum.Subject = OneLine(cmp.Or(s.Input.Subject, s.Input.Prompt), maxSentence)
	sum.Answer = OneLine(s.Answer, maxValue)
	if s.Input.Label != nil {
		sum.Expected = OneLine(*s.Input.Label, maxValue)
	}
	switch {
	case s.Failure != nil:
		sum.Cause = OneLine(s.Failure.Message, maxSentence)
	case s.Verdict() == Wrong:
		sum.Cause = OneLine(s.Cause, maxSentence)
	}
}

// metered returns the usage of the steps that no agent's CLI executed.
func (s *State) metered() *ModelUsage {
	sums := ModelUsage{}
	for _, st := range s.Steps {
		if st.Usage != nil && *st.Usage != (Usage{}) && !st.Reused && !IsAgent(s.Input.Source) &&
			!IsAgent(s.Input.ProviderOf(st.Phase)) {
			model := s.Input.ModelOf(st.Phase)
			sums[model] = sums[model].Add(*st.Usage)
		}
	}
	if len(sums) == 0 {
		return nil
	}
	return &sums
}

// Result returns the result of the workflow.
func (s *State) Result() TaskResult {
	return TaskResult{
		TaskID: s.Input.TaskID, ExitStatus: s.ExitStatus(), Answer: s.Answer, Correct: s.Correct,
		Score:        s.Score,
		Verdict:      s.Verdict(),
		PlaybookHash: s.Delta.PlaybookAfter, Bullets: s.Delta.Bullets, Seq: s.Delta.PlaybookSeq,
		Index: s.Input.Index, Stopped: s.Stopped, Summary: s.Summary(),
		Regenerated: s.Passes.verdict(PassRound), After: s.Passes.verdict(PassAfter),
	}
}
