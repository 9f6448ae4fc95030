package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// sim is a server that holds runs in order and lists them in pages; tokens are positions. It counts the
// calls.
type sim struct {
	client.Client

	mu        sync.Mutex
	runs      []Run // in order
	pageErr   error // of the next listings
	countErr  error
	groups    bool            // whether it can group by status
	undated   map[string]bool // run ids of closed runs without a duration
	lists     int
	longs     int // lists of long runs
	rows      int // returned rows
	counted   []string
	described map[string]int
	trying    map[string]simAttempt
	answers   map[string]any // by run id
	healthy   bool
	missing   []string
	block     chan struct{} // closed to let listings continue; nil for no block
}

func newSim(runs ...Run) *sim {
	s := &sim{runs: runs, groups: true, described: map[string]int{}, trying: map[string]simAttempt{},
		answers: map[string]any{}, healthy: true}
	slices.SortFunc(s.runs, compareRuns)
	return s
}

// simAttempt is the pending activity of a simulated run.
type simAttempt struct {
	number    int32
	lastError string
}

var simStart = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// simRuns returns n closed tasks, newest first.
func simRuns(n int) []Run {
	runs := make([]Run, n)
	for i := range runs {
		runs[i] = simRun(i)
	}
	return runs
}

// simRun returns the i-th newest closed task; negative ones are newer.
func simRun(i int) Run {
	at := simStart.Add(-time.Duration(i) * time.Second)
	status := []ace.Status{ace.Completed, ace.Completed, ace.Completed, ace.Failed}[(i%4+4)%4]
	verdict := []ace.Verdict{ace.Correct, ace.Wrong, ace.Correct, ace.Ungraded}[(i%4+4)%4]
	return Run{WorkflowID: fmt.Sprintf("ace/t-%06d", i), RunID: fmt.Sprintf("run-%06d", i),
		Type: ace.TaskWorkflow, TaskID: fmt.Sprintf("t-%06d", i),
		Experiment: "e" + fmt.Sprint((i%3+3)%3), Status: status, Verdict: verdict, Phase: ace.PhaseDone,
		Start: at.Add(-2 * time.Second), Close: at,
		Summary: &ace.Summary{Skills: 3, SkillsOK: 2, Added: 1, Usage: ace.Usage{CostUSD: 0.01}}}
}

func simOpen(i int) Run {
	r := simRun(i)
	r.Close, r.Status, r.Verdict, r.Phase, r.Summary = time.Time{}, ace.Running, "", ace.PhaseSkills, nil
	return r
}

// put adds runs, or moves them to their new position.
func (s *sim) put(runs ...Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	moved := map[string]bool{}
	for _, r := range runs {
		moved[r.RunID] = true
	}
	rest := slices.DeleteFunc(slices.Clone(s.runs), func(o Run) bool { return moved[o.RunID] })
	s.runs = append(rest, runs...)
	slices.SortFunc(s.runs, compareRuns)
}

func (s *sim) ListWorkflow(ctx context.Context,
	r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse,
	error) {
	s.mu.Lock()
	block := s.block
	s.lists++
	s.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pageErr != nil {
		return nil, s.pageErr
	}
	runs, at := s.closed(r.GetQuery()), 0
	if len(r.GetNextPageToken()) > 0 {
		var after Run
		if err := json.Unmarshal(r.GetNextPageToken(), &after); err != nil {
			return nil, err
		}
		i, found := slices.BinarySearchFunc(runs, after, compareRuns)
		if at = i; found {
			at++
		}
	}
	page := runs[at:min(at+int(r.GetPageSize()), len(runs))]
	if strings.Contains(r.GetQuery(), ace.ExperimentWorkflow) {
		page = nil
	}
	s.rows += len(page)
	out := &workflowservice.ListWorkflowExecutionsResponse{}
	for _, run := range page {
		out.Executions = append(out.Executions, infoOf(run))
	}
	if len(page) == int(r.GetPageSize()) {
		last := page[len(page)-1]
		out.NextPageToken, _ = json.Marshal(Run{RunID: last.RunID, Start: last.Start, Close: last.Close})
	}
	return out, nil
}

