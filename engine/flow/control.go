package flow

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"cel.dev/cel-go/cel"
	"go.temporal.io/sdk/workflow"
	"go.yaml.in/yaml/v3"

	"acescope/engine/ace"
	"acescope/engine/temporal/operation"
)

// Bounds of loops.
const (
	MaxItems   = 100_000 // of a for_each
	MaxAtOnce  = 100     // iterations at a time
	MaxRepeats = 100_000 // of a repeat
)

// setStep assigns variables.
type setStep struct {
	leaf
	values []member
}

func (*setStep) Name() string                 { return "set" }
func (*setStep) result() map[string]*cel.Type { return nil }

func newSet(b *builder, _ *Step, fields map[string]func(*yaml.Node)) Kind {
	k := &setStep{}
	fields["set"] = func(n *yaml.Node) {
		b.pairs(n, func(key, value *yaml.Node) {
			name := b.name(key, "a variable")
			b.vars[name] = true
			k.values = append(k.values, member{name, b.value(value)})
		})
	}
	return k
}

func (k *setStep) run(s *scope, step *Step) (any, error) {
	for _, m := range k.values {
		value, err := m.value.eval(s)
		if err != nil {
			return nil, err
		}
		if err := s.runner.Set(JoinPath(s.varsAt, m.name), value); err != nil {
			return nil, step.errorf(operation.TypeBadOperation, "%v", err)
		}
		s.vars[m.name] = value
	}
	return map[string]any{}, nil
}

// conditionStep executes one of two blocks.
type conditionStep struct{ yes, no []*Step }

func (*conditionStep) Name() string { return "if" }
func (k *conditionStep) Blocks() []Block {
	blocks := []Block{{Name: "then", Steps: k.yes, Paths: SamePaths}}
	if k.no != nil {
		blocks = append(blocks, Block{Name: "else", Steps: k.no, Paths: SamePaths})
	}
	return blocks
}
func (*conditionStep) result() map[string]*cel.Type {
	return map[string]*cel.Type{"taken": cel.BoolType}
}

func newCondition(b *builder, _ *Step, fields map[string]func(*yaml.Node)) Kind {
	k := &conditionStep{}
	fields["then"] = func(n *yaml.Node) { k.yes = b.block(n) }
	fields["else"] = func(n *yaml.Node) { k.no = b.block(n) }
	return k
}

func (k *conditionStep) finish(b *builder, s *Step, n *yaml.Node) {
	if s.If == nil {
		b.fail(n, "a step with \"then\" needs the field \"if\"", "")
	}
}

func (k *conditionStep) run(s *scope, step *Step) (any, error) {
	if s.frame("").Taken[step.ID] {
		return map[string]any{"taken": true}, s.block(k.yes, step.ID+"/then")
	}
	return map[string]any{"taken": false}, s.block(k.no, step.ID+"/else")
}

func (*conditionStep) detail(fields map[string]any) string {
	if fields["taken"] == false {
		return "else"
	}
	return "then"
}

// parallelStep executes branches in parallel.
type parallelStep struct{ branches []Block }

func (*parallelStep) Name() string                 { return "parallel" }
func (k *parallelStep) Blocks() []Block            { return k.branches }
func (*parallelStep) result() map[string]*cel.Type { return nil }
func (*parallelStep) identified()                  {}

func newParallel(b *builder, _ *Step, fields map[string]func(*yaml.Node)) Kind {
	k := &parallelStep{}
	fields["parallel"] = func(n *yaml.Node) {
		b.pairs(n, func(key, value *yaml.Node) {
			k.branches = append(k.branches, Block{Name: b.name(key, "a branch"), Steps: b.block(value),
				Paths: BranchPaths})
		})
		if len(k.branches) > MaxAtOnce {
			b.fail(n, fmt.Sprintf("the step has more than %d branches", MaxAtOnce), "use for_each")
		}
	}
	return k
}

// run executes the branches. If one fails, the others are canceled.
func (k *parallelStep) run(s *scope, step *Step) (any, error) {
	branches := make([]*scope, len(k.branches))
	err := s.lanes(len(k.branches), len(k.branches), func(ctx workflow.Context, i int) error {
		branches[i] = s.child(ctx, step.ID, k.branches[i].Name)
		return branches[i].block(k.branches[i].Steps, "")
	}, nil)
	for _, b := range branches {
		if b != nil {
			s.adopt(b)
		}
	}
	return map[string]any{}, err
}

