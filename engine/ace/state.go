package ace

import "encoding/json"

// Bounds of a [State].
const (
	MaxInvocations = 20_000
	PreviewBytes   = 256
	RecentCalls    = 50
)

// leastMS is what a summary says of a step that took less than can be measured: 0 means
// that it was not measured.
const leastMS = 0.001

// StepState is where one step stands.
type StepState struct {
	Phase  Phase     `json:"phase"`
	Status string    `json:"status"` // pending, running, done, failed, cancelled
	Usage  *Usage    `json:"usage,omitempty"`
	Time   *StepTime `json:"time,omitempty"`
	// Verdict is how a model's answer was read; nil where no model was asked, or by a worker
	// that does not say it.
	Verdict *Verdict `json:"verdict,omitempty"`
	// Served names the run that served the step; nil where none did.
	Served *Served `json:"served,omitempty"`
	// Taken tells that the result is another run's, which this one was forked from. Its
	// usage and time are that run's, and count in no sum of this one.
	Taken bool `json:"taken_over,omitempty"`
}

// Step statuses.
const (
	StatusPending   = "pending"
	StatusRunning   = "running"
	StatusDone      = "done"
	StatusFailed    = "failed"
	StatusCancelled = "cancelled"
)

// State is what is known of a run: the value of the fold. The zero State knows
// nothing. It is not safe for concurrent use; [State.Clone] gives a copy to hand out.
type State struct {
	Input           TaskInput
	Phase           Phase
	Steps           []StepState
	Plan            string
	TrajectoryID    string
	BulletIDs       []string
	Answer          string
	Insights        string
	BulletTags      []BulletTag
	Correct         *bool
	Rationale       string
	FollowUps       []string
	Operations      []Operation // what the curator proposed, with the newest known fate
	PlaybookBefore  string
	PlaybookAfter   string
	Bullets         int
	PlaybookSeq     int
	Usage           Usage
	Failure         *Failure
	CancelRequested bool
	Exit            ExitStatus // as the run itself knows it
	ClosedAs        ExitStatus // as the server closed it, "" while it is open

	calls    ledger
	observed *observed // of an observed run, else nil
}

// Apply folds one fact into the state.
func (s *State) Apply(f Fact) {
	s.calls.begin()
	switch f.Kind {
	case FactStarted:
		s.start(*f.Input)
	case FactStepCompleted:
		s.complete(f.Step, f.Result)
		s.takeOver()
	case FactStepFailed:
		s.fail(f.Step, *f.Failure)
	case FactToolEvents:
		s.calls.bad += f.Bad
		for _, e := range f.Events {
			s.event(e)
		}
		s.derive()
	case FactCancelRequested:
		s.CancelRequested = true
	case FactSilent:
		s.silent()
	case FactClosed:
		s.close(f)
	}
}

func (s *State) start(in TaskInput) {
	s.Input = in
	if in.Observed {
		s.observe(in.Carried)
		return
	}
	s.begin()
	s.takeOver()
}

// begin is a run of which nothing is known but its input.
func (s *State) begin() {
	s.Exit = Running
	s.PlaybookBefore = s.Input.PlaybookHash
	s.Steps = make([]StepState, 0, len(Steps()))
	for _, p := range Steps() {
		s.Steps = append(s.Steps, StepState{Phase: p, Status: StatusPending})
	}
	s.enter(PhaseGenerator)
}

