package ace

import (
	"slices"
	"strings"
)

// State is the value of the fold: everything known of a run. Each part folds its own facts. The zero value is
// an unknown run. A State is not safe for concurrent use; [State.Clone] returns a copy.
type State struct {
	Input  TaskInput
	Unread []string // the parts of the input that could not be read
	Execution
	TaskAnswers
	Delta  DeltaState
	Review ReviewState
	ToolCalls

	observed *observed // nil unless the run is observed
}

// Apply folds one fact into the state.
func (s *State) Apply(f Fact) {
	s.newFact()
	switch f.Kind {
	case FactStarted:
		s.start(f)
	case FactStepScheduled:
		s.schedule(f.Step)
	case FactStepCompleted:
		s.survive()
		s.complete(f)
		s.reuseSteps()
	case FactStepFailed:
		s.fail(f.Step, *f.Failure)
		s.recordMisfit(f)
	case FactToolEvents:
		s.toolEvents(f)
	case FactCancelRequested:
		s.CancelRequested = true
	case FactIdleTimeout:
		s.timeOut()
	case FactReviewOpened:
		s.Review.until = f.Until
	case FactReviewed:
		s.endReview(s.Review.decide(f.Decision, strings.Join(f.Unread, ", ")))
	case FactReviewTimeout:
		s.endReview(s.Review.timeOut(s.Input.Review))
	case FactReviewClosed:
		s.closeReview()
	case FactClosed:
		s.close(f)
	}
}

// close applies the server's record of the end, which outranks the steps.
func (s *State) close(f Fact) {
	s.ClosedAs = f.Status
	if f.Status == Completed {
		if s.Failure != nil {
			s.survive()
		}
		if len(s.Steps) > 0 {
			s.Phase = PhaseDone
		}
	}
	if f.Failure != nil && (s.Failure == nil || s.Failure.Message != f.Failure.Message) {
		s.Failure = f.Failure
	}
	s.closeSteps()
	if f.Status.Bad() && !s.merged() {
		s.Delta.Operations = notMerged(s.Delta.Operations, OutcomeUnmerged)
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
	s.Delta.PlaybookBefore = s.Input.PlaybookHash
	s.Steps = make([]StepState, 0, len(Steps()))
	for _, p := range Steps() {
		status := StatusPending
		if p == PhaseSkills && s.Input.NoSkills {
			status = StatusNotReached
		}
		s.Steps = append(s.Steps, StepState{Phase: p, Status: status})
	}
}

// schedule begins a step. A step that was only expected to be next is not reached yet.
func (s *State) schedule(p Phase) {
	if len(s.Steps) == 0 {
		s.addSteps()
	}
	if p == PhasePersist {
		s.closeReview()
	}
	s.survive()
	if st := s.step(s.Phase); st != nil && s.scheduled&stepBit(s.Phase) == 0 && st.Status == StatusRunning {
		st.Status = StatusPending
	}
	s.scheduled |= stepBit(p)
	s.enter(p)
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

func (s *State) complete(f Fact) {
	s.record(f)
	if s.isPast(f.Step) {
		return // a workflow of another program has already begun a later step
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

// record copies the result of a step into the state.
func (s *State) record(f Fact) {
	step := f.Completed()
	step.Reused = s.Reuses(f.Step)
	again := s.TaskAnswers.record(f.Result, step.Usage)
	s.Execution.record(step, again)
	switch r := f.Result.(type) {
	case *SkillSessionResult:
		for _, inv := range r.Invocations {
			s.setResult(inv, mark{})
		}
	case *CuratorResult:
		s.Delta.propose(r)
	case *PersistResult:
		s.Delta.merge(r)
	}
}

// recordMisfit records as much of the result of a failed step as could be read.
func (s *State) recordMisfit(f Fact) {
	if f.Result == nil {
		return
	}
	s.record(f)
	if st := s.step(f.Step); st != nil {
		st.Status, st.misfit = StatusFailed, true
	}
}

func (s *State) fail(p Phase, f Failure) {
	s.failStep(p, f)
	if f.Type == TypeBudget && s.Input.Budget != nil {
		s.setStatus(p, StatusUnfinished)
		s.stop(f.Message)
		return
	}
	s.Failure, s.Reported = &f, f.Kind
}

// stop ends a run whose budget is spent before its next step.
func (s *State) stop(why string) {
	again := s.Passes.last() != nil
	if again && s.Passes.last().Usage == (Usage{}) {
		s.Passes = s.Passes[:len(s.Passes)-1] // the pass did not begin
	}
	s.Stopped = why
	s.Reported = Completed
	s.Phase = PhaseDone
	for i := range s.Steps {
		switch st := &s.Steps[i]; {
		case again && st.Status == StatusRunning:
			st.Status = StatusDone // in the previous pass
		case st.Status == StatusPending || st.Status == StatusRunning:
			st.Status = StatusNotReached
		}
	}
}

// Verdict returns the verdict on the answer so far, or "" before the input is known.
func (s *State) Verdict() Verdict {
	if len(s.Steps) == 0 {
		return ""
	}
	return VerdictOf(s.Input.Label != nil, s.Correct)
}

// ExitStatus returns the value that the run itself writes to [AttrExit].
func (s *State) ExitStatus() ExitStatus { return ExitOf(s.Reported, s.Verdict()) }

// Clone returns a copy that later calls of Apply on s do not change.
func (s *State) Clone() *State {
	c := *s
	c.Steps = slices.Clone(s.Steps)
	c.ToolCalls = s.ToolCalls.clone()
	c.observed = s.observed.clone()
	return &c
}
