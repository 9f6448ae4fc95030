package ace

import (
	"cmp"
	"slices"
)

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
	// Unread names the parts of the result that could not be read.
	Unread []string `json:"unread,omitempty"`

	misfit bool // the step failed only because its result does not fit the contract
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

// Execution is the progress of a run: its steps, their usage, and its status.
//
// The statuses of steps follow the history: a step is reached if its activity was scheduled, and the close of
// the run ends the steps that are still open. Workflows of other programs may skip, repeat and overlap steps,
// and survive the failure of one.
type Execution struct {
	Phase           Phase
	Steps           []StepState
	Usage           Usage
	Failure         *Failure
	CancelRequested bool
	Stopped         string // why steps were not executed, "" if all were
	Reported        Status // with which the run itself will close; Running until it is known
	ClosedAs        Status // with which the server closed the run, "" while it is open

	scheduled uint8 // bit i: the activity of step i was scheduled, or an observer reported the step
}

// stepBit returns the bit of a step in [Execution].scheduled.
func stepBit(p Phase) uint8 {
	if i := slices.Index(Steps(), p); i >= 0 {
		return 1 << i
	}
	return 0
}

// Status returns the server's record of the run: Running until it is closed.
func (x *Execution) Status() Status { return cmp.Or(x.ClosedAs, Running) }

func (x *Execution) step(p Phase) *StepState {
	for i := range x.Steps {
		if x.Steps[i].Phase == p {
			return &x.Steps[i]
		}
	}
	return nil
}

// setStatus sets the status of a step, if the run has it.
func (x *Execution) setStatus(p Phase, status string) {
	if st := x.step(p); st != nil {
		st.Status = status
	}
}

func (x *Execution) enter(p Phase) {
	x.Phase = p
	x.setStatus(p, StatusRunning)
}

// isPast reports whether a later step than p has begun.
func (x *Execution) isPast(p Phase) bool {
	return x.Phase == PhaseDone || slices.Index(Steps(), p) < slices.Index(Steps(), x.Phase)
}

// record replaces the state of a step. If the step belongs to a pass, again is set, and record adds the usage
// and the times of earlier executions.
func (x *Execution) record(step StepState, again bool) {
	if step.Usage != nil && !step.Reused {
		x.Usage = x.Usage.Add(*step.Usage)
	}
	if st := x.step(step.Phase); st != nil {
		if again {
			step.add(*st)
		}
		*st = step
	}
}

// failStep records the failure of a step and its usage.
func (x *Execution) failStep(p Phase, f Failure) {
	st := x.step(p)
	if st == nil {
		return
	}
	st.Status = StatusFailed
	st.EarlierCalls = st.CallLogs()
	st.Calls = f.Calls
	if f.Kind == Canceled {
		st.Status = StatusCanceled
	}
	if f.Calls != nil && f.Calls.Usage != nil {
		spent := *f.Calls.Usage
		x.Usage = x.Usage.Add(spent)
		if st.Usage != nil { // of earlier passes
			spent = st.Usage.Add(spent)
		}
		st.Usage = &spent
	}
}

// survive drops the failure of a step that the run survived. A result that does not fit the contract then
// did not fail the step.
func (x *Execution) survive() {
	if x.Failure == nil && x.Phase != PhaseDone {
		return
	}
	x.Failure, x.Reported = nil, Running
	for i := range x.Steps {
		if st := &x.Steps[i]; st.misfit {
			st.Status, st.misfit = StatusDone, false
		}
	}
}

// openSteps maps the status of a closed run to the status of the steps that were open when it closed.
var openSteps = map[Status]string{
	Completed: StatusUnfinished, Failed: StatusFailed, Canceled: StatusCanceled, Terminated: StatusTerminated,
	TimedOut: StatusTimedOut,
}

// closeSteps ends the open steps of a closed run. The steps of a run that continued as new stay open.
func (x *Execution) closeSteps() {
	openAs := openSteps[x.ClosedAs]
	for i := range x.Steps {
		st := &x.Steps[i]
		switch {
		case openAs == "" || st.Status != StatusPending && st.Status != StatusRunning:
		case x.scheduled&stepBit(st.Phase) == 0, st.Status == StatusPending:
			st.Status = StatusNotReached
		default:
			st.Status = openAs
		}
	}
}

// expected returns the steps. An observed run that began with another phase than the generator is not an ACE
// loop but, for example, the session of a coding agent: phases that it did not report are not expected.
func (x *Execution) expected(observed bool) []StepState {
	steps := append([]StepState{}, x.Steps...)
	unreported := func(st StepState) bool {
		return st.Status == StatusPending || st.Status == StatusNotReached
	}
	first := slices.IndexFunc(steps, func(st StepState) bool { return !unreported(st) })
	if !observed || first < 1 {
		return steps
	}
	return slices.DeleteFunc(steps, unreported)
}

// Completed returns the state of the step that the fact completes, without its earlier executions.
func (f Fact) Completed() StepState {
	st := StepState{Phase: f.Step, Status: StatusDone, Unread: f.Unread}
	if result, ok := f.Result.(interface{ report() StepReport }); ok {
		r := result.report()
		st.Usage = r.Usage
		st.Time = r.Time
		st.Parsed = r.Parsed
		st.Served = r.Served
		st.Calls = r.Calls
	}
	return st
}
