package histories

import (
	"testing"
	"time"

	"acescope/engine/ace"
	"acescope/sources/runs"
)

// List and preview are read independently. Whichever knows that the run has closed wins.
func TestReconcile(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	open := runs.Run{WorkflowID: "w", RunID: "r", Status: ace.Running}
	closed := runs.Run{WorkflowID: "w", RunID: "r", Status: ace.Completed, Verdict: ace.Wrong, Close: at}
	running, done := &Detail{WorkflowID: "w", RunID: "r"}, &Detail{WorkflowID: "w", RunID: "r", Close: at}
	running.Phase.Status, done.Phase.Status, done.Phase.Verdict = ace.Running, ace.Completed, ace.Wrong
	if r, _ := Reconcile(open, done); r.Status != ace.Completed || r.Verdict != ace.Wrong || r.Open() {
		t.Errorf("the list says %+v", r)
	}
	if _, d := Reconcile(closed, running); d.Phase.Status != ace.Completed || d.Phase.Verdict != ace.Wrong ||
		d.Close != at {
		t.Errorf("the preview says %+v", d.Phase)
	}
	if running.Phase.Status != ace.Running {
		t.Error("the value of the feed was changed")
	}
	other := *done
	other.RunID = "other"
	if r, _ := Reconcile(open, &other); r.Status != ace.Running {
		t.Error("the detail of another run was used")
	}
}
