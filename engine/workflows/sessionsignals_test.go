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

// recordReports records the reports that a session sends, by message. The given receivers do not
// exist.
func (r *sessionEnv) recordReports(gone ...string) map[string][]session.Report {
	all := map[string][]session.Report{}
	r.OnSignalExternalWorkflow(anything, anything, "", session.SignalReport, anything).Return(
		func(_, to, _, _ string, arg any) error {
			report := arg.(session.Report)
			if to != "run/"+report.MessageID {
				r.t.Errorf("the report of %s was sent to %s", report.MessageID, to)
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

func messageWithReply(id, text string) session.Message {
	return session.Message{ID: id, Text: text, ReplyTo: "run/" + id}
}

func TestSessionReports(t *testing.T) {
	r := newSessionEnv(t)
	reports := r.recordReports("run/gone")
	in := input()
	first := messageWithReply("first", "one")
	in.First = &first
	r.answer = func(ctx context.Context, in session.TurnInput) (session.TurnResult, error) {
		switch in.Messages[0].ID {
		case "long":
			<-ctx.Done()
			out := turnResult(in, "stopped")
			out.Status = session.TurnInterrupted
			return out, nil
		case "bad":
			return session.TurnResult{}, temporal.NewNonRetryableApplicationError("no agent", "AgentMissing",
				nil)
		}
		return turnResult(in, "answer to "+in.Messages[0].Text), nil
	}
	r.at(time.Second, func() {
		r.deliver(messageWithReply("second", "two"))
		r.deliver(messageWithReply("second", "two"))
		r.SignalWorkflow(session.SignalDeliver, 3)
		r.deliver(messageWithReply("empty", ""))
		r.deliver(messageWithReply("gone", "three"))
	})
	r.at(2*time.Minute, func() {
		r.deliver(messageWithReply("long", "four"))
		r.deliver(messageWithReply("waits", "five"))
		r.deliver(messageWithReply("last", "six"))
	})
	r.at(2*time.Minute+10*time.Millisecond, func() {
		r.SignalWorkflow(session.SignalWithdraw, session.Withdraw{MessageID: "waits"})
	})
	r.at(2*time.Minute+20*time.Millisecond, func() {
		r.SignalWorkflow(session.SignalWithdraw, session.Withdraw{MessageID: "long"})
	})
	// answered: nothing happens
	r.at(2*time.Minute+500*time.Millisecond, func() {
		r.SignalWorkflow(session.SignalWithdraw, session.Withdraw{MessageID: "last"})
	})
	r.at(2*time.Minute+600*time.Millisecond, func() { r.deliver(messageWithReply("bad", "seven")) })
	r.at(2*time.Minute+1500*time.Millisecond, func() { r.update(session.UpdateStop, "s", session.Note{}) })
	end := r.runToEnd(in)
	for id, want := range map[string]string{"first": "completed 1 answer to one",
		"second": "completed 2 answer to two", "gone": "completed 3 answer to three",
		"empty": "failed 0 ", "long": "interrupted 4 ", "waits": "interrupted 0 ",
		"last": "completed 5 answer to six", "bad": "failed 6 "} {
		if len(reports[id]) != 1 {
			t.Errorf("%s is reported %d times", id, len(reports[id]))
			continue
		}
		if got := fmt.Sprintf("%s %d %s", reports[id][0].Status, reports[id][0].Turn,
			reports[id][0].Text); got != want {
			t.Errorf("%s: %q, not %q", id, got, want)
		}
	}
	if end.ReportsSent != 8 || end.ReportsUndelivered != 1 || end.Dropped != 2 || len(end.Reports) != 0 ||
		end.Exit != ace.Completed {
		t.Errorf("%d reports, %d undelivered, %d dropped messages, %s", end.ReportsSent,
			end.ReportsUndelivered, end.Dropped, end.Exit)
	}
}

// TestSessionOverReports checks that messages that the agent never received are reported when the
// session ends, including messages that arrive while it ends.
func TestSessionOverReports(t *testing.T) {
	for name, end := range map[string]func(*sessionEnv){
		"stopped":   func(r *sessionEnv) { r.update(session.UpdateStop, "s", session.Note{}) },
		"cancelled": func(r *sessionEnv) { r.CancelWorkflow() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newSessionEnv(t)
			reports := r.recordReports()
			in := input()
			first := messageWithReply("m1", "one")
			in.First = &first
			r.answer = func(ctx context.Context, in session.TurnInput) (session.TurnResult, error) {
				<-ctx.Done()
				out := turnResult(in, "")
				out.Status = session.TurnInterrupted
				return out, nil
			}
			r.at(10*time.Millisecond, func() { r.deliver(messageWithReply("m2", "two")) })
			r.at(20*time.Millisecond, func() { end(r); r.deliver(messageWithReply("m3", "three")) })
			s := r.runToEnd(in)
			got := fmt.Sprint(reports["m1"][0].Status, reports["m2"][0].Status, reports["m3"][0].Status)
			if len(reports) != 3 || len(reports["m1"])+len(reports["m2"])+len(reports["m3"]) != 3 ||
				got != "interruptedendedended" || s.Dropped != 2 {
				t.Errorf("%+v; dropped %d", reports, s.Dropped)
			}
		})
	}
}

func TestSessionNotClaimedReports(t *testing.T) {
	r := newSessionEnv(t)
	reports := r.recordReports()
	r.claimError = temporal.NewNonRetryableApplicationError("claude is not installed", "AgentMissing", nil)
	in := input()
	first := messageWithReply("m1", "one")
	in.First = &first
	r.runToEnd(in)
	if got := reports["m1"]; len(got) != 1 || got[0].Status != session.ReportEnded || got[0].Failure == nil ||
		got[0].Failure.Message == "" {
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
		return turnResult(in, "noted"), nil
	}
	const part = 200 // the environment accepts a thousand callbacks at a time
	var send func(from int)
	send = func(from int) {
		for i := from; i < from+part; i++ {
			m := session.Message{ID: fmt.Sprint("run.", i), Text: "<agent-callback/>", Callback: true}
			r.deliver(m)
			if i%3 == 0 {
				r.deliver(m)
			}
		}
		if from+part == many {
			close(held)
			return
		}
		r.at(time.Millisecond, func() { send(from + part) })
	}
	r.at(10*time.Millisecond, func() { send(0) })
	r.at(time.Minute, func() { r.update(session.UpdateStop, "s", session.Note{}) })
	end := r.runToEnd(in)
	for id, n := range seen {
		if n != 1 {
			t.Errorf("message %s arrived %d times", id, n)
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
	r.claimError = errors.New("unexpected claim")
	in := input()
	in.Host = &session.Host{Name: "there", Queue: "session.there"}
	in.First = &session.Message{ID: "m1", Text: "one"}
	in.MCPServers = map[string]json.RawMessage{"runs": json.RawMessage(`{"type":"acescope"}`)}
	r.answer = func(_ context.Context, in session.TurnInput) (session.TurnResult, error) {
		out := turnResult(in, "yes")
		if in.Unclaimed {
			out.Version = "2.1.0"
		}
		return out, nil
	}
	r.at(time.Second, func() { r.deliver(session.Message{ID: "m2", Text: "two"}) })
	r.at(2*time.Second, func() { r.update(session.UpdateStop, "s", session.Note{}) })
	end := r.runToEnd(in)
	if len(r.turns) != 2 || !r.turns[0].Unclaimed || r.turns[1].Unclaimed ||
		string(r.turns[0].MCPServers["runs"]) != `{"type":"acescope"}` {
		t.Errorf("turns: %+v", r.turns)
	}
	if end.Host == nil || *end.Host != (session.Host{Name: "there", Queue: "session.there",
		Version: "2.1.0"}) {
		t.Errorf("host: %+v", end.Host)
	}
}

// TestSessionCutReports checks that the next run reports a turn that was cut off to continue as new.
func TestSessionCutReports(t *testing.T) {
	r := newSessionEnv(t)
	reports := r.recordReports()
	in := input()
	first := messageWithReply("m1", "long")
	in.First = &first
	r.answer = func(ctx context.Context, in session.TurnInput) (session.TurnResult, error) {
		<-ctx.Done()
		out := turnResult(in, "so far")
		out.Status = session.TurnInterrupted
		return out, nil
	}
	r.at(10*time.Millisecond, func() { r.deliver(session.Message{ID: "m2", Text: "later"}) })
	for some := range 18 { // below the limit of updates
		r.at(time.Duration(20+some)*time.Millisecond, func() {
			for i := range 100 {
				r.update(session.UpdateReceive, fmt.Sprint("r", some, ".", i), session.Receive{})
			}
		})
	}
	r.ExecuteWorkflow(session.Workflow, in)
	var next *workflow.ContinueAsNewError
	if !errors.As(r.GetWorkflowError(), &next) || len(reports) != 0 {
		t.Fatalf("no new run: %v; reports %+v", r.GetWorkflowError(), reports)
	}
	var carried session.Input
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &carried); err != nil {
		t.Fatal(err)
	}
	b := newSessionEnv(t)
	reports = b.recordReports()
	b.at(time.Second, func() { b.update(session.UpdateStop, "s", session.Note{}) })
	b.runToEnd(carried)
	if len(b.turns) != 2 || b.turns[0].Messages[0].From != "session" || b.turns[1].Messages[0].ID != "m2" {
		t.Errorf("turns: %+v", b.turns)
	}
	if got := reports["m1"]; len(got) != 1 || got[0].Status != session.ReportCompleted || got[0].Turn != 2 ||
		got[0].Usage.CostUSD != 0.5 {
		t.Errorf("%+v", got)
	}
}
