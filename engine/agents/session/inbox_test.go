package session

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"acescope/engine/ace"
)

func signaled(name string, arg any) Fact {
	f, _ := Signaled(name, mustJSON(arg))
	return f
}

func delivered(m Message) Fact { return signaled(SignalDeliver, m) }

// TestFactsCommute checks that facts between two workflow tasks can be folded in any order, except
// signals of the same name: the workflow cannot know the order of the others.
func TestFactsCommute(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := State{}
		s.Apply(Started(Input{SessionID: "s", First: &Message{ID: "first", Text: "x", ReplyTo: "run/first"}}))
		for range 12 {
			lanes := [3][]Fact{}
			for range r.IntN(5) {
				lanes[0] = append(lanes[0], delivered(anyMessage(r)))
			}
			for range r.IntN(3) {
				lanes[1] = append(lanes[1], signaled(SignalWithdraw,
					Withdraw{MessageID: fmt.Sprint(r.IntN(40))}))
			}
			lanes[2] = endFacts(r, &s)
			want := ""
			for try := range 6 {
				c := clone(t, s)
				for _, f := range interleave(rand.New(rand.NewPCG(seed, uint64(try))), lanes) {
					c.Apply(f)
				}
				got := string(mustJSON(c))
				if want == "" {
					want = got
				}
				if got != want {
					t.Fatalf("seed %d: the order matters:\n%s\n%s", seed, want, got)
				}
			}
			for _, f := range slices.Concat(lanes[0], lanes[1], lanes[2]) {
				s.Apply(f)
			}
			runWorkflow(r, &s)
		}
	}
}

func anyMessage(r *rand.Rand) Message {
	m := Message{ID: fmt.Sprint(r.IntN(40)), Text: "text", Callback: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		m.ReplyTo = "run/" + m.ID
	}
	switch r.IntN(12) {
	case 0:
		m.Text = ""
	case 1:
		m.Text = strings.Repeat("x", MaxText+1)
	case 2:
		m.ID = ""
	}
	return m
}

