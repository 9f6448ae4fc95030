package ace

import (
	"maps"
	"time"
)

// PhaseAnswer is the answer of [QueryPhase].
type PhaseAnswer struct {
	Phase           Phase       `json:"phase"`
	ExitStatus      ExitStatus  `json:"exit_status"`
	CancelRequested bool        `json:"cancel_requested,omitempty"`
	Steps           []StepState `json:"steps"`
	Answer          string      `json:"answer,omitempty"`
	Correct         *bool       `json:"correct,omitempty"`
	Usage           Usage       `json:"usage"`
	Failure         *Failure    `json:"failure,omitempty"`
}

// SkillUsage sums up the calls of one skill. Calls = OK + Failed + Denied + Pending;
// the percentiles are over finished calls, in milliseconds.
type SkillUsage struct {
	Name      string    `json:"name"`
	Calls     int       `json:"calls"`
	OK        int       `json:"ok"`
	Failed    int       `json:"failed"`
	Denied    int       `json:"denied"`
	Pending   int       `json:"pending"`
	P50MS     float64   `json:"p50_ms"`
	P95MS     float64   `json:"p95_ms"`
	LastAt    time.Time `json:"last_at,omitzero"`
	LastError string    `json:"last_error,omitempty"`
}

// SkillAnswer is the answer of [QuerySkills]. Recent holds the newest [RecentCalls]
// calls with payloads cut to [PreviewBytes]; whole payloads are in the history.
type SkillAnswer struct {
	Skills     []SkillUsage      `json:"skills"`
	Total      int               `json:"total"`
	Recent     []Call            `json:"recent"`
	Other      map[EventKind]int `json:"other,omitempty"`
	Dropped    int               `json:"dropped,omitempty"`
	Unreadable int               `json:"unreadable,omitempty"`
}

// DeltaAnswer is the answer of [QueryDelta].
type DeltaAnswer struct {
	PlaybookBefore  string      `json:"playbook_before"`
	PlaybookAfter   string      `json:"playbook_after,omitempty"`
	Operations      []Operation `json:"operations"`
	BulletTags      []BulletTag `json:"bullet_tags,omitempty"`
	Insights        string      `json:"insights,omitempty"`
	Rationale       string      `json:"rationale,omitempty"`
	FollowUpActions []string    `json:"follow_up_actions,omitempty"`
	Bullets         int         `json:"bullets,omitempty"`
}

// Call is a tool call as it stands now: pending while it has no result.
type Call struct {
	Invocation
	Pending bool `json:"pending,omitempty"`
}

// CurrentPhase answers [QueryPhase].
func (s *State) CurrentPhase() PhaseAnswer {
	return PhaseAnswer{Phase: s.Phase, ExitStatus: s.Exit, CancelRequested: s.CancelRequested,
		Steps: append([]StepState{}, s.Steps...), Answer: s.Answer, Correct: s.Correct, Usage: s.Usage, Failure: s.Failure}
}

// SkillUsage answers [QuerySkills].
func (s *State) SkillUsage() SkillAnswer {
	return SkillAnswer{Skills: s.calls.usage(), Total: s.calls.total(), Recent: s.calls.newest(RecentCalls),
		Other: maps.Clone(s.calls.other), Dropped: s.calls.dropped, Unreadable: s.calls.bad}
}

// SkillCounts is the skills of [State.SkillUsage] with their counts alone, by name; it
// costs no more, the more calls there are.
func (s *State) SkillCounts() []SkillUsage { return s.calls.counts() }

// CallTotals is how many calls are known, and how many events and payloads could not be
// kept or read.
func (s *State) CallTotals() (calls, dropped, unreadable int) {
	return s.calls.total(), s.calls.dropped, s.calls.bad
}

// PlaybookDelta answers [QueryDelta].
func (s *State) PlaybookDelta() DeltaAnswer {
	return DeltaAnswer{PlaybookBefore: s.PlaybookBefore, PlaybookAfter: s.PlaybookAfter,
		Operations: append([]Operation{}, s.Operations...), BulletTags: s.BulletTags, Insights: s.Insights,
		Rationale: s.Rationale, FollowUpActions: s.FollowUps, Bullets: s.Bullets}
}

// Calls lists every tool call that is kept in detail, oldest first: in a run that was
// continued, the newest and those that were open then, and all since.
func (s *State) Calls() []Call { return s.calls.joined() }

// Touched lists the tool calls that the newest fact told of, oldest first.
func (s *State) Touched() []Call { return s.calls.recent() }
