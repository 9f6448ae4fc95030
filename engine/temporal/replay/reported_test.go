package replay

import (
	"testing"

	"acescope/engine/temporal/replay/replaytest"
)

// TestReported checks where the messages of SDKs place a divergence. They were recorded with the SDKs for Python
// 1.35.0 and TypeScript 1.24.0.
func TestReported(t *testing.T) {
	m := replaytest.Begin("Order")
	m.Done(m.Activity(m.Task(), "price"), nil) // 5
	task := m.Task()                           // 10
	m.Done(m.Activity(task, "ship"), nil)      // 11
	second := m.Task()                         // 16
	m.Done(m.Activity(second, "ship"), nil)    // 17
	events := m.Complete(m.Task(), "done")
	core := func(s string) string {
		return `Workflow activation completion failed: Failure { failure: Some(Failure { message: "[TMPRL1100] ` +
			`Nondeterminism error: ` + s + `", source: "", stack_trace: "" }) }`
	}
	differs := func(a, b string) string {
		return core("Activity type of scheduled event '" + a + "' does not match activity type of activity command '" +
			b + "'")
	}
	for name, c := range map[string]struct {
		report           Report
		event, task      int64
		kind             Kind
		expected, actual string
	}{
		"other": {Report{Message: core("Timer machine does not handle this event: HistoryEvent(id: 5, " +
			"ActivityTaskScheduled)")}, 5, 4, KindOther, "price", "timer"},
		"missing": {Report{Message: core("No command scheduled for event HistoryEvent(id: 11, ActivityTaskScheduled)")},
			11, 10, KindMissing, "ship", "nothing"},
		"name":           {Report{Message: differs("price", "look")}, 5, 4, KindOther, "price", "activity look"},
		"repeated name":  {Report{Message: differs("ship", "look")}, 0, 0, KindOther, "", "activity look"},
		"name and event": {Report{EventID: 15, Message: differs("ship", "look")}, 17, 16, KindOther, "ship", "activity look"},
		"named by it":    {Report{EventID: 5, Does: "timer 3 s", Message: "other"}, 5, 4, KindOther, "price", "timer 3 s"},
		"no such event":  {Report{EventID: 500}, 0, 0, KindOther, "", "nothing"},
		"negative event": {Report{EventID: -1}, 0, 0, KindOther, "", "nothing"},
	} {
		d := Reported(events, c.report)
		expected := ""
		if d.Expected != nil {
			expected = d.Expected.Name
		}
		if d.EventID != c.event || d.Task != c.task || d.Kind != c.kind || expected != c.expected ||
			d.Actual.String() != c.actual || d.Sentence == "" || d.Advice == "" {
			t.Errorf("%s: %+v, expected %v, actual %v", name, d, d.Expected, d.Actual)
		}
	}
}
