//go:build unix

package main

import (
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/cmd/acescope/internal/cli"
)

// A run of a workflow type that acescope does not know may have called models and tools: no command says that
// it called none.
func TestForeignCalls(t *testing.T) {
	t.Parallel()
	e, dir := hostEngine(t, true)
	options := client.StartWorkflowOptions{ID: "theirs", TaskQueue: "unserved"}
	_, err := e.Client.ExecuteWorkflow(t.Context(), options, "TheirAgent")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"prompts", "theirs"}, {"show", "theirs", "--calls"},
		{"show", "theirs", "--call", "c1"}} {
		term := openTerminal(t, dir, 300, 20, args...)
		code := term.exits()
		output := term.screen.String()
		if code != cli.ExitNotFound || !strings.Contains(output, "that acescope recorded") ||
			!strings.Contains(output, "calls of workflows of type TheirAgent") ||
			!strings.Contains(output, `"acescope timeline theirs --events" lists`) ||
			strings.Contains(output, "no step") {
			t.Errorf("%v: exit code %d, output:\n%s", args, code, output)
		}
	}
	term := openTerminal(t, dir, 300, 20, "timeline", "theirs", "--events")
	if code := term.exits(); code != cli.ExitFine {
		t.Errorf("exit code %d, output:\n%s", code, term.screen.String())
	}
}

// A worker says what its workflow offers: show describes it, query lists and asks it.
func TestQuery(t *testing.T) {
	t.Parallel()
	e, dir := hostEngine(t, true)
	w := worker.New(e.Client, "orders", worker.Options{})
	w.RegisterWorkflowWithOptions(orderWorkflow, workflow.RegisterOptions{Name: "OrderWorkflow"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	_, err := e.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "order-7",
		TaskQueue: "orders", Priority: temporal.Priority{PriorityKey: 2, FairnessKey: "acme"}}, "OrderWorkflow")
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "unserved",
		TaskQueue: "unserved"}, "OrderWorkflow")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"show order-7", cli.ExitFine, []string{"Offered by the worker", "query items", "lists the items",
			"update add", "signal cancel_order", "Current details", "waits for payment", "2, fairness key acme"}},
		{"query order-7", cli.ExitFine, []string{"query   items  lists the items", "signal  cancel_order"}},
		{"query order-7 --json", cli.ExitFine,
			[]string{`{"type":"offer","kind":"query","name":"items","description":"lists the items"}`}},
		{`query order-7 items "open"`, cli.ExitFine, []string{`"open book"`}},
		{`query order-7 items "open" --json`, cli.ExitFine,
			[]string{`"query":"items","answer":["open book","open pen"]}`}},
		{"query order-7 missing", cli.ExitFailed, []string{"missing", "acescope query order-7"}},
		{"query order-7 items {", cli.ExitUsage, []string{"the argument is not JSON"}},
		{"query unserved items", cli.ExitUnreachable, []string{"no worker of unserved answers items"}},
		{"query nosuch", cli.ExitNotFound, []string{"nosuch"}},
	} {
		term := openTerminal(t, dir, 300, 60, strings.Fields(c.args)...)
		code := term.exits()
		output := term.screen.String()
		if code != c.code {
			t.Errorf("%s: exit code %d", c.args, code)
		}
		for _, want := range c.want {
			if !strings.Contains(output, want) {
				t.Errorf("%s: no %q in\n%s", c.args, want, output)
			}
		}
	}
}

func orderWorkflow(ctx workflow.Context) error {
	workflow.SetCurrentDetails(ctx, "waits for payment")
	err := workflow.SetQueryHandlerWithOptions(ctx, "items", func(state string) ([]string, error) {
		return []string{state + " book", state + " pen"}, nil
	}, workflow.QueryHandlerOptions{Description: "lists the items"})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandler(ctx, "add", func(workflow.Context, string) error { return nil })
	if err != nil {
		return err
	}
	cancels := workflow.GetSignalChannelWithOptions(ctx, "cancel_order", workflow.SignalChannelOptions{})
	cancels.Receive(ctx, nil)
	return nil
}
