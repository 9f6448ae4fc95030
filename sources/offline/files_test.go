package offline_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"acescope/engine/ace"
	"acescope/engine/temporal/historyfile"
	"acescope/engine/temporal/searchattr"
	"acescope/sources"
	"acescope/sources/cluster"
	"acescope/sources/experiments"
	"acescope/sources/offline"
	"acescope/sources/runs"
)

// recorded returns the text of a recorded history.
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("../../engine/workflows/testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func eventsOf(t testing.TB, data []byte) []*historypb.HistoryEvent {
	t.Helper()
	list, err := historyfile.Read(bytes.NewReader(data))
	if err != nil || len(list) != 1 {
		t.Fatalf("%d histories, %v", len(list), err)
	}
	return list[0].Events
}

func text(t testing.TB, events []*historypb.HistoryEvent) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := historyfile.Write(&b, events); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func source(name string, data []byte) offline.Source {
	return offline.Source{Name: name, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}}
}

// load reads the files and returns a client for them.
func load(t testing.TB, files ...offline.Source) (*offline.Files, client.Client) {
	t.Helper()
	f := offline.New()
	if err := f.Load(t.Context(), files, nil); err != nil {
		t.Fatal(err)
	}
	c, err := f.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return f, c
}

// all returns the recorded histories, one of them truncated.
func all(t testing.TB) []offline.Source {
	var files []offline.Source
	for _, name := range []string{"right", "wrong", "failed", "cancelled", "retried", "experiment", "fork"} {
		files = append(files, source(name+".json", recorded(t, name)))
	}
	return append(files, source("torn.json", recorded(t, "live")[:9000]))
}

func ids(t testing.TB, c client.Client, query string) string {
	t.Helper()
	var list []string
	err := runs.List(t.Context(), c, query, 0, func(r runs.Run) error {
		list = append(list, strings.TrimPrefix(r.WorkflowID, ace.TaskIDPrefix))
		return nil
	})
	if err != nil {
		return err.Error()
	}
	return strings.Join(list, " ")
}

// TestTasksWithoutExperiment lists the tasks of another program as an experiment of which there is no
// workflow, and reads its series from their histories.
func TestTasksWithoutExperiment(t *testing.T) {
	_, c := load(t, all(t)...)
	list, more, err := experiments.List(t.Context(), c)
	if err != nil || more != 0 || len(list) != 3 {
		t.Fatalf("%+v, %d more, %v", list, more, err)
	}
	row := list[slices.IndexFunc(list, func(e experiments.Experiment) bool { return e.Name() == "e2e" })]
	if row.Note == "" || row.Status != ace.Running || row.Progress != nil { // memos without verdicts
		t.Errorf("%+v", row)
	}
	if err := experiments.ReadProgress(t.Context(), c, list); err != nil {
		t.Fatal(err)
	}
	for _, e := range list { // those of closed tasks are read from the histories
		if (e.Progress == nil) != e.Open() {
			t.Errorf("%s: progress %+v", e.Name(), e.Progress)
		}
	}
	workflowID, err := experiments.Resolve(t.Context(), c, "e2e")
	if err != nil {
		t.Fatal(err)
	}
	s, err := experiments.ReadSeries(t.Context(), c, workflowID)
	if err != nil || s.Note == "" || s.Status != ace.Running || !s.Close.IsZero() {
		t.Fatalf("%+v, %v", s, err)
	}
	closed, correct, labeled := experiments.Answers(&s.Progress) // without the canceled one
	if closed != 4 || correct != 2 || labeled != 4 || len(s.Tasks) != 5 {
		t.Errorf("%d closed, %d correct of %d labeled, %d tasks", closed, correct, labeled, len(s.Tasks))
	}
	answers, bullets, accepted, failed := 0, 0, 0, 0
	for _, task := range s.Tasks {
		accepted += int(task.Accepted)
		if task.Answer != "" {
			answers++
		}
		if task.Bullets > 0 {
			bullets++
		}
		if task.Status == ace.Failed {
			failed++
		}
	}
	if answers < 3 || bullets < 2 || accepted == 0 || failed != 1 {
		t.Errorf("%d answers, %d playbook sizes, %d operations, %d failed: %+v", answers, bullets, accepted,
			failed, s.Tasks)
	}
	if _, err := experiments.Resolve(t.Context(), c, "e2"); err == nil {
		t.Error("an experiment without tasks was found")
	}
}

