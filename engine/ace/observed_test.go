package ace_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"acescope/engine/ace"
)

var observedInput = ace.TaskInput{TaskID: "o", Observation: ace.Observation{Observed: true, Source: "test"},
	PlaybookHash: "p0"}

// session returns the events of an observed run, in the observer's order.
func session(r *rand.Rand, calls int) (events []ace.ToolEvent) {
	seq := int64(0)
	report := func(e ace.ToolEvent) {
		seq += 1 + int64(r.IntN(5))
		e.Seq, e.EventID = seq, fmt.Sprint("e", seq)
		if e.At.IsZero() {
			e.At = at.Add(time.Duration(seq) * time.Millisecond)
		}
		events = append(events, e)
	}
	step := func(p ace.Phase, result string) {
		if r.IntN(4) > 0 {
			report(ace.ToolEvent{Kind: ace.KindPhase, Name: string(p)})
		}
		if r.IntN(5) == 0 {
			report(ace.ToolEvent{Kind: ace.KindStep, Name: string(p), Error: "flaky"})
		}
		report(ace.ToolEvent{Kind: ace.KindStep, Name: string(p), Result: json.RawMessage(result)})
	}
	step(ace.PhaseGenerator, `{"plan": "look <it> up", "trajectory_id": "t", "answer": "1", "usage": {"input_tokens": 3}}`)
	report(ace.ToolEvent{Kind: ace.KindPhase, Name: "skills"})
	for n := range calls {
		id, name := fmt.Sprint("c", n), []string{"look", "calc", "find"}[r.IntN(3)]
		report(ace.ToolEvent{Kind: ace.KindToolUse, CallID: id, Name: name,
			Args: json.RawMessage(`{"q": "` + strings.Repeat("x", r.IntN(400)) + `"}`)})
		switch r.IntN(12) {
		case 0:
			no := false
			report(ace.ToolEvent{Kind: ace.KindPermission, CallID: id, Accepted: &no, Error: "not allowed"})
		case 1:
			continue
		default:
			ok := r.IntN(4) > 0
			report(ace.ToolEvent{Kind: ace.KindToolResult, CallID: id, OK: &ok, DurationMS: r.Float64() * 100,
				Result: json.RawMessage(`{"v": 1}`),
				Error:  map[bool]string{false: "bad"}[ok]})
		}
		if r.IntN(20) == 0 {
			report(ace.ToolEvent{Kind: ace.KindMessage, Name: "said"})
		}
	}
	step(ace.PhaseSkills, `{"invocations": [{"id": "`+fmt.Sprint("c", calls-1)+
		`", "name": "look", "accepted": true, "ok": true, "duration_ms": 5}, {"id": "z", "name": "late"}], "answer": "2", "usage": {"output_tokens": 4}}`)
	step(ace.PhaseReflector, `{"insights": "so", "correct": `+fmt.Sprint(r.IntN(2) == 0)+`}`)
	step(ace.PhaseCurator, `{"accepted": [{"type": "ADD", "content": "c"}], "rejected": [], "rationale": "r"}`)
	step(ace.PhasePersist, `{"playbook_before": "p0", "playbook_after": "p1", "operations": null, "bullets": 2}`)
	ends := []ace.ToolEvent{{Result: json.RawMessage(`{"exit_status": "success", "answer": "3"}`)},
		{Error: "it broke"}, {},
		{Result: json.RawMessage(`{"exit_status": "cancelled"}`)}, {Result: json.RawMessage(`"nonsense"`)}}
	end := ends[r.IntN(len(ends))]
	end.Kind = ace.KindFinish
	report(end)
	return events
}

func answers(t *testing.T, s *ace.State) string {
	t.Helper()
	return asJSON(t, s.CurrentPhase(), s.SkillUsage(), s.PlaybookDelta(), s.Summary(), s.Result(),
		s.ExitStatus(), s.Finished())
}

func foldAll(batches ...[]ace.ToolEvent) *ace.State {
	s := &ace.State{}
	s.Apply(ace.Started(observedInput))
	for _, b := range batches {
		s.Apply(ace.ToolEvents(b))
	}
	return s
}

// split splits events into batches of random sizes.
func split(r *rand.Rand, events []ace.ToolEvent) (batches [][]ace.ToolEvent) {
	for len(events) > 0 {
		n := 1 + r.IntN(min(len(events), 30))
		batches, events = append(batches, events[:n]), events[n:]
	}
	return batches
}

