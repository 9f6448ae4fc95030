package stepper

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/replay/replaytest"
)

// plainFold folds the first n events from the start.
func plainFold(events []*historypb.HistoryEvent, n int) any {
	if events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName() == ace.ExperimentWorkflow {
		var d history.ExperimentDecoder
		s := &ace.ExperimentState{}
		for _, e := range events[:n] {
			if fact, ok, _ := d.Fact(e); ok {
				s.Apply(fact)
			}
		}
		p := s.Progress
		p.Status = s.Status()
		return p
	}
	var d history.Decoder
	s := &ace.State{}
	for _, e := range events[:n] {
		if fact, ok, _ := d.Fact(e); ok {
			s.Apply(fact)
		}
	}
	phase := s.CurrentPhase()
	phase.Status = s.Status()
	return []any{phase, s.SkillUsage(), s.PlaybookDelta(), s.Plan, s.TrajectoryID, s.BulletIDs}
}

func (f *Frame) known() any {
	if f.Experiment != nil {
		return *f.Experiment
	}
	return []any{*f.Phase, *f.Skills, *f.Delta, f.Plan, f.TrajectoryID, f.BulletIDs}
}

func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// At every event of every recorded history, in any order of access, the frame equals the
// fold from the first event.
func TestFramesAreTheFold(t *testing.T) {
	for _, name := range replaytest.RecordedNames {
		t.Run(name, func(t *testing.T) {
			events := replaytest.Recorded(t, name)
			s := New(events, Options{})
			order := rand.New(rand.NewPCG(1, 2)).Perm(len(events))
			for n := range events {
				order = append(order, n, len(events)-1-n)
			}
			for _, n := range order {
				f := s.Frame(n + 1)
				if got, want := text(f.known()), text(plainFold(events, n+1)); got != want {
					t.Fatalf("event %d:\n%s\nwant\n%s", n+1, got, want)
				}
				if f.EventID != events[n].GetEventId() || f.EventType != events[n].GetEventType().String() {
					t.Fatalf("event %d has the frame of event %d, %s", n+1, f.EventID, f.EventType)
				}
			}
		})
	}
}

// A long run crosses many checkpoints.
func TestFramesOfLongRun(t *testing.T) {
	events := longRun(6000)
	s := New(events, Options{})
	if len(s.checks) < 20 {
		t.Fatalf("only %d checkpoints", len(s.checks))
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		n := 1 + r.IntN(len(events))
		if got, want := text(s.Frame(n).known()), text(plainFold(events, n)); got != want {
			t.Fatalf("event %d:\n%s\nwant\n%s", n, got, want)
		}
	}
}

// longRun returns the events of a run with mostly tool calls, some failed, some out of order.
func longRun(n int) []*historypb.HistoryEvent {
	m := replaytest.Begin(ace.TaskWorkflow)
	m.Events[0].GetWorkflowExecutionStartedEventAttributes().Input = replaytest.Encoded(
		ace.TaskInput{TaskID: "long", PlaybookHash: "v1"})
	generator := m.Activity(m.Task(), ace.ActivityGenerator)
	m.Done(generator, ace.GeneratorResult{Plan: "look, then reckon", Answer: "1", BulletIDs: []string{"b1"},
		StepReport: ace.StepReport{Usage: &ace.Usage{InputTokens: 10, CostUSD: 0.5}}})
	skills := m.Activity(m.Task(), ace.ActivitySkills)
	for call := 0; len(m.Events) < n-30; call++ {
		id, name := fmt.Sprint("c", call), []string{"lookup", "calculate", "write"}[call%3]
		at := replaytest.Noon.Add(time.Duration(call^1) * time.Second)
		m.Signal(ace.ToolEvent{EventID: "u" + id, CallID: id, Kind: ace.KindToolUse, Name: name, At: at,
			Args: json.RawMessage(`{"q":"what is the return on equity of a firm?"}`)})
		ok := call%17 > 0
		m.Signal(ace.ToolEvent{EventID: "r" + id, CallID: id, Kind: ace.KindToolResult, OK: &ok,
			DurationMS: float64(call % 97), Result: json.RawMessage(`"net income over equity"`)})
	}
	m.Done(skills, ace.SkillSessionResult{Answer: "2"})
	right := true
	reflector := m.Activity(m.Task(), ace.ActivityReflector)
	m.Done(reflector, ace.ReflectorResult{Insights: "well done", Correct: &right,
		BulletTags: []ace.BulletTag{{ID: "b1", Tag: "helpful"}}})
	curator := m.Activity(m.Task(), ace.ActivityCurator)
	m.Done(curator, ace.CuratorResult{Accepted: []ace.Operation{{Type: ace.OpAdd, Content: "new"},
		{Type: ace.OpTag, BulletID: "b1", Metadata: map[string]int{"helpful": 1}}},
		Rejected: []ace.Operation{{Type: ace.OpUpdate, BulletID: "b2", Reason: "the same"}}})
	return m.Events
}

