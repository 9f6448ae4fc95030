package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/replay/replaytest"
)

// testRun is a history under construction.
type testRun struct{ replaytest.History }

func payloads(encoding string, data ...string) *commonpb.Payloads {
	p := &commonpb.Payloads{}
	for _, d := range data {
		p.Payloads = append(p.Payloads,
			&commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte(encoding)}, Data: []byte(d)})
	}
	return p
}

func started(workflowType, id, run string, input *commonpb.Payloads) *testRun {
	s := &testRun{}
	s.Append(&historypb.WorkflowExecutionStartedEventAttributes{
		WorkflowType: &commonpb.WorkflowType{Name: workflowType}, WorkflowId: id, OriginalExecutionRunId: run,
		Input: input})
	return s
}

// activity adds an activity, which stays open without a result.
func (s *testRun) activity(name string, input, result *commonpb.Payloads) *testRun {
	id := s.Append(&historypb.ActivityTaskScheduledEventAttributes{
		ActivityId: fmt.Sprint(len(s.Events) + 1), ActivityType: &commonpb.ActivityType{Name: name},
		Input: input})
	if result != nil {
		s.Append(&historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: id, Result: result})
	}
	return s
}

func (s *testRun) child(id string) *testRun {
	s.Child(0, ace.TaskWorkflow, id)
	return s
}

func (s *testRun) timer(d time.Duration) *testRun {
	s.Timer(0, d)
	return s
}

func (s *testRun) marker(name string, details map[string]*commonpb.Payloads) *testRun {
	s.Append(&historypb.MarkerRecordedEventAttributes{MarkerName: name, Details: details})
	return s
}

func (s *testRun) completed() *testRun {
	s.Append(&historypb.WorkflowExecutionCompletedEventAttributes{})
	return s
}

func (s *testRun) continuedAsNew(next string) *testRun {
	s.Append(&historypb.WorkflowExecutionContinuedAsNewEventAttributes{NewExecutionRunId: next})
	return s
}

func side(list ...*testRun) Side {
	var s Side
	for _, run := range list {
		s.Runs = append(s.Runs, run.Events)
	}
	return s
}

func j(data ...string) *commonpb.Payloads { return payloads("json/plain", data...) }

func statusesOf(d *Diff) string {
	var out []string
	for _, p := range d.Pairs {
		out = append(out, p.Step().Key+" "+p.Status)
	}
	return strings.Join(out, ", ")
}

// IDs and durations are ignored unless AllFields is set.
func TestIgnored(t *testing.T) {
	run := func(task, id, at string, ms int) *testRun {
		return started("W", "ace/"+task, id, j(`{"task_id":"`+task+`","prompt":"p","branch":"`+task+`"}`)).
			activity("a", j(`{"task":{"run_id":"`+id+`","workflow_id":"ace/`+task+`","prompt":"p"}}`),
				j(fmt.Sprintf(`{"plan":"x","trajectory_id":"%s","time":{"started_at":"%s","duration_ms":%d,"worker":"w-%d"}}`, id, at, ms, ms))).completed()
	}
	a, b := side(run("one-0001", "run-aaaa", "2026-05-04T12:00:00Z", 3)),
		side(run("two-0001", "run-bbbb", "2026-05-05T09:00:00Z", 900))
	if d := Of(a, b, Options{}); d.Differs() {
		t.Errorf("%+v", d.First)
	}
	d := Of(a, b, Options{AllFields: true})
	if !d.Differs() || d.First.Pair != 1 || d.First.Path != "/branch" {
		t.Errorf("with all fields: %+v", d.First)
	}
	// "at" and "time" are ignored only if the value is a time.
	x, y := started("W", "w", "r", j(`{"at":"work","time":{"zone":1}}`)),
		started("W", "w", "q", j(`{"at":"home","time":{"zone":2}}`))
	if p := Of(side(x), side(y), Options{}).Pairs[0]; len(p.Input) != 2 {
		t.Errorf("%+v", p.Input)
	}
}

