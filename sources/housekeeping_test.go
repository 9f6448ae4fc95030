package sources

import "testing"

func TestWork(t *testing.T) {
	for in, want := range map[string]string{
		"":                            notHousekeeping,
		` `:                           notHousekeeping,
		`Phase = "x"`:                 `Phase = "x" AND ` + notHousekeeping,
		`Phase = "x" OR Phase = "y"`:  `(Phase = "x" OR Phase = "y") AND ` + notHousekeeping,
		`workflowtype = "t"`:          `workflowtype = "t"`,
		`WorkflowId STARTS_WITH "r/"`: `WorkflowId STARTS_WITH "r/"`,
	} {
		if got := work(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}
