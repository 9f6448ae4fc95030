package runs

import (
	"slices"
	"strings"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/trace"
)

// TestQueriesAreUnderstood checks queries that only some readers of the language understood.
func TestQueriesAreUnderstood(t *testing.T) {
	for query, want := range map[string]string{
		`Verdict <> "correct"`:                      ``,
		`Verdict = "wrong" && c="x"`:                `ExitStatus="wrong" AND c="x"`,
		"`Verdict` = \"correct\"":                   `ExitStatus="success"`,
		`Text = "a""b" AND c=1`:                     `c=1`,
		`Model = "m" AND (Calls > 3 AND TaskId="")`: `(TaskId="")`,
		`a BETWEEN 1 AND 2 AND Text = ""`:           `a BETWEEN 1 AND 2`,
	} {
		if s, err := divide(query); s.server != want || len(s.keep) == 0 || err != nil {
			t.Errorf("%s: %q, %d, %v, want %q", query, s.server, len(s.keep), err, want)
		}
	}
	s, _ := divide(`Verdict <> "correct"`)
	if s.keeps(&Run{Verdict: ace.Correct}) || !s.keeps(&Run{Verdict: ace.Wrong}) {
		t.Error("<> is not !=")
	}
	empty := SplitQuery(`ExperimentId = "" AND Phase IN ("", "a")`)
	if !empty.Has(ace.AttrExperiment, "") || !empty.Has(ace.AttrPhase, "") {
		t.Errorf("empty values: %+v", empty)
	}
	again := SplitQuery(`ExitStatus="wrong" && Phase="skills"`)
	if !again.Has(ace.AttrExit, "wrong") || !again.Has(ace.AttrPhase, "skills") {
		t.Errorf("&&: %+v", again)
	}
}

// TestQueryMistakes refuses conditions that cannot be before the server is asked.
func TestQueryMistakes(t *testing.T) {
	for typed, want := range map[string]string{
		`Verdict > "correct"`:               `Verdict needs =, !=, IN or NOT IN and quoted names, not > "correct"`,
		`Verdict STARTS_WITH "c"`:           `Verdict needs =`,
		`Verdict = "correct" || a = 1`:      `Verdict can only be joined to other conditions by AND`,
		`NOT Verdict = "correct"`:           `Verdict can only be joined to other conditions by AND`,
		`Tokens > NaN`:                      `Tokens needs <, <=, =, >= or > and an amount, not > NaN`,
		`CostUSD < Inf`:                     `CostUSD needs`,
		`Calls != 3`:                        `Calls needs`,
		`Agent > "a"`:                       `Agent needs`,
		`cost>nan`:                          `"cost>nan": not a number: "nan"`,
		`calls>+Inf`:                        `"calls>+Inf": not a number: "+Inf"`,
		`Text = "a" b`:                      `Text needs = or != and a quoted text, not = "a" b`,
		`(Text = "a"`:                       `it has a ( without )`,
		`Text = "a" AND a = "b`:             `it has a quote without its end`,
		`Text = "a" AND b = 1 ORDER BY c`:   `Text can only be joined to other conditions by AND`,
		`c = 1 AND NOT (a = 1 OR Text="x")`: `Text can only be joined to other conditions by AND`,
	} {
		got, err := Filter(typed)
		if err == nil { // the reader of the list reports it
			_, err = divide(got)
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Filter(%s) = %s, %v, want %s", typed, got, err, want)
		}
	}
}

// TestTraceConditions selects runs by what their agents did.
func TestTraceConditions(t *testing.T) {
	traced := func(change func(*trace.Summary)) *Run {
		s := trace.Summary{Framework: "openai-agents", Agent: "triage", Model: "gpt-5",
			Sum:   trace.Sum{Requests: 11, Input: 900, Output: 200, Cost: 0.6},
			Parts: []trace.Part{{Agent: "refunds", Model: "gpt-5-mini"}}}
		change(&s)
		return &Run{Trace: &s}
	}
	rows := map[string]*Run{
		"traced":   traced(func(*trace.Summary) {}),
		"unpriced": traced(func(s *trace.Summary) { s.Sum.Unpriced, s.Sum.Unrecorded = 1, 1 }),
		"task":     {Model: "gpt-5", Summary: &ace.Summary{Usage: ace.Usage{InputTokens: 5, CostUSD: 0.1}}},
		"unknown":  {},
	}
	for typed, want := range map[string]string{
		"framework=openai-agents": "traced unpriced", "agent=triage": "traced unpriced",
		"agent=refunds,x": "traced unpriced", "agent!=triage": "", "agent=ref*": "traced unpriced",
		"agent!=other": "traced unpriced", "model=gpt-5": "task traced unpriced",
		"model=gpt-5-mini": "traced unpriced", "model!=gpt-4": "task traced unpriced",
		"tokens>1000": "traced unpriced", "tokens<2000": "task traced", "tokens=1100": "traced",
		"tokens>=5": "task traced unpriced",
		"cost>0.5":  "traced unpriced", "cost<0.5": "task", "cost<=0.6": "task traced",
		"calls>10": "traced unpriced", "calls<12": "traced unpriced", "calls>11": "",
	} {
		s, err := divide("(" + mustFilter(typed) + ") AND TaskId=\"x\"")
		if err != nil || s.server != `TaskId="x"` || !NeedsTraces(mustFilter(typed)) {
			t.Fatalf("%s: asks the server %s, %v", typed, s.server, err)
		}
		var found []string
		for name, r := range rows {
			if s.keeps(r) {
				found = append(found, name)
			}
		}
		slices.Sort(found)
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%s finds %q, want %q", typed, got, want)
		}
	}
	if NeedsTraces(`a = 1 OR b = 2`) {
		t.Error("needs traces")
	}
}

// render writes an expression again.
func render(e expr) string {
	var parts []string
	for _, part := range e.parts {
		parts = append(parts, render(part))
	}
	switch e.join {
	case "AND", "OR":
		return strings.Join(parts, " "+e.join+" ")
	case "NOT":
		return "NOT " + parts[0]
	case "(":
		return "(" + parts[0] + ")"
	}
	return e.text
}

// FuzzParse checks that a query that is written again from its parts has the same parts, which are where they
// say.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`a="b" AND (c IN ("d", 'e') OR NOT f=1)`, `a BETWEEN 1 AND 2 && b<>""`, `NOT`,
		`()`, `a IN (`, `"`, `(a) = 1`, `a ORDER BY b`, "`a`=1", `NOT NOT a`, `a IS NOT NULL || b`, `"a""b"`, `(AND)`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := parse(s)
		if err != nil {
			return
		}
		e.conditions(func(c expr) {
			if s[c.at:c.at+len(c.text)] != c.text && e.join != "ORDER" {
				t.Errorf("%q: %q is not at %d", s, c.text, c.at)
			}
		})
		once := render(e)
		again, err := parse(once)
		if twice := render(again); err != nil || twice != once {
			t.Errorf("%q: %q, and again %q, %v", s, once, twice, err)
		}
	})
}
