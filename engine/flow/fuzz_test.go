package flow

import (
	"errors"
	"strings"
	"testing"
)

// FuzzParse: every file is a flow, or has problems that lie in it.
func FuzzParse(f *testing.F) {
	for _, text := range []string{example, longFlow, subFlow, "", "flow: a\nsteps: [{wait: 1s}]\n",
		"a: &x [*x, *x]\n",
		"flow: a\nsteps:\n  - {id: x, prompt: {file: ../../etc/passwd}}\n", "steps: [[[[[[[[[[[[[",
		"\"\\ud800\": 1", "a: !!binary x",
		"flow: a\ninputs: {a: {pattern: '(a+)+$'}}\nsteps:\n  - {if: \"[1,2].all(x, x > 0)\", then: [{fail: no}]}\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := Parse(Source{Main: "a.yaml", Files: map[string]string{"a.yaml": text, "sub.yaml": subFlow}})
		var problems Problems
		if err == nil {
			return
		}
		if !errors.As(err, &problems) || len(problems) == 0 {
			t.Fatalf("%T: %v", err, err)
		}
		for _, p := range problems {
			if p.File == "" || p.Line < 1 || p.Line > strings.Count(text, "\n")+strings.Count(text, "\r")+2 ||
				p.Message == "" {
				t.Errorf("%+v", p)
			}
		}
	})
}

// FuzzExpression: an expression has a value that is JSON, or an error. It never takes long.
func FuzzExpression(f *testing.F) {
	for _, text := range []string{"inputs.a + 1", "[1, 2].map(x, x * 2)", "'a'.matches('(a+)+$')",
		"{'b': 1}.b", "now", "1 / 0",
		"timestamp('2026-01-01T00:00:00Z') + duration('1h')", "to_json(from_json('[1]'))", "double('NaN')",
		"b'x'",
		"[1,2,3].map(a, [1,2,3].map(b, [1,2,3].map(c, a * b * c)))", "'%s %d'.format(['x', 1])",
		"optional.of(1)"} {
		f.Add(text)
	}
	env, err := newEnvironment(objectTypes{typeInputs: {"a": typeOf("integer")}, typeVars: {}, typeSteps: {},
		typeRun: {}}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, problems := env.compile(text, Position{"a", 1, 1})
		if len(problems) > 0 {
			return
		}
		value, err := e.eval(map[string]any{"inputs": map[string]any{"a": int64(1)}, "vars": map[string]any{},
			"steps": map[string]any{}, "run": map[string]any{}})
		if err != nil {
			return
		}
		if _, err := jsonText(value); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// FuzzSplit: the literals and expressions of a text are its parts.
func FuzzSplit(f *testing.F) {
	for _, text := range []string{"a ${{ b }} c", "$${{ x }}", "${{ {'a': '}}'} }}", "${{", "${{}}",
		"$$${{ a }}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		literals, exprs, err := split(text)
		if err != nil {
			return
		}
		joined := literals[0]
		for i, e := range exprs {
			joined += openMark + e + closeMark + literals[i+1]
		}
		if got := strings.ReplaceAll(text, "$"+openMark, openMark); joined != got {
			t.Errorf("%q: %q %q", text, literals, exprs)
		}
	})
}
