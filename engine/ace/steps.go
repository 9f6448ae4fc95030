package ace

import "slices"

// The statuses of steps follow the history: a step is reached if its activity was scheduled,
// and the close of the run ends the steps that are still open. Workflows of other programs may skip,
// repeat and overlap steps, and survive the failure of one.

// stepBit returns the bit of a step in [State].scheduled.
func stepBit(p Phase) uint8 {
	if i := slices.Index(Steps(), p); i >= 0 {
		return 1 << i
	}
	return 0
}

// schedule begins a step. A step that was only expected to be next is not reached yet.
func (s *State) schedule(p Phase) {
	if len(s.Steps) == 0 {
		s.addSteps()
	}
	s.goOn()
	if st := s.step(s.Phase); st != nil && s.scheduled&stepBit(s.Phase) == 0 && st.Status == StatusRunning {
		st.Status = StatusPending
	}
	if p == PhasePersist {
		s.closeReview()
	}
	s.scheduled |= stepBit(p)
	s.enter(p)
}

// goOn drops the failure of a step that the run survived. A result that does not fit the contract then
// did not fail the step.
func (s *State) goOn() {
	if s.Failure == nil && s.Phase != PhaseDone {
		return
	}
	s.Failure, s.Reported = nil, Running
	for i := range s.Steps {
		if st := &s.Steps[i]; st.misfit {
			st.Status, st.misfit = StatusDone, false
		}
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

// close applies the server's record of the end, which outranks the steps.
func (s *State) close(f Fact) {
	s.ClosedAs = f.Status
	if f.Status == Completed {
		if s.Failure != nil {
			s.goOn()
		}
		if len(s.Steps) > 0 {
			s.Phase = PhaseDone
		}
	}
	if f.Failure != nil && (s.Failure == nil || s.Failure.Message != f.Failure.Message) {
		s.Failure = f.Failure
	}
	s.closeSteps()
}

// openSteps are the statuses of the steps that were open when a run closed with a status.
var openSteps = map[Status]string{
	Completed: StatusUnfinished, Failed: StatusFailed, Canceled: StatusCanceled, Terminated: StatusTerminated,
	TimedOut: StatusTimedOut,
}

// closeSteps ends the open steps of a closed run. Those of a run that continued as new stay open.
func (s *State) closeSteps() {
	openAs := openSteps[s.ClosedAs]
	for i := range s.Steps {
		st := &s.Steps[i]
		switch {
		case openAs == "" || st.Status != StatusPending && st.Status != StatusRunning:
		case s.scheduled&stepBit(st.Phase) == 0, st.Status == StatusPending:
			st.Status = StatusNotReached
		default:
			st.Status = openAs
		}
	}
}
