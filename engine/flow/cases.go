package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/operation"
)

// CasesSuffix ends the name of a file with the test cases of a flow, NAME.test.yaml.
const CasesSuffix = ".test.yaml"

// Case is a test of a flow: the input of its run, the answers in place of workers and users, and the expected
// result.
type Case struct {
	Name string
	At   Position

	Inputs    json.RawMessage
	Dir       string
	Start     time.Time                  // when the run begins; zero: now
	Mocks     []Answers                  // in place of workers
	Reuse     map[string]json.RawMessage // random values by key
	Decisions map[string]Decision        // by the path or ID of a step that waits for approval
	Signals   []Signal
	Expect    Expectation
}

// Answers holds the results or the failure of the operations of a step. Operations get the results in the
// order in which they begin; the last result repeats.
type Answers struct {
	Key     string // ID of a step, or of an operation, such as "op.build.each/3.1"
	Results []json.RawMessage
	Failure *ace.Failure // in place of results
}

// Signal is sent to a run after a time.
type Signal struct {
	Name  string
	Data  json.RawMessage
	After time.Duration
}

// Expectation is the expected end of a run. Empty fields do not matter.
type Expectation struct {
	Status  ace.Status      // completed unless Error or Message is set
	Error   string          // type of the failure
	Message string          // part of its message
	Outputs json.RawMessage // objects need to have these members
	Order   []string        // paths or IDs of steps, or IDs of operations, in the order in which they begin
}

// ParseCases parses the test cases of a flow. The error is [Problems].
func ParseCases(name, text string, f *Flow) ([]Case, error) {
	if len(text) > MaxSource {
		return nil, Problems{Position{name, 1, 1}.problem(fmt.Sprintf("the file has %d KB", len(text)>>10),
			fmt.Sprintf("at most %d KB are allowed", MaxSource>>10))}
	}
	p := &caseParser{reader: reader{file: name}, steps: map[string]Kind{}}
	f.Walk(func(s *Step, _ int) { p.steps[s.ID] = s.Do })
	if root := p.parseYAML(text); root != nil {
		p.fields(root, "a file of test cases", map[string]func(*yaml.Node){
			"cases": func(n *yaml.Node) { p.items(n, p.add) },
		}, "cases")
	}
	if len(p.cases) == 0 && len(p.problems) == 0 {
		p.problems = append(p.problems, Position{name, 1, 1}.problem("the file has no cases",
			"list them under cases:"))
	}
	if len(p.problems) > 0 {
		return nil, p.problems
	}
	return p.cases, nil
}

// caseParser parses the cases of a file.
type caseParser struct {
	reader
	steps map[string]Kind // by ID, with the steps of sub-flows
	cases []Case
}

func (p *caseParser) add(n *yaml.Node) {
	c := Case{At: p.at(n), Dir: "/work", Reuse: map[string]json.RawMessage{},
		Decisions: map[string]Decision{}}
	p.fields(n, "a case", map[string]func(*yaml.Node){
		"name":   func(n *yaml.Node) { c.Name = p.text(n) },
		"inputs": func(n *yaml.Node) { c.Inputs = p.json(n) },
		"dir":    func(n *yaml.Node) { c.Dir = p.text(n) },
		"start":  func(n *yaml.Node) { c.Start = p.time(n) },
		"mocks":  func(n *yaml.Node) { p.pairs(n, func(key, value *yaml.Node) { p.mock(&c, key, value) }) },
		"decisions": func(n *yaml.Node) {
			p.pairs(n,
				func(key, value *yaml.Node) { p.decision(&c, key, value) })
		},
		"signals": func(n *yaml.Node) {
			p.items(n,
				func(n *yaml.Node) { c.Signals = append(c.Signals, p.signal(n)) })
		},
		"expect": func(n *yaml.Node) { c.Expect = p.expectation(n) },
	}, "name", "expect")
	if i := slices.IndexFunc(p.cases, func(other Case) bool { return other.Name == c.Name }); i >= 0 {
		p.fail(n, fmt.Sprintf("duplicate case %q", c.Name),
			fmt.Sprintf("line %d has it too", p.cases[i].At.Line))
	}
	p.cases = append(p.cases, c)
}

func (p *caseParser) json(n *yaml.Node) json.RawMessage {
	data, err := json.Marshal(p.plainJSON(n))
	if err != nil {
		p.fail(n, err.Error(), "")
	}
	return data
}

func (p *caseParser) time(n *yaml.Node) time.Time {
	t, err := time.Parse(time.RFC3339, n.Value)
	if err != nil {
		p.fail(n, "expected a time such as 2030-01-31T08:00:00Z, not "+describe(n), "")
	}
	return t
}

