package flowtest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"acescope/engine/flow"
	"acescope/engine/temporal/operation"
)

const release = `flow: release
inputs:
  targets: {type: array, items: {type: string}}
outputs:
  built: {value: "${{ steps.each.results }}", type: array}
  dice: ${{ steps.dice.value }}
  day: "${{ string(now) }}"
  ticket: ${{ steps.ticket.result.number }}
  by: ${{ steps.ok.by }}
  told: ${{ steps.go.data.to }}
steps:
  - id: dice
    random: {min: 1, max: 6}
  - id: each
    for_each: inputs.targets
    as: target
    at_once: 2
    steps:
      - {id: build, run: [make, "${{ target }}"]}
    collect: ${{ steps.build.stdout }}
  - id: review
    prompt: Is ${{ steps.each.results[0] }} fine?
    on_error: continue
  - id: ticket
    activity: CreateTicket
    input: {title: "${{ steps.review.status }}"}
  - id: ok
    approve: Release ${{ size(steps.each.results) }}?
    timeout: 48h
  - if: "!steps.ok.approved"
    then:
      - fail: Not approved.
  - id: go
    wait: {signal: begin, timeout: 24h}
`

const releaseCases = `cases:
  - name: approved
    start: 2030-01-31T08:00:00Z
    inputs: {targets: [linux, mac]}
    mocks:
      dice: {result: 4}
      build: {results: [one, {stdout: two}]}
      review: {error: {message: too busy, type: AgentFailure}}
      ticket: {result: {number: 7, more: [1]}}
    decisions:
      ok: {approved: true, by: Ann}
    signals:
      - {name: begin, data: {to: everyone}, after: 10h}
    expect:
      outputs: {built: [one, two], dice: 4, day: "2030-01-31T18:00:00Z", ticket: 7, by: Ann, told: everyone}
      order: [dice, each/0/build, op.build.each/1.1, review, ok, go]
  - name: no decision
    inputs: {targets: [linux]}
    mocks:
      op.build.each/0.1: {result: one}
      review: {result: {text: "yes", cost_usd: 0.5}}
      ticket: {result: {number: 7}}
    expect: {error: FlowFailed, message: Not approved, order: [ok, fail_1]}
  - name: wrong
    inputs: {targets: [linux]}
    mocks:
      build: {result: one}
      ticket: {result: {number: 7}}
      review: {result: "yes"}
    decisions: {ok: approve}
    signals: [{name: begin, data: {to: me}}]
    expect:
      outputs: {built: [two], told: me, other: 1}
      order: [ticket, build]
  - name: incomplete
    inputs: {targets: [linux]}
    mocks:
      build: {result: one}
      ticket: {result: {number: 7}}
    expect: {status: completed}
`

func parse(t *testing.T, text string) (flow.Source, *flow.Flow) {
	t.Helper()
	src := flow.Source{Main: "release.yaml", Files: map[string]string{"release.yaml": text}}
	f, err := flow.Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	return src, f
}

func TestCases(t *testing.T) {
	src, f := parse(t, release)
	cases, err := flow.ParseCases("release.test.yaml", releaseCases, f)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"approved":    "",
		"no decision": "",
		"wrong": "outputs.built[0]: \"one\", want \"two\"\noutputs.other: missing, want 1\n" +
			"order: build did not begin after ticket; the steps were dice, each, each/0/build, review, ticket, ok, go",
		"incomplete": "step review has no answer for operation op.review.-.1: add it to \"mocks\"",
	}
	for _, c := range cases {
		r, err := Test(src, "release", f, c)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if got := strings.Join(r.Differences, "\n"); got != want[c.Name] {
			t.Errorf("%s (%s):\n%s\nwant\n%s", c.Name, r.Status, got, want[c.Name])
		}
	}
}

// A step that waits for what never comes is reported at once.
func TestWaiting(t *testing.T) {
	src, f := parse(t, "flow: a\nsteps:\n  - {id: ok, approve: now}\n  - {id: s, wait: {signal: go}}\n")
	for _, c := range []struct{ decisions, want string }{
		{"", `step ok waits for approval: add it to "decisions"`},
		{"decisions: {ok: approve}, ", "step s waits for signal go, which never comes"},
	} {
		cases, err := flow.ParseCases("a.test.yaml",
			"cases: [{name: x, "+c.decisions+"expect: {status: completed}}]\n", f)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Test(src, "a", f, cases[0])
		if err != nil || strings.Join(r.Differences, "\n") != c.want {
			t.Errorf("%q, %v", r.Differences, err)
		}
	}
}

