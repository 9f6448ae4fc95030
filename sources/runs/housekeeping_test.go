package runs

import "testing"

func TestWork(t *testing.T) {
	const narrow = notHousekeeping + " AND " + notSteps
	for in, want := range map[string]string{
		"":                            narrow,
		` `:                           narrow,
		`Phase = "x"`:                 `Phase = "x" AND ` + narrow,
		`Phase = "x" OR Phase = "y"`:  `(Phase = "x" OR Phase = "y") AND ` + narrow,
		`BlueprintName = "b"`:         `BlueprintName = "b" AND ` + notHousekeeping,
		`workflowtype = "t"`:          `workflowtype = "t"`,
		`WorkflowId STARTS_WITH "r/"`: `WorkflowId STARTS_WITH "r/"`,
	} {
		if got := withoutHousekeeping(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}