// Steps by phase, tool call and error stop at the same events forward and backward, which
// are those where a walk over all frames sees a change.
func TestMoves(t *testing.T) {
	s := New(longRun(1000), Options{})
	var phases, tools []int
	phase, calls := "", ""
	for pos := 1; pos <= s.Len(); pos++ {
		f := s.Frame(pos)
		if now := string(f.Phase.Phase); now != phase {
			phases, phase = append(phases, pos), now
		}
		if now := text(f.Skills); now != calls {
			if pos > 1 {
				tools = append(tools, pos)
			}
			calls = now
		}
	}
	for by, want := range map[By][]int{ByPhase: phases, ByTool: tools, ByError: nil} {
		var there, back []int
		for pos, ok := s.Move(0, by, true); ok; pos, ok = s.Move(pos, by, true) {
			there = append(there, pos)
		}
		for pos, ok := s.Move(s.Len()+1, by, false); ok; pos, ok = s.Move(pos, by, false) {
			back = append(back, pos)
		}
		slices.Reverse(back)
		if !slices.Equal(there, back) || len(there) == 0 {
			t.Errorf("by %d: there %v, back %v", by, there, back)
		}
		if want != nil && !slices.Equal(there, want) {
			t.Errorf("by %d: %v, want %v", by, there, want)
		}
		for _, pos := range there {
			if by == ByError && !s.Step(pos).Error {
				t.Errorf("event %d is not an error", pos)
			}
		}
	}
	if pos, ok := s.Move(1, ByEvent, false); ok || pos != 1 {
		t.Error("Move found an event before the first")
	}
	if pos, ok := s.Move(s.Len(), ByEvent, true); ok || pos != s.Len() {
		t.Error("Move found an event after the last")
	}
}

// A step by tool call stops at the session's result only if signals did not report its calls.
func TestToolStepsSkipRepeatedCalls(t *testing.T) {
	for name, want := range map[string]enumspb.EventType{
		"live":  enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
		"right": enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, // its worker sent no signals
	} {
		s := New(replaytest.Recorded(t, name), Options{})
		for _, pos := range s.Marks(ByTool) {
			if got := s.Event(pos).GetEventType(); got != want {
				t.Errorf("%s stops at event %d, %s", name, pos, got)
			}
		}
		if len(s.Marks(ByTool)) == 0 {
			t.Errorf("%s stops nowhere", name)
		}
	}
}

