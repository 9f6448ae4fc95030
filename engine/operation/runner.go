package operation

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/history"
)

// Runner runs the operations of one workflow. Make it at the begin of the workflow
// function; its branches share its variables.
type Runner struct {
	s      *state
	branch string // the path, its names escaped
}

// state is what the branches of a runner share. Workflow code is one goroutine at a time,
// so it has no lock.
type state struct {
	key        string
	generation int
	defaults   map[Type]Options
	annotated  bool
	seed       *uint64

	counters  map[string]int
	variables map[string]json.RawMessage
	decided   map[string]bool // changes whose version has been noted
	notes     []Note
	dropped   int
}

// Option changes a runner.
type Option func(*state)

// WithOptions changes the options of all operations of a type; those of an operation
// itself come before them.
func WithOptions(t Type, o Options) Option {
	return func(s *state) { s.defaults[t] = Defaults(t).with(o) }
}

// Annotated notes each [Runner.Now] and [Runner.Set] for whoever reads the history. The
// notes travel with the input of the next operation, and what is behind the last one with
// [Runner.Flush], so that they cost no events and may be turned on or off while runs are
// open.
func Annotated() Option { return func(s *state) { s.annotated = true } }

// WithSeed makes [Random] draw from this seed and the place of the call, for runs that
// shall be alike.
func WithSeed(seed uint64) Option { return func(s *state) { s.seed = &seed } }

// Continue takes up what a run left that continued as new.
func Continue(c Carried) Option {
	return func(s *state) {
		s.generation = c.Generation
		for _, name := range sortedNames(c.Variables) {
			s.variables[name] = c.Variables[name]
		}
	}
}

// Carried is what a run that continues as new hands to the next, in its input. A run that
// is not given it has no variables, and idempotency keys of its own.
type Carried struct {
	Generation int                        `json:"generation"` // how many runs of the chain were before
	Variables  map[string]json.RawMessage `json:"variables,omitempty"`
}

// Carry is what to hand to the next run.
func (r *Runner) Carry() Carried {
	c := Carried{Generation: r.s.generation + 1, Variables: map[string]json.RawMessage{}}
	for _, name := range sortedNames(r.s.variables) {
		c.Variables[name] = r.s.variables[name]
	}
	return c
}

// New makes the runner of a workflow.
func New(ctx workflow.Context, options ...Option) *Runner {
	s := &state{defaults: map[Type]Options{}, counters: map[string]int{}, variables: map[string]json.RawMessage{}, decided: map[string]bool{}}
	for _, t := range Types() {
		s.defaults[t] = Defaults(t)
	}
	for _, o := range options {
		o(s)
	}
	s.key = runKey(workflow.GetInfo(ctx), s.generation)
	return &Runner{s: s}
}

// runKey names the run for idempotency: the first run of the chain, since a run that is
// retried or reset repeats its operations, and how often it continued as new, since that
// is not a repetition. A continued run that was handed nothing counts as one of its own.
func runKey(info *workflow.Info, generation int) string {
	switch {
	case generation > 0:
		return fmt.Sprintf("%s+%d", info.FirstRunID, generation)
	case info.ContinuedExecutionRunID != "" && info.Attempt <= 1:
		return info.OriginalRunID
	}
	return info.FirstRunID
}

// Branch is the runner for a parallel path, or for a part of the logic whose ids shall not
// depend on the rest. A branch of the same name goes on counting where it was.
func (r *Runner) Branch(name string) *Runner {
	path := escape(name)
	if r.branch != "" {
		path = r.branch + "/" + path
	}
	return &Runner{s: r.s, branch: path}
}

// mint is the next id at a place.
func (r *Runner) mint(prefix, step string) (id string, n int) {
	place := prefix + "." + step + "." + r.branch
	r.s.counters[place]++
	n = r.s.counters[place]
	return idOf(prefix, step, r.branch, n), n
}

// Execute begins an operation. What is wrong with the operation itself is the error of its
// future.
func (r *Runner) Execute(ctx workflow.Context, op Operation) *Future {
	return r.prepare(op).start(ctx)
}

// Do runs an operation and reads its result into a pointer, which may be nil.
func (r *Runner) Do(ctx workflow.Context, op Operation, into any) error {
	return r.Execute(ctx, op).Get(ctx, into)
}

