package flow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"go.yaml.in/yaml/v3"

	"acescope/engine/tasks/blueprint"
	"acescope/engine/tasks/run"
)

// Bounds of a flow.
const (
	MaxSource = 256 << 10 // bytes of all files together, because every run carries them
	MaxSteps  = 2000
	MaxDepth  = 12 // nested blocks and sub-flows
)

// Flow is a checked workflow of steps. It is immutable.
type Flow struct {
	Name        string
	Description string
	Inputs      []Field
	Outputs     []Output
	Limits      Limits
	Steps       []*Step

	// Schema is the JSON Schema of the inputs.
	Schema json.RawMessage

	defaults Defaults
	programs map[string]bool // inputs that name programs
	schema   *blueprint.Schema
	outputs  *blueprint.Schema
	at       Position
}

// Field is an input of a flow.
type Field = blueprint.Parameter

// Output is a named result of a flow.
type Output struct {
	Name  string
	value Value
}

// Limits bounds a run. Zero means no limit. The limits of sub-flows do not apply.
type Limits struct {
	CostUSD    float64
	Operations int
	Time       time.Duration
}

// Defaults holds values for fields that steps omit.
type Defaults struct {
	Timeout    time.Duration
	Attempts   int
	Provider   string
	Model      string
	Agent      string
	Permission string
}

// Step is a step of a flow.
type Step struct {
	ID string // unique in its file
	At Position
	Do Kind

	If       *Expr     // guard; nil: always
	Name     *Template // label of an execution; nil: none
	Timeout  time.Duration
	Attempts int // of an operation; 0: the default of its type
	Cache    bool
	Continue bool // the flow continues if the step fails
}

// Kind is the kind of a step, with the fields of the kind.
type Kind interface {
	// Name is the word in the file, such as "prompt".
	Name() string
	// Blocks are the named lists of steps within the step.
	Blocks() []Block
	// result returns the fields of the step's result, as expressions see them.
	result() map[string]*cel.Type
	// run executes the step.
	run(s *scope, step *Step) (any, error)
}

// Block is a list of steps within a step. Name is "" if the step has only one.
type Block struct {
	Name  string
	Steps []*Step
	Paths Paths
}

// Paths says how the paths of steps in a block begin. PATH is the path of the step that has the block.
type Paths int8

// Beginnings of the paths of steps in a block.
const (
	SamePaths      Paths = iota // as the path of a step beside the step: the block is not part of paths
	BranchPaths                 // PATH/NAME with the name of the block
	IterationPaths              // PATH/N with the number of the iteration, from 0
	FlowPaths                   // PATH
)

// leaf is a kind without blocks.
type leaf struct{}

func (leaf) Blocks() []Block { return nil }

// Walk calls f for each step in order, with its depth from 0.
func (f *Flow) Walk(visit func(s *Step, depth int)) { walk(f.Steps, 0, visit) }

func walk(steps []*Step, depth int, visit func(*Step, int)) {
	for _, s := range steps {
		visit(s, depth)
		for _, b := range s.Do.Blocks() {
			walk(b.Steps, depth+1, visit)
		}
	}
}

// Source is the text of a flow and of the files that it includes.
type Source struct {
	Main  string            `json:"main"`
	Files map[string]string `json:"files"` // text by slash-separated path in the directory of the main file
}

// Parse parses and checks a flow. The error is [Problems].
func Parse(src Source) (*Flow, error) {
	size := 0
	for _, text := range src.Files { //workflowcheck:ignore
		size += len(text)
	}
	if size > MaxSource {
		return nil, Problems{Position{src.Main, 1, 1}.problem(fmt.Sprintf("the flow has %d KB", size>>10),
			fmt.Sprintf("at most %d KB are allowed, because every run carries its file; pass data as inputs",
				MaxSource>>10))}
	}
	p := &parser{source: src}
	f := p.flow(src.Main)
	if len(p.found) > 0 {
		return nil, p.found
	}
	return f, nil
}

// parser parses a flow with its sub-flows.
type parser struct {
	source Source
	open   []string // files that are being parsed, to detect cycles
	total  int      // steps
	found  Problems
}

// flow parses a file. It returns nil if the file has a problem.
func (p *parser) flow(name string) *Flow {
	before := len(p.found)
	b := &builder{parser: p, reader: reader{file: name}, f: &Flow{programs: map[string]bool{}},
		steps: map[string]*Step{}, loops: map[string]bool{},
		vars: map[string]bool{}, unnamed: map[string]int{}}
	p.open = append(p.open, name)
	if root := b.parseYAML(p.source.Files[name]); root != nil {
		b.root(root)
	}
	if len(b.problems) == 0 && len(p.found) == before {
		b.check()
	}
	p.open = p.open[:len(p.open)-1]
	p.found = append(p.found, b.problems...)
	if len(p.found) > before {
		return nil
	}
	return b.f
}

