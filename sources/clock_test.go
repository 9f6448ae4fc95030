package sources

import (
	"math"
	"strings"
	"testing"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/ace"
	"acescope/engine/stepper"
	"acescope/engine/temporal/compare"
	"acescope/sources/cluster"
	"acescope/sources/detail"
	"acescope/sources/histories"
	"acescope/sources/historytest"
	"acescope/sources/runs"
	"acescope/sources/triage"
)

// skewed is a task in which every third event is older than the previous one, and whose end is before its
// start.
func skewed() *historytest.Builder {
	b := historytest.Task(true)
	for i, e := range b.Events {
		if i%3 == 2 || i == len(b.Events)-1 {
			e.EventTime = timestamppb.New(historytest.Start.Add(-time.Duration(i) * time.Hour))
		}
	}
	return b
}

// Clocks that go backward cause no negative durations, and one message.
func TestClockSkew(t *testing.T) {
	b := skewed()
	c := historytest.NewClient()
	c.Put("r", b.Events...)
	d, err := detail.ReadEvents(b.Events)
	if err != nil {
		t.Fatal(err)
	}
	if d.Skew.Back == 0 || d.Skew.Event != 3 || !strings.Contains(d.Skew.String(), "went back") {
		t.Errorf("%+v", d.Skew)
	}
	for _, a := range d.Activities {
		if a.Waited() < 0 {
			t.Errorf("%s waited %s", a.Name, a.Waited())
		}
	}
	l, err := histories.ReadEvents(t.Context(), c, "", "w", "r", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if l.ClockBack != d.Skew.Back {
		t.Errorf("the timeline counts %d, the run %d", l.ClockBack, d.Skew.Back)
	}
	now := historytest.Start.Add(-time.Hour) // this machine's clock is behind, too
	w := histories.Extent(l.Spans, now)
	if w.To <= w.From {
		t.Errorf("the window is %+v", w)
	}
	for i := range l.Spans {
		s := &l.Spans[i]
		if s.Waited(now) < 0 || s.Ran(now) < 0 {
			t.Errorf("%s waited %s, ran %s", s.Name, s.Waited(now), s.Ran(now))
		}
		w.Draw(make([]histories.Cell, 48), s, now)
	}
	s := stepper.New(b.Events, stepper.Options{})
	back := 0
	for pos := 1; pos <= s.Len(); pos++ {
		f := s.Step(pos)
		if f.ElapsedMS < 0 || f.ClockBackMS < 0 {
			t.Errorf("event %d after %f ms", f.EventID, f.ElapsedMS)
		}
		if f.ClockBackMS > 0 {
			back++
		}
	}
	if back != d.Skew.Back || s.About.ClockBack != back {
		t.Errorf("steps count %d and %d, the run %d", back, s.About.ClockBack, d.Skew.Back)
	}
	chain := cluster.Chain{Runs: [][]*historypb.HistoryEvent{b.Events}, RunIDs: []string{"r"}}
	diff := compare.Of(histories.DiffSide(t.Context(), chain, nil),
		histories.DiffSide(t.Context(), chain, nil), compare.Options{AllFields: true})
	for _, p := range diff.Pairs {
		if p.A.DurationMS < 0 || p.B.DurationMS < 0 {
			t.Errorf("%s took %f ms", p.A.Key, p.A.DurationMS)
		}
	}
	for _, m := range diff.Metrics {
		if m.A < 0 || math.IsNaN(m.A) {
			t.Errorf("%+v", m)
		}
	}
	if n := strings.Count(strings.Join(diff.Notes, " "), "The clock of"); n != 2 {
		t.Errorf("%d notes in %q", n, diff.Notes)
	}
	run := runs.Run{Start: historytest.Start, Close: historytest.Start.Add(-time.Hour)}
	if run.Age(now) != 0 || (runs.Run{Start: historytest.Start}).Age(now) != 0 {
		t.Errorf("ages %s", run.Age(now))
	}
	if at := triage.BucketOf(now, historytest.Start, historytest.Start.Add(time.Hour)); at != 0 {
		t.Errorf("bucket %d", at)
	}
}

// A server whose clock is ahead of this machine's is reported.
func TestClockAhead(t *testing.T) {
	b := historytest.New(ace.TaskWorkflow, ace.TaskInput{TaskID: "q"})
	for _, e := range b.Events {
		e.EventTime = timestamppb.New(time.Now().Add(time.Hour))
	}
	d, err := detail.ReadEvents(b.Events)
	if err != nil || d.Skew.AheadMS < 3_500_000 || d.Skew.Back != 0 ||
		!strings.Contains(d.Skew.String(), "ahead of this machine") {
		t.Errorf("%+v, %v", d.Skew, err)
	}
	if (histories.Skew{}).String() != "" {
		t.Error("something was said of nothing")
	}
}

// A server records some events out of order, which is not skew: the start of an activity is recorded with its
// end, and signals during a workflow task after it.
func TestClockOfAnOrderlyRun(t *testing.T) {
	b := historytest.New(ace.TaskWorkflow, ace.TaskInput{TaskID: "q"})
	one := b.Schedule(time.Millisecond, "one", nil)
	b.Signal(10*time.Second, "x", nil)
	b.Begin(-8*time.Second, one, 1, "")
	b.Signal(8*time.Second+300*time.Millisecond, "y", nil)
	b.Signal(-200*time.Millisecond, "z", nil)
	d, err := detail.ReadEvents(b.Events)
	if err != nil || d.Skew != (histories.Skew{}) {
		t.Errorf("%+v, %v", d.Skew, err)
	}
}