// A watch finds every change of every value in both directions.
func TestWatch(t *testing.T) {
	runs := map[string][]*historypb.HistoryEvent{"long": longRun(900)}
	for _, name := range replaytest.RecordedNames {
		runs[name] = replaytest.Recorded(t, name)
	}
	watched := 0
	for name, events := range runs {
		s := New(events, Options{})
		exprs := append(s.Names(), "skills", "usage", "/phase/steps/1/status", "/skills/skills/0/pending",
			"/delta/operations/0/fate", "/experiment/epochs/0/correct")
		for _, expr := range exprs {
			w, err := s.Watch(expr)
			if err != nil {
				var none *WatchError
				if !errors.As(err, &none) || expr[0] != '/' && !slices.Contains([]string{"skills", "usage"},
					expr) {
					t.Fatalf("%s, %s: %v", name, expr, err)
				}
				continue
			}
			watched++
			var want []int
			before := ""
			for pos := 1; pos <= s.Len(); pos++ {
				if now := string(w.At(pos)); now != before {
					want, before = append(want, pos), now
				}
			}
			if there, back := seen(w, s.Len()); !slices.Equal(there, want) || !slices.Equal(back, want) {
				t.Fatalf("%s, %s: forward %v, backward %v, want %v", name, expr, there, back, want)
			}
		}
	}
	if watched < 100 {
		t.Errorf("only %d values were watched", watched)
	}
}

func seen(w *Watch, last int) (there, back []int) {
	for c, ok := w.Next(0, true, nil); ok; c, ok = w.Next(c.Position, true, nil) {
		there = append(there, c.Position)
	}
	w.known = map[int][]int{}
	for c, ok := w.Next(last+1, false, nil); ok; c, ok = w.Next(c.Position, false, nil) {
		back = append(back, c.Position)
	}
	slices.Reverse(back)
	return there, back
}

func TestWatchNames(t *testing.T) {
	s := New(longRun(200), Options{})
	w, err := s.Watch("b1") // a bullet by its ID alone
	if err != nil {
		t.Fatal(err)
	}
	first, ok := w.Next(0, true, nil)
	if !ok || string(first.After) != `"tagged helpful"` {
		t.Errorf("first: %+v", first)
	}
	second, ok := w.Next(first.Position, true, nil)
	if !ok || string(second.After) != `"tagged helpful; TAG accepted helpful+1"` {
		t.Errorf("second: %s", second.After)
	}
	if _, err := s.Watch("no.such.thing"); err == nil {
		t.Error("a watch of an unknown value succeeded")
	}
	closed := make(chan struct{})
	close(closed)
	if _, ok := w.Next(0, true, closed); ok {
		t.Error("a stopped search found something")
	}
}

// Unreadable events do not change the state, and later events are folded.
func TestUnreadableEvents(t *testing.T) {
	events := longRun(300)
	encoded := &commonpb.Payloads{Payloads: []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("binary/encrypted")}, Data: []byte("?")}}}
	events[20].Attributes = nil
	events[20].EventType = enumspb.EVENT_TYPE_UNSPECIFIED
	events[22].GetWorkflowExecutionSignaledEventAttributes().Input = encoded
	events[30].EventTime = timestamppb.New(replaytest.Noon.Add(-time.Hour))
	s := New(events, Options{Types: map[int]string{20: "EVENT_TYPE_FROM_THE_FUTURE"}})
	if s.About.Unread != 1 || s.About.Encoded != 1 || s.About.ClockBack != 1 {
		t.Errorf("%+v", s.About)
	}
	f := s.Frame(21)
	if f.EventType != "FROM_THE_FUTURE" || len(f.Notes) != 1 {
		t.Errorf("%+v", f)
	}
	if f = s.Frame(23); len(f.Notes) != 1 || f.Skills.Unreadable != 1 {
		t.Errorf("%+v", f)
	}
	if f = s.Frame(31); f.ClockBackMS < 3_600_000 || f.ElapsedMS != 0 {
		t.Errorf("clock back %v, elapsed %v", f.ClockBackMS, f.ElapsedMS)
	}
	if f = s.Frame(s.Len()); f.Phase.Phase != ace.PhasePersist || f.Delta.Insights != "well done" {
		t.Errorf("the end: %+v", f.Phase)
	}
}

