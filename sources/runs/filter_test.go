package runs

import (
	"strings"
	"testing"
	"time"
)

func TestFilter(t *testing.T) {
	for typed, want := range map[string]string{
		"":                         "",
		"   ":                      "",
		"wrong":                    `ExitStatus="wrong"`,
		"Wrong":                    `ExitStatus="wrong"`,
		"wrong completed":          `ExecutionStatus="Completed" AND ExitStatus="wrong"`,
		"failed timed_out":         `ExecutionStatus IN ("Failed", "TimedOut")`,
		"correct exp=finance-7":    `Verdict="correct" AND ExperimentId="finance-7"`,
		"correct unlabeled":        `Verdict IN ("correct", "unlabeled")`,
		"correct wrong completed":  `ExecutionStatus="Completed" AND Verdict IN ("correct", "wrong")`,
		"verdict!=correct":         `Verdict!="correct"`,
		"status:Canceled":          `ExecutionStatus="Canceled"`,
		"status!=completed":        `ExecutionStatus!="Completed"`,
		"verdict:wrong":            `ExitStatus="wrong"`,
		"exp:a,b":                  `ExperimentId IN ("a", "b")`,
		"exp!=a":                   `ExperimentId!="a"`,
		"exp!=a,b":                 `ExperimentId NOT IN ("a", "b")`,
		"phase:skills wrong":       `ExitStatus="wrong" AND Phase="skills"`,
		"task=q-01*":               `TaskId STARTS_WITH "q-01"`,
		"q-0182":                   `Text="q-0182"`,
		"wrong q-0182":             `ExitStatus="wrong" AND Text="q-0182"`,
		`"profit margin" wrong`:    `ExitStatus="wrong" AND Text="profit margin"`,
		`text:a,b text!=c`:         `Text="a,b" AND Text!="c"`,
		`interest in a year`:       `Text="interest" AND Text="in" AND Text="a" AND Text="year"`,
		`CloseTime is null`:        `CloseTime is null`,
		`"http://x"`:               `Text="http://x"`,
		"today":                    `Since="today"`,
		"yesterday failed":         `ExecutionStatus="Failed" AND Since="yesterday" AND Until="today"`,
		"12h":                      `Since="12h"`,
		"since:2026-11-20":         `Since="2026-11-20"`,
		"until:2026-11-20T10:00":   `Until="2026-11-20T10:00"`,
		"wrong cost>=0.5":          `ExitStatus="wrong" AND CostUSD>=0.5`,
		"wrong tokens>1000":        `ExitStatus="wrong" AND Tokens>1000`,
		"mine wrong":               `ExitStatus="wrong" AND StartedBy="me"`,
		"by:anna@lab,ben":          `StartedBy IN ("anna@lab", "ben")`,
		"by!=me":                   `StartedBy!="me"`,
		"open":                     `CloseTime IS NULL`,
		"waiting":                  `(ExecutionStatus = "Running" AND Phase IN ("review", "approval", "waiting"))`,
		"type:experiment":          `WorkflowType="AceExperimentWorkflow"`,
		"experimentid=x":           `ExperimentId="x"`,
		`ExperimentId="x"`:         `ExperimentId="x"`,
		`exp="two words" wrong`:    `ExitStatus="wrong" AND ExperimentId="two words"`,
		`exp=a\b`:                  `ExperimentId="a\\b"`,
		`wrong and exp=a`:          `ExitStatus="wrong" AND ExperimentId="a"`,
		`ExitStatus = "wrong"`:     `ExitStatus = "wrong"`,
		`ExitStatus="a" OR x="b"`:  `ExitStatus="a" OR x="b"`,
		`ExitStatus="wrong`:        `ExitStatus="wrong`,
		`StartTime > '2026-01-01'`: `StartTime > '2026-01-01'`,
		`(ExitStatus="x")`:         `(ExitStatus="x")`,
		`TaskId STARTS_WITH "q"`:   `TaskId STARTS_WITH "q"`,
		`exp=a(b)`:                 `exp=a(b)`,
		`ExperimentId="x" AND ExitStatus="wrong"`: `ExperimentId="x" AND ExitStatus="wrong"`,
	} {
		if got, err := Filter(typed); got != want || err != nil {
			t.Errorf("Filter(%q) = %q, %v, want %q", typed, got, err, want)
		}
	}
}

