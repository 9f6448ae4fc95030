package stepper_test

import (
	"encoding/json"
	"strings"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/stepper"
	"acescope/engine/temporal/replay/replaytest"
)

// A run of another program, whose calls are not read, has neither usage nor a number of tool calls. A
// recorded cost of 0 stays.
func TestUnrecordedUsage(t *testing.T) {
	m := replaytest.Begin("Desk")
	m.Done(m.Activity(m.Task(), "invoke_model"),
		map[string]any{"usage": map[string]int{"input_tokens": 1200}})
	s := stepper.New(m.Complete(m.Task(), "It is 21 C"), stepper.Options{})
	data, err := json.Marshal(s.Frame(s.Len()))
	if err != nil || strings.Contains(string(data), "usage") || strings.Contains(string(data), `"total"`) {
		t.Errorf("%s, %v", data, err)
	}
	own := stepper.New(replaytest.Recorded(t, "right"), stepper.Options{})
	data, err = json.Marshal(own.Frame(own.Len()))
	if err != nil || !strings.Contains(string(data), `"cost_usd":0`) ||
		!strings.Contains(string(data), `"total"`) {
		t.Errorf("%s, %v", data, err)
	}
	for want, u := range map[string]ace.Usage{ace.UnknownCost: {}, "$0": {InputTokens: 1}} {
		if got := u.Cost(); got != want {
			t.Errorf("%+v costs %s, want %s", u, got, want)
		}
	}
}
