package main_test

import (
	"strings"
	"testing"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/sources/detail"
	"acescope/sources/historytest"
)

func shown(t *testing.T, b *historytest.Builder) string {
	t.Helper()
	d, err := detail.ReadEvents(b.Events)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := runs.WriteRun(&cli.App{Out: &text}, d); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestShowOddRuns shows runs of other programs: what their server says, what could be read, and what could
// not.
func TestShowOddRuns(t *testing.T) {
	for _, c := range []struct {
		name      string
		run       *historytest.Builder
		want, not []string
	}{
		{"document 001", historytest.Document001(),
			[]string{"reflector  not reached", "persist    done", "Tool calls  3", "[#3]", "Check the units.",
				`result     "42"`,
				"plan       multiply", "unread     run_curator: follow_up_actions: text instead of a list"},
			[]string{"failed:", "BadStepResult", "running"}},
		{"external storage", historytest.New("AceTaskWorkflow", map[string]any{"task_id": "t"}),
			nil, []string{"Workflow"}},
		{"another type", historytest.New("OrderWorkflow", map[string]any{"order": 17}).Close(0, "sent"),
			[]string{"Workflow  OrderWorkflow", `input      {"order":17}`, `result     "sent"`},
			[]string{"generator", "Phases"}},
	} {
		text := shown(t, c.run)
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, text)
			}
		}
		for _, not := range c.not {
			if strings.Contains(text, not) {
				t.Errorf("%s: %q in\n%s", c.name, not, text)
			}
		}
	}
}
