package flow

import (
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/temporal/searchattr"
)

// waited is the recorded end of a wait, which a fork reuses.
type waited struct {
	TimedOut bool            `json:"timed_out"`
	Data     json.RawMessage `json:"data,omitempty"`
}

// waitID returns the ID of a wait in [Input.Reuse].
func waitID(path string) string { return "wait " + path }

// sleep waits for a time.
func (s *scope) sleep(step *Step, d time.Duration) error {
	path := s.pathOf(step)
	if _, ok := s.x.input.Reuse[waitID(path)]; ok || d <= 0 {
		return nil
	}
	detail := "until " + workflow.Now(s.ctx).Add(d).UTC().Format(time.RFC3339)
	if err := s.announce(path, Fact{Status: StepWaiting, Detail: detail}); err != nil {
		return err
	}
	timer := workflow.NewTimerWithOptions(s.ctx, d, workflow.TimerOptions{Summary: "wait " + path})
	return timer.Get(s.ctx, nil)
}

// announce records a fact before the run waits, so that readers of the history see it.
func (s *scope) announce(path string, f Fact) error {
	if err := s.x.note(s.ctx, path, f); err != nil {
		return err
	}
	s.runner.Flush(s.ctx)
	return nil
}

// remaining returns the time until the value of an expression.
func (s *scope) remaining(step *Step, until *Expr) (time.Duration, error) {
	value, err := s.eval(until)
	if err != nil {
		return 0, err
	}
	name, _ := value.(string)
	at, err := time.Parse(time.RFC3339, name)
	if err != nil {
		return 0, step.errorf(TypeValue, "%q is not a time such as 2030-01-31T08:00:00Z", shorten(name))
	}
	d := at.Sub(workflow.Now(s.ctx))
	if d > maxDuration {
		return 0, step.errorf(TypeLimit, "a step cannot wait longer than a year")
	}
	return d, nil
}

// waitForSignal waits for the next signal of a name.
func (s *scope) waitForSignal(step *Step, name string, timeout time.Duration) (any, error) {
	path := s.pathOf(step)
	var w waited
	if recorded, ok := s.x.input.Reuse[waitID(path)]; ok && json.Unmarshal(recorded, &w) == nil {
		return w.result()
	}
	received := func() bool { return len(s.x.signals[name]) > 0 }
	if !received() {
		if err := s.announce(path, Fact{Status: StepWaiting, Detail: "signal " + name}); err != nil {
			return nil, err
		}
	}
	ok, err := s.await(path, timeout, received)
	if err != nil {
		return nil, err
	}
	if !ok {
		return waited{TimedOut: true}.result()
	}
	w.Data = s.x.signals[name][0]
	s.x.signals[name] = s.x.signals[name][1:]
	return w.result()
}

func (w waited) result() (any, error) {
	var data any
	if len(w.Data) > 0 {
		var err error
		if data, err = decodeJSON(w.Data); err != nil {
			return nil, fmt.Errorf("%w: the signal is not JSON: %w", ErrExpression, err)
		}
	}
	return map[string]any{"timed_out": w.TimedOut, "data": data}, nil
}

// await waits for a condition of a step. It returns false after the timeout, unless that is 0.
func (s *scope) await(path string, timeout time.Duration, condition func() bool) (bool, error) {
	if timeout > 0 {
		return workflow.AwaitWithOptions(s.ctx, workflow.AwaitOptions{Timeout: timeout,
			TimerOptions: workflow.TimerOptions{Summary: "time limit of " + path}}, condition)
	}
	return true, workflow.Await(s.ctx, condition)
}

// waitForDecision waits for the decision of a user. It returns nil after the timeout.
func (s *scope) waitForDecision(step *Step, message string, timeout time.Duration) (*Decision, error) {
	path := s.pathOf(step)
	if recorded, ok := s.x.input.Reuse[waitID(path)]; ok {
		var d *Decision
		return d, json.Unmarshal(recorded, &d)
	}
	delete(s.x.decided, path) // of an earlier execution
	fact := Fact{Status: StepWaiting, Approval: true, Detail: ace.Cut(message, ace.PreviewBytes)}
	if err := s.announce(path, fact); err != nil {
		return nil, err
	}
	if err := s.x.show(PhaseApproval); err != nil {
		return nil, err
	}
	decided := func() bool { _, ok := s.x.decided[path]; return ok }
	ok, err := s.await(path, timeout, decided)
	if err == nil && len(s.x.state.Waiting()) == 1 {
		err = s.x.show(PhaseRunning)
	}
	if err != nil || !ok {
		return nil, err
	}
	return new(s.x.decided[path]), nil
}

// show writes the search attribute Phase, so that lists show which runs wait for a decision.
func (x *execution) show(phase string) error {
	if x.shown == phase {
		return nil
	}
	x.shown = phase
	return workflow.UpsertTypedSearchAttributes(x.root, searchattr.Keyword(ace.AttrPhase, phase))
}
