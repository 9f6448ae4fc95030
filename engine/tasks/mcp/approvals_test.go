package mcp

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"acescope/engine/tasks/run"
)

// fakeApprovals has one step that waits.
type fakeApprovals struct{ decided []Decision }

func (f *fakeApprovals) Waiting(context.Context) ([]Approval, bool, error) {
	return []Approval{{RunID: "release-1", Flow: "release", Step: "decide", Message: "Publish?",
			Since: time.Unix(1, 0).UTC()}},
		false, nil
}

func (f *fakeApprovals) Decide(_ context.Context, d Decision) (Decision, error) {
	if d.RunID != "release-1" {
		return d, fmt.Errorf("%w: %s", run.ErrNotFound, d.RunID)
	}
	d.Step = "decide"
	f.decided = append(f.decided, d)
	return d, nil
}

func TestApprovals(t *testing.T) {
	f := &fakeApprovals{}
	c := client(t, newFake(), Options{Approvals: f}, nil)
	out, _ := said(t, c, "list_approvals", nil)
	want := "[map[flow:release message:Publish? run_id:release-1 since:1970-01-01T00:00:01Z step:decide]]"
	if got := fmt.Sprint(out["approvals"]); got != want || out["more"] != false {
		t.Errorf("%s, want %s", got, want)
	}
	out, _ = said(t, c, "decide_approval", map[string]any{"run_id": "release-1", "approved": false,
		"comment": "not\nyet"})
	if out["step"] != "decide" || out["approved"] != false || len(f.decided) != 1 ||
		f.decided[0].Comment != "not yet" ||
		f.decided[0].By != "mcp test client" {
		t.Errorf("%v, %+v", out, f.decided)
	}
	if _, wrong := said(t, c, "decide_approval",
		map[string]any{"run_id": "x", "approved": true}); !strings.Contains(wrong, "x") {
		t.Errorf("an unknown run: %q", wrong)
	}
	if _, wrong := said(t, c, "decide_approval",
		map[string]any{"run_id": "release-1"}); !strings.Contains(wrong, "approved") {
		t.Errorf("no decision: %q", wrong)
	}
}

// An agent that acescope has started cannot approve what its own flow asks a person.
func TestAgentsCannotApprove(t *testing.T) {
	f := &fakeApprovals{}
	for _, caller := range []Caller{{Session: "ses_1"}, {Run: "r-1"}} {
		c := client(t, newFake(), Options{Approvals: f, Caller: caller}, nil)
		_, wrong := said(t, c, "decide_approval", map[string]any{"run_id": "release-1", "approved": true})
		if !strings.Contains(wrong, "a user decides") || len(f.decided) != 0 {
			t.Errorf("%+v: %q, %+v", caller, wrong, f.decided)
		}
	}
}
