package ace_test

import (
	"encoding/json"
	"testing"

	"acescope/engine/ace"
)

// The search attribute follows from status and verdict, and never the other way round where it says less.
func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		status  ace.Status
		verdict ace.Verdict
		want    ace.ExitStatus
	}{
		{ace.Running, "", ace.ExitRunning}, {ace.Completed, ace.Correct, ace.ExitSuccess},
		{ace.Completed, ace.Unlabeled, ace.ExitSuccess}, {ace.Completed, ace.Wrong, ace.ExitWrong},
		{ace.Failed, ace.Wrong, ace.ExitFailed}, {ace.Terminated, ace.Correct, ace.ExitFailed},
		{ace.Canceled, ace.Ungraded, ace.ExitCanceled}, {ace.TimedOut, "", ace.ExitTimeout},
	} {
		if got := ace.ExitOf(c.status, c.verdict); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.status, c.verdict, got, c.want)
		}
	}
	for _, e := range ace.ExitStatuses() {
		if status, verdict := e.Split(); ace.ExitOf(status, verdict) != e {
			t.Errorf("%s is split to %s, %s", e, status, verdict)
		}
	}
}

// Payloads of earlier versions hold the words of the search attribute.
func TestStatusReadsOldPayloads(t *testing.T) {
	var f ace.Failure
	for old, want := range map[string]ace.Status{"cancelled": ace.Canceled, "timeout": ace.TimedOut,
		"failed":  ace.Failed,
		"success": ace.Completed, "terminated": ace.Terminated, "odd": "odd"} {
		if err := json.Unmarshal([]byte(`{"kind": "`+old+`"}`), &f); err != nil || f.Kind != want {
			t.Errorf("%s: %s, %v", old, f.Kind, err)
		}
	}
}

func TestVerdictOf(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		labeled bool
		correct *bool
		want    ace.Verdict
	}{{true, &yes, ace.Correct}, {false, &no, ace.Wrong}, {true, nil, ace.Ungraded},
		{false, nil, ace.Unlabeled}} {
		if got := ace.VerdictOf(c.labeled, c.correct); got != c.want {
			t.Errorf("%v, %v: %s, want %s", c.labeled, c.correct, got, c.want)
		}
	}
}

// The server decides whether a run has closed, and how: a run whose last step is done may still be stuck.
func TestServerDecidesTheStatus(t *testing.T) {
	var done ace.State
	done.Apply(ace.Started(ace.TaskInput{}))
	for _, step := range ace.Steps() {
		done.Apply(ace.StepCompleted(step, []byte("{}")))
	}
	if done.Phase != ace.PhaseDone || done.Status() != ace.Running {
		t.Errorf("an open run is %s", done.Status())
	}
	done.Apply(ace.Closed(ace.TimedOut, nil))
	if done.Status() != ace.TimedOut {
		t.Errorf("a run that timed out is %s", done.Status())
	}
}

// A failed run may have given a correct answer.
func TestVerdictIsNoStatus(t *testing.T) {
	label := "1"
	var s ace.State
	s.Apply(ace.Started(ace.TaskInput{Label: &label}))
	if s.Verdict() != ace.Ungraded {
		t.Errorf("before the reflector: %s", s.Verdict())
	}
	s.Apply(ace.StepCompleted(ace.PhaseReflector, []byte(`{"correct": true}`)))
	s.Apply(ace.StepFailed(ace.PhaseCurator, ace.Failure{Kind: ace.Failed}))
	s.Apply(ace.Closed(ace.Failed, nil))
	if s.Status() != ace.Failed || s.Verdict() != ace.Correct || s.ExitStatus() != ace.ExitFailed {
		t.Errorf("%s, %s, %s", s.Status(), s.Verdict(), s.ExitStatus())
	}
}
