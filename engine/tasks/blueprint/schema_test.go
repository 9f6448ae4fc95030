package blueprint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"acescope/engine/tasks/run"
)

func compiled(t *testing.T, schema string, s run.Strategy) *Schema {
	t.Helper()
	out, err := Compile(json.RawMessage(schema), s)
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return out
}

const crawler = `{
	"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": ["url"], "additionalProperties": false,
	"properties": {
		"url": {"type": "string", "format": "uri"},
		"depth": {"type": "integer", "minimum": 1, "maximum": 10, "default": 2},
		"patterns": {"type": "array", "items": {"type": "string"}, "default": ["*"]},
		"output_dir": {"type": "string"}
	}}`

// TestCheck checks parameters by the schema of document 004.
func TestCheck(t *testing.T) {
	s := compiled(t, crawler, run.StdinJSON)
	got, err := s.Check([]byte(`{"url": "http://a.b/<x>&"}`))
	if err != nil || string(got) != `{"depth":2,"patterns":["*"],"url":"http://a.b/<x>&"}` {
		t.Errorf("%s, %v", got, err)
	}
	again, err := s.Check(got)
	if err != nil || !bytes.Equal(again, got) {
		t.Errorf("a second time: %s, %v", again, err)
	}
	for params, want := range map[string]string{
		``:                         `parameters: $: parameters are required; use {} for no parameters`,
		`{}`:                       `parameters: $.url: is missing`,
		`null`:                     `parameters:1:1: $: expected an object`,
		`[]`:                       `parameters:1:1: $: expected an object`,
		`{"url": "x"`:              `parameters:1:11: is not JSON: unexpected end of JSON input`,
		`{"url": 1}`:               `parameters: $.url: got number, want string`,
		`{"url": "x y:/"}`:         `parameters: $.url: 'x y:/' is not valid uri: `,
		`{"url": "a:b", "url": 1}`: `parameters:1:16: $.url: occurs twice`,
		`{"url": "a:b", "depth": 11, "dept": 1, "patterns": ["a", 2]}`: `parameters: $.dept: unknown field; did you mean "depth"?; $.depth: maximum: got 11, want 10; $.patterns[1]: got number, want string`,
		`{"url": "a:b", "depth": 1.5}`:                                 `$.depth: got number, want integer`,
		`{"url": "a:b", "depth": 1e9999999}`:                           `$.depth: the number is too long`,
		`{"url": "a:b", "depth": null}`:                                `$.depth: got null, want integer`,
	} {
		got, err := s.Check([]byte(params))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v\n wants %s", params, got, err, want)
		}
	}
	if _, err := s.Check([]byte(`{"url": "a:` + strings.Repeat("b", run.MaxParams) + `"}`)); err == nil ||
		!strings.Contains(err.Error(), "at most 262144") {
		t.Errorf("%v", err)
	}
}

// TestViolationsAreBounded checks the number of reported violations.
func TestViolationsAreBounded(t *testing.T) {
	s := compiled(t, `{"additionalProperties": {"type": "string"}}`, run.StdinJSON)
	var fields []string
	for i := range 25 {
		fields = append(fields, fmt.Sprintf(`"p%02d": 1`, i))
	}
	_, err := s.Check([]byte("{" + strings.Join(fields, ",") + "}"))
	var v *Violations
	if !errors.As(err, &v) || len(v.List) != MaxViolations || v.More != 15 ||
		!strings.HasSuffix(err.Error(), "; and 15 more") || v.List[0].Path != "$.p00" {
		t.Errorf("%v", err)
	}
}

