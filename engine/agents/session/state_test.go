package session

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"acescope/engine/ace"
)

func TestRuleMatches(t *testing.T) {
	for rule, want := range map[Rule]string{
		{Tool: "Bash(git", Action: Allow}: "add a closing parenthesis",
		{Tool: "[", Action: Allow}:        "use the name of a tool",
		{Tool: "", Action: Allow}:         "use the name of a tool",
		{Tool: "Bash", Action: "maybe"}:   "must be allow",
	} {
		if err := rule.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", rule, err)
		}
	}
}

func started() State {
	var s State
	s.Apply(Started(Input{SessionID: "s", Agent: "claude", WorkingDir: "/w"}))
	s.Apply(ActivityCompleted(ActivityClaim, "", []byte(`{"name":"h","queue":"q"}`)))
	return s
}

func TestOutboxIsBounded(t *testing.T) {
	s := started()
	for i := range 3 * MaxOut {
		s.emit(Out{Kind: OutAssistant, Text: fmt.Sprint(i)})
	}
	got := s.After(0, 5)
	if len(s.Out) != MaxOut || s.Lost != 2*MaxOut || got.Lost != 2*MaxOut ||
		got.Messages[0].Cursor != 2*MaxOut+1 || got.Next != 2*MaxOut+5 {
		t.Errorf("%d kept, %d lost; %+v", len(s.Out), s.Lost, got)
	}
	s.ack(2*MaxOut + 10)
	if got := s.After(2*MaxOut+10, 1); got.Lost != 0 || got.Messages[0].Cursor != 2*MaxOut+11 {
		t.Errorf("after an acknowledgement: %+v", got)
	}
	s = started()
	for range 1000 {
		s.emit(Out{Text: strings.Repeat("ä", 100_000)})
	}
	size := 0
	for _, o := range s.Out {
		size += len(o.Text)
	}
	if size > MaxOutBytes || s.Lost+int64(len(s.Out)) != 1000 {
		t.Errorf("%d bytes, %d kept, %d lost", size, len(s.Out), s.Lost)
	}
}

func TestCallbacksShareTurn(t *testing.T) {
	s := started()
	for i, callback := range []bool{true, true, false, true} {
		m := Message{ID: fmt.Sprint(i), Text: "x", Callback: callback}
		f, _ := Accepted(UpdateSend, "", mustJSON(m))
		s.Apply(f)
	}
	var sizes []int
	for len(s.Queue) > 0 {
		sizes = append(sizes, len(s.NextMessages()))
		s.Apply(Fact{Kind: FactTurnBegan, Turn: &TurnInput{Turn: s.Turns + 1, Messages: s.NextMessages()}})
		s.Apply(ActivityCompleted(ActivityTurn, "", []byte(`{"status":"completed"}`)))
	}
	if !reflect.DeepEqual(sizes, []int{2, 1, 1}) {
		t.Errorf("messages per turn: %v", sizes)
	}
}

// TestAnyFacts checks that no order of facts breaks the fold or its bounds.
func TestAnyFacts(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var s State
		for range 400 {
			s.Apply(anyFact(r))
			if len(s.Decided) > MaxDecided || len(s.Recent) > MaxRecent || len(s.Seen) > MaxSeen+MaxHeld ||
				len(s.Withdrawn) > MaxWithdrawn || len(s.Out) > MaxOut || len(s.Tools) > MaxTools+1 {
				t.Fatalf("seed %d: a bound is exceeded", seed)
			}
			if s.Status == Ended && (len(s.Pending) > 0 || s.Exit == ace.Running) {
				t.Fatalf("seed %d: ended with %d pending calls and exit status %s", seed, len(s.Pending),
					s.Exit)
			}
		}
		var back State
		if err := json.Unmarshal(mustJSON(s), &back); err != nil {
			t.Fatal(err)
		}
		a, b := s, back
		for range 100 {
			f := anyFact(r)
			a.Apply(f)
			b.Apply(f)
		}
		if x, y := string(mustJSON(a)), string(mustJSON(b)); x != y {
			t.Fatalf("seed %d: a decoded state folds differently:\n%s\n%s", seed, x, y)
		}
	}
}

func anyFact(r *rand.Rand) Fact {
	id := fmt.Sprint(r.IntN(60))
	accepted := func(name string, arg any) Fact {
		f, _ := Accepted(name, id, mustJSON(arg))
		return f
	}
	switch r.IntN(18) {
	case 13:
		return delivered(anyMessage(r))
	case 14:
		return signaled(SignalWithdraw, Withdraw{MessageID: id})
	case 15:
		return Reported(id)
	case 16:
		return Fact{Kind: FactTurnCancelRequested}
	case 0:
		return Started(Input{SessionID: "s", Rules: []Rule{{Tool: "a*", Action: Allow},
			{Tool: "d*", Action: Deny}}})
	case 1:
		return ActivityCompleted(ActivityClaim, "", []byte(`{"name":"h","queue":"q"}`))
	case 2, 3:
		return accepted(UpdateSend, Message{Text: "text", Callback: r.IntN(2) == 0})
	case 4:
		return accepted(UpdateReceive, Receive{Ack: int64(r.IntN(300))})
	case 5, 6, 7:
		return accepted(UpdateTool, ToolRequest{Name: string(rune('a'+r.IntN(5))) + id, Turn: r.IntN(3),
			Attempt: int32(r.IntN(3)), Served: r.IntN(2) == 0})
	case 8:
		return accepted(UpdateDecide, Decision{ID: id, Action: Allow})
	case 9:
		return accepted(UpdateInterrupt, Note{})
	case 10:
		return Fact{Kind: FactTurnBegan, Turn: &TurnInput{Turn: r.IntN(3), Messages: []Message{{ID: id}}}}
	case 11:
		return ActivityCompleted(ActivityTurn, "",
			[]byte(`{"status":"completed","messages":[{"kind":"assistant","text":"x"}]}`))
	case 12:
		return ActivityFailed(ActivityTool, id, ace.Failure{Kind: ace.Failed, Message: "no"})
	}
	if r.IntN(20) == 0 {
		return accepted(UpdateStop, Note{})
	}
	return ActivityCompleted(ActivityTool, id, []byte(`{"text":"x"}`))
}

func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
