// Package flowtest runs flows in Temporal's test environment: without a server, with answers in place of
// workers, and without waiting for time. It tests flows, compares them with recorded runs, and predicts
// what a fork executes. It may import engine/flow and Temporal's SDK.
//
// Bounds: a simulation does not continue as new. Loss: none.
package flowtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/temporal/operation"
)

// Simulation is a run of a flow to simulate.
type Simulation struct {
	Input flow.Input
	Start time.Time // zero: now
	// WorkflowID and FirstRunID are the IDs that expressions see; "" for those of the test environment.
	WorkflowID, FirstRunID string
	// Answer returns the result of an operation, or its failure. n counts the operations of its step from
	// 0, in the order in which they begin. It returns false if it has no answer, which fails the operation.
	Answer  func(r operation.Request, n int) (json.RawMessage, *ace.Failure, bool)
	Decide  func(path string) (flow.Decision, bool)
	Signals []flow.Signal
}

// Outcome is the result of a simulation.
type Outcome struct {
	Result  *flow.Result // nil unless it completed
	Failure *ace.Failure
	State   flow.State
	// Operations are the executed operations in the order in which they begin, without reused operations.
	Operations []flow.Operation
	Unanswered []string         // IDs of operations without an answer
	Waiting    []flow.StepState // steps that wait for a decision or a signal that never comes
}

// never is longer than any wait of a flow. It passes only if nothing else can happen.
const never = 100 * 365 * 24 * time.Hour

// patience bounds how long a workflow task of a simulation may take.
const patience = time.Minute

// Run simulates the run. The error is a defect of the environment or of the input.
func (s Simulation) Run() (out Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the simulation of flow %s ended early: %.300v", s.Input.Name, p)
		}
	}()
	s.Input.Digest = s.Input.Source.Digest()
	s.Input.Language = flow.Language
	r := &simulated{Simulation: s, ofStep: map[string]int{}, order: map[string]int{},
		decided: map[string]bool{}}
	mock := new(operation.Mock)
	r.begin(mock)
	r.env.ExecuteWorkflow(r.run, s.Input)
	out = Outcome{Operations: r.operations, Waiting: r.waiting}
	for _, q := range mock.Unanswered() {
		out.Unanswered = append(out.Unanswered, q.OperationID)
	}
	if out.State, err = r.state(); err != nil {
		return out, err
	}
	if err := r.env.GetWorkflowError(); err != nil {
		f := operation.FailureOf(err)
		out.Failure = &f.Failure
		return out, nil
	}
	return out, r.env.GetWorkflowResult(&out.Result)
}

// simulated is a running simulation.
type simulated struct {
	Simulation
	interceptor.WorkerInterceptorBase
	env     *testsuite.TestWorkflowEnvironment
	decided map[string]bool
	waiting []flow.StepState
	noted   bool // the run has recorded a fact since the last call of decide

	mu         sync.Mutex // guards the fields below, because activities run beside the workflow
	operations []flow.Operation
	ofStep     map[string]int // operations that have begun, by step
	order      map[string]int // number of an operation among the operations of its step, by ID
}

func (r *simulated) begin(mock *operation.Mock) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	r.env = suite.NewTestWorkflowEnvironment()
	r.env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{r},
		DeadlockDetectionTimeout: patience})
	r.env.SetTestTimeout(patience)
	r.env.SetWorkflowRunTimeout(2 * never)
	if !r.Start.IsZero() {
		r.env.SetStartTime(r.Start)
	}
	mock.Otherwise(r.answer)
	mock.Register(r.env)
	r.env.RegisterDynamicActivity(mock.Activity, activity.DynamicRegisterOptions{})
	for _, s := range r.Signals {
		r.env.RegisterDelayedCallback(func() { r.env.SignalWorkflow(s.Name, s.Data) }, s.After)
	}
}

// answer returns the mocked result of an operation.
func (r *simulated) answer(req operation.Request) (any, error) {
	r.mu.Lock()
	n := r.order[req.OperationID]
	r.mu.Unlock()
	result, failure, ok := r.Answer(req, n)
	switch {
	case !ok:
		return nil, operation.ErrUnmocked
	case failure != nil:
		return nil, temporal.NewNonRetryableApplicationError(failure.Message, failure.Type, nil)
	}
	return result, nil
}

// run is the workflow: the flow, beside a goroutine that sends decisions and one that cancels the flow when
// it waits for an event that never comes.
func (r *simulated) run(ctx workflow.Context, in flow.Input) (*flow.Result, error) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		for workflow.Await(ctx, r.decide) == nil {
		}
	})
	workflow.Go(ctx, func(ctx workflow.Context) {
		if workflow.Sleep(ctx, never) == nil {
			s, _ := r.state()
			for _, t := range s.Steps {
				if t.Status == flow.StepWaiting {
					r.waiting = append(r.waiting, t)
				}
			}
			r.env.CancelWorkflow()
		}
	})
	return flow.Run(ctx, in)
}

// decide sends the decisions that the run waits for. It reports whether it sent one.
func (r *simulated) decide() (sent bool) {
	if !r.noted { // a step records a fact before it waits
		return false
	}
	r.noted = false
	s, err := r.state()
	if err != nil {
		return false
	}
	for _, t := range s.Waiting() {
		if r.decided[t.Path] {
			continue
		}
		r.decided[t.Path] = true
		if d, ok := r.Decide(t.Path); ok {
			d.Step = t.Path
			r.env.SignalWorkflow(flow.SignalDecide, d)
			sent = true
		}
	}
	return sent
}

func (r *simulated) state() (s flow.State, err error) {
	v, err := r.env.QueryWorkflow(flow.QueryFlow)
	if err != nil {
		return s, err
	}
	return s, v.Get(&s)
}

// InterceptWorkflow records the operations as the workflow starts them, because the activities of the test
// environment begin in any order.
func (r *simulated) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &inbound{interceptor.WorkflowInboundInterceptorBase{Next: next}, r}
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	r *simulated
}

func (i *inbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&outbound{interceptor.WorkflowOutboundInterceptorBase{Next: next}, i.r})
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	r *simulated
}

func (o *outbound) SideEffect(ctx workflow.Context, f func(workflow.Context) any) converter.EncodedValue {
	o.r.noted = true
	return o.Next.SideEffect(ctx, f)
}

func (o *outbound) GetInfo(ctx workflow.Context) *workflow.Info {
	info := *o.Next.GetInfo(ctx)
	info.WorkflowExecution.ID = cmp.Or(o.r.WorkflowID, info.WorkflowExecution.ID)
	info.FirstRunID = cmp.Or(o.r.FirstRunID, info.FirstRunID)
	return &info
}

func (o *outbound) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	op := flow.Operation{ID: workflow.GetActivityOptions(ctx).ActivityID}
	for _, arg := range args {
		switch a := arg.(type) {
		case operation.Request:
			op.Parameters = a.Parameters
		case json.RawMessage:
			op.Parameters = a
		}
	}
	o.r.mu.Lock()
	defer o.r.mu.Unlock()
	step := op.Step()
	o.r.order[op.ID] = o.r.ofStep[step]
	o.r.ofStep[step]++
	o.r.operations = append(o.r.operations, op)
	return o.Next.ExecuteActivity(ctx, name, args...)
}

// ErrContinued means that a run cannot be simulated because it is a part of a chain.
var ErrContinued = errors.New("the run is a part of a chain")