// TestDefaults checks which defaults are filled in.
func TestDefaults(t *testing.T) {
	for name, c := range map[string]struct{ schema, params, want string }{
		"nested": {`{"properties": {"a": {"properties": {"b": {"default": 1}}}}}`, `{"a": {}}`,
			`{"a":{"b":1}}`},
		"not made": {`{"properties": {"a": {"properties": {"b": {"default": 1}}}}}`, `{}`, `{}`},
		"within one": {`{"properties": {"a": {"default": {}, "properties": {"b": {"default": 1}}}}}`,
			`{}`, `{"a":{"b":1}}`},
		"null stays":     {`{"properties": {"a": {"default": 1}}}`, `{"a": null}`, `{"a":null}`},
		"null":           {`{"properties": {"a": {"default": null}}}`, `{}`, `{"a":null}`},
		"false":          {`{"properties": {"a": {"default": false}}}`, `{}`, `{"a":false}`},
		"ref":            {`{"properties": {"a": {"$ref": "#/definitions/a"}}, "definitions": {"a": {"default": {"x": 1}, "properties": {"y": {"default": 2}}}}}`, `{}`, `{"a":{"x":1,"y":2}}`},
		"escaped ref":    {`{"properties": {"a": {"$ref": "#/definitions/a~1b%20c"}}, "definitions": {"a/b c": {"default": 1}}}`, `{}`, `{"a":1}`},
		"anchor":         {`{"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"a": {"$ref": "#x"}}, "$defs": {"n": {"$anchor": "x", "default": 1}}}`, `{}`, `{"a":1}`},
		"old anchor":     {`{"properties": {"a": {"$ref": "#x"}}, "definitions": {"n": {"$id": "#x", "default": 1}}}`, `{}`, `{"a":1}`},
		"address":        {`{"$id": "https://example.com/s.json", "properties": {"a": {"$ref": "#/definitions/a"}}, "definitions": {"a": {"default": 1}}}`, `{}`, `{"a":1}`},
		"beside ref, 07": {`{"properties": {"a": {"$ref": "#/definitions/a", "default": 1}}, "definitions": {"a": {"type": "integer"}}}`, `{}`, `{}`},
		"beside ref, 20": {`{"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"a": {"$ref": "#/$defs/a", "default": 1}}, "$defs": {"a": {"default": 2}}}`, `{}`, `{"a":1}`},
		"items": {`{"properties": {"a": {"items": {"properties": {"b": {"default": 1}}}}}}`,
			`{"a": [{}, {"b": 2}, 3]}`, `{"a":[{"b":1},{"b":2},3]}`},
		"tuple":  {`{"properties": {"a": {"items": [{"properties": {"b": {"default": 1}}}], "additionalItems": {"properties": {"b": {"default": 2}}}}}}`, `{"a": [{}, {}]}`, `{"a":[{"b":1},{"b":2}]}`},
		"prefix": {`{"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"a": {"prefixItems": [{"properties": {"b": {"default": 1}}}], "items": {"properties": {"b": {"default": 2}}}}}}`, `{"a": [{}, {}]}`, `{"a":[{"b":1},{"b":2}]}`},
		"others": {`{"additionalProperties": {"properties": {"b": {"default": 1}}}}`, `{"x": {}}`,
			`{"x":{"b":1}}`},
		"pattern": {`{"patternProperties": {"^x": {"properties": {"b": {"default": 1}}}}}`,
			`{"x": {}, "y": {}}`, `{"x":{"b":1},"y":{}}`},
		"all of": {`{"allOf": [{"properties": {"a": {"default": 1}}}, {"properties": {"a": {"default": 2}, "b": {"default": 3}}}]}`, `{}`, `{"a":1,"b":3}`},
		"any of": {`{"anyOf": [{"properties": {"a": {"default": 1}}}]}`, `{}`, `{}`},
		"one of": {`{"oneOf": [{"properties": {"a": {"default": 1}}}]}`, `{}`, `{}`},
		"recursive": {`{"properties": {"next": {"$ref": "#"}, "v": {"default": 0}}}`,
			`{"next": {"next": {}}}`, `{"next":{"next":{"v":0},"v":0},"v":0}`},
		"satisfies": {`{"required": ["a"], "properties": {"a": {"default": 1}}}`, `{}`, `{"a":1}`},
		"large": {`{"properties": {"a": {"type": "integer", "default": 12345678901234567890123}}}`,
			`{"b": 98765432109876543210.10}`, `{"a":12345678901234567890123,"b":98765432109876543210.10}`},
	} {
		got, err := compiled(t, c.schema, run.StdinJSON).Check([]byte(c.params))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v\n wants %s", name, got, err, c.want)
		}
	}
}

