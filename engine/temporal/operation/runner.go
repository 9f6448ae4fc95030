package operation

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/internal/plainjson"
	"acescope/engine/temporal/history"
)

// Runner runs the operations of a workflow. Create it at the start of the workflow function. Its
// branches share its variables.
type Runner struct {
	s      *state
	branch string // path of escaped names
}

// state is shared by the branches of a runner. It has no lock because only one coroutine of a
// workflow runs at a time.
type state struct {
	key        string
	generation int
	defaults   map[Type]Options
	annotated  bool
	seed       *uint64

	reuse     map[string]json.RawMessage // recorded values by ID
	reuseIf   map[string]string          // digests of the parameters that operations must have
	counters  map[string]int
	variables map[string]json.RawMessage
	decided   map[string]bool // changes with a noted version
	notes     []Note
	dropped   int
}

// Option configures a runner.
type Option func(*state)

// WithOptions sets the options of all operations of a type. The options of an operation take
// precedence.
func WithOptions(t Type, o Options) Option {
	return func(s *state) { s.defaults[t] = Defaults(t).with(o) }
}

// Annotated records each [Runner.Now] and [Runner.Set] in the history. The notes are part of the
// input of the next operation or of [Runner.Flush], so that they add no events and can be
// turned on or off while runs are open.
func Annotated() Option { return func(s *state) { s.annotated = true } }

// WithSeed makes [Random] depend only on the seed and the place of the call, for reproducible
// runs.
func WithSeed(seed uint64) Option { return func(s *state) { s.seed = &seed } }

// Reuse gives operations, times and random values with these IDs recorded values instead of executing them,
// as in a fork. They add no events. An operation with an entry in parameters is executed nevertheless if the
// entry differs from the [Digest] of its parameters.
func Reuse(recorded map[string]json.RawMessage, parameters map[string]string) Option {
	return func(s *state) {
		s.reuse = recorded
		s.reuseIf = parameters
	}
}

// Digest returns the SHA-256 of the canonical JSON of parameters, in lower-case hexadecimal, or "" if they
// are not JSON.
func Digest(parameters json.RawMessage) string {
	data, err := plainjson.Canonical(parameters)
	if err != nil {
		return ""
	}
	return digest(data)
}

// reusable returns the recorded value of an operation.
func (s *state) reusable(req Request) (json.RawMessage, bool) {
	recorded, ok := s.reuse[req.OperationID]
	if want, bound := s.reuseIf[req.OperationID]; ok && bound && want != digest(req.Parameters) {
		return nil, false
	}
	return recorded, ok
}

// Continue restores what the previous run carried over when it continued as new.
func Continue(c Carried) Option {
	return func(s *state) {
		s.generation = c.Generation
		for _, name := range sortedNames(c.Variables) {
			s.variables[name] = c.Variables[name]
		}
	}
}

// Carried is the state that a run passes to the next run in its input when it continues as new.
// A run without it has no variables, and different idempotency keys.
type Carried struct {
	Generation int                        `json:"generation"` // number of earlier runs of the chain
	Variables  map[string]json.RawMessage `json:"variables,omitempty"`
}

// Carry returns the state for the next run.
func (r *Runner) Carry() Carried {
	c := Carried{Generation: r.s.generation + 1, Variables: map[string]json.RawMessage{}}
	for _, name := range sortedNames(r.s.variables) {
		c.Variables[name] = r.s.variables[name]
	}
	return c
}

// New returns the runner of a workflow.
func New(ctx workflow.Context, options ...Option) *Runner {
	s := &state{
		defaults:  map[Type]Options{},
		counters:  map[string]int{},
		variables: map[string]json.RawMessage{},
		decided:   map[string]bool{},
	}
	for _, t := range types() {
		s.defaults[t] = Defaults(t)
	}
	for _, o := range options {
		o(s)
	}
	s.key = runKey(workflow.GetInfo(ctx), s.generation)
	return &Runner{s: s}
}

// runKey returns the run's part of idempotency keys: the first run of the chain, because a
// retried or reset run repeats operations, and the number of times it continued as new, which
// does not repeat them. A continued run without carried state has its own run ID.
func runKey(info *workflow.Info, generation int) string {
	switch {
	case generation > 0:
		return fmt.Sprintf("%s+%d", info.FirstRunID, generation)
	case info.ContinuedExecutionRunID != "" && info.Attempt <= 1:
		return info.OriginalRunID
	}
	return info.FirstRunID
}

// Branch returns the runner of a parallel path, or of a part of the logic with independent IDs.
// Runners of the same branch share its counters.
func (r *Runner) Branch(name string) *Runner {
	path := escape(name)
	if r.branch != "" {
		path = r.branch + "/" + path
	}
	return &Runner{s: r.s, branch: path}
}

func (r *Runner) nextID(prefix, step string) (id string, n int) {
	place := prefix + "." + step + "." + r.branch
	r.s.counters[place]++
	n = r.s.counters[place]
	return idOf(prefix, step, r.branch, n), n
}

