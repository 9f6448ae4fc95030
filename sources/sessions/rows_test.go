package sessions

import (
	"testing"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
)

func TestEngineRow(t *testing.T) {
	first := &session.State{Current: &session.Current{Messages: []session.Message{{Text: "mend it"}}}}
	if r := EngineRow(&EngineSession{State: first}, nil); r.Name != "mend it" || r.LastTurnFailed() {
		t.Errorf("first turn: %+v", r)
	}
	queued := &session.State{Inbox: session.Inbox{Queue: []session.Message{{Text: "later"}}}}
	if r := EngineRow(&EngineSession{State: queued}, nil); r.Name != "later" {
		t.Errorf("before the first turn: %+v", r)
	}
	failed := &session.State{Status: session.Idle, Failure: &ace.Failure{Message: "overloaded"},
		Usage: ace.Usage{InputTokens: 200, OutputTokens: 9, CacheReadTokens: 1000}}
	r := EngineRow(&EngineSession{State: failed}, nil)
	if u := r.Totals.Usage(); !r.LastTurnFailed() || r.Totals.Tokens.Total() != 1209 ||
		u.Cost() != ace.UnknownCost {
		t.Errorf("failed turn: %+v", r)
	}
}