// TestDefaultsAreNotShared checks that a default is copied for each run.
func TestDefaultsAreNotShared(t *testing.T) {
	s := compiled(t, `{"properties": {"a": {"default": {"l": [{}]}, "properties": {"l": {"items": {"properties": {"n": {"default": 1}}}}}}}}`, run.StdinJSON)
	for range 2 {
		if got, err := s.Check([]byte(`{}`)); err != nil || string(got) != `{"a":{"l":[{"n":1}]}}` {
			t.Errorf("%s, %v", got, err)
		}
	}
}

// TestViolationTexts checks the text of each kind of violation.
func TestViolationTexts(t *testing.T) {
	const draft = `"$schema": "https://json-schema.org/draft/2020-12/schema"`
	for schema, c := range map[string][2]string{
		`{"properties": {"a": {"enum": ["x", 1, null]}}}`:                                                        {`{"a": "y"}`, `$.a: value must be one of 'x', 1, <nil>`},
		`{"properties": {"a": {"const": 1}}}`:                                                                    {`{"a": {}}`, `$.a: value must be 1`},
		`{"properties": {"a": {"pattern": "^x"}}}`:                                                               {`{"a": "y"}`, `$.a: 'y' does not match pattern '^x'`},
		`{"properties": {"a": {"exclusiveMinimum": 0.5}}}`:                                                       {`{"a": 0.5}`, `$.a: exclusiveMinimum: got 0.5, want 0.5`},
		`{"properties": {"a": {"minimum": 1}}}`:                                                                  {`{"a": 0}`, `$.a: minimum: got 0, want 1`},
		`{"properties": {"a": {"exclusiveMaximum": 2}}}`:                                                         {`{"a": 2}`, `$.a: exclusiveMaximum: got 2, want 2`},
		`{"properties": {"a": {"multipleOf": 3}}}`:                                                               {`{"a": 4}`, `$.a: multipleOf: got 4, want 3`},
		`{"properties": {"a": {"minLength": 2}}}`:                                                                {`{"a": "é"}`, `$.a: minLength: got 1, want 2`},
		`{"properties": {"a": {"minItems": 2}}}`:                                                                 {`{"a": []}`, `$.a: minItems: got 0, want 2`},
		`{"properties": {"a": {"maxItems": 0}}}`:                                                                 {`{"a": [1]}`, `$.a: maxItems: got 1, want 0`},
		`{"minProperties": 1}`:                                                                                   {`{}`, `$: minProperties: got 0, want 1`},
		`{"maxProperties": 1}`:                                                                                   {`{"a": 1, "b": 2}`, `$: maxProperties: got 2, want 1`},
		`{"properties": {"a": {"uniqueItems": true}}}`:                                                           {`{"a": [1, 2, 1.0]}`, `$.a: items at 0 and 2 are equal`},
		`{"properties": {"a": {"contains": {"const": 1}}}}`:                                                      {`{"a": [2]}`, `$.a: no items match contains schema`},
		`{"properties": {"a": {"items": [{}], "additionalItems": false}}}`:                                       {`{"a": [1, 2]}`, `$.a: last 1 additionalItem(s) not allowed`},
		`{"properties": {"a": {"not": {}}}}`:                                                                     {`{"a": 1}`, `$.a: 'not' failed`},
		`{"properties": {"a": false}}`:                                                                           {`{"a": 1}`, `$.a: is not allowed`},
		`{"propertyNames": {"maxLength": 1}}`:                                                                    {`{"ab": 1}`, `$: invalid propertyName 'ab' (maxLength: got 2, want 1)`},
		`{"properties": {"a": {"anyOf": [{"type": "string"}, {"minimum": 5}]}}}`:                                 {`{"a": 1}`, `$.a: 'anyOf' failed ($.a got number, want string; $.a minimum: got 1, want 5)`},
		`{"properties": {"a": {"oneOf": [{"type": "number"}, {"minimum": 0}]}}}`:                                 {`{"a": 1}`, `$.a: 'oneOf' failed, subschemas 0, 1 matched`},
		`{"dependencies": {"a": ["b"]}}`:                                                                         {`{"a": 1}`, `$: properties 'b' required, if 'a' exists`},
		`{` + draft + `, "dependentRequired": {"a": ["b"]}}`:                                                     {`{"a": 1}`, `$: properties 'b' required, if 'a' exists`},
		`{"if": {"required": ["a"]}, "then": {"required": ["b"]}}`:                                               {`{"a": 1}`, `$.b: is missing`},
		`{` + draft + `, "properties": {"a": {}}, "unevaluatedProperties": false}`:                               {`{"b": 1}`, `$.b: is not allowed`},
		`{"properties": {"a b": {"items": {"type": "null"}}}}`:                                                   {`{"a b": [1]}`, `$["a b"][0]: got number, want null`},
		`{"properties": {"a": {"format": "date"}, "b": {"format": "email"}, "c": {"format": "uuid"}}}`:           {`{"a": "2026-02-30", "b": "x", "c": "y"}`, `$.a: '2026-02-30' is not valid date`},
		`{"properties": {"a": {"$ref": "#/definitions/a"}}, "definitions": {"a": {"type": ["null", "string"]}}}`: {`{"a": 1}`, `$.a: got number, want null or string`},
	} {
		_, err := compiled(t, schema, run.StdinJSON).Check([]byte(c[0]))
		if err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s, %s: %v\n wants %s", schema, c[0], err, c[1])
		}
	}
	// What looks like a secret is not repeated.
	_, err := compiled(t, `{"properties": {"a": {"maxLength": 1, "enum": ["b"]}}}`,
		run.StdinJSON).Check([]byte(`{"a": "` + secret[:50] + `"}`))
	if err == nil || strings.Contains(err.Error(), secret[:40]) {
		t.Errorf("%v", err)
	}
}