// Execute starts an operation. An invalid operation is reported by its future.
func (r *Runner) Execute(ctx workflow.Context, op Operation) *Future {
	return r.prepare(op).start(ctx)
}

// Do runs an operation and decodes its result into a pointer, which may be nil.
func (r *Runner) Do(ctx workflow.Context, op Operation, into any) error {
	return r.Execute(ctx, op).Get(ctx, into)
}

// prepared is an operation with an ID that has not started.
type prepared struct {
	r        *Runner
	request  Request
	activity string // without a request
	options  Options
	err      error
}

func (r *Runner) prepare(op Operation) prepared {
	p := prepared{r: r, activity: op.Activity, options: r.s.defaults[op.Type].with(op.Options)}
	id, n := r.nextID(prefixOperation, op.Step)
	p.request = Request{
		OperationID: id, Type: op.Type, Step: op.Step, Branch: r.branch, Occurrence: n,
		Variable: op.Variable, RunKey: r.s.key, Cache: p.options.Cache == Yes,
	}
	switch {
	case !op.Type.known():
		p.err = permanent(TypeBadOperation, "operation %s: unknown type %q; types are %v", id, op.Type,
			types())
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
		p.err = permanent(TypeBadOperation,
			"operation %s: parameters of %d bytes exceed the limit of %d: store them as an artifact and pass its reference",
			id, len(data), MaxInline)
	}
	p.request.Parameters = data
	return p
}

func (p prepared) start(ctx workflow.Context) *Future {
	f := &Future{r: p.r, id: p.request.OperationID, variable: p.request.Variable, raw: p.activity != ""}
	recorded, known := p.r.s.reusable(p.request)
	if p.err != nil || known {
		future, settle := workflow.NewFuture(ctx)
		settle.Set(nil, p.err)
		f.reused = recorded
		f.future = future
		return f
	}
	if f.raw {
		ctx = workflow.WithActivityOptions(ctx, p.options.activity(f.id))
		f.future = workflow.ExecuteActivity(ctx, p.activity, p.request.Parameters)
		return f
	}
	p.request.Notes, p.request.Dropped = p.r.takeNotes()
	ctx = workflow.WithActivityOptions(ctx, p.options.activity(f.id))
	f.future = workflow.ExecuteActivity(ctx, p.request.Type.Activity(), p.request)
	return f
}

// Future is a started operation.
type Future struct {
	r            *Runner
	id, variable string
	future       workflow.Future
	raw          bool            // the result is not in a [Result]
	reused       json.RawMessage // the recorded value, or nil
}

// Future returns Temporal's future, for selectors.
func (f *Future) Future() workflow.Future { return f.future }

// ID returns the ID of the operation.
func (f *Future) ID() string { return f.id }

// Reused reports whether the result is a reused recorded result, see [Reuse].
func (f *Future) Reused() bool { return f.reused != nil }

// Result waits for the operation, assigns its variable, and returns its result. The error is
// Temporal's; [FailureOf] interprets it.
func (f *Future) Result(ctx workflow.Context) (Result, error) {
	r, err := f.result(ctx)
	if err != nil {
		return Result{}, err
	}
	if r.OperationID != f.id {
		return Result{}, permanent(TypeBadResult, "operation %s received the result of %q", f.id,
			r.OperationID)
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

func (f *Future) result(ctx workflow.Context) (Result, error) {
	switch {
	case f.reused != nil:
		return Result{OperationID: f.id, Value: f.reused}, f.future.Get(ctx, nil)
	case f.raw:
		r := Result{OperationID: f.id}
		return r, f.future.Get(ctx, &r.Value)
	}
	var r Result
	return r, f.future.Get(ctx, &r)
}

// Get waits for the operation and decodes its result into a pointer, which may be nil.
func (f *Future) Get(ctx workflow.Context, into any) error {
	r, err := f.Result(ctx)
	if err != nil {
		return err
	}
	return r.Decode(into)
}

// Failure describes why an operation did not complete.
type Failure struct {
	ace.Failure
	OperationID string `json:"operation_id,omitempty"`
	// Permanent is set if retries would not have helped.
	Permanent bool `json:"permanent,omitempty"`
}

// Agent reports whether the agent itself failed, so that asking it again is useless.
func (f *Failure) Agent() bool { return f != nil && f.Type == TypeAgent }

// FailureOf interprets the error of an operation. It returns nil for nil.
func FailureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	f := &Failure{Failure: history.FailureFrom(err)}
	if activity, ok := errors.AsType[*temporal.ActivityError](err); ok {
		f.OperationID = activity.ActivityID()
	}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		f.Permanent = app.NonRetryable()
	}
	return f
}

// IsLong reports whether the run should continue as new because of its history. Temporal itself suggests it
// at 4,096 events, which is late for workflows that have much to carry.
func IsLong(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() >= maxHistory
}

const maxHistory = 3500

// Bounds of a batch. Temporal allows 2,000 pending activities.
const (
	MaxBatch      = 2000
	MaxWindow     = 1000
	DefaultWindow = 16
)