// builder builds a flow from one file.
type builder struct {
	*parser
	reader
	f     *Flow
	depth int
	steps map[string]*Step
	loops map[string]bool // names of loop items
	vars  map[string]bool // names of variables

	unnamed map[string]int // steps without an ID, by kind
}

func (b *builder) root(n *yaml.Node) {
	b.f.at = b.at(n)
	inputs := map[string]any{}
	outputs := map[string]any{}
	b.fields(n, "a flow", map[string]func(*yaml.Node){
		"flow":        func(n *yaml.Node) { b.f.Name = b.flowName(n) },
		"description": func(n *yaml.Node) { b.f.Description = b.constant(n) },
		"inputs":      func(n *yaml.Node) { b.declare(n, inputs, nil) },
		"outputs":     func(n *yaml.Node) { b.declare(n, outputs, b.output) },
		"defaults":    b.readDefaults,
		"limits":      b.readLimits,
		"steps":       func(n *yaml.Node) { b.f.Steps = b.block(n) },
	}, "flow", "steps")
	b.f.schema, b.f.Schema = b.compileSchema(n, "inputs", inputs, required(inputs))
	b.f.outputs, _ = b.compileSchema(n, "outputs", outputs, nil)
	if b.f.schema != nil {
		b.f.Inputs = b.f.schema.Parameters()
	}
}

func (b *builder) flowName(n *yaml.Node) string {
	s := b.constant(n)
	if !isName(strings.ReplaceAll(s, "-", "_")) {
		b.fail(n, fmt.Sprintf("%q is not a name of a flow", shorten(s)),
			"use a letter, then letters, digits, - and _, at most 60")
	}
	return s
}

// declare reads the JSON schemas of inputs or outputs by name.
func (b *builder) declare(n *yaml.Node, into map[string]any, more func(name string, n *yaml.Node) any) {
	b.pairs(n, func(key, value *yaml.Node) {
		name := b.name(key, "an input or output")
		if more == nil {
			if value.Kind != yaml.MappingNode {
				b.fail(value, fmt.Sprintf("the input %q needs a JSON Schema, not %s", name, describe(value)),
					"such as {type: string}")
				return
			}
			into[name] = b.plainJSON(value)
		} else {
			into[name] = more(name, value)
		}
	})
}

// output reads an output: a value, or an object with value and a JSON schema.
func (b *builder) output(name string, n *yaml.Node) any {
	o := Output{Name: name}
	schema := map[string]any{}
	if n.Kind == yaml.MappingNode {
		b.pairs(n, func(key, value *yaml.Node) {
			if key.Value == "value" {
				o.value = b.value(value)
			} else {
				schema[key.Value] = b.plainJSON(value)
			}
		})
		if o.value == nil {
			b.fail(n, fmt.Sprintf("output %q needs the field \"value\"", name), "")
		}
	} else {
		o.value = b.value(n)
	}
	b.f.Outputs = append(b.f.Outputs, o)
	return schema
}

// required lists the inputs without a default.
func required(inputs map[string]any) []string {
	names := []string{}
	for _, name := range sortedKeys(inputs) {
		schema, _ := inputs[name].(map[string]any)
		if _, ok := schema["default"]; !ok {
			names = append(names, name)
		}
	}
	return names
}

func (b *builder) compileSchema(n *yaml.Node, what string, properties map[string]any, required []string) (
	*blueprint.Schema, json.RawMessage,
) {
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	data, err := json.Marshal(schema)
	if err == nil {
		var s *blueprint.Schema
		if s, err = blueprint.Compile(data, run.StdinJSON); err == nil {
			return s, data
		}
	}
	message := strings.ReplaceAll(err.Error(), "\n", "; ")
	// remove the path within the generated schema
	if rest, ok := strings.CutPrefix(message, "parameters_schema:"); ok {
		if _, text, ok := strings.Cut(rest, ": "); ok {
			message = strings.ReplaceAll(text, "$.properties.", "$.")
		}
	}
	b.fail(n, what+": "+message, "")
	return nil, nil
}

func (b *builder) readDefaults(n *yaml.Node) {
	d := &b.f.defaults
	b.fields(n, "defaults", map[string]func(*yaml.Node){
		"timeout":    func(n *yaml.Node) { d.Timeout = b.duration(n) },
		"attempts":   func(n *yaml.Node) { d.Attempts = b.number(n, 1, 100) },
		"provider":   func(n *yaml.Node) { d.Provider = b.constant(n) },
		"model":      func(n *yaml.Node) { d.Model = b.constant(n) },
		"agent":      func(n *yaml.Node) { d.Agent = b.constant(n) },
		"permission": func(n *yaml.Node) { d.Permission = b.constant(n) },
	})
}

