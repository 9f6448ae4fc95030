package flow

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/temporal/operation"
)

// scope is a place in the flow with the names that expressions see there.
type scope struct {
	x      *execution
	ctx    workflow.Context
	runner *operation.Runner
	path   string // of blocks and iterations, "" at the top
	flow   *Flow
	name   string // of the step that is executed

	inputs map[string]any
	vars   map[string]any // shared within a flow
	varsAt string         // path of the flow that has them
	steps  map[string]any // results that expressions see
	own    map[string]any // the results in steps of this scope's own steps
	items  map[string]any
}

func (x *execution) scope(ctx workflow.Context, r *operation.Runner, path string) *scope {
	s := &scope{x: x, ctx: ctx, runner: r, path: path, steps: map[string]any{}, items: map[string]any{}}
	s.own = s.frame("").steps()
	return s
}

// enter begins a flow in the scope.
func (s *scope) enter(f *Flow, inputs json.RawMessage) {
	s.flow = f
	s.varsAt = s.path
	decoded, _ := decodeJSON(inputs)
	s.inputs, _ = decoded.(map[string]any)
	for _, in := range f.Inputs {
		if v, ok := s.inputs[in.Name]; ok && in.Type == "number" {
			s.inputs[in.Name] = decimal(v)
		}
	}
	fr := s.frame("")
	if fr.Vars == nil {
		fr.Vars = map[string]any{}
	}
	s.vars = fr.Vars
	s.steps = maps.Clone(s.own)
	s.items = map[string]any{}
}

// child returns the scope of a block or an iteration of a step.
func (s *scope) child(ctx workflow.Context, step, part string) *scope {
	runner := s.runner.Branch(step)
	path := JoinPath(s.path, step)
	if part != "" {
		runner = runner.Branch(part)
		path = JoinPath(path, part)
	}
	c := s.x.scope(ctx, runner, path)
	c.flow = s.flow
	c.inputs = s.inputs
	c.vars = s.vars
	c.varsAt = s.varsAt
	c.steps = maps.Clone(s.steps)
	maps.Copy(c.steps, c.own)
	c.items = maps.Clone(s.items)
	return c
}

func (s *scope) pathOf(step *Step) string { return JoinPath(s.path, step.ID) }

// adopt copies the results of a child scope, so that later steps may read them.
func (s *scope) adopt(c *scope) {
	maps.Copy(s.steps, c.own)
	maps.Copy(s.own, c.own)
	s.x.forget(c.path)
}

// frame returns the frame of a step in the scope, or with "" that of the scope.
func (s *scope) frame(step string) *frame {
	path := s.path
	if step != "" {
		path = JoinPath(path, step+"/")
	}
	f := s.x.frames[path]
	if f == nil {
		f = &frame{}
		s.x.frames[path] = f
	}
	return f
}

func (f *frame) steps() map[string]any {
	if f.Steps == nil {
		f.Steps = map[string]any{}
	}
	return f.Steps
}

// forget removes the frames at and below a path.
func (x *execution) forget(path string) {
	for _, p := range sortedKeys(x.frames) {
		if p == path || strings.HasPrefix(p, path+"/") {
			delete(x.frames, p)
		}
	}
}

// pause ends the run with errContinue if its history is long and nothing runs in parallel.
func (s *scope) pause() error {
	if s.x.parallel == 0 && operation.IsLong(s.ctx) {
		return errContinue
	}
	return s.ctx.Err()
}

// block executes steps one after the other. The name distinguishes the blocks of a scope.
func (s *scope) block(steps []*Step, name string) error {
	f := s.frame("")
	if f.Blocks == nil {
		f.Blocks = map[string]int{}
	}
	for f.Blocks[name] < len(steps) {
		if err := s.pause(); err != nil {
			return err
		}
		if err := s.step(steps[f.Blocks[name]]); err != nil {
			return err
		}
		f.Blocks[name]++
	}
	delete(f.Blocks, name)
	return nil
}