// A timer that is started by the workflow task that closes the run is not compared: whether it is depends on
// timing.
func TestTimerOfClosingTask(t *testing.T) {
	run := func(timer bool) *testRun {
		s := started("W", "w", "r", nil)
		if timer {
			s.Append(&historypb.TimerStartedEventAttributes{TimerId: "5", WorkflowTaskCompletedEventId: 4})
		}
		s.Append(&historypb.WorkflowExecutionCompletedEventAttributes{WorkflowTaskCompletedEventId: 4})
		return s
	}
	if d := Of(side(run(true)), side(run(false)), Options{}); d.Differs() || len(d.Pairs) != 2 {
		t.Errorf("%s", statusesOf(d))
	}
	if d := Of(side(run(true)), side(run(false)), Options{AllFields: true}); len(d.Pairs) != 3 {
		t.Errorf("with all fields: %s", statusesOf(d))
	}
}

// A step inserted among steps of the same name moves none of them.
func TestInsertedStep(t *testing.T) {
	a, b := started("W", "w", "r1", nil), started("W", "w", "r2", nil)
	for i := range 200 {
		if i == 3 {
			b.activity("get", j(`{"n":"new"}`), j(`0`))
		}
		a.activity("get", j(fmt.Sprintf(`{"n":%d}`, i)), j(fmt.Sprint(i)))
		b.activity("get", j(fmt.Sprintf(`{"n":%d}`, i)), j(fmt.Sprint(i)))
	}
	d := Of(side(a.completed()), side(b.completed()), Options{})
	if d.Counts[OnlyB] != 1 || d.Counts[Same] != 202 || d.First.What != WhatOnly || d.First.EventB != 8 {
		t.Errorf("%v, first %+v", d.Counts, d.First)
	}
	if !strings.Contains(d.First.Text, "is only in B; A continues with activity get #4 (event 8)") {
		t.Error(d.First.Text)
	}
}

// Activities in another order are moved; parallel child workflows are not.
func TestOrder(t *testing.T) {
	a := started("W", "w", "r1", nil).activity("x", j(`1`), j(`1`)).activity("y", j(`2`), j(`2`)).completed()
	b := started("W", "w", "r2", nil).activity("y", j(`2`), j(`2`)).activity("x", j(`1`), j(`1`)).completed()
	if d := Of(side(a), side(b), Options{}); d.Counts[Moved] != 1 || d.First.What != WhatOrder ||
		len(d.Pairs) != 4 {
		t.Errorf("%s: %+v", statusesOf(d), d.First)
	}
	a = started(ace.ExperimentWorkflow, "ace-experiment/one", "r1",
		nil).child("ace/one-e1-0001").child("ace/one-e1-0002").completed()
	b = started(ace.ExperimentWorkflow, "ace-experiment/two", "r2",
		nil).child("ace/two-e1-0002").child("ace/two-e1-0001").child("ace/two-e1-0003").completed()
	d := Of(side(a), side(b), Options{})
	if d.Counts[OnlyB] != 1 || d.Counts[Same] != 4 ||
		d.First.Step != "child workflow AceTaskWorkflow e1-0003" {
		t.Errorf("%s: %+v", statusesOf(d), d.First)
	}
}

// A chain is compared as one run.
func TestChain(t *testing.T) {
	one := started("W", "w", "r1", j(`{"n":0}`)).activity("a", j(`1`), j(`1`)).activity("a", j(`2`),
		j(`2`)).completed()
	first, second := started("W", "w", "r2", j(`{"n":0}`)).activity("a", j(`1`), j(`1`)).continuedAsNew("r3"),
		started("W", "w", "r3", j(`{"n":1}`)).activity("a", j(`2`), j(`2`)).completed()
	d := Of(side(one), side(first, second), Options{})
	if d.Differs() || d.B.Runs != 2 || d.B.RunID(d.Pairs[2].B) != "r3" || d.Pairs[2].B.Event != 2 {
		t.Errorf("%s: %+v %+v", statusesOf(d), d.First, d.B)
	}
	if !strings.Contains(strings.Join(d.Notes, " "), "chain of 2 runs") {
		t.Error(d.Notes)
	}
	if d := Of(side(one), side(first), Options{}); d.First == nil ||
		d.Pairs[len(d.Pairs)-1].B.Status != Continued {
		t.Errorf("first run of the chain: %s", statusesOf(d))
	}
}

