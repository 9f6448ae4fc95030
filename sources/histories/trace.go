package histories

import (
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
)

// Trace is what a history tells of a run beyond the contract's answers: each call whole,
// activities with their attempts, the chain of failures, and what comes before and after.
type Trace struct {
	calls      callFolder
	activities activityFolder
	sealed     sealedFolder
	lineage    Lineage
	clock      skewFolder
	causes     []Cause
}

// Fact is called for each fact after the state has applied it.
func (t *Trace) Fact(e *historypb.HistoryEvent, f ace.Fact, s *ace.State) {
	touched := s.ChangedCalls()
	if len(touched) > 0 && f.Kind != ace.FactToolEvents {
		if taken := s.Input.Fork.InlineResult(ace.PhaseSkills); taken != nil {
			f.Result = ace.StepCompleted(ace.PhaseSkills, taken).Result // of the run that this one was forked from
		}
	}
	t.calls.apply(e.GetEventId(), f, touched)
}

// Event is called for each event.
func (t *Trace) Event(e *historypb.HistoryEvent) {
	t.activities.apply(e)
	t.sealed.apply(e)
	t.lineage.Apply(e)
	t.clock.apply(e, time.Now())
	if f := failureOf(e); f != nil {
		t.causes = CausesOf(f)
	}
}

// failureOf is why an event closed the run.
func failureOf(e *historypb.HistoryEvent) *failurepb.Failure {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		return e.GetWorkflowExecutionFailedEventAttributes().GetFailure()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetFailure()
	}
	return nil
}

// Publish puts what is known into a detail that is handed out.
func (t *Trace) Publish(d *Detail) {
	d.Calls, d.CallLog = t.calls.publish(), t.calls.log
	d.Activities, d.ActivitiesDropped = t.activities.publish(), t.activities.dropped
	d.Sealed, d.SealedDropped = t.sealed.list[:len(t.sealed.list):len(t.sealed.list)], t.sealed.dropped
	d.Lineage, d.Causes, d.Skew = t.lineage, t.causes, t.clock.Skew
}
