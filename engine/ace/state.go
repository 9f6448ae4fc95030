package ace

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// Bounds of a [State].
const (
	MaxInvocations = 20_000
	PreviewBytes   = 256
	RecentCalls    = 50
)

// minMS is the duration of a step that was too short to measure; 0 means not measured.
const minMS = 0.001

// StepState is the state of one step.
type StepState struct {
	Phase  Phase     `json:"phase"`
	Status string    `json:"status"` // as below
	Usage  *Usage    `json:"usage,omitempty"`
	Time   *StepTime `json:"time,omitempty"`
	// Calls is nil if no model was asked or its requests are not on record.
	Calls *CallLog `json:"model_calls,omitempty"`
	// EarlierCalls are the records of the answers before the last one.
	EarlierCalls []CallLog `json:"earlier_model_calls,omitempty"`
	// Parsed is nil if no model was asked or the worker does not report it.
	Parsed *ParseReport `json:"parsed,omitempty"`
	// Served is nil unless a blueprint run executed the step.
	Served *Served `json:"served,omitempty"`
	// Reused marks a result of the fork's original. Its usage and time belong to the original
	// and are not included in the sums of this run.
	Reused bool `json:"taken_over,omitempty"`
	// Unread says what of the result could not be read.
	Unread []string `json:"unread,omitempty"`

	misfit bool // it failed only because its result does not fit the contract
}

// Step statuses. Readers of a closed run use those of the second group.
const (
	StatusPending  = "pending"
	StatusRunning  = "running"
	StatusDone     = "done"
	StatusFailed   = "failed"
	StatusCanceled = "cancelled"

	StatusTerminated = "terminated"
	StatusTimedOut   = "timed out"
	StatusUnfinished = "unfinished" // the run completed without the result
	StatusNotReached = "not reached"
)

// Began reports whether the run reached the step.
func (st StepState) Began() bool { return st.Status != StatusPending && st.Status != StatusNotReached }

// State is the value of the fold: everything known of a run. The zero value is an unknown run.
// A State is not safe for concurrent use; [State.Clone] returns a copy.
type State struct {
	Input           TaskInput
	Phase           Phase
	Steps           []StepState
	Plan            string
	TrajectoryID    string
	BulletIDs       []string
	Answer          string
	Correct         *bool
	Score           *float64
	GradeReason     string // see ReflectorResult
	Passes          Passes // further answers
	Review          ReviewState
	DeltaAnswer         // Operations are the curator's proposals with their latest outcome
	PlaybookSeq     int // of PlaybookAfter in its branch
	Usage           Usage
	Failure         *Failure
	CancelRequested bool
	Stopped         string   // why steps were not executed, "" if all were
	Reported        Status   // as the run itself will close; Running before it knows
	ClosedAs        Status   // as the server closed the run, "" while it is open
	Unread          []string // what of the input could not be read

	scheduled uint8 // bit i: the activity of step i was scheduled, or an observer reported the step

	calls    ledger
	observed *observed // nil unless the run is observed
}

// Apply folds one fact into the state.
func (s *State) Apply(f Fact) {
	s.calls.begin()
	switch f.Kind {
	case FactStarted:
		s.start(f)
	case FactStepScheduled:
		s.schedule(f.Step)
	case FactStepCompleted:
		s.goOn()
		s.complete(f)
		s.reuseSteps()
	case FactStepFailed:
		s.fail(f.Step, *f.Failure)
		s.recordMisfit(f)
	case FactToolEvents:
		s.calls.unreadable += f.Unreadable
		for _, e := range f.Events {
			s.event(e)
		}
		s.derive()
	case FactCancelRequested:
		s.CancelRequested = true
	case FactIdleTimeout:
		s.timeOut()
	case FactReviewOpened:
		s.Review.until = f.Until
	case FactReviewed:
		s.decide(f.Decision, strings.Join(f.Unread, ", "))
	case FactReviewTimeout:
		s.timeOutReview()
	case FactReviewClosed:
		s.closeReview()
	case FactClosed:
		s.close(f)
	}
}