// TestQueries checks that queries are answered as a server answers them.
func TestQueries(t *testing.T) {
	_, c := load(t, all(t)...)
	order := strings.Fields(ids(t, c, ""))
	if len(order) != 8 || order[0] != "live" {
		t.Fatalf("order: %v", order)
	}
	of := func(want ...string) string {
		slices.SortFunc(want, func(a, b string) int {
			return slices.Index(order, a) - slices.Index(order, b)
		})
		return strings.Join(want, " ")
	}
	experiment, fork := "ace-experiment/exp", order[slices.IndexFunc(order, func(s string) bool {
		return strings.Contains(s, "~f")
	})]
	for query, want := range map[string]string{
		`ExitStatus = "wrong" AND ExperimentId = "e2e"`: of("wrong"),
		`ExitStatus IN ("wrong", 'failed') AND WorkflowId STARTS_WITH "ace/"`: of("wrong", "failed",
			fork),
		`ExitStatus NOT IN ("success", "wrong")`: of("live", "failed",
			"cancelled"),
		`ExitStatus != "success" AND NOT (ExitStatus = "wrong")`: of("live", "failed",
			"cancelled"),
		`ExecutionStatus = "Running"`: of("live"),
		`ExecutionStatus != "Running" AND CloseTime IS NOT NULL AND TaskId="right"`: of("right"),
		`CloseTime IS NULL`:                                     of("live"),
		`WorkflowType = "AceExperimentWorkflow"`:                experiment,
		`TaskId IS NULL`:                                        experiment,
		`NOT TaskId = "right" AND TaskId STARTS_WITH "r"`:       of("retried"),
		`TaskId BETWEEN "q" AND "s"`:                            of("right", "retried"),
		`TaskId NOT BETWEEN "a" AND "v"`:                        of("wrong"),
		`(TaskId = "right" OR TaskId = 'wrong')`:                of("right", "wrong"),
		`TaskId NOT STARTS_WITH "r" AND ExitStatus = "success"`: "",
		`HistoryLength > 100`:                                   experiment,
		`ExecutionDuration > "900ms"`: of("retried",
			"cancelled"),
		`StartTime > "2020-01-01T00:00:00Z" AND CloseTime < "2020-01-01T00:00:00Z"`: "",
		`TaskQueue = "ace" AND RunId = "nothing"`:                                   "",
	} {
		if got := ids(t, c, query); got != want {
			t.Errorf("%s\n got %s\nwant %s", query, got, want)
		}
	}
}

func TestBadQueries(t *testing.T) {
	_, c := load(t, source("right.json", recorded(t, "right")))
	for query, want := range map[string]string{
		`Nothing = "x"`:                "Nothing",
		`ExitStatus = `:                "malformed",
		`ExitStatus LIKE "x%"`:         "",
		`ExitStatus = wrong`:           "did you forget to quote",
		`ExitStatus ORDER BY TaskId`:   "",
		`HistoryLength = "many"`:       "HistoryLength",
		`ORDER BY StartTime`:           "ORDER BY",
		`ExitStatus = "a" LIMIT 3`:     "LIMIT",
		`GROUP BY ExitStatus`:          "GROUP BY",
		`GROUP BY ExecutionStatus`:     "GROUP BY",
		`CloseTime < "yesterday"`:      "yesterday",
		`ExecutionStatus = "Sleeping"`: "Sleeping",
	} {
		_, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		var invalid *serviceerror.InvalidArgument
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", query, err, want)
		}
	}
}