// forEachStep executes its block for each item of a list.
type forEachStep struct {
	items   *Expr
	as      string
	atOnce  int
	most    int
	collect Value
	steps   []*Step
}

func (*forEachStep) Name() string      { return "for_each" }
func (k *forEachStep) Blocks() []Block { return []Block{{Steps: k.steps, Paths: IterationPaths}} }
func (*forEachStep) result() map[string]*cel.Type {
	return map[string]*cel.Type{"count": cel.IntType, "results": cel.ListType(cel.DynType)}
}
func (*forEachStep) identified() {}

func newForEach(b *builder, _ *Step, fields map[string]func(*yaml.Node)) Kind {
	k := &forEachStep{as: "item", atOnce: 1, most: 1000}
	fields["for_each"] = func(n *yaml.Node) { k.items = b.expression(n, cel.ListType(cel.DynType)) }
	fields["as"] = func(n *yaml.Node) { k.as = b.itemName(n) }
	fields["at_once"] = func(n *yaml.Node) { k.atOnce = b.number(n, 1, MaxAtOnce) }
	fields["max"] = func(n *yaml.Node) { k.most = b.number(n, 1, MaxItems) }
	fields["collect"] = func(n *yaml.Node) { b.within(func() { k.collect = b.value(n) }) }
	fields["steps"] = func(n *yaml.Node) { k.steps = b.block(n) }
	return k
}

func (k *forEachStep) finish(b *builder, _ *Step, n *yaml.Node) {
	b.loops[k.as] = true
	b.loops[k.as+"_index"] = true
	if k.steps == nil {
		b.fail(n, "the step for_each needs the field \"steps\"", "")
	}
}

func (k *forEachStep) run(s *scope, step *Step) (any, error) {
	f := s.frame(step.ID)
	if f.Items == nil {
		if err := k.begin(s, step, f); err != nil {
			return nil, err
		}
	}
	err := s.lanes(len(f.Items), k.atOnce, func(ctx workflow.Context, i int) error {
		c := s.child(ctx, step.ID, fmt.Sprint(i))
		c.items[k.as] = f.Items[i]
		c.items[k.as+"_index"] = int64(i)
		if err := c.block(k.steps, ""); err != nil {
			return err
		}
		s.x.iterated(s.pathOf(step))
		if k.collect == nil {
			return nil
		}
		value, err := k.collect.eval(c)
		if err != nil {
			return err
		}
		f.Results[i] = value
		return s.x.checkSize(step, f.Results[i])
	}, &f.Next)
	if err != nil {
		return nil, err
	}
	return map[string]any{"count": int64(len(f.Items)), "results": f.Results}, nil
}

// begin evaluates the list.
func (k *forEachStep) begin(s *scope, step *Step, f *frame) error {
	value, err := s.eval(k.items)
	if err != nil {
		return err
	}
	items, ok := value.([]any)
	if !ok {
		return step.errorf(TypeValue, "for_each needs a list, not %s", kindOfValue(value))
	}
	if len(items) > k.most {
		return step.errorf(TypeLimit, "the list has %d items, and the step allows %d; set \"max\" (at most %d)",
			len(items), k.most, MaxItems)
	}
	f.Items = items
	f.Results = []any{}
	if k.collect != nil {
		f.Results = make([]any, len(items))
	}
	s.x.counted(s.pathOf(step), len(items))
	return s.x.checkSize(step, items)
}

// repeatStep repeats its block until a condition holds.
type repeatStep struct {
	most  int
	until *Expr
	steps []*Step
}

func (*repeatStep) Name() string      { return "repeat" }
func (k *repeatStep) Blocks() []Block { return []Block{{Steps: k.steps, Paths: IterationPaths}} }
func (*repeatStep) result() map[string]*cel.Type {
	return map[string]*cel.Type{"count": cel.IntType, "met": cel.BoolType}
}
func (*repeatStep) identified() {}

func newRepeat(b *builder, _ *Step, fields map[string]func(*yaml.Node)) Kind {
	k := &repeatStep{}
	fields["repeat"] = func(n *yaml.Node) { k.most = b.number(n, 1, MaxRepeats) }
	fields["until"] = func(n *yaml.Node) { b.within(func() { k.until = b.expression(n, cel.BoolType) }) }
	fields["steps"] = func(n *yaml.Node) { k.steps = b.block(n) }
	return k
}

func (k *repeatStep) finish(b *builder, _ *Step, n *yaml.Node) {
	if k.steps == nil {
		b.fail(n, "the step repeat needs the field \"steps\"", "")
	}
}

