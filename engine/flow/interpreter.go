package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/internal/lru"
	"acescope/engine/internal/plainjson"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/operation"
	"acescope/engine/temporal/searchattr"
)

// Error types of failed runs, besides those of operations.
const (
	TypeSource  = "BadFlow"       // the source is not a valid flow
	TypeValue   = "BadValue"      // an expression has a value that the step cannot use
	TypeUnsafe  = "UnsafeValue"   // a value would be read as a flag or leave the directory
	TypeLimit   = "LimitExceeded" // of the flow, or of a step
	TypeTimeout = "NoDecision"    // an approval with on_timeout: fail
	TypeExit    = "ExitCode"      // a program ended with an exit code that is not allowed
	TypeFailed  = "FlowFailed"    // a step "fail"
	typeExpr    = "BadExpression" // an expression failed
)

// MaxCarried bounds the state of a run that continues as new, in bytes of JSON.
const MaxCarried = 1 << 20

// Carried is the state that a run passes on when it continues as new.
type Carried struct {
	Operation operation.Carried            `json:"operation"`
	Frames    map[string]*frame            `json:"frames"`
	State     State                        `json:"state"`
	Signals   map[string][]json.RawMessage `json:"signals,omitempty"` // received, but not awaited yet
	Started   time.Time                    `json:"started"`           // of the first run
}

// frame is the position in a block or loop. A run carries over its frames when it continues as new.
type frame struct {
	Next    int             `json:"next,omitempty"` // next iteration
	Items   []any           `json:"items,omitempty"`
	Results []any           `json:"results,omitempty"`
	Inputs  json.RawMessage `json:"inputs,omitempty"` // of a sub-flow
	Steps   map[string]any  `json:"steps,omitempty"`  // results of finished steps
	Vars    map[string]any  `json:"vars,omitempty"`
	Blocks  map[string]int  `json:"blocks,omitempty"` // next step, by block
	Taken   map[string]bool `json:"taken,omitempty"`  // conditions of open steps, by ID
}

type plainFrame frame

