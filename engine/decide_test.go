package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"acescope/engine/agents/session"
	"acescope/engine/agents/session/host"
)

// TestDecisionArrives checks that a decision on a tool call counts only if the process that asked
// for it sends heartbeats afterwards.
func TestDecisionArrives(t *testing.T) {
	beat := func(attempt int32, count int64) *host.Heartbeat {
		return &host.Heartbeat{Attempt: attempt, Count: count, AgentSessionID: "a"}
	}
	for what, c := range map[string]struct {
		beats []*host.Heartbeat // of each description, the last one forever; nil: the turn has ended
		want  error
	}{
		"the process lives":            {[]*host.Heartbeat{beat(1, 4), beat(1, 4), beat(1, 5)}, nil},
		"the turn has ended":           {[]*host.Heartbeat{beat(1, 4), nil}, nil},
		"no heartbeat any more":        {[]*host.Heartbeat{beat(1, 4)}, ErrNotAsking},
		"the turn is tried again":      {[]*host.Heartbeat{beat(1, 4), beat(0, 0), beat(2, 1)}, ErrNotAsking},
		"it was tried again before":    {[]*host.Heartbeat{beat(2, 9)}, ErrNotAsking},
		"nothing was ever heard of it": {[]*host.Heartbeat{{}}, ErrNotAsking},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			err := awaitHeartbeat(t.Context(), 1, func() (*workflowservice.DescribeWorkflowExecutionResponse,
				error) {
				b := c.beats[min(calls, len(c.beats)-1)]
				calls++
				d := &workflowservice.DescribeWorkflowExecutionResponse{}
				if b != nil {
					details, err := converter.GetDefaultDataConverter().ToPayloads(b)
					if err != nil {
						return nil, err
					}
					d.PendingActivities = []*workflowpb.PendingActivityInfo{{HeartbeatDetails: details,
						ActivityType: &commonpb.ActivityType{Name: session.ActivityTurn}}}
				}
				return d, nil
			})
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := awaitHeartbeat(ctx, 1, func() (*workflowservice.DescribeWorkflowExecutionResponse, error) {
		return nil, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