func (k *repeatStep) run(s *scope, step *Step) (any, error) {
	f := s.frame(step.ID)
	if f.Next == 0 {
		s.x.counted(s.pathOf(step), k.most)
	}
	for f.Next < k.most {
		if err := s.pause(); err != nil {
			return nil, err
		}
		c := s.child(s.ctx, step.ID, fmt.Sprint(f.Next))
		if err := c.block(k.steps, ""); err != nil {
			return nil, err
		}
		s.adopt(c)
		f.Next++
		s.x.iterated(s.pathOf(step))
		if k.until == nil {
			continue
		}
		met, err := s.condition(k.until)
		if err != nil {
			return nil, err
		}
		if met {
			return map[string]any{"count": int64(f.Next), "met": true}, nil
		}
	}
	return map[string]any{"count": int64(f.Next), "met": k.until == nil}, nil
}

// subFlowStep executes another flow as part of this one, with inputs, variables and steps of its own.
type subFlowStep struct {
	file string
	flow *Flow
	with object
}

func (*subFlowStep) Name() string { return "flow" }
func (k *subFlowStep) Blocks() []Block {
	if k.flow == nil {
		return nil
	}
	return []Block{{Steps: k.flow.Steps, Paths: FlowPaths}}
}
func (k *subFlowStep) result() map[string]*cel.Type {
	fields := map[string]*cel.Type{}
	if k.flow != nil {
		for _, o := range k.flow.Outputs {
			fields[o.Name] = cel.DynType
		}
	}
	return fields
}
func (*subFlowStep) identified() {}

func newSubFlow(b *builder, _ *Step, fields map[string]func(*yaml.Node)) Kind {
	k := &subFlowStep{}
	fields["flow"] = func(n *yaml.Node) {
		if k.file = b.include(n); k.file != "" {
			k.flow = b.subFlow(k.file, n)
		}
	}
	fields["with"] = func(n *yaml.Node) {
		if n.Kind != yaml.MappingNode {
			b.fail(n, "expected the inputs of the sub-flow by name, not "+describe(n), "")
			return
		}
		k.with, _ = b.value(n).(object)
	}
	return k
}

// finish checks the arguments.
func (k *subFlowStep) finish(b *builder, _ *Step, n *yaml.Node) {
	if k.flow == nil {
		return
	}
	given := map[string]bool{}
	known := map[string]bool{}
	for _, m := range k.with {
		given[m.name] = true
	}
	for _, in := range k.flow.Inputs {
		known[in.Name] = true
		if in.Required && !given[in.Name] {
			b.fail(n, fmt.Sprintf("the flow %s needs the input %q", k.flow.Name, in.Name),
				"add it to \"with\"")
		}
	}
	for _, m := range k.with {
		if !known[m.name] {
			b.fail(n, fmt.Sprintf("the flow %s has no input %q", k.flow.Name, m.name),
				suggest(m.name, sortedKeys(known)))
		}
		if k.flow.programs[m.name] {
			b.passProgram(n, m)
		}
	}
}

// passProgram checks the argument for an input that names a program.
func (b *builder) passProgram(n *yaml.Node, m member) {
	switch v := m.value.(type) {
	case literal:
		return
	case list:
		if !slices.ContainsFunc(v, func(item Value) bool {
			_, constant := item.(literal)
			return !constant
		}) {
			return
		}
	case *Template:
		e, ok := v.whole()
		if !ok {
			break
		}
		if name, ok := inputOf(e.Text); ok {
			b.f.programs[name] = true
			return
		}
	}
	b.fail(n, fmt.Sprintf("the sub-flow runs the input %q as a program", m.name),
		"pass a list of texts, or an input of this flow; a program must not depend on results")
}

func (k *subFlowStep) run(s *scope, step *Step) (any, error) {
	f := s.frame(step.ID)
	if f.Inputs == nil {
		with, err := k.with.eval(s)
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(with)
		if err != nil {
			return nil, err
		}
		if f.Inputs, err = k.flow.checkInputs(data); err != nil {
			return nil, step.errorf(TypeValue, "inputs: %s", violations(err))
		}
	}
	c := s.child(s.ctx, step.ID, "")
	c.enter(k.flow, f.Inputs)
	if err := c.block(k.flow.Steps, ""); err != nil {
		return nil, err
	}
	return c.outputs()
}

