package engine_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// reviewedTask is a task whose operations wait for a review.
func reviewedTask(id string, limit time.Duration) ace.TaskInput {
	in := task(id, "hello", "42")
	in.Review = &ace.Review{TimeoutMS: limit.Milliseconds()}
	in.Branch = id
	return in
}

// startReview starts a task and returns when its time limit runs.
func startReview(t *testing.T, e *engine.Engine, in ace.TaskInput) {
	t.Helper()
	if _, err := e.StartTask(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	reached(t, e, in.TaskID, enumspb.EVENT_TYPE_TIMER_STARTED, ace.TimerReview)
}

// reached returns when a run has an event, of a timer that with a summary.
func reached(t *testing.T, e *engine.Engine, id string, kind enumspb.EventType, summary string) {
	t.Helper()
	found := errors.New("found")
	err := cluster.Follow(t.Context(), e.Client, e.Namespace(), ace.WorkflowID(id), "", nil,
		func(ev *historypb.HistoryEvent) error {
			var text string
			_ = json.Unmarshal(ev.GetUserMetadata().GetSummary().GetData(), &text)
			if ev.GetEventType() == kind && text == summary {
				return found
			}
			return nil
		})
	if !errors.Is(err, found) {
		t.Fatalf("%s does not have the event: %v", id, err)
	}
}

func endOfReview(t *testing.T, e *engine.Engine, id string) (r ace.TaskResult, err error) {
	t.Helper()
	err = e.Client.GetWorkflow(t.Context(), ace.WorkflowID(id), "").Get(t.Context(), &r)
	record(t, e.Client, id)
	checkFold(t, e, id)
	return r, err
}

// TestTasksReviewed runs tasks whose operations wait for a decision. The worker stops during the first wait.
func TestTasksReviewed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := open(t, dir, newScripted())
	startReview(t, e, reviewedTask("review-approved", time.Hour))
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	e = open(t, dir, newScripted())
	decide := func(id string, d ace.ReviewDecision) error {
		return engine.DecideReview(t.Context(), e, ace.WorkflowID(id), "", d)
	}

	t.Run("approved", func(t *testing.T) {
		eventually(t, func() error { // the search attribute lags
			rows, _, err := runs.ListOnce(t.Context(), e.Client, runs.ReviewQuery, 10)
			if err == nil && (len(rows) != 1 || rows[0].Review == nil || rows[0].Review.Operations != 1) {
				err = errors.New("the run is not listed as waiting")
			}
			return err
		})
		if err := decide("review-approved", ace.ReviewDecision{By: "ann", Approve: new(true)}); err != nil {
			t.Fatal(err)
		}
		if r, err := endOfReview(t, e, "review-approved"); err != nil || r.Bullets != 1 ||
			r.Summary.Added != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		if err := decide("review-approved", ace.ReviewDecision{Approve: new(false)}); !errors.Is(err,
			engine.ErrNoReview) {
			t.Errorf("a decision after the merge: %v", err)
		}
	})
	t.Run("rejected", func(t *testing.T) {
		in := reviewedTask("review-rejected", time.Hour)
		startReview(t, e, in)
		for _, forged := range []string{`{"approve":true,"operations":[{"operation":2,"approve":true}]}`,
			`"all"`, `{}`, ""} {
			err := e.Signal(t.Context(), ace.WorkflowID(in.TaskID), "", ace.SignalReview,
				json.RawMessage(forged))
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := decide(in.TaskID, ace.ReviewDecision{By: "ann", Approve: new(false),
			Reason: "known"}); err != nil {
			t.Fatal(err)
		}
		if r, err := endOfReview(t, e, in.TaskID); err != nil || r.Bullets != 0 || r.Summary.Rejected != 2 {
			t.Fatalf("%+v, %v", r, err)
		}
		p, _, d := answers(t, e.Client, ace.WorkflowID(in.TaskID))
		if op := d.Operations[0]; op.Reason != "rejected in review by ann: known" || p.Review.Ignored != 4 {
			t.Errorf("%+v, %+v", op, p.Review)
		}
	})
	t.Run("timed out", func(t *testing.T) {
		in := reviewedTask("review-timeout", 100*time.Millisecond)
		if _, err := e.StartTask(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if r, err := endOfReview(t, e, in.TaskID); err != nil || r.Bullets != 0 || r.Summary.Rejected != 2 {
			t.Fatalf("%+v, %v", r, err)
		}
	})
	t.Run("canceled", func(t *testing.T) {
		in := reviewedTask("review-canceled", time.Hour)
		startReview(t, e, in)
		if err := e.Cancel(t.Context(), ace.WorkflowID(in.TaskID), ""); err != nil {
			t.Fatal(err)
		}
		if _, err := endOfReview(t, e, in.TaskID); err == nil {
			t.Fatal("a canceled run completed")
		}
	})
}