// TypeNotRun is the error type of operations that a batch did not start.
const TypeNotRun = "NotRun"

// Policy decides what a batch does when an operation fails.
type Policy int8

// Policies.
const (
	// FailFast starts no more operations, cancels the running ones, waits for them and returns
	// the first error.
	FailFast Policy = iota
	// CollectAll runs all operations and reports errors in the outcomes.
	CollectAll
)

// BatchOptions are options of a batch.
type BatchOptions struct {
	Window   int // operations at a time; 0 means [DefaultWindow]
	OnFailed Policy
}

// Outcome is the result or error of an operation of a batch.
type Outcome struct {
	Result
	Err error
}

// Batch runs operations in parallel and returns their outcomes in their order. Their IDs are
// assigned in that order too.
func (r *Runner) Batch(ctx workflow.Context, ops []Operation, o BatchOptions) ([]Outcome, error) {
	if len(ops) > MaxBatch {
		return nil, permanent(TypeBadOperation,
			"a batch of %d operations exceeds the limit of %d; split it and continue as new between the parts", len(ops), MaxBatch)
	}
	b := &batch{o: o, all: make([]prepared, len(ops)), out: make([]Outcome, len(ops))}
	for i, op := range ops {
		b.all[i] = r.prepare(op)
		b.out[i] = Outcome{Result: Result{OperationID: b.all[i].request.OperationID}, Err: errNotRun}
	}
	return b.out, b.run(ctx)
}

var errNotRun = permanent(TypeNotRun,
	"the operation was not started: another operation of the batch failed, or the run was canceled")

type batch struct {
	o     BatchOptions
	all   []prepared
	next  int
	out   []Outcome
	first error // by time
}

func (b *batch) run(ctx workflow.Context) error {
	window := b.o.Window
	if window <= 0 {
		window = DefaultWindow
	}
	inner, cancel := workflow.WithCancel(ctx)
	defer cancel()
	lanes := workflow.NewWaitGroup(ctx)
	for range min(window, MaxWindow, len(b.all)) {
		lanes.Add(1)
		workflow.Go(inner, func(ctx workflow.Context) {
			defer lanes.Done()
			b.lane(ctx, cancel)
		})
	}
	// Lanes also end when the run is canceled. Wait for the operations that they have started.
	waiting, _ := workflow.NewDisconnectedContext(ctx)
	lanes.Wait(waiting)
	switch {
	case b.first != nil && b.o.OnFailed == FailFast:
		return b.first
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return nil
}

func (b *batch) lane(ctx workflow.Context, cancel workflow.CancelFunc) {
	for b.next < len(b.all) && ctx.Err() == nil {
		i := b.next
		b.next++
		id := b.out[i].OperationID
		b.out[i].Result, b.out[i].Err = b.all[i].start(ctx).Result(ctx)
		b.out[i].OperationID = id
		if b.out[i].Err == nil {
			continue
		}
		b.first = cmp.Or(b.first, b.out[i].Err)
		if b.o.OnFailed == FailFast {
			cancel()
			return
		}
	}
}

// Bounds of IDs, which are ASCII with at most [MaxID] characters.
const (
	MaxID = 1000

	maxStepPart   = 240
	maxBranchPart = 640
	hashDigits    = 32
)

// Prefixes of IDs.
const (
	prefixOperation = "op"
	prefixRandom    = "random"
	prefixTime      = "time"
)

// idOf returns an ID such as "op.draft.left/inner.2", where n counts from 1 per step and branch
// and "-" stands for the main path. It does not depend on events or attempts, so that it is
// the same in every replay and after operations were added or removed elsewhere.
func idOf(prefix, step, branch string, n int) string {
	branch = bounded(cmp.Or(branch, "-"), maxBranchPart)
	return prefix + "." + bounded(escape(step), maxStepPart) + "." + branch + "." + strconv.Itoa(n)
}

// escape replaces bytes other than letters, digits, "_" and "-" with %XX. It also escapes the
// name "-", which stands for the main path.
func escape(s string) string {
	if s == "-" {
		return "%2D"
	}
	plain := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
	}
	var out strings.Builder
	for i := range len(s) {
		if c := s[i]; plain(c) {
			out.WriteByte(c)
		} else {
			out.WriteByte('%')
			out.WriteByte("0123456789ABCDEF"[c>>4])
			out.WriteByte("0123456789ABCDEF"[c&15])
		}
	}
	return out.String()
}

// bounded shortens a part that is too long to its beginning, "~" and its digest. Escaped text
// contains no "~".
func bounded(part string, limit int) string {
	if len(part) <= limit {
		return part
	}
	head := part[:limit-hashDigits-1]
	for range 2 { // not in the middle of %XX
		if i := strings.LastIndexByte(head, '%'); i > len(head)-3 && i >= 0 {
			head = head[:i]
		}
	}
	return head + "~" + digest([]byte(part))[:hashDigits]
}