// TestShippedFilterIsWord checks that the name of every shipped filter is a word for its runs.
func TestShippedFilterIsWord(t *testing.T) {
	for _, f := range ShippedFilters() {
		want, _ := Filter(strings.Fields(f.Query + " all")[0])
		if got, err := Filter(f.Name); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", f.Name, got, err, want)
		}
	}
	if got, _ := Filter("all expensive wrong"); got != `ExitStatus="wrong" AND Tokens>0` {
		t.Errorf("joined: %q", got)
	}
}

// TestFilterMistakes checks that an error names the word that is not understood.
func TestFilterMistakes(t *testing.T) {
	for typed, want := range map[string]string{
		"wrong statsu:failed": `"statsu:failed": unknown key "statsu"; did you mean status?`,
		"http://x":            `"http://x": unknown key "http"; quote a text with a colon`,
		"status:fine":         `"status:fine": unknown value "fine"`,
		"verdict!=good":       `"verdict!=good": unknown value "good"`,
		"wrong experiment=":   `"experiment=": the value is missing`,
		"ExitStatus=":         `"ExitStatus=": the value is missing`,
		"status:fun": `"status:fun": unknown value "fun"; use one of running, completed, failed, canceled, ` +
			`terminated, timed_out, continued_as_new`,
		"since:lunch":  `"since:lunch": not a time: "lunch"`,
		"until!=today": `"until!=today": not a time`,
		"cost>much":    `"cost>much": not a number: "much"`,
	} {
		if got, err := Filter(typed); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Filter(%q) = %q, %v, want %s", typed, got, err, want)
		}
	}
}

// The console shows its own query in the prompt; sending it again must not change its meaning.
func FuzzFilterIsStable(f *testing.F) {
	for _, s := range []string{"wrong", "exp=a", "q-01", `a"b`, "exp!=a,b", "type:task open", `exp="x y"`,
		"=", "a=*", "today", "cost>1", `text:"x y"`, "in"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once, err := Filter(s)
		if err != nil {
			return
		}
		if twice, err := Filter(once); twice != once || err != nil {
			t.Errorf("Filter(%q) = %q, and again %q, %v", s, once, twice, err)
		}
	})
}

func TestTimeAt(t *testing.T) {
	zone := time.FixedZone("", 2*3600)
	now := time.Date(2026, 3, 1, 0, 30, 20, 0, zone)
	for word, want := range map[string]string{
		"today": "2026-03-01T00:00:00+02:00", "yesterday": "2026-02-28T00:00:00+02:00",
		"90m": "2026-02-28T23:00:00+02:00",
		"7d":  "2026-02-22T00:30:00+02:00", "2026-02-10": "2026-02-10T00:00:00+02:00",
		"2026-02-10T08:15": "2026-02-10T08:15:00+02:00", "2026-02-10T08:15:30Z": "2026-02-10T08:15:30Z",
	} {
		if got, err := TimeAt(word, now); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%s: %s, %v, want %s", word, got.Format(time.RFC3339), err, want)
		}
	}
	if at, err := TimeAt("12", now); err == nil {
		t.Errorf("12: %s", at)
	}
}

func TestWithTimes(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 30, 0, 0, time.UTC)
	for query, want := range map[string]string{
		`Since="yesterday" AND Until = 'today' OR x=1`: `StartTime >= "2026-02-28T00:00:00Z" AND StartTime < "2026-03-01T00:00:00Z" OR x=1`,
		`x="Since=" AND Since="soon"`:                  `x="Since=" AND Since="soon"`,
		`Text="Since='today'"`:                         `Text="Since='today'"`,
	} {
		if got := withTimes(query, now); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}
