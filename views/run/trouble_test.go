package run

import (
	"testing"

	"acescope/engine/ace"
	"acescope/sources/histories"
)

// TestSurvivedFailure names the failed activity of a run that went on, and says its reason once.
func TestSurvivedFailure(t *testing.T) {
	var d histories.Detail
	d.Activities = []histories.Activity{{Name: "get_weather", Failure: &ace.Failure{Kind: ace.Failed,
		Type: "UnknownCity", Message: "no such city"}, Causes: []histories.Cause{{Kind: "application",
		Type: "UnknownCity", Message: "no such city"}}}}
	f := failureOf(&d)
	if f == nil || f.Type != "get_weather: UnknownCity" || f.Message != "no such city" || len(causes(&d)) != 0 {
		t.Errorf("failure %+v, causes %+v", f, causes(&d))
	}
	d.Phase.Failure = &ace.Failure{Message: "the run failed"}
	if f := failureOf(&d); f != d.Phase.Failure || len(causes(&d)) != 1 {
		t.Errorf("failure %+v, causes %+v", f, causes(&d))
	}
}