func (s *State) start(f Fact) {
	s.Input, s.Unread = *f.Input, f.Unread
	switch {
	case s.Input.Observed:
		s.observe(s.Input.Carried)
	case f.Foreign:
		s.Reported = Running
	default:
		s.begin()
		s.reuseSteps()
	}
}

// begin initializes the state from the input alone.
func (s *State) begin() {
	s.Reported = Running
	s.addSteps()
	s.enter(PhaseGenerator)
}

func (s *State) addSteps() {
	s.PlaybookBefore = s.Input.PlaybookHash
	s.Steps = make([]StepState, 0, len(Steps()))
	for _, p := range Steps() {
		status := StatusPending
		if p == PhaseSkills && s.Input.NoSkills {
			status = StatusNotReached
		}
		s.Steps = append(s.Steps, StepState{Phase: p, Status: status})
	}
}

// reuseSteps completes the steps from the current phase whose results the input holds.
func (s *State) reuseSteps() {
	for s.Failure == nil {
		result := s.Input.Fork.InlineResult(len(s.Passes), s.Phase)
		if result == nil {
			return
		}
		f := StepCompleted(s.Phase, result)
		if f.Kind == FactStepFailed {
			s.fail(f.Step, *f.Failure)
			return
		}
		s.complete(f)
	}
}

func (s *State) enter(p Phase) {
	s.Phase = p
	if st := s.step(p); st != nil {
		st.Status = StatusRunning
	}
}

func (s *State) step(p Phase) *StepState {
	for i := range s.Steps {
		if s.Steps[i].Phase == p {
			return &s.Steps[i]
		}
	}
	return nil
}

func (s *State) complete(f Fact) {
	s.record(f)
	if s.Phase == PhaseDone || slices.Index(Steps(), f.Step) < slices.Index(Steps(), s.Phase) {
		return // of another program, which has begun a later step
	}
	s.enter(s.after(f.Step))
	if why := s.Input.Budget.Spent(s.Usage); why != "" && asksModel(s.Phase) && !s.Reuses(s.Phase) {
		s.stop(why)
	}
	if s.Phase == PhaseDone {
		s.Reported = Completed
	}
	if f.Step == PhaseCurator {
		s.awaitReview()
	}
}

// Reuses reports whether the next result of the step comes from the original of a fork.
func (s *State) Reuses(p Phase) bool { return s.Input.Fork.Reuses(len(s.Passes), p) }

// Completed returns the state of a step after its fact alone, without earlier executions.
func (f Fact) Completed() StepState {
	st := StepState{Phase: f.Step, Status: StatusDone, Unread: f.Unread}
	switch r := f.Result.(type) {
	case *GeneratorResult:
		st.Usage = r.usage()
		st.Time = r.Time
		st.Parsed = r.Parsed
		st.Served = r.Served
		st.Calls = r.Calls
	case *SkillSessionResult:
		st.Usage = r.Usage
		st.Time = r.Time
		st.Parsed = r.Parsed
		st.Served = r.Served
		st.Calls = r.Calls
	case *ReflectorResult:
		st.Usage = r.Usage
		st.Time = r.Time
		st.Parsed = r.Parsed
		st.Served = r.Served
		st.Calls = r.Calls
	case *CuratorResult:
		st.Usage = r.Usage
		st.Time = r.Time
		st.Parsed = r.Parsed
		st.Served = r.Served
		st.Calls = r.Calls
	case *PersistResult:
		st.Time = r.Time
	}
	return st
}

// record copies the result of a step into the state.
func (s *State) record(f Fact) {
	step := f.Completed()
	step.Reused = s.Reuses(f.Step)
	if step.Usage != nil && !step.Reused {
		s.Usage = s.Usage.Add(*step.Usage)
	}
	st := s.step(f.Step)
	switch {
	case !s.recordPass(f.Result, step.Usage):
		s.recordFirst(f.Result)
	case st != nil:
		step.add(*st)
	}
	if r, ok := f.Result.(*SkillSessionResult); ok {
		for _, inv := range r.Invocations {
			s.calls.setResult(inv, mark{})
		}
	}
	if st != nil {
		*st = step
	}
}