// An open run, or one with an incomplete history, does not differ in what it has not reached.
func TestOpenAndPartial(t *testing.T) {
	whole := started("W", "w", "r1", nil).activity("a", j(`1`), j(`1`)).activity("b", j(`2`),
		j(`2`)).activity("c", j(`3`), j(`3`)).completed()
	open := started("W", "w", "r2", nil).activity("a", j(`1`), j(`1`)).activity("b", j(`2`), nil)
	d := Of(side(whole), side(open), Options{})
	if d.Differs() || d.Counts[NotReached] != 3 || !strings.Contains(strings.Join(d.Notes, " "),
		"B is still running") {
		t.Errorf("%s: %v", statusesOf(d), d.Notes)
	}
	cut := side(open)
	cut.Partial = "byte 812: the file ends in the middle"
	if d := Of(side(whole), cut, Options{}); d.Differs() || !strings.Contains(strings.Join(d.Notes, " "),
		"byte 812") {
		t.Errorf("%s: %v", statusesOf(d), d.Notes)
	}
	// Steps that differ count.
	other := started("W", "w", "r2", nil).activity("a", j(`1`), j(`9`)).activity("b", j(`2`), nil)
	if d := Of(side(whole), side(other), Options{}); d.First == nil || d.First.Pair != 2 {
		t.Errorf("%s: %+v", statusesOf(d), d.First)
	}
	if d := Of(Side{}, side(whole), Options{}); len(d.Notes) == 0 || d.Differs() == false {
		t.Errorf("missing history and a run: %s %v", statusesOf(d), d.Notes)
	}
	if d := Of(Side{}, Side{}, Options{}); d.Differs() || len(d.Pairs) != 0 {
		t.Errorf("two missing histories: %s", statusesOf(d))
	}
}

// Encrypted payloads with different bytes are unreadable; plain bytes are compared.
func TestEncodedPayloads(t *testing.T) {
	with := func(encoding, data string) *testRun {
		return started("W", "w", "r-"+data, nil).activity("a", payloads(encoding, data), j(`1`)).completed()
	}
	for _, c := range []struct{ encoding, a, b, status string }{
		{"binary/encrypted", "one", "two", Unreadable}, {"binary/encrypted", "one", "one", Same},
		{"binary/plain", "one", "two", Changed}, {"binary/plain", "one", "one", Same},
	} {
		d := Of(side(with(c.encoding, c.a)), side(with(c.encoding, c.b)), Options{})
		if got := d.Pairs[1].Status; got != c.status {
			t.Errorf("%+v: %s", c, got)
		}
		if d.Differs() != (c.status == Changed) {
			t.Errorf("%+v: %+v", c, d.First)
		}
	}
}

func TestOtherWorkflowTypes(t *testing.T) {
	d := Of(side(started("Old", "w", "r1", nil).activity("a", j(`1`), j(`1`)).completed()),
		side(started("New", "w", "r2", nil).activity("a", j(`1`), j(`1`)).completed()), Options{})
	if d.First == nil || d.First.What != WhatName || d.Pairs[1].Status != Same ||
		!strings.Contains(d.Notes[0], "workflow types differ, Old and New") {
		t.Errorf("%s: %+v %v", statusesOf(d), d.First, d.Notes)
	}
}