// mock reads the answers of a step, of an operation or of a random value.
func (p *caseParser) mock(c *Case, key, n *yaml.Node) {
	step, isID := key.Value, false
	if id, _, _, ok := history.ParseOperationID(key.Value); ok {
		step, isID = id, true
	} else if id, _, ok := operation.ParseRandomKey(key.Value); ok {
		step, isID = id, true
	}
	kind, ok := p.steps[step]
	if !ok {
		p.fail(key, fmt.Sprintf("the flow has no step %q", shorten(step)), suggest(step, sortedKeys(p.steps)))
		return
	}
	a := Answers{Key: key.Value}
	one := func(n *yaml.Node) { a.Results = append(a.Results, p.result(kind, n)) }
	p.fields(n, "a mock", map[string]func(*yaml.Node){
		"result":  one,
		"results": func(n *yaml.Node) { p.items(n, one) },
		"error":   func(n *yaml.Node) { a.Failure = p.failure(n) },
	})
	switch _, random := kind.(*randomStep); {
	case len(n.Content) != 2 || a.Failure == nil && len(a.Results) == 0:
		p.fail(n, "a mock needs one of result, results and error", "")
	case random && len(a.Results) != 1:
		p.fail(n, "the mock of a random value has one result",
			"mock each value by its key, such as random.STEP.each/3.1")
	case random && !isID:
		c.Reuse[operation.RandomKey(step)] = a.Results[0]
	case random:
		c.Reuse[key.Value] = a.Results[0]
	default:
		c.Mocks = append(c.Mocks, a)
	}
}

func (p *caseParser) failure(n *yaml.Node) *ace.Failure {
	f := ace.Failure{Type: operation.TypeInfrastructure}
	if n.Kind == yaml.ScalarNode {
		f.Message = p.text(n)
		return &f
	}
	p.fields(n, "an error", map[string]func(*yaml.Node){
		"message": func(n *yaml.Node) { f.Message = p.text(n) },
		"type":    func(n *yaml.Node) { f.Type = p.text(n) },
	}, "message")
	return &f
}

// result reads the result of a step: an object with fields of its kind, or a text for the main field of the
// kind. Missing fields are those of a successful result.
func (p *caseParser) result(kind Kind, n *yaml.Node) json.RawMessage {
	data := p.json(n)
	main, into := resultOf(kind)
	switch {
	case into == nil:
		return data
	case n.Kind != yaml.MappingNode && main != "":
		data, _ = json.Marshal(map[string]string{main: p.text(n)})
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		p.fail(n, fmt.Sprintf("not a result of a step %s: %s", kind.Name(),
			strings.TrimPrefix(err.Error(), "json: ")),
			"it may have "+strings.Join(sortedKeys(kind.result()), ", "))
		return nil
	}
	data, err := json.Marshal(into)
	if err != nil {
		p.fail(n, err.Error(), "")
	}
	return data
}

// resultOf returns the main field of a kind, which a text stands for, and a pointer to a successful result,
// or nil if the result may be any JSON.
func resultOf(kind Kind) (main string, into any) {
	success := ace.AgentResult{Success: true}
	switch kind.(type) {
	case *promptStep, *agentStep:
		return "text", &Answer{AgentResult: success}
	case *commandStep:
		return "stdout", &CommandResult{}
	case *blueprintStep:
		return "", &BlueprintResult{Status: "completed"}
	}
	return "", nil
}

func (p *caseParser) decision(c *Case, key, n *yaml.Node) {
	id := key.Value[strings.LastIndexByte(key.Value, '/')+1:]
	if _, ok := p.steps[id].(*approvalStep); !ok {
		p.fail(key, fmt.Sprintf("the flow has no step %q that waits for approval", shorten(id)), "")
	}
	d := Decision{By: "test"}
	if n.Kind == yaml.ScalarNode {
		d.Approved = p.choice(n, "approve", "reject") == "approve"
	} else {
		p.fields(n, "a decision", map[string]func(*yaml.Node){
			"approved": func(n *yaml.Node) { d.Approved = p.boolean(n) },
			"by":       func(n *yaml.Node) { d.By = p.text(n) },
			"comment":  func(n *yaml.Node) { d.Comment = p.text(n) },
		}, "approved")
	}
	c.Decisions[key.Value] = d
}

func (p *caseParser) signal(n *yaml.Node) (s Signal) {
	s.Data = json.RawMessage("null")
	p.fields(n, "a signal", map[string]func(*yaml.Node){
		"name":  func(n *yaml.Node) { s.Name = p.text(n) },
		"data":  func(n *yaml.Node) { s.Data = p.json(n) },
		"after": func(n *yaml.Node) { s.After = p.duration(n) },
	}, "name")
	return s
}

func (p *caseParser) expectation(n *yaml.Node) Expectation {
	var e Expectation
	p.fields(n, "expect", map[string]func(*yaml.Node){
		"status": func(n *yaml.Node) {
			e.Status = ace.Status(p.choice(n, string(ace.Completed), string(ace.Failed)))
		},
		"error":   func(n *yaml.Node) { e.Error = p.text(n) },
		"message": func(n *yaml.Node) { e.Message = p.text(n) },
		"outputs": func(n *yaml.Node) { e.Outputs = p.json(n) },
		"order":   func(n *yaml.Node) { e.Order = p.strings(n) },
	})
	if e.Status == "" {
		e.Status = ace.Completed
		if e.Error != "" || e.Message != "" {
			e.Status = ace.Failed
		}
	}
	return e
}