func TestFindEvent(t *testing.T) {
	events := longRun(100)
	s := New(events, Options{})
	if pos, err := s.Find(7); pos != 7 || err != nil {
		t.Error(pos, err)
	}
	var out *RangeError
	for _, id := range []int64{-1, 0, 101, 1 << 40} {
		if _, err := s.Find(id); !errors.As(err, &out) || out.Last != int64(len(events)) {
			t.Errorf("event %d: %v", id, err)
		}
	}
	cut := New(append(events[:10:10], events[50:]...), Options{})
	if pos, err := cut.Find(51); pos != 11 || err != nil {
		t.Error(pos, err)
	}
	none := New(nil, Options{})
	if _, err := none.Find(1); err == nil || none.Len() != 0 {
		t.Error("an empty history has an event")
	}
}

// State and Experiment return copies.
func TestStateIsCopy(t *testing.T) {
	s := New(replaytest.Recorded(t, "live"), Options{})
	want := text(s.Frame(s.Len()).known())
	state := s.State(s.Len())
	state.Apply(ace.StepCompleted(ace.PhaseGenerator, []byte(`{"plan":"another"}`)))
	state.Apply(ace.ToolEvents([]ace.ToolEvent{{EventID: "x", CallID: "x", Kind: ace.KindToolUse,
		Name: "x"}}))
	if got := text(s.Frame(s.Len()).known()); got != want {
		t.Error("changing the copy changed the stepper")
	}
	if s.Frame(1).Experiment != nil {
		t.Error("a task has an experiment state")
	}
	e := New(replaytest.Recorded(t, "experiment"), Options{})
	if e.State(1) != nil || e.Frame(e.Len()).Experiment.Status != ace.Completed {
		t.Error("wrong states for an experiment")
	}
}

// Runs of any type have frames. A history whose start is missing has a note that says so.
func TestForeignRun(t *testing.T) {
	m := replaytest.Begin("ForeignWorkflow")
	m.Task()
	s := New(m.Events, Options{})
	if s.About.Foreign != "" || len(s.Frame(1).Notes) != 0 || s.Frame(s.Len()).Phase == nil {
		t.Errorf("%+v", s.About)
	}
	cut := New(longRun(50)[5:], Options{})
	if cut.About.Foreign == "" {
		t.Error("a history without its start event has no note")
	}
	if !reflect.DeepEqual(cut.Frame(1).Notes, []string{cut.About.Foreign}) {
		t.Error(cut.Frame(1).Notes)
	}
}

// BenchmarkStep measures loading 50,000 events, the memory of the checkpoints, and seeking.
func BenchmarkStep(b *testing.B) {
	const n = 50_000
	events := longRun(n)
	b.Run("load", func(b *testing.B) {
		var before, after runtime.MemStats
		for b.Loop() {
			runtime.GC()
			runtime.ReadMemStats(&before)
			s := New(events, Options{})
			runtime.GC()
			runtime.ReadMemStats(&after)
			runtime.KeepAlive(s)
		}
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MB-held")
	})
	b.Run("seek", func(b *testing.B) {
		s := New(events, Options{})
		r := rand.New(rand.NewPCG(5, 6))
		var took []time.Duration
		for b.Loop() {
			at := 1 + r.IntN(len(events))
			begin := time.Now()
			s.Frame(at)
			took = append(took, time.Since(begin))
		}
		slices.Sort(took)
		b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "p99-ms")
		b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
	})
	b.Run("back", func(b *testing.B) {
		s := New(events, Options{})
		pos := s.Len()
		for b.Loop() {
			s.Frame(pos)
			if pos--; pos == 0 {
				pos = s.Len()
			}
		}
	})
}

// A workflow of an unknown type has a frame at every event, and every event changes it.
func TestForeignFrames(t *testing.T) {
	m := replaytest.Begin("Elsewhere")
	m.Done(m.Activity(m.Task(), "one"), nil)
	events := m.Complete(m.Task(), "done")
	s := New(events, Options{})
	for pos := 1; pos <= s.Len(); pos++ {
		if f := s.Frame(pos); f.EventID != int64(pos) || len(f.Changes) == 0 {
			t.Fatal(fmt.Sprint(f))
		}
	}
}
