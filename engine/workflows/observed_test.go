package workflows_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/temporal/searchattr"
	"acescope/engine/workflows"
)

// watch executes an observed run whose batches arrive one second apart.
func watch(t *testing.T, in ace.TaskInput, prepare func(*testsuite.TestWorkflowEnvironment),
	batches ...[]ace.ToolEvent) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterWorkflowWithOptions(workflows.Task, workflow.RegisterOptions{Name: ace.TaskWorkflow})
	in.TaskID, in.Observed = "o", true
	for i, b := range batches {
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(ace.SignalToolEvent, b) },
			time.Duration(i+1)*time.Second)
	}
	if prepare != nil {
		prepare(env)
	}
	env.ExecuteWorkflow(ace.TaskWorkflow, in)
	return env
}

func toolUse(n int) ace.ToolEvent {
	return ace.ToolEvent{EventID: fmt.Sprint(n), Seq: int64(n), Kind: ace.KindToolUse, Name: "look"}
}

func finish(n int, result string) ace.ToolEvent {
	return ace.ToolEvent{EventID: fmt.Sprint(n), Seq: int64(n), Kind: ace.KindFinish,
		Result: json.RawMessage(result)}
}

// TestObservedEnds checks how an observed run closes.
func TestObservedEnds(t *testing.T) {
	var r ace.TaskResult
	env := watch(t, ace.TaskInput{}, nil, []ace.ToolEvent{toolUse(1)},
		[]ace.ToolEvent{finish(3, `{"answer": "7"}`)})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if err := env.GetWorkflowResult(&r); err != nil || r.ExitStatus != ace.ExitSuccess || r.Answer != "7" ||
		r.Summary.Skills != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	var app *temporal.ApplicationError
	env = watch(t, ace.TaskInput{}, nil, []ace.ToolEvent{finish(1, `{"exit_status": "failed"}`)})
	if err := env.GetWorkflowError(); !errors.As(err, &app) || app.Type() != ace.TypeObserved ||
		!app.NonRetryable() {
		t.Errorf("failed: %v", err)
	}
	var canceled *temporal.CanceledError
	env = watch(t, ace.TaskInput{}, nil, []ace.ToolEvent{finish(1, `{"exit_status": "cancelled"}`)})
	if err := env.GetWorkflowError(); !errors.As(err, &canceled) {
		t.Errorf("canceled by its observer: %v", err)
	}
	env = watch(t, ace.TaskInput{}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(env.CancelWorkflow, time.Hour)
	}, []ace.ToolEvent{toolUse(1)})
	if err := env.GetWorkflowError(); !errors.As(err, &canceled) {
		t.Errorf("canceled by a user: %v", err)
	}
	start := time.Time{}
	env = watch(t, ace.TaskInput{Observation: ace.Observation{IdleMS: 5000}},
		func(env *testsuite.TestWorkflowEnvironment) { start = env.Now() }, []ace.ToolEvent{toolUse(1)},
		[]ace.ToolEvent{toolUse(2)}, []ace.ToolEvent{toolUse(3)})
	if err := env.GetWorkflowError(); !errors.As(err, &app) || app.Type() != ace.TypeIdleTimeout ||
		app.Message() != "no event received for 5s" {
		t.Errorf("silent: %v", err)
	}
	if took := env.Now().Sub(start); took < 8*time.Second || took > 9*time.Second {
		t.Errorf("it was given up after %s", took)
	}
}

// TestObservedContinuesAsNew checks that a long run continues as new with its state.
func TestObservedContinuesAsNew(t *testing.T) {
	env := watch(t, ace.TaskInput{Prompt: "p"}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() { env.SetContinueAsNewSuggested(true) }, 1500*time.Millisecond)
	}, []ace.ToolEvent{toolUse(1)}, []ace.ToolEvent{toolUse(2), toolUse(1)})
	var next *workflow.ContinueAsNewError
	if err := env.GetWorkflowError(); !errors.As(err, &next) {
		t.Fatal(err)
	}
	var in ace.TaskInput
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &in); err != nil {
		t.Fatal(err)
	}
	env = watch(t, in, nil, []ace.ToolEvent{toolUse(2), toolUse(3)}, []ace.ToolEvent{finish(9, `{}`)})
	var r ace.TaskResult
	if err := env.GetWorkflowResult(&r); err != nil || r.Summary.Skills != 3 || in.Prompt != "p" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestObservedModel checks that the model and the usage that an observer reports are those of the run.
func TestObservedModel(t *testing.T) {
	usage := func(n int, result string) ace.ToolEvent {
		return ace.ToolEvent{EventID: fmt.Sprint(n), Seq: int64(n), Kind: ace.KindUsage, Name: "skills",
			Result: json.RawMessage(result)}
	}
	env := watch(t, ace.TaskInput{}, func(env *testsuite.TestWorkflowEnvironment) {
		for _, model := range []string{"sonnet", "opus"} {
			attributes := temporal.NewSearchAttributes(searchattr.Keyword(ace.AttrModel, model))
			env.OnUpsertTypedSearchAttributes(attributes).Return(nil).Once()
		}
		env.OnUpsertTypedSearchAttributes(anything).Return(nil)
	},
		[]ace.ToolEvent{usage(
			1, `{"model": "sonnet", "usage": {"output_tokens": 5, "cost_usd": 0.1}, "started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:00:02Z"}`)},
		[]ace.ToolEvent{usage(
			2, `{"model": "opus", "usage": {"output_tokens": 9, "cost_usd": 0.5}, "started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:01:00Z"}`)},
		[]ace.ToolEvent{finish(3, `{}`)})
	var r ace.TaskResult
	if err := env.GetWorkflowResult(&r); err != nil {
		t.Fatal(err)
	}
	env.AssertExpectations(t)
	if r.Summary.Usage != (ace.Usage{OutputTokens: 9, CostUSD: 0.5}) ||
		r.Summary.PhaseMS.Skills != 60_000 || r.Summary.EndedAt.IsZero() {
		t.Errorf("summary %+v", r.Summary)
	}
}