// Side effects and timers beside an activity are ignored; versions and other timers are not.
func TestRandomSteps(t *testing.T) {
	run := func(id, random, version string, beside bool, wait time.Duration) *testRun {
		s := started("W", "w", id, nil).
			marker("SideEffect", map[string]*commonpb.Payloads{"data": j(random)}).
			marker("Version", map[string]*commonpb.Payloads{"change-id": j(`"fix"`), "version": j(version)}).
			timer(wait)
		s.activity("a", j(`1`), nil)
		if beside {
			s.timer(time.Millisecond)
		}
		return s
	}
	base := run("r1", "17", "1", true, time.Second)
	if d := Of(side(base), side(run("r2", "99", "1", false, time.Second)), Options{}); d.Differs() {
		t.Errorf("%s: %+v", statusesOf(d), d.First)
	}
	if d := Of(side(base), side(run("r2", "17", "2", true, time.Second)), Options{}); d.First == nil ||
		d.First.Step != "marker version fix #1" {
		t.Errorf("%s: %+v", statusesOf(d), d.First)
	}
	if d := Of(side(base), side(run("r2", "17", "1", true, time.Hour)), Options{}); d.First == nil ||
		d.First.Step != "timer 1s #1" {
		t.Errorf("%s: %+v", statusesOf(d), d.First)
	}
}

// Tool calls with payloads in an artifact are compared completely, or a note says they are not.
func TestCallsInArtifact(t *testing.T) {
	run := func(id string) *testRun {
		return started(ace.TaskWorkflow, "ace/t", id, j(`{"task_id":"t"}`)).activity(ace.ActivitySkills,
			j(`{}`),
			j(`{"invocations":[{"id":"c1","name":"look_up","args":"cut…","accepted":true,"ok":true,"duration_ms":1}],"log":{"sha256":"`+id+`","size":9}}`)).completed()
	}
	reads := func(args string) func(ace.Ref) ([]byte, error) {
		return func(ace.Ref) ([]byte, error) {
			return []byte(`{"id":"c1","name":"look_up","args":` + args + `}` + "\n"), nil
		}
	}
	a, b := side(run("r1")), side(run("r2"))
	a.Artifact, b.Artifact = reads(`{"q":"x"}`), reads(`{"q":"y"}`)
	if d := Of(a, b, Options{}); d.First == nil || d.First.Path != "/q" ||
		d.First.Step != "tool call look_up #1" {
		t.Errorf("%s: %+v", statusesOf(d), d.First)
	}
	b.Artifact = func(ace.Ref) ([]byte, error) { return nil, errors.New("not found") }
	a.Artifact = nil
	if d := Of(a, b, Options{}); d.Differs() || len(d.Notes) != 2 ||
		!strings.Contains(d.Notes[1], "not found") {
		t.Errorf("%s: %v", statusesOf(d), d.Notes)
	}
}

func TestSentences(t *testing.T) {
	a := started("W", "w", "r1", nil).activity("a", j(`{"q":"EPS"}`), j(`{"v":1,"w":1,"z":1}`)).completed()
	b := started("W", "w", "r2", nil).activity("a", j(`{"q":"EPS"}`), j(`{"v":2,"w":2}`)).completed()
	want := "activity a #1 (event 2 in A, 2 in B): result differs at /v: 1 in A, 2 in B, and in 2 more places."
	if d := Of(side(a), side(b), Options{}); d.First.Text != want {
		t.Errorf("%s\nwant %s", d.First.Text, want)
	}
	b = started("W", "w", "r2", nil).activity("a", j(`{"q":"P/E"}`), j(`{"v":1,"w":1,"z":1}`)).completed()
	want = `activity a #1 (event 2 in A, 2 in B): input differs at /q: "EPS" in A, "P/E" in B.`
	if d := Of(side(a), side(b), Options{}); d.First.Text != want || d.FirstResult != nil {
		t.Errorf("%s\nwant %s", d.First.Text, want)
	}
}