// takeOver completes the steps, from where the run stands, whose results the input brings
// along. It is part of the fold, so that every reader of a fork's history sees the same.
func (s *State) takeOver() {
	for s.Failure == nil {
		result := s.Input.Fork.Inline(s.Phase)
		if result == nil {
			return
		}
		f := StepCompleted(s.Phase, result)
		if f.Kind == FactStepFailed {
			s.fail(f.Step, *f.Failure)
			return
		}
		s.complete(f.Step, f.Result)
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

func (s *State) complete(p Phase, result any) {
	s.record(p, result)
	s.enter(p.next())
	if s.Phase == PhaseDone {
		s.Exit = Success
		if s.Correct != nil && !*s.Correct {
			s.Exit = Wrong
		}
	}
}

// record takes over what a step's result says.
func (s *State) record(p Phase, result any) {
	var usage *Usage
	var time *StepTime
	var verdict *Verdict
	var served *Served
	switch r := result.(type) {
	case *GeneratorResult:
		s.Plan, s.TrajectoryID, s.BulletIDs, s.Answer = r.Plan, r.TrajectoryID, r.BulletIDs, r.Answer
		usage, time, verdict, served = r.usage(), r.Time, r.Verdict, r.Served
	case *SkillSessionResult:
		if r.Answer != "" {
			s.Answer = r.Answer
		}
		for _, inv := range r.Invocations {
			s.calls.settle(inv, mark{})
		}
		usage, time, verdict, served = r.Usage, r.Time, r.Verdict, r.Served
	case *ReflectorResult:
		s.Insights, s.BulletTags, s.Correct = r.Insights, r.BulletTags, r.Correct
		usage, time, verdict, served = r.Usage, r.Time, r.Verdict, r.Served
	case *CuratorResult:
		s.Rationale, s.FollowUps = r.Rationale, r.FollowUpActions
		s.Operations = proposed(r)
		usage, time, verdict, served = r.Usage, r.Time, r.Verdict, r.Served
	case *PersistResult:
		s.PlaybookBefore, s.PlaybookAfter, s.Bullets, s.PlaybookSeq = r.PlaybookBefore, r.PlaybookAfter, r.Bullets, r.Seq
		s.Operations = settled(s.Operations, r.Operations)
		time = r.Time
	}
	taken := s.Input.Fork.Takes(p)
	if usage != nil && !taken {
		s.Usage = s.Usage.Add(*usage)
	}
	if st := s.step(p); st != nil {
		st.Status, st.Usage, st.Time, st.Verdict, st.Served, st.Taken = StatusDone, usage, time, verdict, served, taken
	}
}

// usage falls back on the token counts that workers without a usage object report.
func (r *GeneratorResult) usage() *Usage {
	if r.Usage == nil && r.PromptTokens+r.CompletionTokens > 0 {
		return &Usage{InputTokens: r.PromptTokens, OutputTokens: r.CompletionTokens}
	}
	return r.Usage
}

func (s *State) fail(p Phase, f Failure) {
	s.Failure, s.Exit = &f, f.Kind
	st := s.step(p)
	if st == nil {
		return
	}
	st.Status = StatusFailed
	if f.Kind == Cancelled {
		st.Status = StatusCancelled
	}
}

func (s *State) close(f Fact) {
	s.ClosedAs = f.Exit
	if s.Failure == nil {
		s.Failure = f.Failure
	}
}

// ExitStatus is the outcome: the run's own word, or the server's where the run was
// closed without being asked.
func (s *State) ExitStatus() ExitStatus {
	if s.ClosedAs != "" && (s.Exit == Running || s.Exit == "") {
		return s.ClosedAs
	}
	return s.Exit
}

// proposed lists a curator's operations, the accepted first, each with its fate set.
func proposed(r *CuratorResult) []Operation {
	all := make([]Operation, 0, len(r.Accepted)+len(r.Rejected))
	for _, op := range r.Accepted {
		op.Fate = FateAccepted
		all = append(all, op)
	}
	for _, op := range r.Rejected {
		if op.Fate == "" || op.Fate == FateAccepted {
			op.Fate = FateRejected
		}
		all = append(all, op)
	}
	return all
}

// settled replaces the accepted operations of a proposal by what became of them when
// the delta was merged; refused ones stay.
func settled(proposal, merged []Operation) []Operation {
	if merged == nil {
		return proposal
	}
	all := append(make([]Operation, 0, len(proposal)), merged...)
	for _, op := range proposal {
		if op.Fate != FateAccepted {
			all = append(all, op)
		}
	}
	return all
}

// Clone is a deep enough copy: nothing that a later Apply changes is shared.
func (s *State) Clone() *State {
	c := *s
	c.Steps = append([]StepState(nil), s.Steps...)
	c.calls = s.calls.clone()
	c.observed = s.observed.clone()
	return &c
}

// Summary is the run in a line.
func (s *State) Summary() Summary {
	sum := Summary{Usage: s.Usage}
	for _, st := range s.Steps {
		if at := sum.PhaseMS.at(st.Phase); at != nil && st.Time != nil && !st.Taken && (st.Time.DurationMS > 0 || !st.Time.StartedAt.IsZero()) {
			*at = max(st.Time.DurationMS, leastMS)
		}
	}
	for _, u := range s.calls.usage() {
		sum.Skills += u.Calls
		sum.SkillsOK += u.OK
	}
	for _, op := range s.Operations {
		if op.Fate != FateAccepted {
			if op.Fate == FateRejected || op.Fate == FateUnparsable {
				sum.Rejected++
			}
			continue
		}
		switch op.Type {
		case OpAdd:
			sum.Added++
		case OpUpdate:
			sum.Updated++
		case OpRemove:
			sum.Removed++
		case OpTag:
			sum.Tagged++
		}
	}
	return sum
}

// Result is the run's result.
func (s *State) Result() TaskResult {
	return TaskResult{TaskID: s.Input.TaskID, ExitStatus: s.Exit, Answer: s.Answer, Correct: s.Correct,
		PlaybookHash: s.PlaybookAfter, Bullets: s.Bullets, Seq: s.PlaybookSeq,
		Index: s.Input.Index, Summary: s.Summary()}
}

// Preview cuts a JSON payload to [PreviewBytes]; a payload that was cut becomes a JSON
// string that ends in an ellipsis.
func Preview(raw json.RawMessage) json.RawMessage {
	if len(raw) <= PreviewBytes {
		return raw
	}
	cut := string(raw[:PreviewBytes])
	short, err := json.Marshal(cut + "…")
	if err != nil {
		return nil
	}
	return short
}