func manyParts(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `, "p%d": {}`, i)
	}
	return b.String()
}

// TestHostileSchemas checks that schemas that make checking slow are refused or bounded.
func TestHostileSchemas(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"definitions": {`)
	for i := range 40 {
		fmt.Fprintf(&b, `"a%d": {"allOf": [{"$ref": "#/definitions/a%d"}, {"$ref": "#/definitions/a%d"}]},`,
			i, i+1, i+1)
	}
	b.WriteString(`"a40": {}}, "properties": {"x": {"$ref": "#/definitions/a0"}}}`)
	nested := strings.Repeat(`[`, 60) + strings.Repeat(`]`, 60)
	var chain strings.Builder
	chain.WriteString(`{"definitions": {`)
	for i := range 4000 {
		fmt.Fprintf(&chain, `"a%d": {"$ref": "#/definitions/a%d"},`, i, i+1)
	}
	chain.WriteString(`"a4000": {}}, "properties": {"x": {"$ref": "#/definitions/a0"}}}`)
	for name, c := range map[string][2]string{
		"doubling":      {b.String(), `{"x": 1}`},
		"doubling data": {`{"properties": {"x": {"$ref": "#/definitions/a"}}, "definitions": {"a": {"anyOf": [{"items": {"$ref": "#/definitions/a"}}, {"items": {"$ref": "#/definitions/a"}}]}}}`, `{"x": ` + nested + `}`},
		"chain":         {chain.String(), `{"x": {}}`},
	} {
		s, err := Compile(json.RawMessage(c[0]), run.StdinJSON)
		if err == nil {
			_, err = s.Check([]byte(c[1]))
		}
		if err == nil || !strings.Contains(err.Error(), "too long") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Compile(json.RawMessage(`{"properties": {"x": {}`+manyParts(6000)+`}}`),
		run.StdinJSON); err == nil || !strings.Contains(err.Error(), "more than 5000 parts") {
		t.Errorf("%v", err)
	}
	// A pattern that others match in exponential time.
	s := compiled(t, `{"properties": {"x": {"pattern": "^(a+)+$"}}}`, run.StdinJSON)
	if _, err := s.Check([]byte(`{"x": "` + strings.Repeat("a", 10_000) + `!"}`)); err == nil {
		t.Error("it matches")
	}
	// Recursion that follows the data is fine.
	s = compiled(t, `{"properties": {"x": {"$ref": "#"}}, "additionalProperties": false}`, run.StdinJSON)
	if _, err := s.Check([]byte(`{"x": {"x": {"x": {}}}}`)); err != nil {
		t.Error(err)
	}
}

// TestStrategies checks that parameters that a strategy cannot pass are refused.
func TestStrategies(t *testing.T) {
	for _, c := range []struct {
		strategy     run.Strategy
		schema, want string
	}{
		{run.Args, `{"properties": {"-x": {}}}`,
			`parameters_schema:1:23: $.properties["-x"]: the strategy args cannot pass a parameter of this name`},
		{run.Env, `{"properties": {"a=b": {}}}`, `$.properties["a=b"]: the strategy env cannot pass`},
		{run.Env, `{"properties": {"": {}}}`, `$.properties[""]: the strategy env cannot pass`},
		{run.Args, `{"allOf": [{"$ref": "#/definitions/d"}], "definitions": {"d": {"properties": {"a b": {}}}}}`, `$.definitions.d.properties["a b"]: the strategy args`},
		{run.Env, `{"properties": {"a-b": {}, "A_B": {}}}`, `has the same variable PARAM_A_B as "A_B"`},
	} {
		_, err := Compile(json.RawMessage(c.schema), c.strategy)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.schema, err)
		}
		for _, s := range []run.Strategy{run.StdinJSON, run.File} {
			if _, err := Compile(json.RawMessage(c.schema), s); err != nil {
				t.Errorf("%s by %s: %v", c.schema, s, err)
			}
		}
	}
	for _, c := range []struct {
		strategy     run.Strategy
		params, want string
	}{
		{run.Args, `{"--evil": 1}`, `$["--evil"]: the strategy args cannot pass`},
		{run.Args, `{"a": "x\u0000y"}`, `$.a: contains a NUL`},
		{run.Args, `{"a": ["x", "\u0000"]}`, `$.a[1]: contains a NUL`},
		{run.Args, `{"a": "` + strings.Repeat("x", maxArg) + `"}`,
			`$.a: has 131071 bytes, and the strategy args can pass at most`},
		{run.Env, `{"a": ["` + strings.Repeat("x", maxArg) + `"]}`, `and the strategy env can pass at most`},
		{run.Env, `{"a": 1, "A": 2}`, `$.a: has the same variable PARAM_A as "A"`},
		{run.Env, `{"a\nLD_PRELOAD": 1}`, `cannot pass a parameter of this name`},
	} {
		s := anyObject(c.strategy)
		if got, err := s.Check([]byte(c.params)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: %s, %v", c.params, got, err)
		}
	}
	for _, s := range []run.Strategy{run.Args, run.Env} {
		const object = `{"PATH": "/evil", "LD_PRELOAD": "x", "a-b_c": {"o": "\u0000"}, "l": ["a", 1, null, {}],
			"n": null, "t": true}`
		if _, err := anyObject(s).Check([]byte(object)); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	for param, want := range map[string]string{"PATH": "PARAM_PATH", "ld-preload": "PARAM_LD_PRELOAD",
		"1": "PARAM_1"} {
		if got := run.EnvName(param); got != want {
			t.Errorf("%s is %s, want %s", param, got, want)
		}
	}
}

// TestNotes checks the warnings.
func TestNotes(t *testing.T) {
	b, err := Read(put(t, t.TempDir(), "x", files{
		AgentFile:  `{"name": "x", "description": "d", "type": "deterministic", "command": "true"}`,
		ParamsFile: `{"properties": {"a": {"format": "date-tiem"}, "b": {"$ref": "#/definitions/b", "default": 1}}, "definitions": {"b": {}}}`,
	}))
	if err != nil || len(b.Notes) != 2 {
		t.Fatalf("%v, %v", b.Notes, err)
	}
	for i, want := range []string{`agent.parameters.json:1:33: $.properties.a.format: the format "date-tiem" is not checked; did you mean "date-time"?`,
		`$.properties.b: draft-07 ignores default next to $ref`} {
		if !strings.Contains(b.Notes[i].String(), want) {
			t.Errorf("%s\n wants %s", b.Notes[i], want)
		}
	}
}