// step executes a step and records how it ended.
func (s *scope) step(step *Step) error {
	path := s.pathOf(step)
	taken, err := s.guard(step)
	if err != nil {
		return s.failed(step, path, nil, err)
	}
	if condition, ok := step.Do.(*conditionStep); !taken && (!ok || condition.no == nil) {
		s.set(step, nil, StepSkipped, "")
		return s.x.note(s.ctx, path, Fact{Status: StepSkipped, Kind: step.Do.Name()})
	}
	if s.name, err = s.nameOf(step); err != nil {
		return s.failed(step, path, nil, err)
	}
	if f := s.frame(step.ID); f.Blocks == nil { // not restored
		f.Blocks = map[string]int{}
		if err := s.x.note(s.ctx, path, Fact{Status: StepRunning, Kind: step.Do.Name(),
			Name: s.name}); err != nil {
			return err
		}
	}
	value, err := step.Do.run(s, step)
	if errors.Is(err, errContinue) {
		return err
	}
	s.x.forget(path)
	delete(s.frame("").Taken, step.ID)
	if err != nil {
		return s.failed(step, path, value, err)
	}
	s.set(step, value, StepCompleted, "")
	fields, _ := value.(map[string]any)
	end := Fact{Status: StepCompleted, TimedOut: fields["timed_out"] == true}
	if k, ok := step.Do.(detailed); ok {
		end.Detail = k.detail(fields)
	}
	return s.x.note(s.ctx, path, end)
}

// nameOf returns the name of an execution of a step in one line, or "".
func (s *scope) nameOf(step *Step) (string, error) {
	name, err := s.optional(step.Name)
	return ace.OneLine(name, maxName), err
}

// maxName bounds a name in bytes. Temporal allows 400 bytes in a summary, which also has the ID of the step.
const maxName = 120

// guard evaluates the condition of a step, once for each execution of the step.
func (s *scope) guard(step *Step) (bool, error) {
	if step.If == nil {
		return true, nil
	}
	f := s.frame("")
	if taken, ok := f.Taken[step.ID]; ok {
		return taken, nil
	}
	taken, err := s.condition(step.If)
	if err == nil {
		if f.Taken == nil {
			f.Taken = map[string]bool{}
		}
		f.Taken[step.ID] = taken
	}
	return taken, err
}

// failed records a failure. It returns nil if the flow continues.
func (s *scope) failed(step *Step, path string, value any, err error) error {
	if temporal.IsCanceledError(err) || s.ctx.Err() != nil {
		_ = s.x.note(s.x.root, path, Fact{Status: StepCanceled})
		return err
	}
	message := ace.Cut(err.Error(), ace.PreviewBytes)
	if e, ok := errors.AsType[*stepError](err); ok && e.step == step {
		message = ace.Cut(e.message, ace.PreviewBytes)
	}
	if err := s.x.note(s.ctx, path, Fact{Status: StepFailed, Kind: step.Do.Name(),
		Error: message}); err != nil {
		return err
	}
	if !step.Continue {
		if _, ok := errors.AsType[*stepError](err); !ok {
			err = step.errorf(kindOfError(err), "%v", err)
		}
		return err
	}
	s.set(step, value, StepFailed, message)
	return nil
}

func kindOfError(err error) string {
	if errors.Is(err, ErrExpression) {
		return typeExpr
	}
	return cmp.Or(operation.FailureOf(err).Type, TypeValue)
}

// set records the result of a step for expressions.
func (s *scope) set(step *Step, value any, status Status, message string) {
	fields, _ := value.(map[string]any)
	fields = maps.Clone(fields)
	if fields == nil {
		fields = map[string]any{}
	}
	if value != nil {
		//workflowcheck:ignore
		for name, t := range step.Do.result() {
			if v, ok := fields[name]; !ok {
				fields[name] = zeroOf(t)
			} else if t.Kind() == types.DoubleKind {
				fields[name] = decimal(v)
			}
		}
	}
	fields["status"] = string(status)
	fields["error"] = message
	s.steps[step.ID] = fields
	s.own[step.ID] = fields
}

// zeroOf returns the value of a field that a result omits, so that expressions can read all fields of a kind.
func zeroOf(t *cel.Type) any {
	switch t.Kind() {
	case types.StringKind:
		return ""
	case types.IntKind:
		return int64(0)
	case types.DoubleKind:
		return 0.0
	case types.BoolKind:
		return false
	}
	return nil
}

// note changes the state and records the change for readers of the history.
func (x *execution) note(ctx workflow.Context, path string, f Fact) error {
	x.state.Apply(path, workflow.Now(ctx).UTC(), f)
	return x.runner.Note(ctx, path, f)
}

