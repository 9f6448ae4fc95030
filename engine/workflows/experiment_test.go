package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/workflows"
)

// experimentEnv is a test environment in which a function answers the tasks; the other activities
// are minimal.
type experimentEnv struct {
	*testsuite.TestWorkflowEnvironment
	started  []ace.TaskInput
	branches []ace.HeadInput
}

func newStage(answer func(ace.TaskInput) (ace.TaskResult, error)) *experimentEnv {
	var suite testsuite.WorkflowTestSuite
	s := &experimentEnv{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment()}
	s.RegisterWorkflowWithOptions(workflows.Experiment,
		workflow.RegisterOptions{Name: ace.ExperimentWorkflow})
	s.RegisterWorkflowWithOptions(func(_ workflow.Context, in ace.TaskInput) (ace.TaskResult, error) {
		s.started = append(s.started, in)
		return answer(in)
	}, workflow.RegisterOptions{Name: ace.TaskWorkflow})
	register(s, ace.ActivityHead, func(_ context.Context, in ace.HeadInput) (ace.HeadResult, error) {
		return ace.HeadResult{PlaybookHash: fmt.Sprintf("v%d", len(s.started)), Bullets: len(s.started)}, nil
	})
	register(s, ace.ActivityLoadTasks, func(_ context.Context, in ace.LoadTasksInput) (tasks []ace.Task,
		_ error) {
		for i := range in.Count {
			tasks = append(tasks, ace.Task{Index: in.From + i, Prompt: fmt.Sprintf("task %d", in.From+i)})
		}
		return tasks, nil
	})
	register(s, ace.ActivityEvaluate, func(_ context.Context, in ace.EvaluateInput) (ace.EvaluateResult,
		error) {
		return ace.EvaluateResult{Tasks: in.Count, Correct: in.Count - 1, Wrong: []int{in.From},
			Usage: ace.Usage{InputTokens: 1}}, nil
	})
	return s
}

func register(s *experimentEnv, name string, fn any) {
	s.RegisterActivityWithOptions(fn,
		activity.RegisterOptions{Name: name, DisableAlreadyRegisteredCheck: true})
}

func (s *experimentEnv) run(t *testing.T, in ace.ExperimentInput) (ace.ExperimentProgress, error) {
	t.Helper()
	s.ExecuteWorkflow(ace.ExperimentWorkflow, in)
	var p ace.ExperimentProgress
	if err := s.GetWorkflowError(); err != nil {
		return p, err
	}
	return p, s.GetWorkflowResult(&p)
}

func right(in ace.TaskInput) (ace.TaskResult, error) {
	yes := true
	return ace.TaskResult{TaskID: in.TaskID, ExitStatus: ace.ExitSuccess, Correct: &yes,
		PlaybookHash: fmt.Sprintf("after %d", in.Index), Bullets: in.Index,
		Summary: ace.Summary{Added: 1, Rejected: 2, Usage: ace.Usage{OutputTokens: 5}}}, nil
}

func experiment(tasks int) ace.ExperimentInput {
	return ace.ExperimentInput{ExperimentID: "x", Tasks: tasks, Epochs: 2, Adapter: ace.Offline, Parallel: 1,
		EvaluationPlan: ace.EvaluationPlan{Eval: &ace.Ref{}, EvalTasks: 30}}
}