// endFacts returns facts that occur at most once before the workflow can act.
func endFacts(r *rand.Rand, s *State) (list []Fact) {
	switch {
	case s.Status == Ended:
	case s.Host == nil && r.IntN(4) == 0:
		list = append(list, ActivityFailed(ActivityClaim, "", ace.Failure{Kind: ace.Failed, Message: "no"}))
	case s.Host == nil:
		list = append(list, ActivityCompleted(ActivityClaim, "", []byte(`{"name":"h","queue":"q"}`)))
	case s.Current != nil:
		status := []TurnStatus{TurnCompleted, TurnFailed, TurnInterrupted}[r.IntN(3)]
		list = append(list, ActivityCompleted(ActivityTurn, "",
			mustJSON(TurnResult{Turn: s.Turns, Status: status, Text: "said", Usage: ace.Usage{CostUSD: 1}})))
	}
	if r.IntN(12) == 0 {
		list = append(list, Fact{Kind: FactCancelRequested})
	}
	if r.IntN(4) == 0 {
		list = append(list, Fact{Kind: FactReportUndelivered})
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// runWorkflow applies the facts of a workflow task.
func runWorkflow(r *rand.Rand, s *State) {
	for reply, ok := s.NextReport(); ok; reply, ok = s.NextReport() {
		s.Apply(Reported(reply.Report.MessageID))
	}
	if s.Current == nil && s.Host != nil && s.Status != Ended && len(s.Queue) > 0 {
		s.Apply(Fact{Kind: FactTurnBegan, Turn: &TurnInput{Turn: s.Turns + 1, Messages: s.NextMessages()}})
	}
	if s.Current != nil && r.IntN(3) == 0 {
		s.Apply(Fact{Kind: FactTurnCancelRequested})
	}
}

func interleave(r *rand.Rand, lanes [3][]Fact) (list []Fact) {
	for {
		var open []int
		for i, l := range lanes {
			if len(l) > 0 {
				open = append(open, i)
			}
		}
		if len(open) == 0 {
			return list
		}
		i := open[r.IntN(len(open))]
		list, lanes[i] = append(list, lanes[i][0]), lanes[i][1:]
	}
}

// clone returns a deep copy.
func clone(t *testing.T, s State) (c State) {
	t.Helper()
	if err := json.Unmarshal(mustJSON(s), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestOneReportPerMessage checks that each message with a ReplyTo is reported exactly once,
// however the session ends.
func TestOneReportPerMessage(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := State{}
		s.Apply(Started(Input{SessionID: "s"}))
		reports, sent := map[string]int{}, map[string]bool{}
		report := func() {
			for reply, ok := s.NextReport(); ok; reply, ok = s.NextReport() {
				reports[reply.Report.MessageID]++
				if reply.To != "run/"+reply.Report.MessageID || reply.Report.SessionID != "s" {
					t.Fatalf("seed %d: %+v", seed, reply)
				}
				s.Apply(Reported(reply.Report.MessageID))
			}
		}
		step := func(last bool) {
			for range r.IntN(4) {
				m := anyMessage(r)
				m.ID, m.ReplyTo = "m"+fmt.Sprint(len(sent)), "run/m"+fmt.Sprint(len(sent))
				sent[m.ID] = true
				s.Apply(delivered(m))
				if r.IntN(3) == 0 {
					s.Apply(delivered(m))
				}
			}
			if r.IntN(3) == 0 {
				s.Apply(signaled(SignalWithdraw, Withdraw{MessageID: fmt.Sprint("m", r.IntN(len(sent)+1))}))
			}
			for _, f := range endFacts(r, &s) {
				s.Apply(f)
			}
			if last {
				s.Apply(Fact{Kind: FactCancelRequested})
				for _, f := range endFacts(r, &s) {
					s.Apply(f)
				}
			}
			if s.ResumesTurn() && s.Current == nil { // continue as the next run
				in := s.Input
				c := clone(t, s)
				in.Carried, in.First = &c, &Message{ID: s.ResumeMessageID(), Text: "resume"}
				s.Apply(Started(in))
				if s.Queue[0].ID != in.First.ID {
					t.Fatalf("seed %d: the suspended turn is not resumed first: %+v", seed, s.Queue)
				}
			}
			if !last || r.IntN(2) == 0 {
				starts := s.Current == nil && s.Host != nil && s.Status != Ended && len(s.Queue) > 0
				report()
				if starts {
					s.Apply(Fact{Kind: FactTurnBegan,
						Turn: &TurnInput{Turn: s.Turns + 1, Messages: s.NextMessages()}})
				}
				if r.IntN(3) == 0 {
					s.Apply(Fact{Kind: FactTurnCancelRequested})
				}
			}
		}
		for range 20 {
			step(false)
		}
		step(true)
		if s.Current != nil {
			s.Apply(ActivityCompleted(ActivityTurn, "", []byte(`{"status":"interrupted"}`)))
		}
		report()
		for id := range sent {
			if reports[id] != 1 {
				t.Fatalf("seed %d: message %s has %d reports; %s", seed, id, reports[id], mustJSON(s))
			}
		}
	}
}

func TestReportsOfOneTurn(t *testing.T) {
	s := started()
	for _, id := range []string{"a", "b", "c"} {
		s.Apply(delivered(Message{ID: id, Text: "t", Callback: true, ReplyTo: "run/" + id}))
	}
	s.Apply(Fact{Kind: FactTurnBegan, Turn: &TurnInput{Turn: 1, Messages: s.NextMessages()}})
	s.Apply(ActivityCompleted(ActivityTurn, "",
		[]byte(`{"status":"completed","text":"said","usage":{"cost_usd":2},"duration_ms":5}`)))
	cost := 0.0
	for i, r := range s.Reports {
		cost += r.Report.Usage.CostUSD
		if r.Report.Turn != 1 || r.Report.Status != ReportCompleted || r.Report.Text != "said" ||
			(r.Report.Usage.CostUSD > 0) != (i == 0) {
			t.Errorf("report %d: %+v", i, r)
		}
	}
	if len(s.Reports) != 3 || cost != 2 {
		t.Errorf("%d reports, cost %v", len(s.Reports), cost)
	}
}

// TestSuspendedTurn checks that a turn suspended to continue as a new run is reported when the
// resuming turn ends, with the usage of both.
func TestSuspendedTurn(t *testing.T) {
	s := started()
	s.Apply(delivered(Message{ID: "a", Text: "t", ReplyTo: "run/a"}))
	s.Apply(Fact{Kind: FactTurnBegan, Turn: &TurnInput{Turn: 1, Messages: s.NextMessages()}})
	s.Apply(Fact{Kind: FactTurnCancelRequested})
	s.Apply(delivered(Message{ID: "b", Text: "t"}))
	s.Apply(ActivityCompleted(ActivityTurn, "",
		[]byte(`{"status":"interrupted","usage":{"cost_usd":2},"duration_ms":5}`)))
	if _, ok := s.NextReport(); ok || !s.ResumesTurn() {
		t.Fatalf("reported too early: %s", mustJSON(s))
	}
	carried := clone(t, s)
	s.Apply(Started(Input{SessionID: "s", Carried: &carried, First: &Message{ID: s.ResumeMessageID(),
		Text: "resume"}}))
	if next := s.NextMessages(); len(next) != 1 || next[0].Text != "resume" {
		t.Fatalf("next is %+v", next)
	}
	s.Apply(Fact{Kind: FactTurnBegan, Turn: &TurnInput{Turn: 2, Messages: s.NextMessages()}})
	s.Apply(ActivityCompleted(ActivityTurn, "",
		[]byte(`{"status":"completed","text":"done","usage":{"cost_usd":1},"duration_ms":1}`)))
	r, ok := s.NextReport()
	if !ok || r.Report.MessageID != "a" || r.Report.Turn != 2 || r.Report.Status != ReportCompleted ||
		r.Report.Usage.CostUSD != 3 || r.Report.DurationMS != 6 {
		t.Errorf("%+v", r)
	}
	if s.Suspended != nil || len(s.Reports) != 1 {
		t.Errorf("%s", mustJSON(s))
	}
}

// TestManyCallbacks checks that a busy session accepts thousands of callbacks, each once, in few
// turns, and that its state stays small enough for continue-as-new.
func TestManyCallbacks(t *testing.T) {
	s := started()
	s.Apply(delivered(Message{ID: "first", Text: "t"}))
	s.Apply(Fact{Kind: FactTurnBegan, Turn: &TurnInput{Turn: 1, Messages: s.NextMessages()}})
	const many = 2500
	for range 2 {
		for i := range many {
			s.Apply(delivered(Message{ID: fmt.Sprint("run.", i), Text: strings.Repeat("x", 600),
				Callback: true, From: "run"}))
		}
	}
	if size := len(mustJSON(s)); len(s.Queue) != many || s.Dropped != 0 || size > 1500<<10 {
		t.Fatalf("%d waiting, %d dropped, %d bytes", len(s.Queue), s.Dropped, size)
	}
	if err := s.CheckMessage(Message{ID: "person", Text: "hello"}); err != nil {
		t.Errorf("the user's message is rejected: %v", err)
	}
	seen, turns := map[string]int{}, 0
	for s.Apply(ActivityCompleted(ActivityTurn, "",
		[]byte(`{"status":"completed"}`))); len(s.Queue) > 0; turns++ {
		next := s.NextMessages()
		for _, m := range next {
			seen[m.ID]++
		}
		s.Apply(Fact{Kind: FactTurnBegan, Turn: &TurnInput{Turn: s.Turns + 1, Messages: next}})
		s.Apply(ActivityCompleted(ActivityTurn, "", []byte(`{"status":"completed"}`)))
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was delivered %d times", id, n)
		}
	}
	if len(seen) != many || turns > 6 {
		t.Errorf("%d in %d turns", len(seen), turns)
	}
	for i := range MaxHeld + 10 {
		s.Apply(delivered(Message{ID: fmt.Sprint("more.", i), Text: "x", Callback: true, ReplyTo: "run/x"}))
	}
	if len(s.Queue) != MaxHeld || s.Dropped != 10 || len(s.Reports) != 10 ||
		s.Reports[0].Report.Failure.Type != TypeNotAccepted {
		t.Errorf("%d waiting, %d dropped, %d reports", len(s.Queue), s.Dropped, len(s.Reports))
	}
}

func TestUnreadableSignals(t *testing.T) {
	s := started()
	for _, arg := range []string{`3`, `"x"`, ``, `{"id":3}`, `{"text":"no id"}`, `{"id":"e"}`} {
		f, ok := Signaled(SignalDeliver, []byte(arg))
		if !ok {
			t.Fatalf("%s is not handled", arg)
		}
		s.Apply(f)
	}
	f, _ := Signaled(SignalWithdraw, []byte(`[]`))
	s.Apply(f)
	if s.Dropped != 7 || len(s.Queue) != 0 {
		t.Errorf("%d dropped, %+v", s.Dropped, s.Queue)
	}
	if _, ok := Signaled("other", nil); ok {
		t.Error("an unknown signal is handled")
	}
}

func TestCheckServers(t *testing.T) {
	for entry, want := range map[string]string{
		`{"type":"acescope"}`: "",
		`{"command":"x","args":["--id","${ACESCOPE_SESSION_ID}"]}`:                           "",
		`{"command":"x","env":{"API_TOKEN":"${env:MY_TOKEN}"}}`:                              "",
		`{"type":"http","url":"https://x","headers":{"Authorization":"Bearer ${env:T}"}}`:    "",
		`{"command":"x","env":{"API_TOKEN":"hunter22"}}`:                                     "a.env.API_TOKEN: do not write a secret here",
		`{"url":"https://x","headers":{"X-Api-Key":"short"}}`:                                "a.headers.X-Api-Key: do not write a secret here",
		`{"command":"x","args":["--key=sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"]}`: "looks like a secret",
		`{"url":"https://bob:hunter2secret@example.com/x"}`:                                  "looks like a secret",
		`{"command":"x","url":"https://x"}`:                                                  "either a command or a url",
		`{"type":"sdk","name":"x"}`:                                                          "is not one of stdio, http, sse, acescope",
		`{"type":"acescope","command":"x"}`:                                                  "has no other fields",
		`null`:                                                                               "an object",
		`[1]`:                                                                                "an object",
	} {
		err := CheckServers(map[string]json.RawMessage{"a": json.RawMessage(entry)}, false)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %v", entry, err)
		}
	}
	fine := json.RawMessage(`{"type":"acescope"}`)
	if err := CheckServers(map[string]json.RawMessage{ToolServerName: fine}, true); err == nil {
		t.Error("accepted a reserved name")
	}
	if err := CheckServers(map[string]json.RawMessage{"a b": fine}, false); err == nil {
		t.Error("accepted a name with a space")
	}
}
