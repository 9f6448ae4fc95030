package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/tasks/runner"
	"acescope/engine/workflows"
)

// dispatcherEnv is a test environment of the dispatcher with functions want its
// activities.
type dispatcherEnv struct {
	*testsuite.TestWorkflowEnvironment
	t         *testing.T
	delivered []string // answers with their times
	checked   []string
	// recalled are the pages of runs and runners that were asked to repeat their notices.
	recalled []string
	recall   func(page []byte) ([]byte, error)
	tell     func(runner.Answers) (runner.DeliveryResult, error)
	check    func(runner.CheckInput) runner.CheckResult
}

// startTime is the time at which the dispatcher starts. Claims are numbered from it, in
// milliseconds.
var startTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newDispatcherEnv(t *testing.T) *dispatcherEnv {
	var suite testsuite.WorkflowTestSuite
	d := &dispatcherEnv{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t}
	d.SetTestTimeout(time.Minute)
	d.SetStartTime(startTime)
	d.RegisterActivityWithOptions(func(_ context.Context, page []byte) ([]byte, error) {
		d.recalled = append(d.recalled, string(page))
		if d.recall != nil {
			return d.recall(page)
		}
		return nil, nil
	}, activity.RegisterOptions{Name: runner.ActivityRecall})
	d.RegisterWorkflowWithOptions(workflows.Dispatcher,
		workflow.RegisterOptions{Name: runner.DispatcherWorkflow})
	d.RegisterActivityWithOptions(func(_ context.Context, answers runner.Answers) (told runner.DeliveryResult,
		err error) {
		if d.tell != nil {
			if told, err = d.tell(answers); err != nil {
				return told, err
			}
		}
		for _, a := range answers {
			if !slices.Contains(told.Later, a.RunID) && !slices.Contains(told.Ended, a.RunID) {
				d.delivered = append(d.delivered, fmt.Sprintf("%s %s %s", d.clock(), a.RunID, describe(a)))
			}
		}
		return told, nil
	}, activity.RegisterOptions{Name: runner.ActivityNotifyRuns})
	d.RegisterActivityWithOptions(func(_ context.Context, in runner.CheckInput) (runner.CheckResult, error) {
		for _, r := range in.Runs {
			d.checked = append(d.checked, fmt.Sprintf("%s %s", d.clock(), r.RunID))
		}
		if d.check == nil {
			return runner.CheckResult{}, nil
		}
		return d.check(in), nil
	}, activity.RegisterOptions{Name: runner.ActivityCheckRuns})
	return d
}

func (d *dispatcherEnv) clock() string { return d.Now().UTC().Format("04:05") }

func describe(a runner.Answer) string {
	switch {
	case a.Claimed != nil:
		return "claimed by " + a.Claimed.RunnerID
	case a.Unmatched != nil:
		return a.Unmatched.Reason
	}
	return "lost"
}

func (d *dispatcherEnv) notify(after time.Duration, notices ...runner.Notice) {
	d.RegisterDelayedCallback(func() { d.SignalWorkflow(runner.SignalNotices, runner.Notices(notices)) },
		after)
}

func (d *dispatcherEnv) view() (v runner.View) {
	d.t.Helper()
	got, err := d.QueryWorkflow(runner.QueryDispatcher, runner.ViewOptions{})
	if err == nil {
		err = got.Get(&v)
	}
	if err != nil {
		d.t.Error(err)
	}
	return v
}

// run executes the dispatcher until it continues as new and returns the carried state.
func (d *dispatcherEnv) run(carried []byte, length time.Duration) []byte {
	d.t.Helper()
	d.RegisterDelayedCallback(func() {
		d.SetContinueAsNewSuggested(true)
		d.SignalWorkflow(runner.SignalNotices, runner.Notices{})
	}, length)
	d.ExecuteWorkflow(runner.DispatcherWorkflow, carried)
	var next *workflow.ContinueAsNewError
	if err := d.GetWorkflowError(); !errors.As(err, &next) {
		d.t.Fatalf("the dispatcher ended: %v", err)
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &carried); err != nil {
		d.t.Fatal(err)
	}
	return carried
}