func TestExperimentCounts(t *testing.T) {
	s := newStage(right)
	p, err := s.run(t, experiment(60))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.started) != 120 || len(p.Epochs) != 2 || p.Epochs[1].Correct != 60 || p.Epochs[1].Accuracy != 1 {
		t.Errorf("%d tasks started, epochs %+v", len(s.started), p.Epochs)
	}
	if len(p.Eval) != 3 || p.Eval[2].Tasks != 30 || p.Eval[2].Correct != 28 ||
		!slices.Equal(p.Eval[2].Wrong, []int{0, 25}) {
		t.Errorf("eval %+v", p.Eval)
	}
	if p.Accepted != 120 || p.Rejected != 240 || p.Usage.OutputTokens != 600 || p.Usage.InputTokens != 6 {
		t.Errorf("operations %d and %d, usage %+v", p.Accepted, p.Rejected, p.Usage)
	}
	if p.Status != ace.Completed || p.Stage != ace.StageDone || p.Before != "v0" || p.After != "v120" {
		t.Errorf("progress %+v", p)
	}
	if got := s.started[1].PlaybookHash; got != "after 0" {
		t.Errorf("offline: the second task has playbook %q", got)
	}
}

// TestExperimentFreezesWindow checks that an online experiment answers a whole window with the
// same playbook.
func TestExperimentFreezesWindow(t *testing.T) {
	in := experiment(25)
	in.Adapter, in.Window, in.Epochs, in.Parallel = ace.Online, 10, 1, 3
	s := newStage(right)
	if _, err := s.run(t, in); err != nil {
		t.Fatal(err)
	}
	for _, task := range s.started {
		if want := fmt.Sprintf("v%d", task.Index/10*10); task.PlaybookHash != want {
			t.Errorf("task %d has playbook %s, want %s", task.Index, task.PlaybookHash, want)
		}
	}
	if len(s.started) != 25 {
		t.Errorf("%d tasks", len(s.started))
	}
}

// TestExperimentContinuesAsNew continues with the input of the new run and checks that every task
// runs once.
func TestExperimentContinuesAsNew(t *testing.T) {
	in := experiment(120)
	in.Epochs = 1
	seen := map[int]int{}
	for runs := 1; ; runs++ {
		s := newStage(right)
		suggested := 0
		s.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context,
			_ converter.EncodedValues) {
			if info.ActivityType.Name == ace.ActivityLoadTasks {
				if suggested++; suggested == 1 {
					s.SetContinueAsNewSuggested(true)
				}
			}
		})
		p, err := s.run(t, in)
		for _, task := range s.started {
			seen[task.Index]++
		}
		var again *workflow.ContinueAsNewError
		if errors.As(err, &again) {
			in = ace.ExperimentInput{}
			if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &in); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if runs < 2 || p.Runs != runs || p.Epochs[0].Tasks != 120 || len(p.Eval) != 2 || len(seen) != 120 {
			t.Fatalf("%d runs, %d tasks seen, progress %+v", runs, len(seen), p)
		}
		break
	}
	for index, n := range seen {
		if n != 1 {
			t.Errorf("task %d ran %d times", index, n)
		}
	}
}

func TestExperimentStopsAfterFailures(t *testing.T) {
	s := newStage(func(ace.TaskInput) (ace.TaskResult, error) {
		return ace.TaskResult{}, temporal.NewNonRetryableApplicationError("no credit", "Permanent", nil)
	})
	_, err := s.run(t, experiment(100))
	if err == nil || len(s.started) != workflows.MaxFailuresInARow {
		t.Fatalf("%d tasks started, error %v", len(s.started), err)
	}
}

// TestExperimentFailsWithItsTasks fails every third of six tasks, or all, and checks the share that is
// allowed. An input of an earlier version states none.
func TestExperimentFailsWithItsTasks(t *testing.T) {
	for _, c := range []struct {
		share *float64
		every int // fails every so many tasks
		want  string
	}{
		{nil, 1, ""}, {share(0.5), 1, "6 of 6 tasks failed"}, {share(1), 1, "6 of 6 tasks failed"},
		{share(0.5), 3, ""},
		{share(0.3), 3, "2 of 6 tasks failed; at most 30% may fail"}, {share(0), 3, "2 of 6 tasks failed"},
	} {
		s := newStage(func(in ace.TaskInput) (ace.TaskResult, error) {
			if in.Index%c.every == 0 {
				return ace.TaskResult{}, errors.New("broken")
			}
			return right(in)
		})
		in := experiment(6)
		in.Epochs, in.MaxFailed = 1, c.share
		_, err := s.run(t, in)
		if c.want == "" && err != nil || c.want != "" &&
			(err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("share %v, every %d fails: %v, want %q", c.share, c.every, err, c.want)
		}
	}
}