// recordFirst copies the result of a step outside of passes.
func (s *State) recordFirst(result any) {
	switch r := result.(type) {
	case *GeneratorResult:
		s.Plan = r.Plan
		s.TrajectoryID = r.TrajectoryID
		s.BulletIDs = r.BulletIDs
		s.Answer = r.Answer
	case *SkillSessionResult:
		s.Answer = cmp.Or(r.Answer, s.Answer)
	case *ReflectorResult:
		s.Insights = r.Insights
		s.Cause = r.Cause
		s.BulletTags = r.BulletTags
		s.Correct = r.Correct
		s.Score = r.Score
		s.GradeReason = r.GradeReason
	case *CuratorResult:
		s.Rationale = r.Rationale
		s.FollowUpActions = r.FollowUpActions
		s.Operations = proposedOperations(r)
	case *PersistResult:
		s.PlaybookBefore = cmp.Or(r.PlaybookBefore, s.PlaybookBefore)
		s.PlaybookAfter = r.PlaybookAfter
		s.Bullets = r.Bullets
		s.PlaybookSeq = r.Seq
		s.Operations = mergedOperations(s.Operations, r.Operations)
	}
}

// CallLogs returns the records of all requests to models, oldest first.
func (st StepState) CallLogs() []CallLog {
	if st.Calls == nil {
		return st.EarlierCalls
	}
	return append(slices.Clip(st.EarlierCalls), *st.Calls)
}

// add adds the usage, the time and the records of earlier executions of the step.
func (st *StepState) add(earlier StepState) {
	st.EarlierCalls = earlier.CallLogs()
	switch {
	case earlier.Reused || earlier.Usage == nil:
	case st.Usage == nil:
		st.Usage = earlier.Usage
	default:
		st.Usage = new(earlier.Usage.Add(*st.Usage))
	}
	if t := earlier.Time; t != nil && !earlier.Reused {
		sum := *t
		if st.Time != nil {
			sum.DurationMS += st.Time.DurationMS
			sum.Attempt = st.Time.Attempt
			sum.Worker = st.Time.Worker
		}
		st.Time = &sum
	}
}

// usage falls back to the token counts of workers that report no usage object.
func (r *GeneratorResult) usage() *Usage {
	if r.Usage == nil && r.PromptTokens+r.CompletionTokens > 0 {
		return &Usage{InputTokens: r.PromptTokens, OutputTokens: r.CompletionTokens}
	}
	return r.Usage
}

func (s *State) fail(p Phase, f Failure) {
	st := s.step(p)
	if st != nil {
		st.Status = StatusFailed
		st.EarlierCalls = st.CallLogs()
		st.Calls = f.Calls
		if f.Kind == Canceled {
			st.Status = StatusCanceled
		}
		if f.Calls != nil && f.Calls.Usage != nil {
			spent := *f.Calls.Usage
			s.Usage = s.Usage.Add(spent)
			if st.Usage != nil { // of earlier passes
				spent = st.Usage.Add(spent)
			}
			st.Usage = &spent
		}
	}
	if f.Type == TypeBudget && s.Input.Budget != nil {
		st.Status = StatusUnfinished
		s.stop(f.Message)
		return
	}
	s.Failure, s.Reported = &f, f.Kind
}

// Status returns the server's record of the run: Running until it is closed.
func (s *State) Status() Status { return cmp.Or(s.ClosedAs, Running) }

// Verdict returns the verdict on the answer so far, or "" before the input is known.
func (s *State) Verdict() Verdict {
	if len(s.Steps) == 0 {
		return ""
	}
	return VerdictOf(s.Input.Label != nil, s.Correct)
}

// ExitStatus returns the value that the run itself writes to [AttrExit].
func (s *State) ExitStatus() ExitStatus { return ExitOf(s.Reported, s.Verdict()) }

