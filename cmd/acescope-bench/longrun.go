package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"

	"acescope/engine/ace"
	embedded "acescope/engine/temporal/server"
	"acescope/sources/historytest"
	"acescope/sources/runstest"
)

// Variants of a long run.
const (
	simulated      = "simulated"
	embeddedServer = "embedded"
)

// longClient is a client of a server with one run of a long history. It notes when the
// server's first page of events read backwards came, which only the timeline reads.
type longClient struct {
	client.Client
	namespace string
	at        atomic.Int64
}

func (c *longClient) first() time.Time { return time.Unix(0, c.at.Load()) }

func (c *longClient) WorkflowService() workflowservice.WorkflowServiceClient {
	return noting{c.Client.WorkflowService(), c}
}

type noting struct {
	workflowservice.WorkflowServiceClient
	c *longClient
}

func (n noting) GetWorkflowExecutionHistoryReverse(ctx context.Context, q *workflowservice.GetWorkflowExecutionHistoryReverseRequest, o ...grpc.CallOption) (*workflowservice.GetWorkflowExecutionHistoryReverseResponse, error) {
	answer, err := n.WorkflowServiceClient.GetWorkflowExecutionHistoryReverse(ctx, q, o...)
	n.c.at.CompareAndSwap(0, time.Now().UnixNano())
	return answer, err
}

// oneRun lists one run, whose history another client has.
type oneRun struct {
	*historytest.Client
	list *runstest.Client
}

func (o oneRun) ListWorkflow(ctx context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return o.list.ListWorkflow(ctx, r)
}

func (o oneRun) CountWorkflow(ctx context.Context, r *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	return o.list.CountWorkflow(ctx, r)
}

func (o oneRun) QueryWorkflow(ctx context.Context, id, runID, name string, args ...any) (converter.EncodedValue, error) {
	return o.list.QueryWorkflow(ctx, id, runID, name, args...)
}

func (o oneRun) CheckHealth(ctx context.Context, r *client.CheckHealthRequest) (*client.CheckHealthResponse, error) {
	return o.list.CheckHealth(ctx, r)
}

func (o oneRun) OperatorService() operatorservice.OperatorServiceClient {
	return o.list.OperatorService()
}

func longRun(ctx context.Context, s spec) (c *longClient, stop func(), err error) {
	if s.Variant == simulated {
		h := historytest.NewClient()
		h.Put(runstest.RunID(0), historytest.Long(historyEvents).Events...)
		return &longClient{Client: oneRun{h, runstest.New(1)}, namespace: "bench"}, func() {}, nil
	}
	node, err := embedded.Join(ctx, embedded.Options{Dir: s.Dir, Version: "bench"}) // where another process hosts
	if err != nil {
		return nil, nil, err
	}
	dialled, err := node.Dial(ctx)
	return &longClient{Client: dialled, namespace: ace.DefaultNamespace}, func() { dialled.Close(); leave(node) }, err
}

func leave(node *embedded.Node) {
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	_ = node.Close(ctx)
}

// What one turn of the long workflow does. A history may have 51,200 events.
const (
	longQueue   = "long"
	turnTimers  = 60 // side by side, two events each
	turnMarkers = 200
	turnSteps   = 10 // activities, three events each
)

type longState struct {
	Turn      int
	Rationale string
}

const rationale = "net income divided by shareholders' equity, as a fraction"

// longWorkflow has a history of so many events, like that of an agent that goes on and
// on: activities, timers and markers.
func longWorkflow(ctx workflow.Context, events int) (int, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	turn := 0
	for ; workflow.GetInfo(ctx).GetCurrentHistoryLength() < events; turn++ {
		var waiting []workflow.Future
		for range turnTimers {
			waiting = append(waiting, workflow.NewTimer(ctx, time.Millisecond))
		}
		for n := range turnSteps {
			waiting = append(waiting, workflow.ExecuteActivity(ctx, ace.Steps()[n%len(ace.Steps())].Activity(), longState{turn, rationale}))
		}
		for range turnMarkers {
			workflow.SideEffect(ctx, func(workflow.Context) any { return longState{turn, rationale} })
		}
		for _, f := range waiting {
			if err := f.Get(ctx, nil); err != nil {
				return turn, err
			}
		}
	}
	return turn, nil
}

// makeLong is the child that makes a data directory with such a run.
func makeLong(ctx context.Context, s spec) error {
	node, err := embedded.Join(ctx, embedded.Options{Dir: s.Dir, Version: "bench"})
	if err != nil {
		return err
	}
	defer leave(node)
	c, err := node.Dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	w := worker.New(c, longQueue, worker.Options{})
	w.RegisterWorkflow(longWorkflow)
	for _, step := range ace.Steps() {
		w.RegisterActivityWithOptions(func(_ context.Context, in longState) (longState, error) { return in, nil }, activity.RegisterOptions{Name: step.Activity()})
	}
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "long", TaskQueue: longQueue}, longWorkflow, historyEvents)
	if err != nil {
		return err
	}
	if err := run.Get(ctx, nil); err != nil {
		return err
	}
	d, err := c.DescribeWorkflowExecution(ctx, run.GetID(), run.GetRunID())
	if err != nil {
		return fmt.Errorf("describe: %w", err)
	}
	return tell(struct{ Events int64 }{d.GetWorkflowExecutionInfo().GetHistoryLength()})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
