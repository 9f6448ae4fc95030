package mcp

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"acescope/engine/tasks/run"
)

// Approval is a step of a flow that waits for a person.
type Approval struct {
	RunID   string    `json:"run_id"` // as people name the run
	Flow    string    `json:"flow"`
	Step    string    `json:"step"` // path
	Message string    `json:"message"`
	Since   time.Time `json:"since,omitzero"`
}

// Decision is the answer to an [Approval].
type Decision struct {
	RunID    string `json:"run_id"`
	Step     string `json:"step"` // of the only one that waits if it is ""
	Approved bool   `json:"approved"`
	Comment  string `json:"comment,omitempty"`
	By       string `json:"by"`
}

// Approvals are the decisions that flows wait for.
type Approvals interface {
	// Waiting lists the steps that wait, the longest waiting first. more reports that it left some out.
	Waiting(ctx context.Context) (list []Approval, more bool, err error)
	// Decide returns the decision with its step. Its error is [run.ErrNotFound] if nothing waits.
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

// decide refuses agents that acescope has started: a flow that asks for a person's approval must not be
// approved by its own agents.
func (s *Server) decide(ctx context.Context, c call, a decideArgs) (any, error) {
	if id := cmp.Or(c.caller.Run, c.caller.Session); id != "" {
		return nil, fmt.Errorf(
			"%w: this connection belongs to %s, which acescope has started: a person decides, on the run "+
				"screen or with acescope flow approve", run.ErrBadRequest, quote(id))
	}
	if s.o.Approvals == nil {
		return nil, run.ErrNotFound.Of(a.RunID)
	}
	return s.o.Approvals.Decide(ctx, Decision{RunID: a.RunID, Step: a.Step, Approved: a.Approved,
		Comment: oneLine(a.Comment),
		By:      c.by()})
}
