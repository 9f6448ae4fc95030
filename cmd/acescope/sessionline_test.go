package main_test

import (
	"strings"
	"testing"
	"time"

	"acescope/cmd/acescope/internal/agents"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/sources/sessions"
)

// TestSessionDetails checks that a session shows the tokens and the cost of the list of sessions, and a
// failed turn.
func TestSessionDetails(t *testing.T) {
	state := &session.State{Status: session.Idle, Failure: &ace.Failure{Message: "overloaded"},
		Usage: ace.Usage{InputTokens: 200, OutputTokens: 9, CacheReadTokens: 1000}}
	row := sessions.EngineRow(&sessions.EngineSession{Status: session.Idle, State: state}, nil)
	var out strings.Builder
	if err := agents.PrintSession(&out, row, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1,209: 200 in, 9 out, cache 1,000 read", "? as the agent reports",
		"idle, last turn failed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}
