package runs

import "testing"

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
		"q-0182":                   `(TaskId STARTS_WITH "q-0182" OR WorkflowId STARTS_WITH "q-0182")`,
		"wrong q-0182":             `ExitStatus="wrong" AND (TaskId STARTS_WITH "q-0182" OR WorkflowId STARTS_WITH "q-0182")`,
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
		`ExitStatus=`:              `ExitStatus=`,
		`(ExitStatus="x")`:         `(ExitStatus="x")`,
		`TaskId STARTS_WITH "q"`:   `TaskId STARTS_WITH "q"`,
		`exp=a(b)`:                 `exp=a(b)`,
		`ExperimentId="x" AND ExitStatus="wrong"`: `ExperimentId="x" AND ExitStatus="wrong"`,
	} {
		if got := Filter(typed); got != want {
			t.Errorf("Filter(%q) = %q, want %q", typed, got, want)
		}
	}
}

// The console shows its own query in the prompt; sending it again must not change its meaning.
func FuzzFilterIsStable(f *testing.F) {
	for _, s := range []string{"wrong", "exp=a", "q-01", `a"b`, "exp!=a,b", "type:task open", `exp="x y"`, "=", "a=*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := Filter(s)
		if twice := Filter(once); twice != once {
			t.Errorf("Filter(%q) = %q, and again %q", s, once, twice)
		}
	})
}