// waitStep waits for a time, or for a signal.
type waitStep struct {
	leaf
	duration Value
	until    *Expr
	signal   string
	timeout  time.Duration
}

func (*waitStep) Name() string { return "wait" }
func (*waitStep) result() map[string]*cel.Type {
	return map[string]*cel.Type{"timed_out": cel.BoolType, "data": cel.DynType}
}

func newWait(b *builder, _ *Step, fields map[string]func(*yaml.Node)) Kind {
	k := &waitStep{}
	fields["wait"] = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode {
			k.duration = b.value(n)
			if l, ok := k.duration.(literal); ok {
				if _, err := waitTime(l.value); err != nil {
					b.fail(n, err.Error(), "")
				}
			}
			return
		}
		b.fields(n, "wait", map[string]func(*yaml.Node){
			"until":   func(n *yaml.Node) { k.until = b.expression(n, cel.TimestampType, cel.StringType) },
			"signal":  func(n *yaml.Node) { k.signal = b.name(n, "a signal") },
			"timeout": func(n *yaml.Node) { k.timeout = b.duration(n) },
		})
		if (k.until == nil) == (k.signal == "") {
			b.fail(n, "wait needs either \"until\" or \"signal\"", "or a time, such as: wait: 10m")
		}
	}
	return k
}

// waitTime converts a duration in seconds or as a text.
func waitTime(value any) (time.Duration, error) {
	d := time.Duration(-1)
	switch v := value.(type) {
	case int64:
		if v < int64(maxDuration/time.Second) {
			d = time.Duration(v) * time.Second
		}
	case float64:
		if v < maxDuration.Seconds() {
			d = time.Duration(v * float64(time.Second))
		}
	case string:
		if parsed, err := time.ParseDuration(v); err == nil {
			d = parsed
		}
	}
	if d < 0 || d > maxDuration {
		return 0, fmt.Errorf("%v is not a time to wait; use 30s, 10m or 24h, at most a year", value)
	}
	return d, nil
}

func (k *waitStep) run(s *scope, step *Step) (any, error) {
	if k.signal != "" {
		return s.waitForSignal(step, k.signal, k.timeout)
	}
	var d time.Duration
	var err error
	if k.until != nil {
		d, err = s.remaining(step, k.until)
	} else {
		var value any
		if value, err = k.duration.eval(s); err == nil {
			d, err = waitTime(value)
		}
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{"timed_out": false}, s.sleep(step, d)
}

// approvalStep waits for the decision of a user.
type approvalStep struct {
	leaf
	message   *Template
	timeout   time.Duration
	onTimeout string
}

func (*approvalStep) Name() string { return "approve" }
func (*approvalStep) result() map[string]*cel.Type {
	return map[string]*cel.Type{"approved": cel.BoolType, "by": cel.StringType, "comment": cel.StringType,
		"timed_out": cel.BoolType}
}
func (*approvalStep) identified() {}

func newApproval(b *builder, _ *Step, fields map[string]func(*yaml.Node)) Kind {
	k := &approvalStep{onTimeout: "reject"}
	fields["approve"] = func(n *yaml.Node) { k.message = b.template(n) }
	fields["timeout"] = func(n *yaml.Node) { k.timeout = b.duration(n) }
	fields["on_timeout"] = func(n *yaml.Node) { k.onTimeout = b.choice(n, "reject", "approve", "fail") }
	return k
}

func (k *approvalStep) run(s *scope, step *Step) (any, error) {
	message, err := k.message.text(s)
	if err != nil {
		return nil, err
	}
	d, err := s.waitForDecision(step, message, k.timeout)
	if err != nil {
		return nil, err
	}
	if d == nil {
		if k.onTimeout == "fail" {
			return nil, step.errorf(TypeTimeout, "there was no decision within %s", k.timeout)
		}
		return map[string]any{"approved": k.onTimeout == "approve", "by": "", "comment": "",
			"timed_out": true}, nil
	}
	return map[string]any{"approved": d.Approved, "by": d.By, "comment": d.Comment, "timed_out": false}, nil
}

func (*approvalStep) detail(fields map[string]any) string {
	verdict := "rejected"
	if fields["approved"] == true {
		verdict = "approved"
	}
	if fields["timed_out"] == true {
		return verdict + " because of the time limit"
	}
	if by, _ := fields["by"].(string); by != "" {
		verdict += " by " + by
	}
	if comment, _ := fields["comment"].(string); comment != "" {
		verdict += ": " + comment
	}
	return ace.Cut(verdict, ace.PreviewBytes)
}

// randomStep generates a random value, which the history records.
type randomStep struct {
	leaf
	uuid      bool
	low, high int
	pick      *Expr
}

func (*randomStep) Name() string                 { return "random" }
func (*randomStep) result() map[string]*cel.Type { return map[string]*cel.Type{"value": cel.DynType} }
func (*randomStep) identified()                  {}

func (*randomStep) detail(fields map[string]any) string { return preview(fields["value"]) }

func newRandom(b *builder, _ *Step, fields map[string]func(*yaml.Node)) Kind {
	k := &randomStep{}
	fields["random"] = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode {
			k.uuid = b.choice(n, "uuid") == "uuid"
			return
		}
		b.fields(n, "random", map[string]func(*yaml.Node){
			"min":  func(n *yaml.Node) { k.low = b.number(n, -1<<31, 1<<31) },
			"max":  func(n *yaml.Node) { k.high = b.number(n, -1<<31, 1<<31) },
			"pick": func(n *yaml.Node) { k.pick = b.expression(n, cel.ListType(cel.DynType)) },
		})
		if k.pick == nil && k.high < k.low {
			b.fail(n, "max is less than min", "")
		}
	}
	return k
}

