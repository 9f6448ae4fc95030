package ace

import "slices"

// Status is the status of a workflow execution, in Temporal's words. The server decides it, and its record
// outranks everything that is derived from payloads.
type Status string

// Statuses of a workflow execution.
const (
	Running        Status = "running"
	Completed      Status = "completed"
	Failed         Status = "failed"
	Canceled       Status = "canceled"
	Terminated     Status = "terminated"
	TimedOut       Status = "timed_out"
	ContinuedAsNew Status = "continued_as_new"
)

// Statuses lists every status, Running first.
func Statuses() []Status {
	return []Status{Running, Completed, Failed, Canceled, Terminated, TimedOut, ContinuedAsNew}
}

// Bad reports whether the run closed without completing or continuing as new.
func (s Status) Bad() bool {
	return s == Failed || s == Canceled || s == Terminated || s == TimedOut
}

// UnmarshalText also reads an [ExitStatus], which payloads of earlier versions hold.
func (s *Status) UnmarshalText(text []byte) error {
	*s = Status(text)
	if !slices.Contains(Statuses(), *s) {
		if status, _ := ExitStatus(text).Split(); status != "" {
			*s = status
		}
	}
	return nil
}

// Verdict is the verdict on the answer of a task. It says nothing about the status of the run. It is "" if it
// is unknown, and for runs without an answer.
type Verdict string

// Verdicts. An ungraded answer has a label but was not compared with it.
const (
	Correct   Verdict = "correct"
	Wrong     Verdict = "wrong"
	Unlabeled Verdict = "unlabeled"
	Ungraded  Verdict = "ungraded"
)

// Verdicts lists every verdict.
func Verdicts() []Verdict { return []Verdict{Correct, Wrong, Unlabeled, Ungraded} }

// VerdictOf returns the verdict on the answer of a task, given whether it has a label and the grade, which
// is nil if the answer was not graded.
func VerdictOf(labeled bool, correct *bool) Verdict {
	switch {
	case correct != nil && *correct:
		return Correct
	case correct != nil:
		return Wrong
	case labeled:
		return Ungraded
	}
	return Unlabeled
}

// ExitStatus is a value of the search attribute [AttrExit]. [ExitOf] derives it from status and verdict. A
// reader that has no other source for these gets them from [ExitStatus.Split].
type ExitStatus string

// Exit statuses.
const (
	ExitRunning  ExitStatus = "running"
	ExitSuccess  ExitStatus = "success"
	ExitWrong    ExitStatus = "wrong"
	ExitFailed   ExitStatus = "failed"
	ExitCanceled ExitStatus = "cancelled"
	ExitTimeout  ExitStatus = "timeout"
)

// ExitStatuses lists every exit status, ExitRunning first.
func ExitStatuses() []ExitStatus {
	return []ExitStatus{ExitRunning, ExitSuccess, ExitWrong, ExitFailed, ExitCanceled, ExitTimeout}
}

// ExitOf returns the value of [AttrExit] for a status and a verdict.
func ExitOf(s Status, v Verdict) ExitStatus {
	switch s {
	case Running, ContinuedAsNew:
		return ExitRunning
	case Completed:
		if v == Wrong {
			return ExitWrong
		}
		return ExitSuccess
	case Canceled:
		return ExitCanceled
	case TimedOut:
		return ExitTimeout
	}
	return ExitFailed
}

// Split returns the status and the verdict that the exit status states. ExitSuccess states no verdict: the
// answer was correct, or was not graded. An unknown exit status has no status.
func (e ExitStatus) Split() (Status, Verdict) {
	switch e {
	case ExitRunning:
		return Running, ""
	case ExitSuccess:
		return Completed, ""
	case ExitWrong:
		return Completed, Wrong
	case ExitFailed:
		return Failed, ""
	case ExitCanceled:
		return Canceled, ""
	case ExitTimeout:
		return TimedOut, ""
	}
	return "", ""
}
