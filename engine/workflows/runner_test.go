package workflows_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/tasks/runner"
	"acescope/engine/workflows"
)

// runnerEnv is a test environment of a runner's workflow that holds the lease until it is lost.
type runnerEnv struct {
	*testsuite.TestWorkflowEnvironment
	t       *testing.T
	notices []runner.NoticeKind // to the dispatcher
	leases  []runner.LeaseInput
	lose    chan struct{}
}

func newRunnerEnv(t *testing.T) *runnerEnv {
	var suite testsuite.WorkflowTestSuite
	p := &runnerEnv{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t,
		lose: make(chan struct{}, 10)}
	p.SetTestTimeout(time.Minute)
	p.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: runner.WorkflowID("r1")})
	p.RegisterWorkflowWithOptions(workflows.Runner, workflow.RegisterOptions{Name: runner.Workflow})
	p.RegisterActivityWithOptions(func(_ context.Context, notices runner.Notices) error {
		for _, n := range notices {
			p.notices = append(p.notices, n.Kind)
		}
		return nil
	}, activity.RegisterOptions{Name: runner.ActivityTell})
	p.RegisterActivityWithOptions(func(ctx context.Context, in runner.LeaseInput) error {
		p.leases = append(p.leases, in)
		<-p.lose
		return errors.New("lost")
	}, activity.RegisterOptions{Name: runner.ActivityLease})
	return p
}

func (p *runnerEnv) update(name string, arg any) *reply {
	got := &reply{}
	p.UpdateWorkflow(name, "", &testsuite.TestUpdateCallback{
		OnAccept:   func() {},
		OnReject:   func(err error) { got.rejected, got.done = err, true },
		OnComplete: func(v any, err error) { got.value, got.err, got.done = v, err, true },
	}, arg)
	return got
}

func process(token string) runner.Registration {
	return runner.Registration{ID: "r1", Token: token, PID: 7, HeartbeatMS: 1000, RemoveMS: 60_000,
		Capabilities: runner.Capabilities{Hostname: "web-1", ProjectDir: "/",
			ExecutorTypes: []string{"deterministic"}, Slots: 1}}
}

func (p *runnerEnv) at(after time.Duration, fn func()) { p.RegisterDelayedCallback(fn, after) }

func (p *runnerEnv) expect(kinds ...runner.NoticeKind) {
	p.t.Helper()
	if !slices.Equal(p.notices, kinds) {
		p.t.Errorf("the dispatcher received %v, want %v", p.notices, kinds)
	}
}

// TestRunnerLife covers a runner that registers, is lost, returns, and is lost for good.
func TestRunnerLife(t *testing.T) {
	p := newRunnerEnv(t)
	var first, refused, changed, other *reply
	p.at(0, func() { first = p.update(runner.UpdateRegister, process("a")) })
	p.at(100*time.Millisecond, func() {
		refused = p.update(runner.UpdateRegister, process("b"))
		wider := process("a")
		wider.Capabilities.Slots = 3
		changed = p.update(runner.UpdateRegister, wider)
		p.update(runner.UpdateRegister, wider) // without a change
		p.lose <- struct{}{}
	})
	p.at(200*time.Millisecond, func() { p.update(runner.UpdateRegister, process("a")) })
	p.at(300*time.Millisecond, func() { p.lose <- struct{}{} })
	p.at(400*time.Millisecond, func() { other = p.update(runner.UpdateRegister, process("c")) })
	p.at(500*time.Millisecond, func() { p.lose <- struct{}{} })
	p.ExecuteWorkflow(runner.Workflow, runner.Input{})

	var end runner.Info
	if err := p.GetWorkflowResult(&end); err != nil || end.Status != runner.Gone ||
		end.Reason != "it did not come back" || end.Since.Sub(end.Registered) < 60*time.Second {
		t.Errorf("%+v, %v", end, err)
	}
	lease := first.value.(runner.Lease)
	if lease != changed.value.(runner.Lease) || !strings.HasPrefix(lease.Queue, "runner.r1.") {
		t.Errorf("%+v, %+v", lease, changed.value)
	}
	if refused.rejected == nil || !strings.Contains(refused.rejected.Error(), "pid 7 on web-1") {
		t.Errorf("another process: %+v", refused)
	}
	if next := other.value.(runner.Lease); next.Epoch <= lease.Epoch || next.Queue == lease.Queue {
		t.Errorf("%+v after %+v", next, lease)
	}
	p.expect(runner.Registered, runner.Registered, runner.WentStale, runner.Registered, runner.Recovered,
		runner.WentStale, runner.Registered,
		runner.WentStale, runner.Removed)
}

// TestRunnerContinues checks that a runner keeps its state when its workflow continues as new.
func TestRunnerContinues(t *testing.T) {
	p := newRunnerEnv(t)
	p.at(0, func() { p.update(runner.UpdateRegister, process("a")) })
	p.at(100*time.Millisecond, func() { p.update(runner.UpdateDrain, runner.Note{Reason: "tonight"}) })
	p.at(200*time.Millisecond, func() {
		p.SetContinueAsNewSuggested(true)
		p.update(runner.UpdateRegister, process("a"))
	})
	p.ExecuteWorkflow(runner.Workflow, runner.Input{RunnerID: "r1"})
	close(p.lose)
	var next *workflow.ContinueAsNewError
	if !errors.As(p.GetWorkflowError(), &next) {
		t.Fatalf("%v", p.GetWorkflowError())
	}
	p.expect(runner.Registered, runner.DrainStarted)
	var in runner.Input
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &in); err != nil {
		t.Fatal(err)
	}
	q := newRunnerEnv(t)
	q.at(100*time.Millisecond, func() { q.update(runner.UpdateRegister, process("b")) })
	q.at(200*time.Millisecond, func() { q.update(runner.UpdateLeave, runner.Note{Token: "a"}) })
	q.ExecuteWorkflow(runner.Workflow, in)
	close(q.lose)
	if len(q.leases) != 1 || q.leases[0] != p.leases[0] {
		t.Errorf("%+v after %+v", q.leases, p.leases)
	}
	q.expect(runner.Left)
}

// TestRunnerNotRegistered checks that a workflow without a registration ends.
func TestRunnerNotRegistered(t *testing.T) {
	p := newRunnerEnv(t)
	var refused *reply
	p.at(0, func() {
		bad := process("a")
		bad.Capabilities.Hostname = ""
		refused = p.update(runner.UpdateRegister, bad)
	})
	p.ExecuteWorkflow(runner.Workflow, runner.Input{})
	if err := p.GetWorkflowError(); err != nil || len(p.leases) > 0 || refused.rejected == nil {
		t.Errorf("%v, %+v, %+v", err, p.leases, refused)
	}
	p.expect()
}
