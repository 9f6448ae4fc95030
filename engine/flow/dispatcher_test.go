package flow_test

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
	"acescope/engine/flow"
	"acescope/engine/runner"
)

// desk is a test environment of the dispatcher in which runs are told by functions.
type desk struct {
	*testsuite.TestWorkflowEnvironment
	t       *testing.T
	told    []string // what arrived, and when
	checked []string
	tell    func(runner.Answers) (runner.Told, error)
	check   func(runner.Check) runner.Checked
}

func newDesk(t *testing.T) *desk {
	var suite testsuite.WorkflowTestSuite
	d := &desk{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t}
	d.SetTestTimeout(time.Minute)
	d.SetStartTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	d.RegisterWorkflowWithOptions(flow.Dispatcher, workflow.RegisterOptions{Name: runner.DispatcherWorkflow})
	d.RegisterActivityWithOptions(func(_ context.Context, answers runner.Answers) (told runner.Told, err error) {
		if d.tell != nil {
			if told, err = d.tell(answers); err != nil {
				return told, err
			}
		}
		for _, a := range answers {
			if !slices.Contains(told.Later, a.RunID) && !slices.Contains(told.Ended, a.RunID) {
				d.told = append(d.told, fmt.Sprintf("%s %s %s", d.clock(), a.RunID, word(a)))
			}
		}
		return told, nil
	}, activity.RegisterOptions{Name: runner.ActivityTellRuns})
	d.RegisterActivityWithOptions(func(_ context.Context, in runner.Check) (runner.Checked, error) {
		for _, r := range in.Runs {
			d.checked = append(d.checked, fmt.Sprintf("%s %s", d.clock(), r.RunID))
		}
		if d.check == nil {
			return runner.Checked{}, nil
		}
		return d.check(in), nil
	}, activity.RegisterOptions{Name: runner.ActivityCheckRuns})
	return d
}

func (d *desk) clock() string { return d.Now().UTC().Format("04:05") }

func word(a runner.Answer) string {
	switch {
	case a.Claimed != nil:
		return "claimed by " + a.Claimed.RunnerID
	case a.Unmatched != nil:
		return a.Unmatched.Reason
	}
	return "lost"
}

func (d *desk) say(after time.Duration, notices ...runner.Notice) {
	d.RegisterDelayedCallback(func() { d.SignalWorkflow(runner.SignalNotices, runner.Notices(notices)) }, after)
}