var (
	simTimes     = regexp.MustCompile(`(CloseTime|ExecutionTime) (<=|>) "([^"]+)"`)
	simDurations = regexp.MustCompile(`ExecutionDuration >= 0 AND ExecutionDuration <= (\d+)`)
	simLong      = regexp.MustCompile(
		`\(ExecutionDuration > (\d+) OR ExecutionDuration < 0 OR ExecutionDuration IS NULL\)`)
)

// closed returns the runs that match the conditions on times and durations in a query.
func (s *sim) closed(query string) []Run {
	var keep []func(Run) bool
	for _, m := range simTimes.FindAllStringSubmatch(query, -1) {
		bound, err := time.Parse(time.RFC3339Nano, m[3])
		if err != nil {
			panic(err)
		}
		keep = append(keep, func(r Run) bool {
			at := r.Close
			if m[1] == "ExecutionTime" {
				at = r.Start
			} else if r.Open() {
				return false
			}
			return at.After(bound) == (m[2] == ">")
		})
	}
	within := func(r Run, limit string) bool {
		n, err := strconv.ParseInt(limit, 10, 64)
		if err != nil {
			panic(err)
		}
		took := r.Close.Sub(r.Start)
		return !r.Open() && !s.undated[r.RunID] && took >= 0 && took <= time.Duration(n)
	}
	for _, m := range simDurations.FindAllStringSubmatch(query, -1) {
		keep = append(keep, func(r Run) bool { return within(r, m[1]) })
	}
	for _, m := range simLong.FindAllStringSubmatch(query, -1) {
		s.longs++
		keep = append(keep, func(r Run) bool { return !within(r, m[1]) })
	}
	if keep == nil {
		return s.runs
	}
	var runs []Run
	for _, r := range s.runs {
		if !slices.ContainsFunc(keep, func(keep func(Run) bool) bool { return !keep(r) }) {
			runs = append(runs, r)
		}
	}
	return runs
}

var simJSON = map[string][]byte{"encoding": []byte("json/plain")}

func infoOf(r Run) *workflowpb.WorkflowExecutionInfo {
	status, err := enumspb.WorkflowExecutionStatusFromString(history.ExecutionStatus(r.Status))
	if err != nil {
		panic(err)
	}
	attrs := map[string]*commonpb.Payload{}
	for _, name := range append(FacetAttributes(), ace.AttrTask) {
		if v := r.Value(name); v != "" {
			attrs[name] = &commonpb.Payload{Metadata: simJSON, Data: []byte(strconv.Quote(v))}
		}
	}
	info := &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: r.WorkflowID,
		RunId: r.RunID},
		Type: &commonpb.WorkflowType{Name: r.Type}, StartTime: timestamppb.New(r.Start), Status: status,
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: attrs}}
	if !r.Open() {
		info.CloseTime = timestamppb.New(r.Close)
	}
	if r.Summary != nil {
		r.Summary.Verdict = r.Verdict
		data, _ := json.Marshal(r.Summary)
		info.Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{ace.MemoSummary: {Metadata: simJSON,
			Data: data}}}
	}
	return info
}

// CountWorkflow supports the console's counts: by one value of an attribute, and by status.
func (s *sim) CountWorkflow(_ context.Context,
	r *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse,
	error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted = append(s.counted, r.GetQuery())
	if s.countErr != nil {
		return nil, s.countErr
	}
	out := &workflowservice.CountWorkflowExecutionsResponse{}
	query, grouped := strings.CutSuffix(r.GetQuery(), "GROUP BY ExecutionStatus")
	if grouped && !s.groups {
		return nil, serviceerror.NewInvalidArgument("GROUP BY is not supported")
	}
	by, matches := map[string]int64{}, matching(query)
	for _, run := range s.runs {
		if matches(run) {
			out.Count++
			by[infoOf(run).GetStatus().String()]++
		}
	}
	for status, n := range by {
		p, _ := converter.GetDefaultDataConverter().ToPayload(status)
		out.Groups = append(out.Groups,
			&workflowservice.CountWorkflowExecutionsResponse_AggregationGroup{GroupValues: []*commonpb.Payload{p}, Count: n})
	}
	return out, nil
}

