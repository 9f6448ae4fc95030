package flow

import (
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/history"
	"acescope/engine/run"
	"acescope/engine/session"
)

// graceOfSession is how long a session has to say what became of a message that was taken
// back.
const graceOfSession = time.Minute

// talk gives the run to an agent session: a new one on the machine of the runner, or the one
// that is resumed.
func (r *running) talk() {
	if r.state.Input.Type == run.ResumeSession {
		r.signal(r.state.Input.SessionID, session.SignalDeliver, r.state.Message(), func(err error) (run.Fact, bool) {
			if err != nil {
				return run.SessionGone(history.NoSession()), true
			}
			return run.Fact{Kind: run.FactSessionBegan}, true
		})
	} else {
		r.converse()
	}
	r.alarm(run.TimerLimit, r.state.TimeLimit(), run.FactTimeUp)
}

// converse begins the session. It outlives the run.
func (r *running) converse() {
	in := r.state.Session()
	ctx := workflow.WithChildOptions(r.calm, workflow.ChildWorkflowOptions{
		WorkflowID:            session.WorkflowID(in.SessionID),
		TaskQueue:             ace.TaskQueue,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		TypedSearchAttributes: SessionAttributes(in),
	})
	child := workflow.ExecuteChildWorkflow(ctx, session.Workflow, in)
	began := false
	r.await(child.GetChildWorkflowExecution(), func(f workflow.Future) (run.Fact, bool) {
		if began = f.Get(r.calm, nil) == nil; !began {
			return run.SessionGone(history.SessionTaken()), true
		}
		return run.Fact{Kind: run.FactSessionBegan}, true
	})
	r.await(child, func(f workflow.Future) (run.Fact, bool) {
		return run.SessionGone(history.SessionEnd(f.Get(r.calm, nil))), began
	})
}

// withdraw takes the run's message back from its session.
func (r *running) withdraw() {
	note := session.Note{Reason: "the run has ended", By: "run " + r.state.Input.RunID}
	if s := r.state.Stop; s != nil && s.Reason != "" {
		note.Reason = s.Reason
	}
	r.signal(r.state.Input.SessionID, session.SignalWithdraw, session.Withdraw{MessageID: r.state.Input.RunID, Note: note},
		func(error) (run.Fact, bool) { return run.Fact{}, false })
}

// signal sends a signal to a session. The run does not end before it is known whether that
// got it: the server drops what a workflow that has ended had to say.
func (r *running) signal(sessionID, name string, arg any, fact func(error) (run.Fact, bool)) {
	r.sending++
	sent := workflow.SignalExternalWorkflow(r.calm, session.WorkflowID(sessionID), "", name, arg)
	r.await(sent, func(f workflow.Future) (run.Fact, bool) {
		r.sending--
		return fact(f.Get(r.calm, nil))
	})
}

// alarm lets a fact come true after a while.
func (r *running) alarm(summary string, after time.Duration, kind run.FactKind) {
	r.await(workflow.NewTimerWithOptions(r.calm, after, workflow.TimerOptions{Summary: summary}), func(workflow.Future) (run.Fact, bool) {
		return run.Fact{Kind: kind}, true
	})
}

// endMargin is what the execution of a run may take longer than its program: that it is ended
// at its time limit is its executor's business.
const endMargin = 30 * time.Second

// onRunner sets the options of the execution of a run: once, on the queue of its runner.
func onRunner(ctx workflow.Context, s *run.State) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              s.Claim.Queue,
		ScheduleToStartTimeout: s.BeginWithin(),
		StartToCloseTimeout:    s.TimeLimit() + endMargin,
		HeartbeatTimeout:       run.HeartbeatTimeout,
		WaitForCancellation:    true,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
	})
}
