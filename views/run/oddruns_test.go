package run

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/sources/detail"
	"acescope/sources/historytest"
	"acescope/theme"
	"acescope/tui/widget"
)

// TestOddRunRows draws runs of other programs, and one that was terminated in its first step.
func TestOddRunRows(t *testing.T) {
	begun := historytest.New(ace.TaskWorkflow, ace.TaskInput{TaskID: "t"})
	begun.Schedule(time.Second, ace.ActivityGenerator, nil)
	stored := historytest.New(ace.TaskWorkflow, ace.TaskInput{TaskID: "t"})
	stored.Activity(0, time.Second, ace.ActivityGenerator, nil, historytest.Stored("s3", 81920))
	order := historytest.New("OrderWorkflow", map[string]any{"order": 17})
	order.Activity(0, time.Second, "charge\x1b[2J", map[string]any{"cents": 1999}, "paid")
	order.Schedule(time.Second, "mail", nil)
	for _, c := range []struct {
		name      string
		run       *historytest.Builder
		want, not []string
	}{
		{"document 001", historytest.Document001(),
			[]string{"cannot read run_curator: follow_up_actions", "not reached", "multiply",
				"Check the units."},
			[]string{"failed: ", "BadStepResult"}},
		{"terminated", begun.End(time.Second,
			&historypb.WorkflowExecutionTerminatedEventAttributes{Reason: "by hand"}),
			[]string{"generator", "terminated", "not reached"}, []string{"running"}},
		{"external storage", stored.Close(0, nil),
			[]string{`not readable: run_generator: result: stored outside the history by the storage driver "s3"`}, nil},
		{"another type", historytest.New("OrderWorkflow", map[string]any{"order": 17}).Close(0, "sent"),
			[]string{`{"order":17}`, `"sent"`, "OrderWorkflow"}, []string{"generator"}},
		{"activities of another type", order,
			[]string{`{"order":17}`, "Activities", `charge ("cents":1999)`, "paid", "mail scheduled"},
			[]string{"generator", "\x1b"}},
	} {
		d, err := detail.ReadEvents(c.run.Events)
		if err != nil {
			t.Fatal(err)
		}
		l := line{S: theme.New(true, true), Width: 200, Now: historytest.Start, Loc: time.UTC}
		var lines []string
		for _, r := range listRows(d, nil, nil, nil, nil) {
			lines = append(lines, ansi.Strip(l.draw(r, l.Width, widget.RowPlain)))
		}
		text := strings.Join(lines, "\n")
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