// prepared is an operation with its id, not yet begun.
type prepared struct {
	r       *Runner
	request Request
	options Options
	err     error
}

func (r *Runner) prepare(op Operation) prepared {
	p := prepared{r: r, options: r.s.defaults[op.Type].with(op.Options)}
	id, n := r.mint(prefixOperation, op.Step)
	p.request = Request{OperationID: id, Type: op.Type, Step: op.Step, Branch: r.branch, Occurrence: n, Variable: op.Variable,
		RunKey: r.s.key, Cache: p.options.Cache == Yes}
	switch {
	case !op.Type.known():
		p.err = permanent(TypeBadOperation, "operation %s: no type %q; there are %v", id, op.Type, Types())
		return p
	case op.Step == "":
		p.err = permanent(TypeBadOperation, "an operation of type %s has no step", op.Type)
		return p
	}
	data, err := encode(op.Parameters)
	switch {
	case err != nil:
		p.err = permanent(TypeBadOperation, "operation %s: the parameters: %v", id, err)
	case len(data) > MaxInline:
		p.err = permanent(TypeBadOperation, "operation %s: parameters of %d bytes, at most %d are recorded: keep them as an artifact and pass its reference",
			id, len(data), MaxInline)
	}
	p.request.Parameters = data
	return p
}

func (p prepared) start(ctx workflow.Context) *Future {
	f := &Future{r: p.r, id: p.request.OperationID, variable: p.request.Variable}
	if p.err != nil {
		future, settle := workflow.NewFuture(ctx)
		settle.SetError(p.err)
		f.future = future
		return f
	}
	p.request.Notes, p.request.Dropped = p.r.takeNotes()
	label, _ := history.OperationLabel(f.id)
	ctx = workflow.WithActivityOptions(ctx, p.options.activity(f.id, label))
	f.future = workflow.ExecuteActivity(ctx, p.request.Type.Activity(), p.request)
	return f
}

// Future is an operation that was begun.
type Future struct {
	r            *Runner
	id, variable string
	future       workflow.Future
}

// ID is the operation's id.
func (f *Future) ID() string { return f.id }

// Future is Temporal's own future, for selectors.
func (f *Future) Future() workflow.Future { return f.future }

// IsReady tells whether the operation has ended.
func (f *Future) IsReady() bool { return f.future.IsReady() }

// Result waits for the operation and gives its result. The error is Temporal's;
// [FailureOf] says what it means. A result that names a variable is assigned here.
func (f *Future) Result(ctx workflow.Context) (Result, error) {
	var r Result
	if err := f.future.Get(ctx, &r); err != nil {
		return Result{}, err
	}
	if r.OperationID != f.id {
		return Result{}, permanent(TypeBadResult, "operation %s was answered with the result of %q", f.id, r.OperationID)
	}
	if f.variable == "" {
		return r, nil
	}
	value := r.Value
	if r.Ref != nil {
		var err error
		if value, err = encode(r.Ref); err != nil {
			return r, err
		}
	}
	return r, f.r.assign(f.variable, value)
}

// Get waits for the operation and reads its result into a pointer, which may be nil.
func (f *Future) Get(ctx workflow.Context, into any) error {
	r, err := f.Result(ctx)
	if err != nil {
		return err
	}
	return r.Decode(into)
}

// Failure is what became of an operation that did not complete.
type Failure struct {
	ace.Failure
	OperationID string `json:"operation_id,omitempty"`
	// Permanent failures would not have been mended by further attempts.
	Permanent bool `json:"permanent,omitempty"`
}

// Agent tells whether the agent itself gave up, so that asking again is of no use.
func (f *Failure) Agent() bool { return f != nil && f.Type == TypeAgent }

// FailureOf reads the error of an operation; nil for nil.
func FailureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	f := &Failure{Failure: history.FailureFrom(err)}
	var activity *temporal.ActivityError
	if errors.As(err, &activity) {
		f.OperationID = activity.ActivityID()
	}
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		f.Permanent = app.NonRetryable()
	}
	return f
}

func (f *Failure) String() string {
	return strings.TrimPrefix(f.OperationID+": ", ": ") + string(f.Kind) + ": " + f.Message
}