func (b *builder) readLimits(n *yaml.Node) {
	l := &b.f.Limits
	b.fields(n, "limits", map[string]func(*yaml.Node){
		"cost_usd":   func(n *yaml.Node) { l.CostUSD = b.amount(n) },
		"operations": func(n *yaml.Node) { l.Operations = b.number(n, 1, 1_000_000) },
		"time":       func(n *yaml.Node) { l.Time = b.duration(n) },
	})
}

// block reads a list of steps.
func (b *builder) block(n *yaml.Node) (steps []*Step) {
	b.depth++
	defer func() { b.depth-- }()
	if b.depth+len(b.open) > MaxDepth {
		b.fail(n, fmt.Sprintf("blocks and sub-flows are nested more than %d levels deep", MaxDepth), "")
		return nil
	}
	b.items(n, func(item *yaml.Node) {
		if s := b.step(item); s != nil {
			steps = append(steps, s)
		}
	})
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		b.fail(n, "the list of steps is empty", "")
	}
	return steps
}

// step reads a step. The field that names the kind decides which other fields it may have.
func (b *builder) step(n *yaml.Node) *Step {
	if b.total++; b.total > MaxSteps {
		if b.total == MaxSteps+1 {
			b.fail(n, fmt.Sprintf("the flow has more than %d steps", MaxSteps), "use for_each or repeat")
		}
		return nil
	}
	if n.Kind != yaml.MappingNode {
		b.fail(n, "a step must have fields, not "+describe(n), "such as: - id: build\n    run: [make]")
		return nil
	}
	var found []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		if name := n.Content[i].Value; kinds[name] != nil && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	word, ok := kindOf(found)
	if !ok {
		hint := "a step has one of " + strings.Join(sortedKeys(kinds), ", ")
		if len(found) == 0 {
			b.fail(n, "the step does not say what to do", hint)
		} else {
			b.fail(n, "a step does one thing, not "+strings.Join(found, " and "), hint)
		}
		return nil
	}
	s := &Step{At: b.at(n), Timeout: b.f.defaults.Timeout, Attempts: b.f.defaults.Attempts}
	fields := map[string]func(*yaml.Node){
		"id":       func(n *yaml.Node) { s.ID = cmp.Or(b.name(n, "a step"), noName) },
		"if":       func(n *yaml.Node) { s.If = b.expression(n, cel.BoolType) },
		"name":     func(n *yaml.Node) { s.Name = b.template(n) },
		"on_error": func(n *yaml.Node) { s.Continue = b.choice(n, "fail", "continue") == "continue" },
	}
	outer, inside := b.owner, b.isInside
	b.owner = s
	b.isInside = false
	s.Do = kinds[word](b, s, fields)
	if !hasID(n) { // numbered before the steps within it
		b.unnamed[s.Do.Name()]++
		s.ID = fmt.Sprintf("%s_%d", s.Do.Name(), b.unnamed[s.Do.Name()])
	}
	b.fields(n, "the step "+word, fields)
	if f, ok := s.Do.(finisher); ok {
		f.finish(b, s, n)
	}
	b.owner = outer
	b.isInside = inside
	b.register(n, s)
	return s
}

// finisher is a kind with checks after all fields were read.
type finisher interface {
	finish(b *builder, s *Step, n *yaml.Node)
}

// kindOf returns the field that names the kind. The kind agent also has the field prompt.
func kindOf(found []string) (string, bool) {
	if len(found) == 2 && slices.Contains(found, "agent") && slices.Contains(found, "prompt") {
		return "agent", true
	}
	if len(found) != 1 {
		return "", false
	}
	return found[0], true
}

// noName is the ID of a step with an invalid ID, for which a problem was noted.
const noName = "?"

// register rejects a duplicate ID, and a missing ID if the kind needs one.
func (b *builder) register(n *yaml.Node, s *Step) {
	if s.ID == noName {
		return
	}
	if _, needed := s.Do.(identified); needed && !hasID(n) {
		b.fail(n, fmt.Sprintf("the step %s needs an id", s.Do.Name()), "its operations are recorded under it")
		return
	}
	if other, ok := b.steps[s.ID]; ok {
		b.fail(n, fmt.Sprintf("duplicate id %q", s.ID), fmt.Sprintf("line %d has it too", other.At.Line))
		return
	}
	b.steps[s.ID] = s
}

func hasID(n *yaml.Node) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "id" {
			return true
		}
	}
	return false
}

// identified is a kind whose steps need an ID, because the ID is part of recorded operations or other steps
// read the result.
type identified interface{ identified() }

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m)) //workflowcheck:ignore
}
