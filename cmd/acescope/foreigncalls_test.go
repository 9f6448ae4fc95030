//go:build unix

package main

import (
	"strings"
	"testing"

	"go.temporal.io/sdk/client"

	"acescope/cmd/acescope/internal/cli"
)

// A run of a workflow type that acescope does not know may have called models and tools: no command says that
// it called none.
func TestForeignCalls(t *testing.T) {
	t.Parallel()
	e, dir := hostEngine(t, true)
	options := client.StartWorkflowOptions{ID: "theirs", TaskQueue: "unserved"}
	_, err := e.Client.ExecuteWorkflow(t.Context(), options, "TheirAgent")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"prompts", "theirs"}, {"show", "theirs", "--calls"},
		{"show", "theirs", "--call", "c1"}} {
		term := openTerminal(t, dir, 300, 20, args...)
		code := term.exits()
		output := term.screen.String()
		if code != cli.ExitNotFound || !strings.Contains(output, "that acescope recorded") ||
			!strings.Contains(output, "calls of workflows of type TheirAgent") ||
			!strings.Contains(output, `"acescope timeline theirs --events" lists`) ||
			strings.Contains(output, "no step") {
			t.Errorf("%v: exit code %d, output:\n%s", args, code, output)
		}
	}
	term := openTerminal(t, dir, 300, 20, "timeline", "theirs", "--events")
	if code := term.exits(); code != cli.ExitFine {
		t.Errorf("exit code %d, output:\n%s", code, term.screen.String())
	}
}