func (d *dispatcherEnv) expect(what string, got []string, want ...string) {
	d.t.Helper()
	if !slices.Equal(got, want) {
		d.t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func registered(id string, slots int) runner.Notice {
	return runner.Notice{Kind: runner.Registered, Runner: id, Epoch: 1, Queue: "runner." + id,
		Registration: &runner.Registration{ID: id, Token: id,
			Capabilities: runner.Capabilities{Hostname: "h", ProjectDir: "/",
				ExecutorTypes: []string{runner.Deterministic, runner.Codex}, Slots: slots}}}
}

func (d *dispatcherEnv) enqueue(run string, within time.Duration, tags ...string) runner.Notice {
	return runner.Notice{Kind: runner.Enqueue, Run: run, Request: &runner.Request{RunID: run, Execution: "x",
		Try: 1, Parent: "ses_1",
		Requirements: runner.Requirements{Tags: tags}, Deadline: time.Date(2026, 3, 1, 12, 0, 0, 0,
			time.UTC).Add(within)}}
}

func released(run string, claim int64) runner.Notice {
	return runner.Notice{Kind: runner.Release, Run: run, Claim: startTime.UnixMilli() + claim}
}

// TestDispatcherAnswers checks which answers runs receive, and when.
func TestDispatcherAnswers(t *testing.T) {
	d := newDispatcherEnv(t)
	d.notify(time.Second, registered("r", 1), d.enqueue("a", time.Minute), d.enqueue("b", time.Minute))
	d.notify(10*time.Second, released("a", 1), d.enqueue("c", 30*time.Second, "gpu"),
		d.enqueue("d", 20*time.Second, "gpu"))
	d.notify(40*time.Second, d.enqueue("bad", time.Minute, "no good"))
	d.RegisterDelayedCallback(func() { d.SignalWorkflow(runner.SignalNotices, "nonsense") }, 41*time.Second)
	d.run(nil, 50*time.Second)
	d.expect("delivered", d.delivered, "00:01 a claimed by r", "00:10 b claimed by r", "00:20 d no_runner",
		"00:30 c no_runner", "00:40 bad bad_demands")
	if v := d.view(); v.Matched != 2 || v.Expired != 2 || v.Refused != 1 || v.Running != 1 ||
		v.Waiting != 0 || v.Runs != 1 {
		t.Errorf("%+v", v)
	}
}

// TestDispatcherNotBlocked checks that an unreachable run does not delay others and receives its
// answers in order later.
func TestDispatcherNotBlocked(t *testing.T) {
	d := newDispatcherEnv(t)
	var tries []string
	d.tell = func(answers runner.Answers) (told runner.DeliveryResult, err error) {
		for _, a := range answers {
			if a.RunID == "stuck" && d.Now().Minute() < 2 && told.Later == nil {
				tries = append(tries, d.clock())
				told.Later = append(told.Later, a.RunID)
			}
		}
		return told, nil
	}
	d.notify(0, registered("r", 2), runner.Notice{Kind: runner.Enqueue, Run: "stuck",
		Request: &runner.Request{RunID: "stuck", Execution: "x", Try: 1,
			Requirements: runner.Requirements{ExecutorType: runner.Codex}, Deadline: d.Now().Add(time.Hour)}})
	d.notify(time.Second/2, d.enqueue("a", time.Hour))
	d.notify(5*time.Second, released("a", 2), d.enqueue("b", time.Hour))
	d.notify(6*time.Second, runner.Notice{Kind: runner.Removed, Runner: "r", Epoch: 1})
	d.run(nil, 3*time.Minute)
	d.expect("delivered", d.delivered, "00:00 a claimed by r", "00:05 b claimed by r",
		"02:01 stuck claimed by r", "02:01 stuck lost")
	if len(tries) < 5 || len(tries) > 12 {
		t.Errorf("attempts at %s", tries)
	}
}

// TestDispatcherCarriesAnswers checks that the next run of the dispatcher delivers the
// undelivered answers, also if the activity itself fails.
func TestDispatcherCarriesAnswers(t *testing.T) {
	d := newDispatcherEnv(t)
	d.tell = func(runner.Answers) (runner.DeliveryResult, error) {
		return runner.DeliveryResult{}, errors.New("server unavailable")
	}
	d.notify(0, registered("r", 1), d.enqueue("a", time.Hour))
	carried := d.run(nil, 10*time.Second)
	d.expect("delivered", d.delivered)

	next := newDispatcherEnv(t)
	carried = next.run(carried, 10*time.Second)
	next.expect("delivered", next.delivered, "00:00 a claimed by r")
	if v := next.view(); v.Runs != 2 || v.Running != 1 || len(v.Runners) != 1 {
		t.Errorf("%+v", v)
	}
	last := newDispatcherEnv(t)
	last.run(carried, 10*time.Second)
	last.expect("delivered again", last.delivered)
}

// TestDispatcherChecksRuns checks that runs that ended without a notice free their slots and that
// their parents are notified.
func TestDispatcherChecksRuns(t *testing.T) {
	d := newDispatcherEnv(t)
	d.tell = func(answers runner.Answers) (told runner.DeliveryResult, _ error) {
		for _, a := range answers {
			if a.RunID == "dead" {
				told.Ended = append(told.Ended, a.RunID)
			}
		}
		return told, nil
	}
	unavailable := true
	d.check = func(in runner.CheckInput) runner.CheckResult {
		ended := map[string]ace.Status{}
		for _, r := range in.Runs {
			if r.RunID == "dead" && unavailable {
				unavailable = false // its parent cannot be notified this time
				continue
			}
			if r.Parent != "ses_1" || r.Execution != "x" {
				t.Errorf("%+v", r)
			}
			if r.RunID != "alive" {
				ended[r.RunID] = ace.Failed
			}
		}
		return runner.CheckResult{Ended: ended}
	}
	d.notify(0, registered("r", 2), d.enqueue("dead", time.Hour), d.enqueue("terminated", time.Hour),
		d.enqueue("alive", time.Hour), d.enqueue("next", time.Hour))
	d.run(nil, 29*time.Second)
	d.expect("delivered", d.delivered, "00:00 terminated claimed by r", "00:00 alive claimed by r",
		"00:15 next claimed by r")
	d.expect("checked", d.checked, "00:00 dead", "00:15 dead", "00:15 terminated", "00:15 alive")
}

// TestDispatcherKeepsNotices checks that notices that arrive at the end of a run of the
// dispatcher are not lost.
func TestDispatcherKeepsNotices(t *testing.T) {
	d := newDispatcherEnv(t)
	d.tell = func(runner.Answers) (runner.DeliveryResult, error) { // the dispatcher waits for this
		d.SetContinueAsNewSuggested(true)
		for i := range 10 {
			d.SignalWorkflow(runner.SignalNotices, runner.Notices{d.enqueue(fmt.Sprint("run", i), time.Hour)})
		}
		return runner.DeliveryResult{}, nil
	}
	d.notify(0, registered("r", 1), d.enqueue("first", time.Hour))
	next := newDispatcherEnv(t)
	next.run(d.run(nil, 2*time.Second), time.Second)
	if v := next.view(); v.Waiting != 10 || v.Runs != 2 {
		t.Errorf("%+v", v)
	}
}

// TestDispatcherRecalls checks that a new dispatcher asks runs and runners for their requests and
// claims.
func TestDispatcherRecalls(t *testing.T) {
	d := newDispatcherEnv(t)
	unavailable := true
	d.recall = func(page []byte) ([]byte, error) {
		switch {
		case string(page) == "two" && unavailable:
			unavailable = false
			return nil, errors.New("server unavailable")
		case len(page) == 0:
			return []byte("two"), nil
		}
		return nil, nil
	}
	d.notify(0, registered("r", 1))
	carried := d.run(nil, 10*time.Second)
	d.expect("recalled", d.recalled, "", "two", "", "two")
	next := newDispatcherEnv(t)
	next.run(carried, time.Second)
	next.expect("recalled", next.recalled)
}
