package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
)

// anything matches any argument in expectations of the test environment.
const anything = "mock.Anything"

// told are the reports that a session sends, by message; receivers that are gone do not hear
// them.
func (r *sessionEnv) told(gone ...string) map[string][]session.Report {
	all := map[string][]session.Report{}
	r.OnSignalExternalWorkflow(anything, anything, "", session.SignalReport, anything).Return(
		func(_, to, _, _ string, arg any) error {
			report := arg.(session.Report)
			if to != "run/"+report.MessageID {
				r.t.Errorf("the report of %s goes to %s", report.MessageID, to)
			}
			all[report.MessageID] = append(all[report.MessageID], report)
			for _, g := range gone {
				if g == to {
					return errors.New("no such workflow")
				}
			}
			return nil
		})
	return all
}

func (r *sessionEnv) deliver(m session.Message) { r.SignalWorkflow(session.SignalDeliver, m) }

func asking(id, text string) session.Message {
	return session.Message{ID: id, Text: text, ReplyTo: "run/" + id}
}

func TestSessionReports(t *testing.T) {
	r := newSessionEnv(t)
	told := r.told("run/gone")
	in := input()
	first := asking("first", "one")
	in.First = &first
	r.answer = func(ctx context.Context, in session.TurnInput) (session.TurnResult, error) {
		switch in.Messages[0].ID {
		case "long":
			<-ctx.Done()
			out := said(in, "stopped")
			out.Status = session.TurnInterrupted
			return out, nil
		case "bad":
			return session.TurnResult{}, temporal.NewNonRetryableApplicationError("no agent", "AgentMissing", nil)
		}
		return said(in, "answer to "+in.Messages[0].Text), nil
	}
	r.at(time.Second, func() {
		r.deliver(asking("second", "two"))
		r.deliver(asking("second", "two"))
		r.SignalWorkflow(session.SignalDeliver, 3)
		r.deliver(asking("empty", ""))
		r.deliver(asking("gone", "three"))
	})
	r.at(2*time.Minute, func() {
		r.deliver(asking("long", "four"))
		r.deliver(asking("waits", "five"))
		r.deliver(asking("last", "six"))
	})
	r.at(2*time.Minute+10*time.Millisecond, func() { r.SignalWorkflow(session.SignalWithdraw, session.Withdraw{MessageID: "waits"}) })
	r.at(2*time.Minute+20*time.Millisecond, func() { r.SignalWorkflow(session.SignalWithdraw, session.Withdraw{MessageID: "long"}) })
	r.at(2*time.Minute+500*time.Millisecond, func() { r.SignalWorkflow(session.SignalWithdraw, session.Withdraw{MessageID: "last"}) }) // answered: nothing happens
	r.at(2*time.Minute+600*time.Millisecond, func() { r.deliver(asking("bad", "seven")) })
	r.at(2*time.Minute+1500*time.Millisecond, func() { r.update(session.UpdateStop, "s", session.Note{}) })
	end := r.end(in)
	for id, want := range map[string]string{"first": "completed 1 answer to one", "second": "completed 2 answer to two", "gone": "completed 3 answer to three",
		"empty": "failed 0 ", "long": "interrupted 4 ", "waits": "interrupted 0 ", "last": "completed 5 answer to six", "bad": "failed 6 "} {
		if len(told[id]) != 1 {
			t.Errorf("%s is reported %d times", id, len(told[id]))
			continue
		}
		if got := fmt.Sprintf("%s %d %s", told[id][0].Status, told[id][0].Turn, told[id][0].Text); got != want {
			t.Errorf("%s: %q, not %q", id, got, want)
		}
	}
	if end.ReportsSent != 8 || end.ReportsUndelivered != 1 || end.Dropped != 2 || len(end.Reports) != 0 || end.Exit != ace.Success {
		t.Errorf("told %d, unheard %d, dropped %d, %s", end.ReportsSent, end.ReportsUndelivered, end.Dropped, end.Exit)
	}
}

// TestSessionOverReports: what the agent never had is told when the session ends, and what
// comes while it ends.
func TestSessionOverReports(t *testing.T) {
	for name, end := range map[string]func(*sessionEnv){
		"stopped":   func(r *sessionEnv) { r.update(session.UpdateStop, "s", session.Note{}) },
		"cancelled": func(r *sessionEnv) { r.CancelWorkflow() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newSessionEnv(t)
			told := r.told()
			in := input()
			first := asking("m1", "one")
			in.First = &first
			r.answer = func(ctx context.Context, in session.TurnInput) (session.TurnResult, error) {
				<-ctx.Done()
				out := said(in, "")
				out.Status = session.TurnInterrupted
				return out, nil
			}
			r.at(10*time.Millisecond, func() { r.deliver(asking("m2", "two")) })
			r.at(20*time.Millisecond, func() { end(r); r.deliver(asking("m3", "three")) })
			s := r.end(in)
			got := fmt.Sprint(told["m1"][0].Status, told["m2"][0].Status, told["m3"][0].Status)
			if len(told) != 3 || len(told["m1"])+len(told["m2"])+len(told["m3"]) != 3 || got != "interruptedendedended" || s.Dropped != 2 {
				t.Errorf("%+v; dropped %d", told, s.Dropped)
			}
		})
	}
}