// matching returns a function that reports whether a run has the picked values of a query; it ignores other
// conditions.
func matching(query string) func(Run) bool {
	if e, err := parse(query); err != nil || alternative(e) {
		return func(Run) bool { return true }
	}
	p := SplitQuery(query)
	var inner []func(Run) bool
	for _, part := range p.Rest {
		if strings.HasPrefix(part, "(") {
			inner = append(inner, matching(part[1:len(part)-1]))
		}
	}
	return func(r Run) bool {
		for name, values := range p.Values {
			if !slices.Contains(values, r.Value(name)) {
				return false
			}
		}
		return !slices.ContainsFunc(inner, func(matches func(Run) bool) bool { return !matches(r) })
	}
}

func (s *sim) DescribeWorkflowExecution(_ context.Context, _,
	runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.described[runID]++
	out := &workflowservice.DescribeWorkflowExecutionResponse{}
	if t, ok := s.trying[runID]; ok {
		out.PendingActivities = []*workflowpb.PendingActivityInfo{{Attempt: t.number,
			ActivityType: &commonpb.ActivityType{Name: "run_generator"},
			LastFailure:  &failurepb.Failure{Message: t.lastError}}}
	}
	return out, nil
}

func (s *sim) QueryWorkflow(_ context.Context, _, runID, name string, _ ...any) (converter.EncodedValue,
	error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.answers[runID]
	if !ok {
		return nil, serviceerror.NewDeadlineExceeded("no worker")
	}
	p, err := converter.GetDefaultDataConverter().ToPayloads(a)
	if err != nil {
		return nil, err
	}
	return client.NewValue(p), nil
}

func (s *sim) CheckHealth(context.Context, *client.CheckHealthRequest) (*client.CheckHealthResponse, error) {
	if s.mu.Lock(); !s.healthy {
		defer s.mu.Unlock()
		return nil, serviceerror.NewUnavailable("gone")
	}
	s.mu.Unlock()
	return &client.CheckHealthResponse{}, nil
}

func (s *sim) WorkflowService() workflowservice.WorkflowServiceClient { return simService{sim: s} }

// simService is a server with an SQL database: the namespace maps attributes to columns.
type simService struct {
	workflowservice.WorkflowServiceClient
	sim *sim
}

func (s simService) GetSearchAttributes(
	context.Context, *workflowservice.GetSearchAttributesRequest, ...grpc.CallOption,
) (*workflowservice.GetSearchAttributesResponse, error) {
	keys := map[string]enumspb.IndexedValueType{"Int01": enumspb.INDEXED_VALUE_TYPE_INT}
	for i := range ace.SearchAttributes() {
		keys[fmt.Sprintf("Keyword%02d", i)] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	return &workflowservice.GetSearchAttributesResponse{Keys: keys}, nil
}

func (s simService) DescribeNamespace(
	context.Context, *workflowservice.DescribeNamespaceRequest, ...grpc.CallOption,
) (*workflowservice.DescribeNamespaceResponse, error) {
	s.sim.mu.Lock()
	defer s.sim.mu.Unlock()
	aliases := map[string]string{}
	for i, name := range ace.SearchAttributes() {
		if slices.Contains(s.sim.missing, name) {
			aliases["Int01"] = name // of another type
		} else {
			aliases[fmt.Sprintf("Keyword%02d", i)] = name
		}
	}
	config := &namespacepb.NamespaceConfig{CustomSearchAttributeAliases: aliases}
	return &workflowservice.DescribeNamespaceResponse{Config: config}, nil
}
