package blueprint

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"acescope/engine/run"
)

// Schema fills in and checks parameters. It may be used by many at once.
type Schema struct {
	strategy run.Strategy
	raw      json.RawMessage
	doc      *node              // the schema as it was written
	compiled *jsonschema.Schema // nil where any object will do
}

// anything takes any object.
func anything(s run.Strategy) *Schema { return &Schema{strategy: s} }

// Compile compiles the schema of a blueprint that was resolved before, as an executor does
// that checks the parameters again. Without a schema any object will do.
func Compile(schema json.RawMessage, strategy run.Strategy) (*Schema, error) {
	if len(schema) == 0 {
		return anything(strategy), nil
	}
	d := &document{name: "parameters_schema", data: schema}
	if len(schema) > MaxFile {
		d.problem(-1, "", "is larger than %d KB", MaxFile>>10)
		return nil, &d.Problems
	}
	tree := d.parse()
	if tree == nil {
		return nil, &d.Problems
	}
	s := d.compile(tree, "$", strategy)
	if d.any() {
		return nil, &d.Problems
	}
	return s, nil
}

// base is the address under which a schema is compiled. Nothing is fetched from it.
const base = "https://acescope.invalid/parameters"

// compile compiles a schema that stands in the document at a path; nil where it cannot be
// used, which is among the problems then.
func (d *document) compile(n *node, path string, strategy run.Strategy) *Schema {
	before := len(d.List) + d.More
	said := func() bool { return len(d.List)+d.More > before }
	if n.kind != objectKind {
		d.problem(n.at, path, "a schema is an object, found %s", n.kind.words())
		return nil
	}
	r := rules{doc: d, root: n, path: path, anchors: map[string]bool{}}
	draft := r.draft()
	if draft == nil {
		return nil
	}
	r.walk(n, nil, 0)
	r.lost()
	if said() {
		return nil
	}
	raw, err := encode(n.plain())
	if err != nil {
		d.problem(n.at, path, "%v", err)
		return nil
	}
	s := &Schema{strategy: strategy, raw: raw, doc: n}
	if s.compiled, err = build(n, draft); err != nil {
		r.failed(err)
		return nil
	}
	g := graph{d, n, path}
	g.loops(s.compiled)
	if said() {
		return nil
	}
	g.object(s.compiled)
	g.names(s.compiled, strategy)
	g.defaults(s)
	if said() {
		return nil
	}
	return s
}

// build has the library compile a schema. Its panics on odd schemas are errors here.
func build(n *node, draft *jsonschema.Draft) (s *jsonschema.Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("it cannot be used: %v", p)
		}
	}()
	doc := n.plain().(map[string]any)
	// References lead within the schema only, so that its own address means nothing.
	delete(doc, "$id")
	c := jsonschema.NewCompiler()
	c.DefaultDraft(draft)
	c.AssertFormat()
	c.UseLoader(nowhere{})
	if err := c.AddResource(base, doc); err != nil {
		return nil, err
	}
	return c.Compile(base)
}

// nowhere loads nothing.
type nowhere struct{}

func (nowhere) Load(string) (any, error) {
	return nil, errors.New("only references within the schema are followed")
}