// TestObservedAnyOrder checks that batches may have any size, repeat and arrive in any order.
func TestObservedAnyOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		events := session(r, r.IntN(60))
		want := answers(t, foldAll(events))
		batches := split(r, events)
		for range r.IntN(len(batches) + 1) {
			batches = append(batches, batches[r.IntN(len(batches))])
		}
		if r.IntN(3) == 0 {
			again := slices.Clone(events)
			r.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
			batches = append(batches, again)
		}
		r.Shuffle(len(batches), func(i, j int) { batches[i], batches[j] = batches[j], batches[i] })
		if got := answers(t, foldAll(batches...)); got != want {
			t.Fatalf("seed %d:\n%s\nwant\n%s", seed, got, want)
		}
	}
}

// continued returns the state of the run that s continues as.
func continued(t *testing.T, s *ace.State) *ace.State {
	t.Helper()
	in := s.Input
	in.Carried = s.Carry()
	data, err := json.Marshal(in)
	if err != nil || len(data) > 1600<<10 {
		t.Fatalf("carried state has %d bytes, %v", len(data), err)
	}
	fact, err := ace.StartedFrom(data)
	if err != nil {
		t.Fatal(err)
	}
	next := &ace.State{}
	next.Apply(fact)
	return next
}

// TestObservedChain checks that a run that continues as new gives the same answers as a run that
// does not, after every batch and with repeated events.
func TestObservedChain(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 2))
		events := session(r, 20+r.IntN(900))
		whole, chain := foldAll(), foldAll()
		batches := split(r, events)
		for i, b := range batches {
			if i > 0 && r.IntN(5) == 0 {
				b = slices.Concat(batches[r.IntN(i)], b)
			}
			whole.Apply(ace.ToolEvents(b))
			if r.IntN(6) == 0 {
				chain = continued(t, chain)
			}
			if r.IntN(9) == 0 {
				chain = chain.Clone()
			}
			chain.Apply(ace.ToolEvents(b))
			if got, want := answers(t, chain), answers(t, whole); got != want {
				t.Fatalf("seed %d, batch %d:\n%s\nwant\n%s", seed, i, got, want)
			}
		}
	}
}

// TestCarryIsBounded checks that the carried state always fits into a payload.
func TestCarryIsBounded(t *testing.T) {
	t.Parallel()
	s := foldAll()
	nasty := strings.Repeat("<\x00", 2000)
	args, _ := json.Marshal(nasty)
	for n := range 2*ace.MaxInvocations + 10 {
		s.Apply(ace.ToolEvents([]ace.ToolEvent{{EventID: fmt.Sprint(nasty, n), CallID: fmt.Sprint(nasty, n/2),
			Seq: int64(n + 1), Name: nasty[:300+n%40],
			Kind: []ace.EventKind{ace.KindToolUse, ace.KindMessage, ace.KindToolResult}[n%3], Args: args,
			Result: args, Error: nasty, At: at}}))
	}
	next := continued(t, s)
	if a, b := s.SkillUsage(), next.SkillUsage(); a.Total != b.Total || a.Dropped != b.Dropped ||
		a.Dropped == 0 || asJSON(t, a.Skills) != asJSON(t, b.Skills) {
		t.Errorf("%d calls and %d dropped, carried %d and %d", a.Total, a.Dropped, b.Total, b.Dropped)
	}
	next.Apply(ace.ToolEvents([]ace.ToolEvent{{EventID: "end", Seq: 1 << 40, Kind: ace.KindFinish}}))
	if !next.Finished() || next.Reported != ace.Completed {
		t.Error("the finish of a run with too many events is lost")
	}
}

