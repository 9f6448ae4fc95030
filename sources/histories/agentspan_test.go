package histories

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"acescope/engine/temporal/historyfile"
)

func recordedLog(t *testing.T, name string) *EventLog {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "engine", "trace", "adapter", "testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	list, err := historyfile.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return NewEventLog("w", "r", list[0].Events, time.Now())
}

func spanNamed(l *EventLog, kind SpanKind, name string) *Span {
	for i := range l.Spans {
		if s := &l.Spans[i]; s.Kind == kind && s.Name == name {
			return s
		}
	}
	return nil
}

// A rate limit fails an attempt within milliseconds; the wait of two seconds is not part of it.
func TestAttemptAndWaitApart(t *testing.T) {
	l := recordedLog(t, "oa-429")
	attempt := spanNamed(l, SpanAttempt, "attempt 1")
	if attempt == nil || attempt.Ran(time.Time{}) > 200*time.Millisecond || attempt.State != SpanFailed {
		t.Errorf("attempt 1 is %+v", attempt)
	}
	wait := spanNamed(l, SpanWait, "wait that the failure asked for")
	if wait == nil || wait.Ran(time.Time{}) != 2*time.Second {
		t.Errorf("the wait is %+v", wait)
	}
	totals := TotalsOf(l.Spans, time.Now())
	if totals.Retries.Count != 1 || totals.RetryWait.MS != 2000 || totals.Models.Count != 4 ||
		totals.Models.MS <= 0 || totals.Models.MS > 1000 || totals.Tools.Count != 1 {
		t.Errorf("totals %+v", totals)
	}
}

func TestSpansOfAgents(t *testing.T) {
	for _, c := range []struct {
		recording, name, activity string
		kind                      SpanKind
	}{
		{"oa-ok", "chat gpt-5 · weather-desk", "invoke_model_activity", SpanActivity},
		{"oa-ok", "tool get_weather", "get_weather", SpanActivity},
		{"oa-ok", "handoff to translator", "", SpanCall},
		{"oa-local", "chat · weather-desk", "invoke_model_activity", SpanMarker},
		{"st-ok", "chat big", "invoke_model", SpanActivity},
	} {
		s := spanNamed(recordedLog(t, c.recording), c.kind, c.name)
		if s == nil || s.Activity != c.activity {
			t.Errorf("%s: %q is %+v", c.recording, c.name, s)
		}
	}
}

// A tool that fails in workflow code is in no event of its own.
func TestToolThatFailedInWorkflowCode(t *testing.T) {
	l := recordedLog(t, "oa-synctool")
	failed := 0
	for i := range l.Spans {
		if s := &l.Spans[i]; s.Kind == SpanCall && s.State == SpanFailed {
			failed++
			if s.Note != "no event of its own, the model was told of the failure" || s.Error == "" {
				t.Errorf("span %+v", s)
			}
		}
	}
	if failed == 0 {
		t.Error("no tool failed")
	}
}
