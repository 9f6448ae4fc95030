package filed

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
)

// maxPage is how many runs a page has at most, as with a server.
const maxPage = 1000

// matching is the runs that match a query, as they are listed.
func (f *Files) matching(ctx context.Context, text string) ([]*run, parsed, error) {
	list, err := f.list(ctx)
	if err != nil {
		return nil, parsed{}, err
	}
	p, err := parse(text, f.attributes())
	if err != nil {
		return nil, p, err
	}
	var hits []*run
	for _, r := range list {
		if p.matches(r) {
			hits = append(hits, r)
		}
	}
	return hits, p, nil
}

// listRuns gives a page. Its token is the run id of its last run, so that what comes while
// files are read moves nothing.
func (f *Files) listRuns(ctx context.Context, q *workflowservice.ListWorkflowExecutionsRequest, out *workflowservice.ListWorkflowExecutionsResponse) error {
	hits, p, err := f.matching(ctx, q.GetQuery())
	if err != nil {
		return err
	}
	if p.groupBy != "" {
		return serviceerror.NewInvalidArgument("invalid query: operation is not supported: 'GROUP BY' clause")
	}
	if len(q.GetNextPageToken()) > 0 {
		f.mu.Lock()
		last := f.runs[string(q.GetNextPageToken())]
		f.mu.Unlock()
		if last == nil {
			return serviceerror.NewInvalidArgument("invalid next page token")
		}
		from := slices.IndexFunc(hits, func(r *run) bool { return compareRuns(r, last) > 0 })
		if from < 0 {
			from = len(hits)
		}
		hits = hits[from:]
	}
	size := int(q.GetPageSize())
	if size <= 0 || size > maxPage {
		size = maxPage
	}
	for _, r := range hits[:min(size, len(hits))] {
		out.Executions = append(out.Executions, r.info)
	}
	if len(hits) > size {
		out.NextPageToken = []byte(hits[size-1].runID())
	}
	return nil
}

// countRuns counts, by the values of an attribute where the query asks for that.
func (f *Files) countRuns(ctx context.Context, q *workflowservice.CountWorkflowExecutionsRequest, out *workflowservice.CountWorkflowExecutionsResponse) error {
	hits, p, err := f.matching(ctx, q.GetQuery())
	if err != nil {
		return err
	}
	out.Count = int64(len(hits))
	if p.groupBy == "" {
		return nil
	}
	counts := map[string]int64{}
	for _, r := range hits {
		value, err := json.Marshal(r.values[p.groupBy])
		if err != nil {
			return err
		}
		counts[string(value)]++
	}
	for _, value := range slices.Sorted(maps.Keys(counts)) {
		out.Groups = append(out.Groups, &workflowservice.CountWorkflowExecutionsResponse_AggregationGroup{Count: counts[value],
			GroupValues: []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(value)}}})
	}
	return nil
}

// wanted is the run that a call names.
func (f *Files) wanted(ctx context.Context, e *commonpb.WorkflowExecution) (*run, error) {
	r, err := f.find(ctx, e.GetWorkflowId(), e.GetRunId())
	if err == nil && r == nil {
		name := e.GetWorkflowId()
		if e.GetRunId() != "" {
			name = fmt.Sprintf("%s, run %s,", name, e.GetRunId())
		}
		err = serviceerror.NewNotFoundf("no history of %s is in the files", name)
	}
	return r, err
}

func (f *Files) describe(ctx context.Context, q *workflowservice.DescribeWorkflowExecutionRequest, out *workflowservice.DescribeWorkflowExecutionResponse) error {
	r, err := f.wanted(ctx, q.GetExecution())
	if err != nil {
		return err
	}
	out.WorkflowExecutionInfo, out.PendingActivities = r.info, r.pending
	return nil
}