// MarshalJSON writes whole floating-point numbers with a decimal point, because expressions distinguish them
// from integers.
func (f *frame) MarshalJSON() ([]byte, error) {
	p := plainFrame(*f)
	p.Items, _ = carried(f.Items).([]any)
	p.Results, _ = carried(f.Results).([]any)
	p.Steps, _ = carried(f.Steps).(map[string]any)
	p.Vars, _ = carried(f.Vars).(map[string]any)
	return json.Marshal(p)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (f *frame) UnmarshalJSON(data []byte) error {
	if err := plainjson.Unmarshal(data, (*plainFrame)(f)); err != nil {
		return err
	}
	numbers(f.Items)
	numbers(f.Results)
	numbers(f.Steps)
	numbers(f.Vars)
	return nil
}

// errContinue unwinds the interpreter when the run continues as new.
var errContinue = errors.New("continue as new")

// stepError is the failure of a step.
type stepError struct {
	step    *Step
	kind    string
	message string
}

func (s *Step) errorf(kind, format string, args ...any) error {
	return &stepError{step: s, kind: kind, message: fmt.Sprintf(format, args...)}
}

func (e *stepError) Error() string {
	return fmt.Sprintf("step %s (%s): %s", e.step.ID, e.step.At, e.message)
}

// FailedStep returns the ID of the step in the message of a run's failure, or "".
func FailedStep(message string) string {
	rest, ok := strings.CutPrefix(message, "step ")
	id, _, found := strings.Cut(rest, " (")
	if !ok || !found || !isName(id) {
		return ""
	}
	return id
}

// parsed holds the flows of recent runs, because a worker parses the source once for each run that it
// executes.
var parsed = lru.New[string](64, func(*Flow) int { return 1 })

// Parsed returns the flow of a source with a digest, and keeps it in memory.
func Parsed(src Source, digest string) (*Flow, error) {
	if src.Digest() != digest {
		return nil, fmt.Errorf("the source of the flow does not have the digest %s", digest)
	}
	if f, ok := parsed.Get(digest); ok {
		return f, nil
	}
	f, err := Parse(src)
	if err == nil {
		parsed.Put(digest, f)
	}
	return f, err
}

// execution is a run of a flow.
type execution struct {
	input    Input
	flow     *Flow
	root     workflow.Context
	runner   *operation.Runner
	state    State
	frames   map[string]*frame
	signals  map[string][]json.RawMessage
	channels map[string]workflow.ReceiveChannel
	decided  map[string]Decision // by path
	started  time.Time
	parallel int // open parallel parts, in which the run cannot continue as new
	shown    string
	late     bool // the run has taken longer than the limit of the flow
}

// Run is the workflow of a flow. It fails with the error of the step that failed.
func Run(ctx workflow.Context, in Input) (*Result, error) {
	x := &execution{input: in, root: ctx, state: State{Name: in.Name, Digest: in.Digest},
		frames:  map[string]*frame{},
		signals: map[string][]json.RawMessage{}, channels: map[string]workflow.ReceiveChannel{},
		decided: map[string]Decision{}, started: workflow.Now(ctx).UTC(), shown: PhaseRunning}
	if err := workflow.SetQueryHandler(ctx, QueryFlow,
		func() (State, error) { return x.state.Clone(), nil }); err != nil {
		return nil, err
	}
	options := []operation.Option{operation.Annotated(), operation.Reuse(in.Reuse, in.ReuseParameters)}
	if c := in.Carried; c != nil {
		options = append(options, operation.Continue(c.Operation))
		x.restore(c)
	}
	x.runner = operation.New(ctx, options...)
	f, err := Parsed(in.Source, in.Digest)
	if err != nil {
		return nil, temporal.NewNonRetryableApplicationError(err.Error(), TypeSource, nil)
	}
	if in.Language < 1 || in.Language > Language {
		return nil, temporal.NewNonRetryableApplicationError(fmt.Sprintf(
			"the flow needs version %d of the language, and this worker has %d", in.Language, Language),
			TypeSource, nil)
	}
	x.flow = f
	outputs, err := x.execute(ctx)
	if errors.Is(err, errContinue) {
		return nil, x.continueAsNew(ctx)
	}
	return x.finish(ctx, outputs, err)
}

func (x *execution) restore(c *Carried) {
	x.state = c.State
	x.started = c.Started
	for _, path := range sortedKeys(c.Frames) {
		x.frames[path] = c.Frames[path]
	}
	for _, name := range sortedKeys(c.Signals) {
		x.signals[name] = c.Signals[name]
	}
}

func (x *execution) execute(ctx workflow.Context) (map[string]any, error) {
	x.listen(ctx)
	ctx = x.limited(ctx)
	top := x.scope(ctx, x.runner, "")
	inputs, err := x.flow.CheckInputs(x.input.Inputs)
	if err != nil {
		return nil, err
	}
	top.enter(x.flow, inputs)
	if err := top.block(x.flow.Steps, ""); err != nil {
		if x.late {
			message := fmt.Sprintf("the flow took longer than its limit of %s", x.flow.Limits.Time)
			return nil, temporal.NewNonRetryableApplicationError(message, TypeLimit, nil)
		}
		if e, ok := errors.AsType[*stepError](err); ok && e.kind == TypeFailed {
			outputs, _ := top.outputs() // nil if they need results of steps that were not executed
			return outputs, err
		}
		return nil, err
	}
	return top.outputs()
}

// limited returns a context that is canceled when the run takes longer than the limit of the flow.
func (x *execution) limited(ctx workflow.Context) workflow.Context {
	limit := x.flow.Limits.Time
	if limit == 0 {
		return ctx
	}
	ctx, cancel := workflow.WithCancel(ctx)
	left := max(limit-workflow.Now(ctx).Sub(x.started), 0)
	alarm := workflow.NewTimerWithOptions(ctx, left, workflow.TimerOptions{Summary: "time limit of the flow"})
	workflow.Go(ctx, func(ctx workflow.Context) {
		if alarm.Get(ctx, nil) == nil {
			x.late = true
			cancel()
		}
	})
	return ctx
}

// listen receives the signals of the flow as they arrive.
func (x *execution) listen(ctx workflow.Context) {
	for _, name := range append(x.flow.Signals(), SignalDecide) {
		c := workflow.GetSignalChannel(ctx, name)
		x.channels[name] = c
		workflow.Go(ctx, func(ctx workflow.Context) {
			for x.receive(ctx, name, c) {
			}
		})
	}
}

func (x *execution) receive(ctx workflow.Context, name string, c workflow.ReceiveChannel) bool {
	var raw converter.RawValue
	if !c.Receive(ctx, &raw) {
		return false
	}
	x.take(name, history.PayloadJSON(raw.Payload()))
	return true
}

func (x *execution) take(name string, data json.RawMessage) {
	if name != SignalDecide {
		x.signals[name] = append(x.signals[name], data)
		return
	}
	var d Decision
	if json.Unmarshal(data, &d) == nil {
		if _, known := x.decided[d.Step]; !known {
			x.decided[d.Step] = d
		}
	}
}

// continueAsNew starts the next run with the state of this one.
func (x *execution) continueAsNew(ctx workflow.Context) error {
	for _, name := range sortedKeys(x.channels) {
		var raw converter.RawValue
		for x.channels[name].ReceiveAsync(&raw) {
			x.take(name, history.PayloadJSON(raw.Payload()))
		}
	}
	x.runner.Flush(ctx)
	x.state.prune(maxCarried)
	next := x.input
	next.Carried = &Carried{Operation: x.runner.Carry(), Frames: x.frames, State: x.state, Signals: x.signals,
		Started: x.started}
	data, err := json.Marshal(next.Carried)
	if err != nil {
		return err
	}
	if len(data) > MaxCarried {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf(
			"the results and variables of the run have %d KB, and a long run can carry %d: keep less, or store it as artifacts",
			len(data)>>10, MaxCarried>>10), TypeLimit, nil)
	}
	return workflow.NewContinueAsNewError(ctx, Workflow, next)
}