func share(f float64) *float64 { return &f }

func TestExperimentContinuesAfterFailure(t *testing.T) {
	s := newStage(func(in ace.TaskInput) (ace.TaskResult, error) {
		if in.Index%3 == 0 {
			return ace.TaskResult{}, errors.New("broken")
		}
		return right(in)
	})
	p, err := s.run(t, experiment(60))
	if err != nil || p.Epochs[0].Failed != 20 || p.Epochs[0].Correct != 40 {
		t.Fatalf("%+v, %v", p.Epochs, err)
	}
}

// accuracies lets the evaluations have these numbers of correct answers, of 10.
func (s *experimentEnv) accuracies(correct ...int) {
	var evals atomic.Int64 // activities run at the same time
	register(s, ace.ActivityEvaluate, func(_ context.Context, in ace.EvaluateInput) (ace.EvaluateResult,
		error) {
		n := int(evals.Add(1))
		return ace.EvaluateResult{Tasks: in.Count, Correct: correct[min(n, len(correct))-1]}, nil
	})
	register(s, ace.ActivityHead, func(_ context.Context, in ace.HeadInput) (ace.HeadResult, error) {
		s.branches = append(s.branches, in)
		return ace.HeadResult{PlaybookHash: fmt.Sprintf("v%d", len(s.started)), Bullets: len(s.started),
			Branch: in.Branch}, nil
	})
}

// An experiment evaluates after every so many tasks and keeps the first of its best versions as a branch.
func TestExperimentEvaluatesOften(t *testing.T) {
	in := experiment(60)
	in.EvalTasks, in.EvalEvery, in.KeepBest, in.Parallel = 10, 25, true, 4
	s := newStage(right)
	s.accuracies(1, 3, 7, 5, 7)
	p, err := s.run(t, in)
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, e := range p.Eval {
		places = append(places, fmt.Sprintf("%d:%d %s", e.Epoch, e.Learned, e.Playbook))
	}
	want := []string{"0:0 v0", "1:25 v25", "1:50 v50", "1:0 v60", "2:25 v85", "2:50 v110", "2:0 v120"}
	if !slices.Equal(places, want) || len(s.started) != 120 {
		t.Errorf("%d tasks, evaluations %q", len(s.started), places)
	}
	if b := p.Best; b == nil || b.Evaluation != 2 || b.Playbook != "v50" || b.Accuracy != 0.7 ||
		b.Branch != "x-best" {
		t.Errorf("best %+v", b)
	}
	last := s.branches[len(s.branches)-1]
	if last.Branch != "x-best" || last.Initial != "v50" || p.After != "v120" {
		t.Errorf("%+v, after %s", last, p.After)
	}
}

// An experiment ends when its accuracy no longer grows.
func TestExperimentStopsWhenSaturated(t *testing.T) {
	in := experiment(60)
	in.EvalTasks, in.EvalEvery, in.Patience = 10, 10, 2
	s := newStage(right)
	s.accuracies(1, 6, 6, 5, 9)
	p, err := s.run(t, in)
	if err != nil || len(p.Eval) != 4 || len(s.started) != 30 || p.Stopped == "" ||
		p.Status != ace.Completed {
		t.Errorf("%d tasks, %d evaluations, stopped %q, %s, %v", len(s.started), len(p.Eval), p.Stopped,
			p.Status, err)
	}
}