func TestObservedProgress(t *testing.T) {
	t.Parallel()
	phase := func(name string) ace.ToolEvent { return ace.ToolEvent{Kind: ace.KindPhase, Name: name} }
	step := func(name, result, err string) ace.ToolEvent {
		return ace.ToolEvent{Kind: ace.KindStep, Name: name, Result: json.RawMessage(result), Error: err}
	}
	finish := func(result, err string) ace.ToolEvent {
		return ace.ToolEvent{Kind: ace.KindFinish, Result: json.RawMessage(result), Error: err}
	}
	large := `{"plan": "` + strings.Repeat("x", ace.MaxStepResult) + `"}`
	for _, c := range []struct {
		name   string
		events []ace.ToolEvent
		want   string // phase, exit, the steps' first letters, failure
	}{
		{"nothing", nil, "generator running rpppp"},
		{"a session", []ace.ToolEvent{phase("skills")}, "skills running r"},
		{"a session ends", []ace.ToolEvent{phase("skills"), finish("", "")}, "done success d"},
		{"no phase events", []ace.ToolEvent{step("generator", "{}", "")}, "skills running drppp"},
		{"a step is left out", []ace.ToolEvent{step("reflector", "{}", "")}, "curator running dr"},
		{"all steps", []ace.ToolEvent{step("generator", "", ""), step("skills", "", ""),
			step("reflector", `{"correct": false}`, ""), step("curator", "", ""),
			step("persist", "", ""), finish("", "")}, "done wrong ddddd"},
		{"a step fails", []ace.ToolEvent{phase("generator"), step("generator", "", "no")},
			"generator running fpppp no"},
		{"a step is retried", []ace.ToolEvent{step("generator", "", "no"), step("generator", "{}", "")},
			"skills running drppp"},
		{"a bad result", []ace.ToolEvent{step("generator", `[]`, "")},
			"generator running fpppp run_generator returned a result that does not fit the contract: json: cannot unmarshal array into Go value of type ace.GeneratorResult"},
		{"a large result", []ace.ToolEvent{step("generator", large, "")},
			fmt.Sprintf("generator running fpppp its result has %d bytes, more than 65536", len(large))},
		{"failed", []ace.ToolEvent{phase("skills"), finish(`{"exit_status": "failed"}`, "")},
			"skills failed f the observer reported a failure"},
		{"cancelled", []ace.ToolEvent{phase("skills"), finish(`{"exit_status": "cancelled"}`, "enough")},
			"skills cancelled c enough"},
		{"failed with an error", []ace.ToolEvent{finish("", "boom")}, "generator failed ppppp boom"},
		{"finished as wrong", []ace.ToolEvent{finish(`{"correct": false}`, "")}, "done wrong ppppp"},
		{"unknown names", []ace.ToolEvent{phase("lunch"), step("lunch", "", ""),
			finish(`{"exit_status": "running"}`, "")}, "done success ppppp"},
	} {
		for i := range c.events {
			c.events[i].EventID, c.events[i].Seq = fmt.Sprint(i), int64(i+1)
		}
		s := foldAll(c.events)
		p := s.CurrentPhase()
		got := fmt.Sprint(p.Phase, " ", s.ExitStatus(), " ")
		for _, st := range p.Steps {
			got += st.Status[:1]
		}
		if p.Failure != nil {
			got += " " + p.Failure.Message
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	s := foldAll()
	s.Apply(ace.IdleTimeout())
	if f := s.CurrentPhase().Failure; s.Reported != ace.TimedOut || f == nil ||
		f.Message != "no event received for 24h0m0s" {
		t.Errorf("idle timeout: %s, %+v", s.Reported, f)
	}
	s.Apply(ace.ToolEvents([]ace.ToolEvent{{EventID: "x", Kind: ace.KindFinish}}))
	if s.Reported != ace.Completed {
		t.Error("a finish after the idle timeout is ignored")
	}
}

// TestProgressEventsOfExecutedRuns checks that progress events do not change a run that is not
// observed.
func TestProgressEventsOfExecutedRuns(t *testing.T) {
	t.Parallel()
	s := &ace.State{}
	s.Apply(ace.Started(ace.TaskInput{TaskID: "t"}))
	before := asJSON(t, s.CurrentPhase())
	s.Apply(ace.ToolEvents([]ace.ToolEvent{{EventID: "1", Kind: ace.KindPhase, Name: "curator"},
		{EventID: "2", Kind: ace.KindStep, Name: "generator"},
		{EventID: "3", Kind: ace.KindFinish}}))
	s.Apply(ace.IdleTimeout())
	if got := asJSON(t, s.CurrentPhase()); got != before {
		t.Errorf("%s\nwas\n%s", got, before)
	}
	if o := s.SkillUsage().Other; o[ace.KindStep] != 1 || o[ace.KindFinish] != 1 || o[ace.KindPhase] != 1 {
		t.Errorf("other kinds: %v", o)
	}
}