// finish records the end of the run.
func (x *execution) finish(ctx workflow.Context, outputs map[string]any, err error) (*Result, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	x.runner.Flush(ctx)
	exit := ace.ExitSuccess
	switch {
	case temporal.IsCanceledError(err):
		exit = ace.ExitCanceled
	case err != nil:
		exit = ace.ExitFailed
	}
	memo := map[string]any{ace.MemoSummary: ace.Summary{Usage: x.state.Usage, Metered: x.state.Metered}}
	if err := workflow.UpsertMemo(ctx, memo); err != nil {
		return nil, err
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, searchattr.Keyword(ace.AttrPhase, PhaseDone),
		searchattr.Keyword(ace.AttrExit, string(exit))); err != nil {
		return nil, err
	}
	result := &Result{Outputs: outputs, Usage: x.state.Usage, Operations: x.state.Operations}
	if err != nil {
		return nil, workflowError(err, result)
	}
	return result, nil
}

// workflowError converts the error of a step to the error of the workflow. A flow that a step "fail" ended
// has its outputs in the details.
func workflowError(err error, r *Result) error {
	if _, ok := errors.AsType[*temporal.ApplicationError](err); ok || temporal.IsCanceledError(err) {
		return err
	}
	kind := TypeValue
	if errors.Is(err, ErrExpression) {
		kind = typeExpr
	}
	if e, ok := errors.AsType[*stepError](err); ok {
		kind = e.kind
	}
	if kind == TypeFailed && r.Outputs != nil {
		return temporal.NewNonRetryableApplicationError(err.Error(), kind, nil, r)
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), kind, nil)
}
