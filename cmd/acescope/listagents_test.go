//go:build unix

package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/cmd/acescope/internal/cli"
	"acescope/sources/runs"
)

// desk is a workflow of an agent of a framework: it calls a model twice.
func desk(ctx workflow.Context) (string, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	for range 2 {
		in := map[string]any{"messages": []map[string]any{{"messageType": "USER", "text": "Sunny?"}}}
		if err := workflow.ExecuteActivity(ctx, "CallChatModel", in).Get(ctx, nil); err != nil {
			return "", err
		}
	}
	return "yes", nil
}

func callChatModel(context.Context, map[string]any) (map[string]any, error) {
	return map[string]any{"metadata": map[string]any{"usage": map[string]int{"prompt_tokens": 5,
		"completion_tokens": 7}}}, nil
}

// The list of runs has what agents of other workflow types did, as does a filter and an order on it.
func TestListAgents(t *testing.T) {
	t.Parallel()
	e, dir := hostEngine(t, true)
	w := worker.New(e.Client, "desk", worker.Options{})
	w.RegisterWorkflowWithOptions(desk, workflow.RegisterOptions{Name: "Desk"})
	w.RegisterActivityWithOptions(callChatModel, activity.RegisterOptions{Name: "CallChatModel"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	o := client.StartWorkflowOptions{ID: "desk-1", TaskQueue: "desk"}
	run, err := e.Client.ExecuteWorkflow(t.Context(), o, "Desk")
	if err == nil {
		err = run.Get(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	output := func(args ...string) string {
		t.Helper()
		term := openTerminal(t, dir, 1200, 20, append([]string{"list"}, args...)...)
		if code := term.exits(); code != cli.ExitFine {
			t.Errorf("%v: exit code %d", args, code)
		}
		return term.screen.String()
	}
	var line runs.Run
	for line.RunID == "" || line.Open() { // visibility lags behind
		first, _, _ := strings.Cut(strings.TrimSpace(output("--json")), "\n")
		if first != "" {
			if err := json.Unmarshal([]byte(first), &line); err != nil {
				t.Fatalf("%v: %s", err, first)
			}
		}
	}
	if line.Trace == nil || line.Trace.Sum.Requests != 2 || line.Trace.Sum.Tokens() != 24 {
		t.Errorf("trace %+v", line.Trace)
	}
	for _, args := range [][]string{nil, {"-q", "tokens>20"}, {"--sort", "calls", "--columns", "task,calls,tokens"}} {
		if table := output(args...); !strings.Contains(table, "CALLS") || !strings.Contains(table, "24") {
			t.Errorf("%v: %s", args, table)
		}
	}
	if table := output("-q", "tokens>24"); strings.Contains(table, "CALLS") {
		t.Errorf("more than 24 tokens: %s", table)
	}
	if json := output("--json", "--histories", "0"); strings.Contains(json, `"trace"`) {
		t.Errorf("a history was read: %s", json)
	}
}