func (k *randomStep) run(s *scope, step *Step) (any, error) {
	var choices []any
	if k.pick != nil {
		value, err := s.eval(k.pick)
		if err != nil {
			return nil, err
		}
		if choices, _ = value.([]any); len(choices) == 0 {
			return nil, step.errorf(TypeValue, "there is nothing to pick from")
		}
	}
	value := operation.Random(s.ctx, s.runner, step.ID, func(r *rand.Rand) any {
		switch {
		case k.uuid:
			return operation.UUID(r)
		case k.pick != nil:
			return choices[r.IntN(len(choices))]
		}
		return k.low + r.IntN(k.high-k.low+1)
	})
	return map[string]any{"value": numbersOf(value)}, nil
}

// versionStep decides which version of a change the run follows.
type versionStep struct {
	leaf
	change    string
	low, high int
}

func (*versionStep) Name() string { return "version" }
func (*versionStep) result() map[string]*cel.Type {
	return map[string]*cel.Type{"version": cel.IntType}
}
func (*versionStep) identified() {}

func (*versionStep) detail(fields map[string]any) string { return preview(fields["version"]) }

func newVersion(b *builder, _ *Step, fields map[string]func(*yaml.Node)) Kind {
	k := &versionStep{low: int(workflow.DefaultVersion), high: 1}
	fields["version"] = func(n *yaml.Node) { k.change = b.constant(n) }
	fields["min"] = func(n *yaml.Node) { k.low = b.number(n, int(workflow.DefaultVersion), 1000) }
	fields["max"] = func(n *yaml.Node) { k.high = b.number(n, 0, 1000) }
	return k
}

func (k *versionStep) run(s *scope, _ *Step) (any, error) {
	v := s.runner.Version(s.ctx, k.change, workflow.Version(k.low), workflow.Version(k.high))
	return map[string]any{"version": int64(v)}, nil
}

// failStep ends the run.
type failStep struct {
	leaf
	message *Template
}

func (*failStep) Name() string                 { return "fail" }
func (*failStep) result() map[string]*cel.Type { return nil }

func newFail(b *builder, _ *Step, fields map[string]func(*yaml.Node)) Kind {
	k := &failStep{}
	fields["fail"] = func(n *yaml.Node) { k.message = b.template(n) }
	return k
}

func (k *failStep) run(s *scope, step *Step) (any, error) {
	message, err := k.message.text(s)
	if err != nil {
		return nil, err
	}
	return nil, step.errorf(TypeFailed, "%s", message)
}

// kinds holds the constructors of the kinds of steps, by the field that names the kind.
var kinds map[string]func(*builder, *Step, map[string]func(*yaml.Node)) Kind

func init() { // an initializer would refer to the variable itself
	kinds = map[string]func(*builder, *Step, map[string]func(*yaml.Node)) Kind{
		"prompt": newPrompt, "agent": newAgent, "run": newCommand, "activity": newActivity,
		"blueprint": newBlueprint,
		"set":       newSet, "then": newCondition, "parallel": newParallel, "for_each": newForEach,
		"repeat": newRepeat,
		"flow":   newSubFlow, "wait": newWait, "approve": newApproval, "random": newRandom,
		"version": newVersion,
		"fail":    newFail,
	}
}