func TestSessionNotClaimedReports(t *testing.T) {
	r := newSessionEnv(t)
	told := r.told()
	r.refused = temporal.NewNonRetryableApplicationError("claude is not installed", "AgentMissing", nil)
	in := input()
	first := asking("m1", "one")
	in.First = &first
	r.end(in)
	if got := told["m1"]; len(got) != 1 || got[0].Status != session.ReportEnded || got[0].Failure == nil || got[0].Failure.Message == "" {
		t.Errorf("%+v", got)
	}
}

// TestSessionTwoThousandCallbacks sends 2,000 callbacks to a busy session and checks that each
// arrives once.
func TestSessionTwoThousandCallbacks(t *testing.T) {
	const many = 2000
	r := newSessionEnv(t)
	in := input()
	in.First = &session.Message{ID: "m1", Text: "long"}
	held := make(chan struct{})
	seen := map[string]int{}
	r.answer = func(_ context.Context, in session.TurnInput) (session.TurnResult, error) {
		for _, m := range in.Messages {
			seen[m.ID]++
		}
		if in.Turn == 1 {
			<-held
		}
		return said(in, "noted"), nil
	}
	send := func() { // beside the environment, which takes a thousand at a time
		for i := range many {
			m := session.Message{ID: fmt.Sprint("run.", i), Text: "<agent-callback/>", Callback: true}
			r.deliver(m)
			if i%3 == 0 {
				r.deliver(m)
			}
		}
		close(held)
	}
	r.at(10*time.Millisecond, func() { go send() })
	r.at(time.Minute, func() { r.update(session.UpdateStop, "s", session.Note{}) })
	end := r.end(in)
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s came %d times", id, n)
		}
	}
	if len(seen) != many+1 || end.Turns != 2 || end.Dropped != 0 || end.Recent[1].Callbacks != many {
		t.Errorf("%d messages in %d turns, %d dropped", len(seen), end.Turns, end.Dropped)
	}
}

// TestSessionPresetHost checks that a session with a preset host is not claimed; the version of the
// agent arrives with the first turn.
func TestSessionPresetHost(t *testing.T) {
	r := newSessionEnv(t)
	r.refused = errors.New("unexpected claim")
	in := input()
	in.Host = &session.Host{Name: "there", Queue: "session.there"}
	in.First = &session.Message{ID: "m1", Text: "one"}
	in.MCPServers = map[string]json.RawMessage{"runs": json.RawMessage(`{"type":"acescope"}`)}
	r.answer = func(_ context.Context, in session.TurnInput) (session.TurnResult, error) {
		out := said(in, "yes")
		if in.Unclaimed {
			out.Version = "2.1.0"
		}
		return out, nil
	}
	r.at(time.Second, func() { r.deliver(session.Message{ID: "m2", Text: "two"}) })
	r.at(2*time.Second, func() { r.update(session.UpdateStop, "s", session.Note{}) })
	end := r.end(in)
	if len(r.turns) != 2 || !r.turns[0].Unclaimed || r.turns[1].Unclaimed || string(r.turns[0].MCPServers["runs"]) != `{"type":"acescope"}` {
		t.Errorf("turns: %+v", r.turns)
	}
	if end.Host == nil || *end.Host != (session.Host{Name: "there", Queue: "session.there", Version: "2.1.0"}) {
		t.Errorf("host: %+v", end.Host)
	}
}

// TestSessionCutReports: a turn that is cut off to continue as a new run is reported by that.
func TestSessionCutReports(t *testing.T) {
	r := newSessionEnv(t)
	told := r.told()
	in := input()
	first := asking("m1", "long")
	in.First = &first
	r.answer = func(ctx context.Context, in session.TurnInput) (session.TurnResult, error) {
		<-ctx.Done()
		out := said(in, "so far")
		out.Status = session.TurnInterrupted
		return out, nil
	}
	r.at(10*time.Millisecond, func() { r.deliver(session.Message{ID: "m2", Text: "later"}) })
	for some := range 18 { // as many as there is room for
		r.at(time.Duration(20+some)*time.Millisecond, func() {
			for i := range 100 {
				r.update(session.UpdateReceive, fmt.Sprint("r", some, ".", i), session.Receive{})
			}
		})
	}
	r.ExecuteWorkflow(session.Workflow, in)
	var next *workflow.ContinueAsNewError
	if !errors.As(r.GetWorkflowError(), &next) || len(told) != 0 {
		t.Fatalf("no new run: %v; told %+v", r.GetWorkflowError(), told)
	}
	var carried session.Input
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &carried); err != nil {
		t.Fatal(err)
	}
	b := newSessionEnv(t)
	told = b.told()
	b.at(time.Second, func() { b.update(session.UpdateStop, "s", session.Note{}) })
	b.end(carried)
	if len(b.turns) != 2 || b.turns[0].Messages[0].From != "session" || b.turns[1].Messages[0].ID != "m2" {
		t.Errorf("turns: %+v", b.turns)
	}
	if got := told["m1"]; len(got) != 1 || got[0].Status != session.ReportCompleted || got[0].Turn != 2 || got[0].Usage.CostUSD != 0.5 {
		t.Errorf("%+v", got)
	}
}
