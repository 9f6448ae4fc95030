package traces

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/agents/price"
	"acescope/engine/temporal/historyfile"
	"acescope/engine/trace/adapter"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// server serves one history for every run and counts the readings by run ID.
type server struct {
	client.Client
	events []*historypb.HistoryEvent
	length int64 // that the server reports of open runs
	fail   error

	mu    sync.Mutex
	reads map[string]int
}

type iterator struct {
	events []*historypb.HistoryEvent
	fail   error
}

func (s *server) GetWorkflowHistory(_ context.Context, _, run string, _ bool,
	_ enumspb.HistoryEventFilterType,
) client.HistoryEventIterator {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads[run]++
	return &iterator{s.events, s.fail}
}

func (s *server) DescribeWorkflowExecution(context.Context, string, string) (
	*workflowservice.DescribeWorkflowExecutionResponse, error,
) {
	return &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{HistoryLength: s.length}}, nil
}

func (i *iterator) HasNext() bool { return len(i.events) > 0 }

func (i *iterator) Next() (*historypb.HistoryEvent, error) {
	if i.fail != nil {
		return nil, i.fail
	}
	e := i.events[0]
	i.events = i.events[1:]
	return e, nil
}

// recorded returns a server with the recorded run of an agent: 4 requests, 4,980 tokens.
func recorded(t *testing.T) *server {
	t.Helper()
	f, err := os.Open("../../engine/trace/adapter/testdata/oa-ok.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	events, err := historyfile.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return &server{events: events[0].Events, reads: map[string]int{}}
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func closed(n int) runs.Run {
	return runs.Run{WorkflowID: "w", RunID: "run-" + strconv.Itoa(n), Type: "Desk",
		Start: noon, Close: noon.Add(time.Duration(n) * time.Second)}
}

// read reads a run with a new index on the file and returns it.
func read(t *testing.T, s *server, path, version string, r runs.Run) runs.Run {
	t.Helper()
	reader := NewReader(New(path, version), s, "ns")
	unread, _ := reader.Unread([]runs.Run{r}, 10)
	if err := errors.Join(reader.Read(t.Context(), unread, nil), reader.Save()); err != nil {
		t.Fatal(err)
	}
	reader.Fill(&r)
	return r
}

// Closed runs are read once, by whichever process, unless adapters, prices or the program differ, or the file
// is damaged.
func TestCache(t *testing.T) {
	s, path := recorded(t), filepath.Join(t.TempDir(), "traces.cache")
	r := closed(1)
	check := func(what, version string, reads int) {
		t.Helper()
		got := read(t, s, path, version, r)
		if f := got.Tokens(); f.N != 4980 || !f.Known || f.Partial || got.Calls().N != 4 || got.Summary == nil {
			t.Errorf("%s: %+v tokens, %+v calls, summary %v", what, f, got.Calls(), got.Summary)
		}
		if s.reads[r.RunID] != reads {
			t.Errorf("%s: read %d times, want %d", what, s.reads[r.RunID], reads)
		}
	}
	check("first", "v1", 1)
	check("kept", "v1", 1)
	check("another program", "v2", 2)
	adapter.Use(nil, func() *price.Prices {
		p, err := price.Shipped().With([]price.Price{{Models: []string{"gpt-5"}, Input: 1e6}})
		if err != nil {
			t.Error(err)
		}
		return p
	})
	t.Cleanup(func() { adapter.Use(nil, price.Shipped) })
	check("other prices", "v2", 3)
	if got := read(t, s, path, "v2", r); got.Summary.Usage.CostUSD < 100 {
		t.Errorf("cost %v with a price of a dollar a token", got.Summary.Usage.CostUSD)
	}
	adapter.Use([]adapter.Adapter{{Framework: "own", Activity: adapter.Paths{"x"}}}, price.Shipped)
	check("other adapters", "v2", 4)
	if err := os.WriteFile(path, []byte("no cache"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("damaged file", "v2", 5)
	check("replaced file", "v2", 5)
	r.Trace = nil
	other := NewReader(New(path, "v2"), s, "another")
	if unread, _ := other.Unread([]runs.Run{r}, 1); len(unread) != 1 {
		t.Error("known in another namespace")
	}
}

// Two processes that write the file keep what the other has read.
func TestCacheOfTwoProcesses(t *testing.T) {
	s, path := recorded(t), filepath.Join(t.TempDir(), "traces.cache")
	a, b := NewReader(New(path, ""), s, "ns"), NewReader(New(path, ""), s, "ns")
	for n, reader := range []*Reader{a, b} {
		reader.Unread([]runs.Run{closed(n)}, 1) // loads
	}
	for n, reader := range []*Reader{a, b} {
		if err := errors.Join(reader.Read(t.Context(), []runs.Run{closed(n)}, nil), reader.Save()); err != nil {
			t.Fatal(err)
		}
	}
	all := []runs.Run{closed(0), closed(1)}
	if unread, _ := NewReader(New(path, ""), s, "ns").Unread(all, 10); len(unread) != 0 {
		t.Errorf("not kept: %v", unread)
	}
}

// The runs that closed first are dropped.
func TestBound(t *testing.T) {
	x := New("", "")
	for n := range 2 * maxKept {
		x.put("ns", closed(n).RunID, entry{close: closed(n).Close})
	}
	if len(x.known) != maxKept {
		t.Errorf("%d runs kept", len(x.known))
	}
	oldest, newest := closed(maxKept-1), closed(2*maxKept-1)
	if _, unread := x.get("ns", &oldest, noon); !unread {
		t.Error("an old run is kept")
	}
	if _, unread := x.get("ns", &newest, noon); unread {
		t.Error("the newest run is dropped")
	}
}

// An open run is read again when its history has grown, and once when it has closed. It is not kept in the file.
func TestOpenRun(t *testing.T) {
	s, path := recorded(t), filepath.Join(t.TempDir(), "traces.cache")
	s.length = 7
	reader := NewReader(New(path, ""), s, "ns")
	open := closed(1)
	open.Close = time.Time{}
	again := func(length int64, reads int) {
		t.Helper()
		s.length = length
		reader.mu.Lock()
		k := key{"ns", open.RunID}
		if e, ok := reader.known[k]; ok { // its time has come
			e.due = noon
			reader.known[k] = e
		}
		reader.mu.Unlock()
		if err := reader.Read(t.Context(), []runs.Run{open}, nil); err != nil {
			t.Fatal(err)
		}
		if s.reads[open.RunID] != reads {
			t.Errorf("length %d: read %d times, want %d", length, s.reads[open.RunID], reads)
		}
	}
	again(7, 1)
	again(7, 1)
	again(9, 2)
	if err := reader.Read(t.Context(), []runs.Run{open}, nil); err != nil || s.reads[open.RunID] != 2 {
		t.Errorf("read before its time: %d, %v", s.reads[open.RunID], err)
	}
	if err := reader.Save(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an open run is in the file: %v", err)
	}
	if unread, _ := reader.Unread([]runs.Run{closed(1)}, 1); len(unread) != 1 {
		t.Error("a run that has closed since is not read")
	}
}

// A stream keeps the order, reads at most as many histories as allowed, and says how many it left out. A failure
// is reported once and leaves the run without a trace.
func TestStream(t *testing.T) {
	s := recorded(t)
	reader := NewReader(New("", ""), s, "ns")
	reader.Most = 60
	var got []runs.Run
	stream := reader.NewStream(t.Context(), func(r runs.Run) error {
		got = append(got, r)
		return nil
	})
	var err error
	for n := 0; n < 100 && err == nil; n++ {
		err = stream.Add(closed(n))
	}
	if err = stream.Flush(err); err != nil || len(got) != 100 || reader.Skipped() != 40 {
		t.Fatalf("%d runs, %d left out, %v", len(got), reader.Skipped(), err)
	}
	traced := 0
	for n, r := range got {
		if r.RunID != closed(n).RunID {
			t.Fatalf("run %d is %s", n, r.RunID)
		}
		if r.Trace != nil {
			traced++
		}
	}
	if traced != 60 {
		t.Errorf("%d runs with a trace", traced)
	}
	s.fail = serviceerror.NewInternal("broken")
	failing := NewReader(New("", ""), s, "ns")
	reports := 0
	failing.Report = func(error) { reports++ }
	list := []runs.Run{closed(1), closed(2)}
	if err := failing.Read(t.Context(), list[:1], nil); err != nil {
		t.Error(err)
	}
	if err := failing.Read(t.Context(), list, nil); err != nil || reports != 1 {
		t.Errorf("%d reports, %v", reports, err)
	}
	if failing.Fill(&list[0]); list[0].Trace != nil || list[0].Summary != nil {
		t.Errorf("trace of an unread history: %+v", list[0])
	}
}

// Reading ends with the context.
func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	reader := NewReader(New("", ""), recorded(t), "ns")
	if err := reader.Read(ctx, []runs.Run{closed(1)}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if !histories.LacksTrace(closed(1)) {
		t.Error("a run of another type has no trace in its memo")
	}
}