func TestCounts(t *testing.T) {
	_, c := load(t, all(t)...)
	counts, err := runs.CountRuns(t.Context(), c, "")
	if err != nil || counts.Total != 8 || counts.Wrong != 2 {
		t.Fatalf("%+v, %v", counts, err)
	}
	for exit, want := range map[ace.Status]int64{ace.Running: 1, ace.Failed: 1, ace.Canceled: 1,
		ace.Completed: 5} {
		if counts.Status[exit] != want {
			t.Errorf("%s: %d, want %d", exit, counts.Status[exit], want)
		}
	}
	facets, err := runs.CountFacets(t.Context(), c, "", runs.Known())
	if err != nil || len(facets.List) != len(runs.FacetAttributes()) {
		t.Errorf("%+v, %v", facets, err)
	}
}

// TestRun checks that a list reports about a run what its history contains.
func TestRun(t *testing.T) {
	_, c := load(t, all(t)...)
	err := runs.List(t.Context(), c, `TaskId = "wrong"`, 0, func(r runs.Run) error {
		if r.Status != ace.Completed || r.Verdict != ace.Wrong || r.Phase != ace.PhaseDone ||
			r.Summary == nil || r.Summary.Skills != 4 || r.Experiment != "e2e" ||
			r.Model != "script" || r.Events != 38 || !r.Close.After(r.Start) {
			t.Errorf("%+v %+v", r, r.Summary)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := runs.Resolve(t.Context(), c, "live")
	if err != nil || len(d.GetPendingActivities()) > 1 {
		t.Fatalf("%v, %v", d, err)
	}
	if _, err := runs.Resolve(t.Context(), c, "wrogn"); err == nil ||
		!strings.Contains(err.Error(), "near: wrong") {
		t.Errorf("a slip: %v", err)
	}
}

// TestPages reads a long history page by page, in both directions and with Temporal's iterator.
func TestPages(t *testing.T) {
	events := eventsOf(t, recorded(t, "right"))
	var long []*historypb.HistoryEvent
	for i := range 5001 {
		e := proto.Clone(events[min(i, len(events)-2)]).(*historypb.HistoryEvent)
		if i == 5000 {
			e = proto.Clone(events[len(events)-1]).(*historypb.HistoryEvent)
		}
		e.EventId = int64(i + 1)
		long = append(long, e)
	}
	_, c := load(t, source("long.json", text(t, long)))
	got, err := cluster.ReadHistory(t.Context(), c, "", "ace/right", "")
	if err != nil || !proto.Equal(&historypb.History{Events: got}, &historypb.History{Events: long}) {
		t.Errorf("%d events, %v", len(got), err)
	}
	iter, n := c.GetWorkflowHistory(t.Context(), "ace/right", "", true,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT), 0
	for ; iter.HasNext(); n++ {
		if e, err := iter.Next(); err != nil || e.GetEventId() != int64(n+1) {
			t.Fatalf("event %d: %v, %v", n, e, err)
		}
	}
	if n != 5001 {
		t.Errorf("%d events", n)
	}
	iter = c.GetWorkflowHistory(t.Context(), "ace/right", "", false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	if e, err := iter.Next(); err != nil || e.GetEventId() != 5001 || iter.HasNext() {
		t.Errorf("the last event: %v, %v", e, err)
	}
	var token []byte
	for next := int64(5001); next > 0; {
		r, err := c.WorkflowService().GetWorkflowExecutionHistoryReverse(t.Context(),
			&workflowservice.GetWorkflowExecutionHistoryReverseRequest{
				Execution: execution("ace/right"), MaximumPageSize: 256, NextPageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range r.GetHistory().GetEvents() {
			if e.GetEventId() != next {
				t.Fatalf("event %d, want %d", e.GetEventId(), next)
			}
			next--
		}
		if token = r.GetNextPageToken(); (len(token) == 0) != (next == 0) {
			t.Fatalf("token %v at %d", token, next)
		}
	}
}

// TestTruncatedFile checks that the run of a truncated file is open, and that waiting for more
// events fails with the reason.
func TestTruncatedFile(t *testing.T) {
	f, c := load(t, source("dir/torn.json", recorded(t, "live")[:9000]))
	problems, _ := f.Problems()
	if len(problems) != 1 || problems[0].Minor || !strings.Contains(problems[0].Error(), "byte 9") {
		t.Errorf("%v", problems)
	}
	n := 0
	err := cluster.Follow(t.Context(), c, "", "ace/live", "", nil, func(*historypb.HistoryEvent) error {
		n++
		return nil
	})
	if err == nil || n == 0 || !strings.Contains(err.Error(), "torn.json is incomplete: byte") ||
		!strings.Contains(err.Error(), "event") {
		t.Errorf("%d events, %v", n, err)
	}
}

func TestOddFiles(t *testing.T) {
	right, wrong := recorded(t, "right"), recorded(t, "wrong")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(right)
	z.Close()
	web := right[bytes.IndexByte(right, '[') : bytes.LastIndexByte(right, ']')+1]
	half := eventsOf(t, right)[:20]
	gone := offline.Source{Name: "gone.json", Open: func() (io.ReadCloser, error) {
		return nil, os.ErrPermission
	}}
	old := eventsOf(t, wrong)
	old[0].GetWorkflowExecutionStartedEventAttributes().WorkflowId = ""
	old[0].GetWorkflowExecutionStartedEventAttributes().OriginalExecutionRunId = ""
	for name, c := range map[string]struct {
		files    []offline.Source
		want     string // workflow ids
		events   int
		problems []string
	}{
		"gzip":   {[]offline.Source{source("a.gz", packed.Bytes())}, "right", 38, nil},
		"web ui": {[]offline.Source{source("a.json", web)}, "right", 38, nil},
		"several": {[]offline.Source{source("a.json", slices.Concat(right, wrong))}, "wrong right",
			76, nil},
		"empty": {[]offline.Source{source("a.json", nil)}, "", 0,
			[]string{"a.json: byte 0: no history found"}},
		"garbage": {[]offline.Source{source("a.json", []byte("hello")), source("b.json", right)},
			"right", 38, []string{"a.json: byte 0: a history begins with"}},
		"unreadable": {[]offline.Source{gone}, "", 0, []string{"gone.json: permission denied"}},
		"no events": {[]offline.Source{source("a.json", []byte(`{"events":[]}`))}, "", 0,
			[]string{"history 1 has no events"}},
		"twice": {[]offline.Source{source("a.json", right), source("b.gz", packed.Bytes())},
			"right", 38, []string{"also in a.json"}},
		"twice, a half": {[]offline.Source{source("a.json", text(t, half)), source("b.json", right)},
			"right", 38, []string{"also in a.json; using the longer"}},
		"a half, twice": {[]offline.Source{source("b.json", right), source("a.json", text(t, half))},
			"right", 38, []string{"also in b.json; using the longer"}},
		"of an old server": {[]offline.Source{source("dir/o.json", text(t, old))}, "wrong", 38, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f, cl := loadInOrder(t, c.files...)
			if _, events := f.Size(); ids(t, cl, "") != c.want || events != c.events {
				t.Errorf("%q, %d events", ids(t, cl, ""), events)
			}
			problems, more := f.Problems()
			if len(problems) != len(c.problems) || more > 0 {
				t.Fatalf("problems: %v", problems)
			}
			for i, p := range problems {
				if !strings.Contains(p.Error(), c.problems[i]) {
					t.Errorf("%v, want %q", p, c.problems[i])
				}
			}
		})
	}
}

// loadInOrder is load for files whose order matters.
func loadInOrder(t *testing.T, files ...offline.Source) (*offline.Files, client.Client) {
	f := offline.New()
	for _, file := range files {
		if err := f.Load(t.Context(), []offline.Source{file}, nil); err != nil {
			t.Fatal(err)
		}
	}
	c, err := f.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return f, c
}

// TestChain follows a continued run into the file of its successor.
func TestChain(t *testing.T) {
	first, second := eventsOf(t, recorded(t, "experiment")), eventsOf(t, recorded(t, "experiment"))
	first = first[:30]
	first = append(first, &historypb.HistoryEvent{EventId: 31, EventTime: first[29].EventTime,
		EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{
			WorkflowExecutionContinuedAsNewEventAttributes: &historypb.WorkflowExecutionContinuedAsNewEventAttributes{NewExecutionRunId: "second"}}})
	began := second[0].GetWorkflowExecutionStartedEventAttributes()
	root := first[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId()
	began.OriginalExecutionRunId, began.FirstExecutionRunId, began.ContinuedExecutionRunId = "second", root,
		root
	second[0].EventTime = first[30].EventTime
	_, c := load(t, source("2.json", text(t, second)), source("1.json", text(t, first)))
	chain, err := cluster.ReadChain(t.Context(), c, "", "ace-experiment/exp", "", false, nil)
	if err != nil || len(chain.Runs) != 2 || chain.RunIDs[1] != "second" || chain.Partial != "" {
		t.Errorf("%v %q, %v", chain.RunIDs, chain.Partial, err)
	}
	_, c = load(t, source("1.json", text(t, first)))
	chain, err = cluster.ReadChain(t.Context(), c, "", "ace-experiment/exp", "", false, nil)
	if err != nil || len(chain.Runs) != 1 || !strings.Contains(chain.Partial, "second") {
		t.Errorf("without the second: %v %q, %v", chain.RunIDs, chain.Partial, err)
	}
}

// TestRefusesChanges checks that runs from files cannot be changed.
func TestRefusesChanges(t *testing.T) {
	_, c := load(t, source("right.json", recorded(t, "right")))
	for what, err := range map[string]error{
		"cancel":    c.CancelWorkflow(t.Context(), "ace/right", ""),
		"terminate": c.TerminateWorkflow(t.Context(), "ace/right", "", "why"),
		"signal":    c.SignalWorkflow(t.Context(), "ace/right", "", "s", 1),
	} {
		if err == nil || !strings.Contains(err.Error(), "no server") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := c.QueryWorkflow(t.Context(), "ace/right", "", ace.QueryPhase); err == nil ||
		!strings.Contains(err.Error(), "no worker") {
		t.Errorf("query: %v", err)
	}
	if _, err := c.DescribeWorkflowExecution(t.Context(), "ace/other", ""); !cluster.NotFound(err) {
		t.Errorf("another run: %v", err)
	}
	if gap, err := searchattr.ReadGap(t.Context(), c.WorkflowService(), ""); err != nil ||
		len(gap.All()) > 0 {
		t.Errorf("attributes: %v, %v", gap, err)
	}
}

// TestWaits checks that calls wait while files are read, and stop when their context ends.
func TestWaits(t *testing.T) {
	f := offline.New()
	c, err := f.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := c.DescribeWorkflowExecution(ctx, "ace/right", ""); err == nil {
		t.Error("a run was found before any file was read")
	}
	found := make(chan error)
	go func() {
		_, err := c.DescribeWorkflowExecution(t.Context(), "ace/right", "")
		found <- err
	}()
	if err := f.Load(t.Context(), []offline.Source{source("right.json", recorded(t, "right"))},
		nil); err != nil {
		t.Fatal(err)
	}
	if err := <-found; err != nil {
		t.Error(err)
	}
}

func execution(workflowID string) *commonpb.WorkflowExecution {
	return &commonpb.WorkflowExecution{WorkflowId: workflowID}
}

// TestClockStops checks that the duration of an open run ends with its file, not today.
func TestClockStops(t *testing.T) {
	_, c := load(t, source("torn.json", recorded(t, "live")[:9000]))
	s := sources.NewFeeds()
	s.Link.SetConnection(cluster.Connection{State: cluster.ConnReady, Mode: cluster.ModeFile})
	s.Events.Look(true)
	s.Select(runs.ID{WorkflowID: "ace/live"})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx, cluster.Deps{Client: c}) }()
	defer func() { stop(); <-done }()
	for {
		<-s.Link.Changed()
		now := time.Now()
		if d, e := s.Detail.Value(), s.Events.Value(); d != nil && e != nil && d.Events == 12 &&
			d.Err != "" && e.Len() == 12 {
			if elapsed := d.Clock(now).Sub(d.Start); elapsed <= 0 || elapsed.Hours() > 1 {
				t.Errorf("the run took %s", elapsed)
			}
			if elapsed := e.Clock(now).Sub(d.Start); elapsed <= 0 || elapsed.Hours() > 1 {
				t.Errorf("on the timeline it took %s", elapsed)
			}
			return
		}
	}
}
