package mcp

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"acescope/engine/tasks/run"
)

// Approval is a step of a flow that waits for the decision of a user.
type Approval struct {
	RunID   string    `json:"run_id"` // as users refer to the run
	Flow    string    `json:"flow"`
	Step    string    `json:"step"` // path
	Message string    `json:"message"`
	Since   time.Time `json:"since,omitzero"`
}

// Decision is the answer to an [Approval].
type Decision struct {
	RunID    string `json:"run_id"`
	Step     string `json:"step"` // path; "" if only one step waits
	Approved bool   `json:"approved"`
	Comment  string `json:"comment,omitempty"`
	By       string `json:"by"`
}

// Approvals lists the steps of flows that wait for a decision, and sends decisions to them.
type Approvals interface {
	// Waiting lists the waiting steps, the longest waiting first. more is set if the list is truncated.
	Waiting(ctx context.Context) (list []Approval, more bool, err error)
	// Decide sends a decision and returns it with its step. The error is [run.ErrNotFound] if no step waits.
	Decide(ctx context.Context, d Decision) (Decision, error)
}

func (s *Server) approvals(ctx context.Context, _ call, _ struct{}) (any, error) {
	list := []Approval{}
	more := false
	if s.o.Approvals != nil {
		waiting, left, err := s.o.Approvals.Waiting(ctx)
		if err != nil {
			return nil, err
		}
		list = append(list, waiting...)
		more = left
	}
	return map[string]any{"approvals": list, "more": more}, nil
}

type decideArgs struct {
	RunID    string `json:"run_id"`
	Step     string `json:"step"`
	Approved bool   `json:"approved"`
	Comment  string `json:"comment"`
}

// decide refuses agents that acescope has started: the approval of a user must not be given by an agent of
// the flow.
func (s *Server) decide(ctx context.Context, c call, a decideArgs) (any, error) {
	if id := cmp.Or(c.caller.Run, c.caller.Session); id != "" {
		return nil, fmt.Errorf(
			"%w: this connection belongs to %s, which acescope has started: a user decides, on the run "+
				"screen or with acescope flow approve", run.ErrBadRequest, quote(id))
	}
	if s.o.Approvals == nil {
		return nil, run.ErrNotFound.Of(a.RunID)
	}
	return s.o.Approvals.Decide(ctx, Decision{RunID: a.RunID, Step: a.Step, Approved: a.Approved,
		Comment: oneLine(a.Comment),
		By:      c.by()})
}