// proposedOperations lists the curator's operations with their outcomes, accepted ones first.
func proposedOperations(r *CuratorResult) []Operation {
	all := slices.Concat(r.Accepted, r.Rejected)
	for i := range all {
		op := &all[i]
		if i < len(r.Accepted) {
			op.Outcome = OutcomeAccepted
		} else if op.Outcome == "" || op.Outcome == OutcomeAccepted {
			op.Outcome = OutcomeRejected
		}
	}
	return all
}

// mergedOperations replaces the accepted operations of a proposal with the outcome of the merge.
func mergedOperations(proposal, merged []Operation) []Operation {
	if merged == nil {
		return proposal
	}
	all := slices.Clone(merged)
	for _, op := range proposal {
		if op.Outcome != OutcomeAccepted {
			all = append(all, op)
		}
	}
	return all
}

// Clone returns a copy that later calls of Apply on s do not change.
func (s *State) Clone() *State {
	c := *s
	c.Steps = slices.Clone(s.Steps)
	c.calls = s.calls.clone()
	c.observed = s.observed.clone()
	return &c
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
	for _, st := range s.Steps {
		at := sum.PhaseMS.at(st.Phase)
		if at == nil || st.Time == nil || st.Reused {
			continue
		}
		if st.Time.DurationMS > 0 || !st.Time.StartedAt.IsZero() {
			*at = max(st.Time.DurationMS, minMS)
		}
	}
	for _, u := range s.calls.counts() {
		sum.Skills += u.Calls
		sum.SkillsOK += u.OK
	}
	for _, op := range s.Operations {
		switch {
		case op.Outcome == OutcomeRejected, op.Outcome == OutcomeUnparsable:
			sum.Rejected++
		case op.Outcome != OutcomeAccepted:
		case op.Type == OpAdd:
			sum.Added++
		case op.Type == OpUpdate:
			sum.Updated++
		case op.Type == OpRemove:
			sum.Removed++
		case op.Type == OpTag:
			sum.Tagged++
		case op.Type == OpMerge:
			sum.Merged++
		}
	}
	return sum
}

// Bounds of the texts of a summary in bytes.
const (
	maxSentence = 160 // subject, cause
	maxValue    = 80  // answer, expected answer
)

// describe sets the texts of a summary.
func (s *State) describe(sum *Summary) {
	sum.Subject = oneLine(cmp.Or(s.Input.Subject, s.Input.Prompt), maxSentence)
	sum.Answer = oneLine(s.Answer, maxValue)
	if s.Input.Label != nil {
		sum.Expected = oneLine(*s.Input.Label, maxValue)
	}
	switch {
	case s.Failure != nil:
		sum.Cause = oneLine(s.Failure.Message, maxSentence)
	case s.Verdict() == Wrong:
		sum.Cause = oneLine(s.Cause, maxSentence)
	}
}

// oneLine joins the words of a text with single spaces and truncates it to at most n bytes and an ellipsis.
func oneLine(text string, n int) string {
	return Cut(strings.Join(strings.Fields(Cut(text, 8*n)), " "), n)
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
		TaskID: s.Input.TaskID, ExitStatus: s.ExitStatus(), Answer: s.Answer, Correct: s.Correct, Score: s.Score,
		Verdict:      s.Verdict(),
		PlaybookHash: s.PlaybookAfter, Bullets: s.Bullets, Seq: s.PlaybookSeq,
		Index: s.Input.Index, Stopped: s.Stopped, Summary: s.Summary(),
		Regenerated: s.Passes.verdict(PassRound), After: s.Passes.verdict(PassAfter),
	}
}

// Preview truncates a JSON payload to [PreviewBytes]. A truncated payload becomes a JSON string
// that ends with an ellipsis.
func Preview(raw json.RawMessage) json.RawMessage {
	if len(raw) <= PreviewBytes {
		return raw
	}
	short, err := json.Marshal(string(raw[:PreviewBytes]) + "…")
	if err != nil {
		return nil
	}
	return short
}