func (d *desk) view() (v runner.View) {
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

// run runs the dispatcher for a while, until it continues as new, and returns what it carries.
func (d *desk) run(carried []byte, length time.Duration) []byte {
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

func (d *desk) expect(what string, got []string, want ...string) {
	d.t.Helper()
	if !slices.Equal(got, want) {
		d.t.Errorf("%s:\n%s\nin place of\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func comes(id string, slots int) runner.Notice {
	return runner.Notice{Kind: runner.Registered, Runner: id, Epoch: 1, Queue: "runner." + id, Registration: &runner.Registration{ID: id, Token: id,
		Capabilities: runner.Capabilities{Hostname: "h", ProjectDir: "/", ExecutorTypes: []string{runner.Deterministic, runner.Codex}, Slots: slots}}}
}

func (d *desk) asks(run string, within time.Duration, tags ...string) runner.Notice {
	return runner.Notice{Kind: runner.Enqueue, Run: run, Request: &runner.Request{RunID: run, Execution: "x", Try: 1, Parent: "ses_1",
		Demands: runner.Demands{Tags: tags}, Deadline: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(within)}}
}

func ends(run string, claim int64) runner.Notice {
	return runner.Notice{Kind: runner.Release, Run: run, Claim: claim}
}

// TestDispatcherAnswers holds who is told what, and when.
func TestDispatcherAnswers(t *testing.T) {
	d := newDesk(t)
	d.say(time.Second, comes("r", 1), d.asks("a", time.Minute), d.asks("b", time.Minute))
	d.say(10*time.Second, ends("a", 1), d.asks("c", 30*time.Second, "gpu"), d.asks("d", 20*time.Second, "gpu"))
	d.say(40*time.Second, d.asks("bad", time.Minute, "no good"))
	d.RegisterDelayedCallback(func() { d.SignalWorkflow(runner.SignalNotices, "nonsense") }, 41*time.Second)
	d.run(nil, 50*time.Second)
	d.expect("told", d.told, "00:01 a claimed by r", "00:10 b claimed by r", "00:20 d no_runner", "00:30 c no_runner", "00:40 bad bad_demands")
	if v := d.view(); v.Matched != 2 || v.Expired != 2 || v.Refused != 1 || v.Running != 1 || v.Waiting != 0 || v.Runs != 1 {
		t.Errorf("%+v", v)
	}
}

// TestDispatcherNotBlocked holds that a run that cannot be told holds up nobody else, and is
// told in the end, in order.
func TestDispatcherNotBlocked(t *testing.T) {
	d := newDesk(t)
	var tries []string
	d.tell = func(answers runner.Answers) (told runner.Told, err error) {
		for _, a := range answers {
			if a.RunID == "stuck" && d.Now().Minute() < 2 && told.Later == nil {
				tries = append(tries, d.clock())
				told.Later = append(told.Later, a.RunID)
			}
		}
		return told, nil
	}
	d.say(0, comes("r", 2), runner.Notice{Kind: runner.Enqueue, Run: "stuck", Request: &runner.Request{RunID: "stuck", Execution: "x", Try: 1,
		Demands: runner.Demands{ExecutorType: runner.Codex}, Deadline: d.Now().Add(time.Hour)}})
	d.say(time.Second/2, d.asks("a", time.Hour))
	d.say(5*time.Second, ends("a", 2), d.asks("b", time.Hour))
	d.say(6*time.Second, runner.Notice{Kind: runner.Removed, Runner: "r", Epoch: 1})
	d.run(nil, 3*time.Minute)
	d.expect("told", d.told, "00:00 a claimed by r", "00:05 b claimed by r", "02:01 stuck claimed by r", "02:01 stuck lost")
	if len(tries) < 5 || len(tries) > 12 {
		t.Errorf("it was tried at %s", tries)
	}
}

// TestDispatcherTellsLater holds that what was not told is told by the next run, also where
// the activity itself fails.
func TestDispatcherTellsLater(t *testing.T) {
	d := newDesk(t)
	d.tell = func(runner.Answers) (runner.Told, error) { return runner.Told{}, errors.New("the server is away") }
	d.say(0, comes("r", 1), d.asks("a", time.Hour))
	carried := d.run(nil, 10*time.Second)
	d.expect("told", d.told)

	next := newDesk(t)
	carried = next.run(carried, 10*time.Second)
	next.expect("told", next.told, "00:00 a claimed by r")
	if v := next.view(); v.Runs != 2 || v.Running != 1 || len(v.Runners) != 1 {
		t.Errorf("%+v", v)
	}
	last := newDesk(t)
	last.run(carried, 10*time.Second)
	last.expect("told again", last.told)
}

// TestDispatcherLooksAfter holds that runs that ended without a word give back what they hold,
// and that somebody sees to their parents.
func TestDispatcherLooksAfter(t *testing.T) {
	d := newDesk(t)
	d.tell = func(answers runner.Answers) (told runner.Told, _ error) {
		for _, a := range answers {
			if a.RunID == "dead" {
				told.Ended = append(told.Ended, a.RunID)
			}
		}
		return told, nil
	}
	away := true
	d.check = func(in runner.Check) runner.Checked {
		ended := map[string]ace.ExitStatus{}
		for _, r := range in.Runs {
			if r.RunID == "dead" && away {
				away = false // its parent cannot be told this time
				continue
			}
			if r.Parent != "ses_1" || r.Execution != "x" {
				t.Errorf("%+v", r)
			}
			if r.RunID != "alive" {
				ended[r.RunID] = ace.Failed
			}
		}
		return runner.Checked{Ended: ended}
	}
	d.say(0, comes("r", 2), d.asks("dead", time.Hour), d.asks("terminated", time.Hour), d.asks("alive", time.Hour), d.asks("next", time.Hour))
	d.run(nil, 3*time.Minute+time.Second)
	d.expect("told", d.told, "00:00 terminated claimed by r", "00:00 alive claimed by r", "02:00 next claimed by r")
	d.expect("looked after", d.checked, "00:00 dead", "01:00 dead", "02:00 terminated", "02:00 alive", "03:00 alive")
}

// TestDispatcherHearsAll holds that what is said when a run of the dispatcher ends is not lost.
func TestDispatcherHearsAll(t *testing.T) {
	d := newDesk(t)
	d.tell = func(runner.Answers) (runner.Told, error) { // the dispatcher waits for this
		d.SetContinueAsNewSuggested(true)
		for i := range 10 {
			d.SignalWorkflow(runner.SignalNotices, runner.Notices{d.asks(fmt.Sprint("run", i), time.Hour)})
		}
		return runner.Told{}, nil
	}
	d.say(0, comes("r", 1), d.asks("first", time.Hour))
	next := newDesk(t)
	next.run(d.run(nil, 2*time.Second), time.Second)
	if v := next.view(); v.Waiting != 10 || v.Runs != 2 {
		t.Errorf("%+v", v)
	}
}
