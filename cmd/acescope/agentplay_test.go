package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/historyfile"
)

// playAgent runs the activities of a recorded agent on the script's host, with their recorded inputs and
// results: playagent RECORDING ID
func playAgent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: playagent RECORDING ID")
	}
	f, err := os.Open(filepath.Join("../../engine/trace/adapter/testdata", args[0]+".json"))
	ts.Check(err)
	defer f.Close()
	all, err := historyfile.Read(f)
	ts.Check(err)
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	e, err := engine.Open(ctx, engine.Options{DataDir: ts.Getenv("XDG_DATA_HOME") + "/acescope",
		Version: cli.BuildVersion()})
	ts.Check(err)
	defer func() { ts.Check(e.Close(context.Background())) }()
	p := player{events: all[0].Events, ends: map[string]history.Ending{}}
	for _, event := range p.events {
		if end, ok := history.EndingOf(event); ok {
			p.ends[strconv.FormatInt(end.Started, 10)] = end
		}
	}
	started := p.events[0].GetWorkflowExecutionStartedEventAttributes()
	w := worker.New(e.Client, args[1], worker.Options{})
	w.RegisterWorkflowWithOptions(p.run, workflow.RegisterOptions{Name: started.GetWorkflowType().GetName()})
	w.RegisterDynamicActivity(p.activity, activity.DynamicRegisterOptions{})
	ts.Check(w.Start())
	defer w.Stop()
	run, err := e.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: args[1], TaskQueue: args[1]},
		started.GetWorkflowType().GetName(), raw(started.GetInput().GetPayloads())...)
	ts.Check(err)
	_ = run.Get(ctx, nil) // the script sees how it ended
	ts.Check(ctx.Err())
}

// player is a worker that does what a history says.
type player struct {
	events []*historypb.HistoryEvent
	ends   map[string]history.Ending // of activities, by their IDs
}

func raw(payloads []*commonpb.Payload) (values []any) {
	for _, p := range payloads {
		values = append(values, converter.NewRawValue(p))
	}
	return values
}

func (p *player) run(ctx workflow.Context, _ converter.RawValue) (converter.RawValue, error) {
	var last error
	for _, e := range p.events {
		a := e.GetActivityTaskScheduledEventAttributes()
		if a == nil {
			continue
		}
		var summary string
		_ = converter.GetDefaultDataConverter().FromPayload(e.GetUserMetadata().GetSummary(), &summary)
		options := workflow.ActivityOptions{ActivityID: strconv.FormatInt(e.GetEventId(), 10),
			StartToCloseTimeout: time.Minute, Summary: summary,
			RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}}
		last = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), a.GetActivityType().GetName(),
			raw(a.GetInput().GetPayloads())...).Get(ctx, nil)
	}
	result := p.events[len(p.events)-1].GetWorkflowExecutionCompletedEventAttributes().GetResult()
	if values := result.GetPayloads(); len(values) == 1 {
		return converter.NewRawValue(values[0]), nil
	}
	return converter.RawValue{}, last
}

func (p *player) activity(ctx context.Context, _ converter.EncodedValues) (converter.RawValue, error) {
	end := p.ends[activity.GetInfo(ctx).ActivityID]
	if end.Status != history.EndCompleted {
		return converter.RawValue{}, temporal.GetDefaultFailureConverter().FailureToError(end.Failure)
	}
	return converter.NewRawValue(end.Result.GetPayloads()[0]), nil
}