// PhaseAnswer is the answer of [QueryPhase]. Status is as the run itself will close; a reader shows the
// server's record instead.
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
	Usage           Usage       `json:"usage"`
	Failure         *Failure    `json:"failure,omitempty"`
	Stopped         string      `json:"stopped,omitempty"` // see TaskResult
	// Passes are the answers after the first one, which alone counts.
	Passes Passes      `json:"passes,omitempty"`
	Review ReviewState `json:"review,omitzero"`
	// Unread says what of the input could not be read.
	Unread []string `json:"unread,omitempty"`
}

// SkillUsage sums up the calls of one skill: Calls = OK + Failed + Denied + Pending. The
// percentiles cover finished calls, in milliseconds.
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

// SkillAnswer is the answer of [QuerySkills]. Recent holds the latest [RecentCalls] calls with
// payloads truncated to [PreviewBytes]; the history holds the full payloads.
type SkillAnswer struct {
	Skills     []SkillUsage      `json:"skills"`
	Total      int               `json:"total"`
	Recent     []Call            `json:"recent"`
	Other      map[EventKind]int `json:"other,omitempty"`
	Commands   map[string]int    `json:"commands,omitempty"` // slash commands by name
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
	Cause           string      `json:"cause,omitempty"` // see ReflectorResult
	Rationale       string      `json:"rationale,omitempty"`
	FollowUpActions []string    `json:"follow_up_actions,omitempty"`
	Bullets         int         `json:"bullets,omitempty"`
}

// Call is the current state of a tool call. Pending means that it has no result yet.
type Call struct {
	Invocation
	Pending bool `json:"pending,omitempty"`
}

// CurrentPhase answers [QueryPhase].
func (s *State) CurrentPhase() PhaseAnswer {
	return PhaseAnswer{
		Phase: s.Phase, Status: s.Reported, Verdict: s.Verdict(), CancelRequested: s.CancelRequested,
		Steps: s.expectedSteps(), Answer: s.Answer, Correct: s.Correct, Score: s.Score,
		GradeReason: s.GradeReason, Usage: s.Usage, Failure: s.Failure, Stopped: s.Stopped, Passes: s.Passes,
		Unread: s.Unread, Review: s.Review,
	}
}

// SkillUsage answers [QuerySkills].
func (s *State) SkillUsage() SkillAnswer {
	return SkillAnswer{
		Skills: s.calls.usage(), Total: s.calls.total(), Recent: s.calls.latest(RecentCalls),
		Other: maps.Clone(s.calls.other), Commands: maps.Clone(s.calls.commands),
		Dropped: s.calls.dropped, Unreadable: s.calls.unreadable,
	}
}

// SkillCounts returns the skills of [State.SkillUsage] with only their counts. Its cost does not
// depend on the number of calls.
func (s *State) SkillCounts() []SkillUsage { return s.calls.counts() }

// CallTotals returns the number of calls, of events and calls that were dropped, and of
// unreadable payloads.
func (s *State) CallTotals() (calls, dropped, unreadable int) {
	return s.calls.total(), s.calls.dropped, s.calls.unreadable
}

// PlaybookDelta answers [QueryDelta].
func (s *State) PlaybookDelta() DeltaAnswer {
	delta := s.DeltaAnswer
	delta.Operations = append([]Operation{}, s.Operations...)
	return delta
}

// Calls returns the tool calls that are kept in detail, oldest first. After continue-as-new,
// these are the latest calls of that time, the calls that were open then, and all later calls.
func (s *State) Calls() []Call { return callsOf(s.calls.sorted()) }

// NewestCalls returns the n calls of [State.Calls] that the run reported last.
func (s *State) NewestCalls(n int) []Call { return s.calls.newest(n) }

// ChangedCalls returns the tool calls that the last fact changed, oldest first.
func (s *State) ChangedCalls() []Call { return s.calls.changed() }

// NewCommands returns the slash commands of the last fact.
func (s *State) NewCommands() []ToolEvent { return s.calls.typed }