// Different encodings of a value are equal, and an inserted list element moves no others.
func TestValues(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{`{"x":1.0,"y":[]}`, `{"y":[],"x":1}`, ""},
		{`[1,2,3]`, `[0,1,2,3]`, "/0 +0"},
		{`[1,2,3,4]`, `[1,3,4]`, "/1 -2"},
		{`{"a/b":{"~":1}}`, `{"a/b":{"~":2}}`, "/a~1b/~0 -1 +2"},
		{`{"v":null}`, `{}`, "/v -null"},
		{`{"v":null}`, `{"v":{}}`, "/v -null +{}"},
		{`[1]`, `{"0":1}`, " -[1] +{\"0\":1}"},
		{`12345678901234567890`, `12345678901234567891`, " -12345678901234567890 +12345678901234567891"},
		{`"<b>"`, `"<i>"`, ` -"<b>" +"<i>"`},
	} {
		p := &Pair{}
		var got []string
		for _, x := range p.changes(json.RawMessage(c.a), json.RawMessage(c.b), false) {
			s := x.Path
			if x.A != nil {
				s += " -" + string(x.A)
			}
			if x.B != nil {
				s += " +" + string(x.B)
			}
			got = append(got, s)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s, %s: %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

// Differences beyond MaxNodes are still detected.
func TestMaxNodes(t *testing.T) {
	list := func(last string) string {
		return "[" + strings.Repeat("[0],", MaxNodes/2+10) + last + "]"
	}
	p := &Pair{}
	got := p.changes(json.RawMessage(list("1")), json.RawMessage(list("2")), false)
	if len(got) != 1 || !p.Partial {
		t.Errorf("%d changes, partial %v", len(got), p.Partial)
	}
	long := `"` + strings.Repeat("x", 3*MaxValue) + `"`
	got = p.changes(json.RawMessage(long), json.RawMessage(`"y z"`), false)
	if len(got) != 1 || !got[0].Cut || len(got[0].A) > 2*MaxValue || !json.Valid(got[0].A) {
		t.Errorf("cut %v, %d bytes", got[0].Cut, len(got[0].A))
	}
}

// Every step is in exactly one pair, in the order of its run unless it moved.
func TestEveryStepOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var names [2][]string
		for k := range names {
			for range r.IntN(12) {
				names[k] = append(names[k], fmt.Sprintf("%c=%d", 'a'+rune(r.IntN(4)), r.IntN(2)))
			}
		}
		checkOnce(t, runOf(names[0]...), runOf(names[1]...))
	}
}

func checkOnce(t *testing.T, a, b []*historypb.HistoryEvent) {
	t.Helper()
	d := runs(a, b)
	seenA, seenB := map[int64]bool{}, map[int64]bool{}
	var lastA int64
	for _, p := range d.Pairs {
		if p.A != nil {
			if seenA[p.A.Event] || p.A.Event < lastA {
				t.Fatalf("%s: event %d of A appears twice or too late", statusesOf(d), p.A.Event)
			}
			seenA[p.A.Event], lastA = true, p.A.Event
		}
		if p.B != nil {
			if seenB[p.B.Event] {
				t.Fatalf("%s: event %d of B appears twice", statusesOf(d), p.B.Event)
			}
			seenB[p.B.Event] = true
		}
	}
	if len(seenA) != d.A.Steps || len(seenB) != d.B.Steps {
		t.Fatalf("%s: %d of %d, %d of %d steps", statusesOf(d), len(seenA), d.A.Steps, len(seenB), d.B.Steps)
	}
}

// FuzzPayloads checks that a payload equals itself and that comparing is symmetric.
func FuzzPayloads(f *testing.F) {
	f.Add(`{"a":[1,{"b":null}],"at":"2026-05-04T12:00:00Z"}`, `{"a":[0,1,{"b":1}]}`)
	f.Add(`[[],[[]]]`, `"x"`)
	f.Fuzz(func(t *testing.T, a, b string) {
		change := func(x, y string, all bool) int {
			p := &Pair{}
			return len(p.changes(json.RawMessage(x), json.RawMessage(y), all)) + p.More
		}
		for _, all := range []bool{false, true} {
			if n := change(a, a, all); n != 0 {
				t.Errorf("%q differs from itself in %d", a, n)
			}
			if x, y := change(a, b, all), change(b, a, all); (x == 0) != (y == 0) {
				t.Errorf("%q, %q: %d and %d", a, b, x, y)
			}
		}
	})
}
