package host

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcall"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
)

// loseConversation removes what the agent knows of the session, and the logs.
func (s *stage) loseConversation() {
	s.t.Helper()
	s.Host.Close()
	for _, dir := range []string{s.agent.ConfigDir(), s.data + "/logs"} {
		if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
			s.t.Fatal(err)
		}
	}
	s.open(Options{})
}

// record makes results part of the history.
func (s *stage) record(texts []string, results ...session.TurnResult) {
	for i, r := range results {
		s.past = append(s.past, session.PastTurn{Messages: []session.Message{{Text: texts[i]}}, Result: r})
	}
}

// TestTranscriptRemoved checks that a turn whose conversation is gone starts another one with the
// recorded turns, and that later turns resume that one.
func TestTranscriptRemoved(t *testing.T) {
	for _, cli := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(cli, func(t *testing.T) {
			s := newStage(t, cli)
			first := s.good(1, "SCENARIO: bash echo a; say noted")
			s.loseConversation()
			lost := s.input(2, "and now?")
			lost.AgentSessionID, lost.CostSeen, lost.UsageSeen = "0b5c3a52-0000-4000-8000-000000000000", 5,
				ace.Usage{OutputTokens: 900}

			alone := lost
			alone.RunID = "run-2"
			r, err := s.run(alone, 1)
			if err != nil || r.Failed == nil || r.Failed.Type != string(agentcli.ClassUnknownSession) ||
				!r.Undelivered {
				t.Fatalf("without recorded turns: %+v, %v", r, err)
			}
			s.record([]string{"note this"}, first)
			s.pastErr = errors.New("the server is away")
			if _, err := s.run(lost, 1); err == nil {
				t.Fatal("a history that cannot be read is not retried")
			}
			s.pastErr = nil
			r, err = s.run(lost, 2)
			if err != nil || r.Status != session.TurnCompleted || r.Rebuilt == nil || r.Rebuilt.Turns != 1 ||
				r.AgentSessionID == lost.AgentSessionID {
				t.Fatalf("%+v, %v", r, err)
			}
			turns := s.agent.Did("turn")
			text := turns[len(turns)-1].Text
			for _, want := range []string{"[user]\nnote this", "[assistant]\nnoted", "[tool call ",
				"and now?"} {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in %s", want, text)
				}
			}
			if want := map[string]int64{"claude": 17,
				"opencode": 5}[cli]; r.Usage.OutputTokens != cmp.Or(want, 10) {
				t.Errorf("usage: %+v", r.Usage)
			}
			s.Host.Close()
			s.open(Options{})
			next := s.input(3, "three")
			next.AgentSessionID, next.CostSeen, next.UsageSeen = r.AgentSessionID, r.CostSeen, r.UsageSeen
			if r, err := s.run(next, 1); err != nil || r.Rebuilt != nil || r.Text != "reply 2 to: three" {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// TestRebuiltAndKilled checks that the next attempt continues the rebuilt conversation.
func TestRebuiltAndKilled(t *testing.T) {
	for _, cli := range []string{"claude", "codex"} {
		t.Run(cli, func(t *testing.T) {
			s := newStage(t, cli)
			first := s.good(1, "one")
			s.loseConversation()
			s.record([]string{"one"}, first)
			lost := s.input(2, "SCENARIO: bash echo a; gate g; say late")
			lost.AgentSessionID = "0b5c3a52-0000-4000-8000-000000000000"
			p := s.begin(lost, 1)
			s.agent.Await("gate", 1)
			s.Host.Close()
			if p.wait(t); p.err == nil {
				t.Fatalf("given up: %+v", p.result)
			}
			s.open(Options{})
			r, err := s.run(lost, 2)
			if err != nil || r.Status != session.TurnCompleted || !r.Continued || r.Rebuilt == nil ||
				r.Recovered {
				t.Fatalf("%+v, %v", r, err)
			}
			starts := s.agent.Did("start")
			if last := starts[len(starts)-1].Text; strings.Contains(last, lost.AgentSessionID) ||
				!strings.Contains(last, r.AgentSessionID) {
				t.Errorf("start: %s", last)
			}
		})
	}
}

// TestKilledAttemptIsKept checks that the result has what the killed attempt said and called.
func TestKilledAttemptIsKept(t *testing.T) {
	for _, logs := range []bool{true, false} {
		s := newStage(t, "claude")
		p := s.begin(s.input(1, "SCENARIO: say before; bash echo a; gate g; say late"), 1)
		s.agent.Await("gate", 1)
		s.Host.Close()
		p.wait(t)
		if !logs {
			if err := os.RemoveAll(s.data + "/logs"); err != nil {
				t.Fatal(err)
			}
		}
		s.open(Options{})
		r, err := s.run(s.input(1, "SCENARIO: say before; bash echo a; gate g; say late"), 2)
		if err != nil || !r.Continued || len(s.again) != 1 ||
			s.again[0] != (session.TurnAttempt{Turn: 1, Attempt: 2}) {
			t.Fatalf("%+v, %v; %+v", r, err, s.again)
		}
		var kinds []string
		for _, o := range r.Messages {
			kinds = append(kinds, string(o.Kind))
		}
		if got := strings.Join(kinds, " "); got != "assistant tool_use tool_result assistant" ||
			r.Messages[0].Text != "before" {
			t.Errorf("with logs %t: %s: %+v", logs, got, r.Messages)
		}
	}
}

// TestUndelivered checks which failures leave the message to another turn.
func TestUndelivered(t *testing.T) {
	s := newStage(t, "claude")
	for i, c := range []struct {
		text        string
		change      func(*session.TurnInput)
		undelivered bool
	}{
		{"SCENARIO: notloggedin", nil, true},
		{"SCENARIO: bash echo a; notloggedin", nil, false},
		{"SCENARIO: overloaded", nil, false},
		{"hello", func(in *session.TurnInput) { in.WorkingDir += "/gone" }, true},
		{"hello", func(in *session.TurnInput) { in.PermissionMode = "full" }, true},
		{"", func(in *session.TurnInput) { in.Messages[0].Ref = &ace.Ref{SHA256: strings.Repeat("0", 64)} },
			false},
	} {
		in := s.input(1, c.text)
		in.RunID, in.UUID = fmt.Sprint("run-", i), session.UUID(fmt.Sprint(i))
		if c.change != nil {
			s.Host.Close()
			s.open(Options{})
			c.change(&in)
		}
		if r, err := s.run(in, 1); err != nil || r.Status != session.TurnFailed ||
			r.Undelivered != c.undelivered {
			t.Errorf("%d %s: %+v, %v", i, c.text, r, err)
		}
	}
}

// TestHungAgent checks that an agent that does not read its input blocks neither an interrupt nor
// the end of the host.
func TestHungAgent(t *testing.T) {
	hung := "#!/bin/sh\n[ \"$1\" = --version ] && { echo 2.1.329; exit; }\nexec sleep 1000\n"
	for _, end := range []string{"interrupt", "give up"} {
		s := newStage(t, "claude")
		binary := s.work + "/hung"
		if err := os.WriteFile(binary, []byte(hung), 0o700); err != nil {
			t.Fatal(err)
		}
		sent := make(chan struct{}, 1)
		s.Host.Close()
		s.open(Options{Agents: map[agentcli.CLI]agentcall.Agent{"claude": {Command: binary}},
			OnStep: func(step string) {
				if step == "send" {
					sent <- struct{}{}
				}
			}})
		p := s.begin(s.input(1, strings.Repeat("x", 1<<20)), 1)
		<-sent
		if end == "interrupt" {
			p.cancel(temporal.NewCanceledError())
			if r := p.wait(t); p.err != nil || r.Status != session.TurnInterrupted {
				t.Errorf("%+v, %v", r, p.err)
			}
			continue
		}
		s.slots.of("s1").attempt.giveUp(errAbandoned)
		if p.wait(t); p.err == nil {
			t.Errorf("%+v", p.result)
		}
	}
}

// TestConfiguredAgent checks that a session's agent has the configured model and variables.
func TestConfiguredAgent(t *testing.T) {
	t.Setenv("TILL_MODE", "open")
	s := newStage(t, "claude")
	s.Host.Close()
	s.open(Options{Agents: map[agentcli.CLI]agentcall.Agent{"claude": {Model: "house-1",
		Env: []string{"TILL_*"}}}})
	if r := s.good(1, "SCENARIO: env TILL_MODE"); r.Messages[0].Text != "TILL_MODE=open" ||
		r.Model != "house-1" {
		t.Errorf("%+v", r)
	}
	in := s.input(1, "x")
	in.RunID, in.Model = "run-2", "sonnet"
	s.Host.Close()
	s.open(Options{Agents: map[agentcli.CLI]agentcall.Agent{"claude": {Model: "house-1"}}})
	if r, err := s.run(in, 1); err != nil || r.Model != "sonnet" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestConversationsDiffer checks that two sessions with the same id have different conversations.
func TestConversationsDiffer(t *testing.T) {
	s := newStage(t, "claude")
	first := s.good(1, "one")
	s.Host.Close()
	s.open(Options{})
	in := s.input(1, "one")
	in.RunID = "the first run in another directory"
	r, err := s.run(in, 1)
	if err != nil || r.Text != "reply 1 to: one" || r.Recovered || r.AgentSessionID == first.AgentSessionID {
		t.Errorf("%+v, %v", r, err)
	}
}
