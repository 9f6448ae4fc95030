package workflows_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
)

func undelivered(in session.TurnInput) session.TurnResult {
	return session.TurnResult{Turn: in.Turn, Status: session.TurnFailed, Undelivered: true,
		AgentSessionID: in.AgentSessionID,
		Failed:         &ace.Failure{Kind: ace.Failed, Type: "not_logged_in", Message: "log in first"}}
}

// TestSessionKeepsUndelivered checks that a message that the agent did not get stays in the queue,
// and is sent again before the next message.
func TestSessionKeepsUndelivered(t *testing.T) {
	r := newSessionEnv(t)
	in := input()
	in.First = &session.Message{ID: "m1", Text: "one"}
	reports := r.recordReports()
	r.answer = func(_ context.Context, in session.TurnInput) (session.TurnResult, error) {
		if in.Turn == 1 || in.Messages[0].ReplyTo != "" {
			return undelivered(in), nil
		}
		return turnResult(in, "answer"), nil
	}
	var blocked session.State
	r.at(time.Second, func() { blocked = r.state() })
	r.at(2*time.Second, func() { r.update(session.UpdateSend, "m2", session.Message{ID: "m2", Text: "two"}) })
	r.at(3*time.Second, func() { r.deliver(messageWithReply("m3", "three")) })
	r.at(time.Minute, func() { r.update(session.UpdateStop, "s", session.Note{}) })
	end := r.runToEnd(in)
	if blocked.Status != session.Blocked || blocked.Blocked == nil || len(blocked.Queue) != 1 ||
		blocked.Queue[0].Text != "one" || blocked.Turns != 1 {
		t.Errorf("blocked: %+v", blocked)
	}
	var ids []string
	for _, turn := range r.turns {
		ids = append(ids, turn.Messages[0].ID)
	}
	if !slices.Equal(ids, []string{"m1", "m1", "m2", "m3"}) || end.Blocked != nil || len(end.Queue) != 0 ||
		end.Undelivered() != 0 {
		t.Errorf("turns of %v; %+v", ids, end)
	}
	if got := reports["m3"]; len(got) != 1 || got[0].Status != session.ReportFailed {
		t.Errorf("a sender that waits got %+v", got)
	}
}

// TestSessionKeepsMessagesOfFailedTurn checks that the message of a turn whose attempts all failed stays
// in the queue of a session of revision 1, and that another message sends it again.
func TestSessionKeepsMessagesOfFailedTurn(t *testing.T) {
	for revision, want := range map[int][]string{0: {"m1", "m2"}, 1: {"m1", "m1", "m2"}} {
		r := newSessionEnv(t)
		in := input()
		in.Revision, in.First = revision, &session.Message{ID: "m1", Text: "one"}
		var ids []string
		r.answer = func(_ context.Context, in session.TurnInput) (session.TurnResult, error) {
			if n := len(r.turns); n < 2 || r.turns[n-2].Turn != in.Turn {
				ids = append(ids, in.Messages[0].ID)
			}
			if in.Turn == 1 {
				return session.TurnResult{}, errors.New("the lock is held")
			}
			return turnResult(in, "answer"), nil
		}
		var failed session.State
		r.at(time.Hour, func() { failed = r.state() })
		r.at(2*time.Hour, func() {
			r.update(session.UpdateSend, "m2", session.Message{ID: "m2", Text: "two"})
		})
		r.at(3*time.Hour, func() { r.update(session.UpdateStop, "s", session.Note{}) })
		end := r.runToEnd(in)
		kept := revision > 0
		if (failed.Status == session.Blocked) != kept || (len(failed.Queue) == 1) != kept ||
			failed.Recent[0].Kept != kept {
			t.Errorf("revision %d after the failed turn: %+v", revision, failed)
		}
		if kept && failed.Blocked.Message != "the lock is held" {
			t.Errorf("blocked: %+v", failed.Blocked)
		}
		if !slices.Equal(ids, want) || len(end.Queue) != 0 || end.Undelivered() != 0 {
			t.Errorf("revision %d: turns of %v; %+v", revision, ids, end)
		}
	}
}

// TestSessionMoves checks that a move interrupts the turn, and that the new host gets its messages.
func TestSessionMoves(t *testing.T) {
	r := newSessionEnv(t)
	in := input()
	in.First = &session.Message{ID: "m1", Text: "one"}
	r.answer = func(ctx context.Context, in session.TurnInput) (session.TurnResult, error) {
		if in.Turn == 1 {
			<-ctx.Done() // the machine is lost; the server times the turn out
			out := turnResult(in, "so far")
			out.Status = session.TurnInterrupted
			return out, nil
		}
		return turnResult(in, "done"), nil
	}
	there := session.Move{Host: session.Host{Name: "there", Queue: "session.there", Version: "1"},
		WorkingDir: "/other"}
	var bad, moved *reply
	r.at(time.Second, func() {
		bad = r.update(session.UpdateMove, "m-1", session.Move{})
		moved = r.update(session.UpdateMove, "m-2", there)
	})
	var stop func()
	stop = func() { // time is real while the turn on the lost machine is not done
		if len(r.state().Recent) < 2 {
			r.at(time.Second, stop)
			return
		}
		r.update(session.UpdateStop, "s", session.Note{})
	}
	r.at(2*time.Second, stop)
	end := r.runToEnd(in)
	if bad.rejected == nil || moved.err != nil || len(r.turns) != 2 {
		t.Fatalf("%+v, %+v, %d turns", bad, moved, len(r.turns))
	}
	again := r.turns[1]
	if !again.Unclaimed || !again.Resume || again.WorkingDir != "/other" || again.Messages[0].Text != "one" {
		t.Errorf("%+v", again)
	}
	if end.Host.Name != "there" || end.MovedFrom != "here" || end.Move != nil ||
		end.Recent[1].Status != session.TurnCompleted {
		t.Errorf("%+v", end)
	}
}