// An experiment without epochs only evaluates its playbook, and creates no branch.
func TestExperimentWithoutEpochs(t *testing.T) {
	in := experiment(0)
	in.Epochs, in.EvalTasks, in.PlaybookHash = 0, 30, "given"
	s := newStage(right)
	s.accuracies(10)
	p, err := s.run(t, in)
	if err != nil || len(s.started) != 0 || len(p.Eval) != 1 || p.Eval[0].Playbook != "given" ||
		p.Eval[0].Tasks != 30 ||
		len(s.branches) != 0 || p.Stage != ace.StageDone || p.After != "given" {
		t.Errorf("%+v, %q, %v", p, s.branches, err)
	}
}

// The memo of an experiment has the usage of its evaluations, which no task and no transcript has.
func TestExperimentMetersEvaluations(t *testing.T) {
	for provider, want := range map[string]int64{"anthropic": 6, "claude": 0} {
		in := experiment(5)
		in.Provider, in.Model, in.Revision = provider, "m", 2
		s := newStage(right)
		var metered *ace.ModelUsage
		s.OnUpsertMemo(mock.MatchedBy(func(memo map[string]any) bool {
			if sum, ok := memo[ace.MemoSummary].(ace.Summary); ok {
				metered = sum.Metered
			}
			return true
		})).Return(nil)
		if _, err := s.run(t, in); err != nil {
			t.Fatal(err)
		}
		var got int64
		if metered != nil {
			got = (*metered)["m"].InputTokens
		}
		if got != want {
			t.Errorf("%s: %d tokens of evaluations, want %d", provider, got, want)
		}
	}
}

// A canceled task is over: the experiment continues with the next one, and starts no task twice.
func TestExperimentCanceledTask(t *testing.T) {
	for _, parallel := range []int{1, 3} {
		in := experiment(5)
		in.Revision, in.MaxFailed, in.Epochs, in.Parallel = ace.Revision, new(0.5), 1, parallel
		canceled := 0
		s := newStage(func(in ace.TaskInput) (ace.TaskResult, error) {
			if in.Index == 1 && canceled < 3 {
				canceled++
				return ace.TaskResult{}, temporal.NewCanceledError()
			}
			return right(in)
		})
		p, err := s.run(t, in)
		if err != nil {
			t.Fatal(err)
		}
		var started []int
		for _, task := range s.started {
			started = append(started, task.Index)
		}
		slices.Sort(started)
		if !slices.Equal(started, []int{0, 1, 2, 3, 4}) {
			t.Errorf("parallel %d: started tasks %v", parallel, started)
		}
		if e := p.Epochs[0]; e.Tasks != 4 || e.Correct != 4 || e.Canceled != 1 || e.Failed != 0 {
			t.Errorf("parallel %d: %+v", parallel, e)
		}
	}
}

// The attribute of the stage of a canceled experiment does not name what would have come next. Revisions below
// 5 did, and their commands stay.
func TestExperimentCanceledStage(t *testing.T) {
	for revision, want := range map[int]string{4: ace.StageEvaluating, ace.Revision: ace.StageStopped} {
		in := experiment(3)
		in.Revision, in.MaxFailed, in.Parallel = revision, new(0.5), 3
		s := newStage(right)
		var stage string
		s.OnUpsertTypedSearchAttributes(mock.MatchedBy(func(a temporal.SearchAttributes) bool {
			stage, _ = a.GetKeyword(temporal.NewSearchAttributeKeyKeyword(ace.AttrPhase))
			return true
		})).Return(nil)
		s.OnWorkflow(ace.TaskWorkflow, mock.Anything, mock.Anything).Return(
			func(ctx workflow.Context, _ ace.TaskInput) (ace.TaskResult, error) {
				return ace.TaskResult{}, workflow.Sleep(ctx, time.Hour)
			})
		s.RegisterDelayedCallback(s.CancelWorkflow, time.Minute)
		_, err := s.run(t, in)
		if canceled := (*temporal.CanceledError)(nil); !errors.As(err, &canceled) || stage != want {
			t.Errorf("revision %d: stage %q, want %q, %v", revision, stage, want, err)
		}
	}
}
