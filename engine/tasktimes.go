package engine

import (
	"context"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// localTaskTimes converts the times at which activities were scheduled to the clock of this machine. The SDK
// ends an attempt at that time plus the limit of all attempts, by the clock of this machine: if it is ahead of
// the server's clock by more than the limit, each attempt would end as it begins.
func localTaskTimes(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	err := call(ctx, method, req, reply, cc, opts...)
	var tasks []*workflowservice.PollActivityTaskQueueResponse
	switch r := reply.(type) {
	case *workflowservice.PollActivityTaskQueueResponse:
		tasks = append(tasks, r)
	case *workflowservice.RespondWorkflowTaskCompletedResponse:
		tasks = r.GetActivityTasks()
	}
	for _, t := range tasks {
		waited := t.GetStartedTime().AsTime().Sub(t.GetScheduledTime().AsTime())
		t.ScheduledTime = timestamppb.New(time.Now().Add(-waited))
	}
	return err
}