func TestCaseProblems(t *testing.T) {
	_, f := parse(t, release)
	for name, c := range map[string]struct{ text, want string }{
		"empty":    {"", "release.test.yaml:1:1: the file is empty"},
		"no cases": {"cases: []\n", "release.test.yaml:1:1: the file has no cases"},
		"no name": {"cases:\n  - expect: {status: completed}\n",
			`release.test.yaml:2:5: a case needs the field "name"`},
		"no expect": {"cases:\n  - name: a\n", `a case needs the field "expect"`},
		"step": {"cases:\n  - name: a\n    mocks:\n      biuld: {result: x}\n    expect: {}\n",
			`release.test.yaml:4:7: the flow has no step "biuld"; did you mean "build"?`},
		"result": {"cases:\n  - name: a\n    mocks:\n      build: {result: {stdut: x}}\n    expect: {}\n",
			`release.test.yaml:4:23: not a result of a step run: unknown field "stdut"`},
		"both": {"cases:\n  - name: a\n    mocks:\n      build: {result: x, error: y}\n    expect: {}\n",
			"a mock needs one of result, results and error"},
		"approval": {"cases:\n  - name: a\n    decisions: {build: approve}\n    expect: {}\n",
			`no step "build" that waits for approval`},
		"decision": {"cases:\n  - name: a\n    decisions: {ok: perhaps}\n    expect: {}\n",
			"expected approve or reject"},
		"duplicate": {"cases:\n  - {name: a, expect: {}}\n  - {name: a, expect: {}}\n",
			`release.test.yaml:3:5: duplicate case "a"; line 2 has it too`},
		"status": {"cases:\n  - {name: a, expect: {status: fine}}\n", "expected completed or failed"},
		"start":  {"cases:\n  - {name: a, start: today, expect: {}}\n", "expected a time such as"},
		"large":  {strings.Repeat("#", flow.MaxSource+1), "at most 256 KB are allowed"},
		"random list": {"cases:\n  - {name: a, mocks: {dice: {results: [1, 2]}}, expect: {}}\n",
			"the mock of a random value has one result"},
	} {
		_, err := flow.ParseCases("release.test.yaml", c.text, f)
		var problems flow.Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

// The order of operations that run side by side does not matter; that of one branch does.
func TestCompare(t *testing.T) {
	op := func(id string) flow.Operation {
		return flow.Operation{ID: id, Parameters: json.RawMessage(`{"a":1}`)}
	}
	rec := &flow.Record{Closed: true}
	for _, id := range []string{"op.a.each/0.1", "op.a.each/1.1", "op.b.each/0.1", "op.b.each/1.1",
		"op.end.-.1"} {
		rec.Values = append(rec.Values,
			flow.Recorded{Operation: op(id), Digest: operation.Digest(op(id).Parameters)})
	}
	other := op("op.end.-.1")
	other.Parameters = json.RawMessage(`{"a":2}`)
	for _, c := range []struct {
		ops  []flow.Operation
		want string
	}{
		{[]flow.Operation{op("op.a.each/0.1"), op("op.b.each/0.1"), op("op.a.each/1.1"), op("op.b.each/1.1"),
			op("op.end.-.1")}, ""},
		{[]flow.Operation{op("op.b.each/0.1")},
			"step each/0/b: executes operation op.b.each/0.1 where the recorded run executed op.a.each/0.1"},
		{[]flow.Operation{op("op.a.each/2.1")},
			"step each/2/a: executes operation op.a.each/2.1, which the recorded run did not"},
		{[]flow.Operation{op("op.a.each/0.1"), op("op.b.each/0.1"), op("op.a.each/1.1")},
			"step each/1/b: operation op.b.each/1.1 of the recorded run is not executed"},
		{[]flow.Operation{other}, "step end: operation op.end.-.1 has other parameters: parameters.a: 2, want 1"},
	} {
		got := ""
		if d := Compare(rec, Outcome{Operations: c.ops}); d != nil {
			got = d.String()
		}
		if got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