// activation returns the values of the names that the expression may read.
func (s *scope) activation(e *Expr) map[string]any {
	info := workflow.GetInfo(s.ctx)
	vars := map[string]any{
		nameInputs: s.inputs, nameVars: s.vars, nameSteps: s.steps,
		nameRun: map[string]any{"workflow_id": info.WorkflowExecution.ID, "run_id": info.FirstRunID,
			"dir": s.x.input.Dir, "cost_usd": s.x.state.Usage.CostUSD},
	}
	if e.Now {
		vars[nameNow] = s.runner.Now(s.ctx)
	}
	for _, name := range e.names {
		if v, ok := s.items[name]; ok {
			vars[name] = v
		}
	}
	return vars
}

func (s *scope) eval(e *Expr) (any, error) { return e.eval(s.activation(e)) }

// condition evaluates an expression that must be true or false.
func (s *scope) condition(e *Expr) (bool, error) {
	value, err := s.eval(e)
	if err != nil {
		return false, err
	}
	b, ok := value.(bool)
	if !ok {
		return false, fmt.Errorf("%s: %w: %q is %s where true or false is needed", e.At, ErrExpression,
			shorten(e.Text),
			kindOfValue(value))
	}
	return b, nil
}

func kindOfValue(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case string:
		return "a text"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a number"
}

// optional returns the text of a template that may be nil.
func (s *scope) optional(t *Template) (string, error) {
	if t == nil {
		return "", nil
	}
	return t.text(s)
}

// outputs evaluates the outputs of the scope's flow.
func (s *scope) outputs() (map[string]any, error) {
	out := map[string]any{}
	for _, o := range s.flow.Outputs {
		value, err := o.value.eval(s)
		if err != nil {
			return nil, err
		}
		out[o.Name] = value
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	if _, err := s.flow.outputs.Check(data); err != nil {
		return nil, fmt.Errorf("%w: outputs of %s: %s", ErrExpression, s.flow.Name, violations(err))
	}
	return out, nil
}

// lanes calls do for 0 to n-1, with at most window concurrent calls. It returns the first error, which
// cancels the other calls. If next is not nil, it counts the calls that have begun, and the run may continue
// as new between calls.
func (s *scope) lanes(n, window int, do func(workflow.Context, int) error, next *int) error {
	if next == nil {
		next = new(int)
	} else if window <= 1 {
		for ; *next < n; *next++ {
			if err := s.pause(); err != nil {
				return err
			}
			if err := do(s.ctx, *next); err != nil {
				return err
			}
		}
		return nil
	}
	return s.sideBySide(n, window, do, next)
}

func (s *scope) sideBySide(n, window int, do func(workflow.Context, int) error, next *int) error {
	ctx, cancel := workflow.WithCancel(s.ctx)
	defer cancel()
	resumable := s.x.parallel == 0
	s.x.parallel++
	var first error
	lanes := workflow.NewWaitGroup(ctx)
	for range min(window, n-*next) {
		lanes.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer lanes.Done()
			for *next < n && ctx.Err() == nil && first == nil && !(resumable && operation.IsLong(ctx)) {
				i := *next
				*next++
				if err := do(ctx, i); err != nil {
					first = cmp.Or(first, err)
					cancel()
				}
			}
		})
	}
	waiting, _ := workflow.NewDisconnectedContext(ctx)
	lanes.Wait(waiting)
	s.x.parallel--
	switch {
	case first != nil:
		return first
	case s.ctx.Err() != nil:
		return s.ctx.Err()
	case *next < n:
		return errContinue
	}
	return nil
}

// counted and iterated record the progress of a loop.
func (x *execution) counted(path string, n int) {
	_ = x.note(x.root, path, Fact{Count: n})
}

func (x *execution) iterated(path string) {
	done := 1
	if i := x.state.find(path); i >= 0 {
		done += x.state.Steps[i].Done
	}
	_ = x.note(x.root, path, Fact{Done: done})
}

// checkSize rejects a value that is too large to be carried over when the run continues as new.
func (x *execution) checkSize(step *Step, value any) error {
	data, err := json.Marshal(value)
	if err == nil && len(data) > MaxCarried/2 {
		return step.errorf(TypeLimit,
			"a value of %d KB is more than a run can carry (%d KB); pass references to artifacts", len(data)>>10, MaxCarried>>11)
	}
	return err
}
