package operation

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"acescope/engine/temporal/history"
)

// Mock answers operations in tests instead of [Handlers]. Register it with the environment of
// Temporal's testsuite, or with a worker. An answer is a result, an error, or a
// func(Request) (any, error).
type Mock struct {
	mu      sync.Mutex
	answers map[string][]any // by operation ID or step
	calls   []Request
	missing []Request // without an answer
	other   func(Request) (any, error)
}

// Step sets the answers of a step, one per operation of a branch. The last answer repeats.
func (m *Mock) Step(step string, answers ...any) *Mock { return m.set("step "+step, answers) }

// ID sets the answer of an operation ID, which precedes answers for its step.
func (m *Mock) ID(id string, answer any) *Mock { return m.set("id "+id, []any{answer}) }

// Otherwise sets the answer of all other operations. The error [ErrUnmocked] means that there is no answer.
func (m *Mock) Otherwise(answer func(Request) (any, error)) *Mock {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.other = answer
	return m
}

// ErrUnmocked means that an operation has no answer.
var ErrUnmocked = errors.New("the mock has no answer")

func (m *Mock) set(key string, answers []any) *Mock {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.answers == nil {
		m.answers = map[string][]any{}
	}
	m.answers[key] = answers
	return m
}

// Register registers the activities that operations run as.
func (m *Mock) Register(r Registry) {
	for _, t := range types() {
		r.RegisterActivityWithOptions(m.serve, activity.RegisterOptions{Name: t.Activity()})
	}
}

// Calls lists the requests in order, including each attempt.
func (m *Mock) Calls() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.calls)
}

// Unanswered lists the requests that had no answer.
func (m *Mock) Unanswered() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.missing)
}

// Activity answers an operation with [Operation.Activity]. Register it as the dynamic activity of the
// environment.
func (m *Mock) Activity(ctx context.Context, args converter.EncodedValues) (json.RawMessage, error) {
	req := Request{OperationID: activity.GetInfo(ctx).ActivityID, Type: ExternalCall}
	var ok bool
	if req.Step, req.Branch, req.Occurrence, ok = history.ParseOperationID(req.OperationID); !ok {
		return nil, permanent(TypeUnmocked, "activity %s is not an operation", req.OperationID)
	}
	if err := args.Get(&req.Parameters); err != nil {
		return nil, err
	}
	r, err := m.serve(ctx, req)
	return r.Value, err
}

// TypeUnmocked is the error type of an operation without an answer.
const TypeUnmocked = "Unmocked"

func (m *Mock) serve(ctx context.Context, req Request) (Result, error) {
	answer, ok := m.answer(req)
	var err error
	switch a := answer.(type) {
	case error:
		err = a
	case func(Request) (any, error):
		answer, err = a(req)
	}
	if !ok || errors.Is(err, ErrUnmocked) {
		return Result{}, m.unmocked(req)
	}
	if err != nil {
		return Result{}, activityError(ctx, err)
	}
	data, err := encode(answer)
	if err != nil {
		return Result{}, permanent(TypeBadResult, "the mock's answer for operation %s: %v", req.OperationID,
			err)
	}
	return Result{OperationID: req.OperationID, Value: data}, nil
}

func (m *Mock) answer(req Request) (any, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, req)
	if own, ok := m.answers["id "+req.OperationID]; ok {
		return own[0], true
	}
	answers := m.answers["step "+req.Step]
	switch {
	case len(answers) == 0 && m.other == nil:
		return nil, false
	case len(answers) == 0:
		return m.other, true
	}
	return answers[min(max(req.Occurrence, 1), len(answers))-1], true
}

func (m *Mock) unmocked(req Request) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.missing = append(m.missing, req)
	return permanent(TypeUnmocked,
		"the mock has no answer for operation %s (%s %q)", req.OperationID, req.Type, req.Step)
}
