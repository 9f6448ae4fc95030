package operation

import (
	"context"
	"slices"
	"sync"

	"go.temporal.io/sdk/activity"
)

// Mock answers operations in tests instead of [Handlers]. Register it with the environment of
// Temporal's testsuite, or with a worker. An answer is a result, an error, or a
// func(Request) (any, error).
type Mock struct {
	mu      sync.Mutex
	answers map[string][]any // by operation ID or step
	calls   []Request
}

// Step sets the answers of a step, one per operation of a branch. The last answer repeats.
func (m *Mock) Step(step string, answers ...any) *Mock { return m.set("step "+step, answers) }

// ID sets the answer of an operation ID, which precedes answers for its step.
func (m *Mock) ID(id string, answer any) *Mock { return m.set("id "+id, []any{answer}) }

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
	for _, t := range Types() {
		r.RegisterActivityWithOptions(m.serve, activity.RegisterOptions{Name: t.Activity()})
	}
}

// Calls lists the requests in order, including each attempt.
func (m *Mock) Calls() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.calls)
}

// TypeUnmocked is the error type of an operation without an answer.
const TypeUnmocked = "Unmocked"

func (m *Mock) serve(ctx context.Context, req Request) (Result, error) {
	answer, ok := m.answer(req)
	if !ok {
		return Result{}, permanent(TypeUnmocked,
			"the mock has no answer for operation %s (%s %q)", req.OperationID, req.Type, req.Step)
	}
	var err error
	switch a := answer.(type) {
	case error:
		err = a
	case func(Request) (any, error):
		answer, err = a(req)
	}
	if err != nil {
		return Result{}, activityError(ctx, err)
	}
	data, err := encode(answer)
	if err != nil {
		return Result{}, permanent(TypeBadResult, "the mock's answer for operation %s: %v", req.OperationID, err)
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
	if len(answers) == 0 {
		return nil, false
	}
	return answers[min(max(req.Occurrence, 1), len(answers))-1], true
}
