// Package runs lists and counts runs by visibility query.
package runs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	fastjson "github.com/segmentio/encoding/json"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
)

// PageSize is the number of runs per page, the server's maximum: a database may need longer to plan a query
// than to read the rows of one page.
const PageSize = 1000

// Reader lists runs. If Traces is set, it reads the histories that a query needs.
type Reader struct {
	Client client.Client
	Traces Traces
}

// List lists runs without reading histories; see [Reader.List].
func List(ctx context.Context, c client.Client, query string, limit int, fn func(Run) error) error {
	return Reader{Client: c}.List(ctx, query, limit, fn)
}

// List calls fn for every run that matches the query, in the server's order, until fn returns an error or
// limit runs were passed (0: all). It reads the next pages while fn works, of a long list several at the same
// time.
func (l Reader) List(ctx context.Context, query string, limit int, fn func(Run) error) error {
	ctx, cancel := context.WithCancel(ctx)
	pages := make(chan page)
	go l.readPages(ctx, query, limit, pages)
	defer func() {
		cancel()
		for range pages { // wait until the readers have ended
		}
	}()
	given := 0
	for p := range pages {
		if p.err != nil {
			return p.err
		}
		for _, r := range p.runs {
			if err := fn(r); err != nil {
				return err
			}
			if given++; limit > 0 && given >= limit {
				return nil
			}
		}
	}
	return ctx.Err()
}

// ListNewest is [List] restricted to the newest run of each chain; see [Newest].
func ListNewest(ctx context.Context, c client.Client, query string, limit int, fn func(Run) error) error {
	return Reader{Client: c}.ListNewest(ctx, query, limit, fn)
}

// ListNewest is [Reader.List] restricted to the newest run of each chain; see [Newest].
func (l Reader) ListNewest(ctx context.Context, query string, limit int, fn func(Run) error) error {
	return tryNewest(query, Newest(query), func(query string) error { return l.List(ctx, query, limit, fn) })
}

// readRows reads one page of the server's rows.
func readRows(
	ctx context.Context, c client.Client, query string, size int, token []byte,
) ([]Run, []byte, error) {
	answer, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: query, PageSize: int32(size), NextPageToken: token})
	if err != nil {
		return nil, nil, err
	}
	infos := answer.GetExecutions()
	rows := make([]Run, 0, len(infos))
	for _, info := range infos {
		rows = append(rows, Of(info))
	}
	return rows, answer.GetNextPageToken(), nil
}

// Count returns the number of runs that match the query, or -1 if the server cannot count them; see
// [VerdictCondition].
func Count(ctx context.Context, c client.Client, query string) (int64, error) {
	s, err := divide(query)
	if err != nil || !s.exact() {
		return -1, err
	}
	r, err := c.CountWorkflow(ctx,
		&workflowservice.CountWorkflowExecutionsRequest{Query: withoutHousekeeping(query)})
	return r.GetCount(), err
}

// Of reads a run from visibility. The status is the server's. The verdict is in the memo of a run that closed
// by itself; for other workers' runs, the attribute names a wrong answer.
func Of(info *workflowpb.WorkflowExecutionInfo) Run {
	r := Run{
		WorkflowID: info.GetExecution().GetWorkflowId(), RunID: info.GetExecution().GetRunId(),
		Type: info.GetType().GetName(), Status: history.StatusOf(info.GetStatus()),
		Start: info.GetStartTime().AsTime(), Events: info.GetHistoryLength(),
	}
	var exit ace.ExitStatus
	for name, payload := range info.GetSearchAttributes().GetIndexedFields() {
		if name == ace.AttrExit {
			takeText(payload, (*string)(&exit))
		}
		if field := attributes[name]; field != nil {
			takeText(payload, field(&r))
		}
		if name == AttrProblems && info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			var problems []string // such as category=WorkflowTaskFailed, then cause=…
			_ = unmarshal(payload, &problems)
			r.Retry = Retry{Retried: WorkflowTask, LastError: strings.Join(problems, ", ")}
		}
	}
	if info.GetCloseTime() != nil {
		r.Close = info.GetCloseTime().AsTime()
	}
	memo := info.GetMemo().GetFields()
	if r.Type == run.Workflow {
		r.takeListed(memo[run.MemoKey])
	}
	if r.Type == flow.Workflow { // whose attribute of the task is the name of the flow
		r.Flow = r.TaskID
		r.TaskID = strings.TrimPrefix(r.WorkflowID, flow.IDPrefix)
	}
	if r.TaskID == "" && r.Type != ace.ExperimentWorkflow {
		r.TaskID = ace.TaskIDOf(r.WorkflowID)
	}
	if unmarshal(memo[ace.MemoSummary], &r.Summary) != nil {
		r.Summary = nil
	}
	takeText(memo[ace.MemoBy], &r.By)
	if r.Type == ace.ExperimentWorkflow && r.Status.Bad() {
		r.Phase = ace.StageStopped // earlier versions and terminated ones leave the stage before
	}
	r.takeObserved(memo[ace.MemoObserved])
	if r.Open() && r.Phase == ace.PhaseReview {
		_ = unmarshal(memo[ace.MemoReview], &r.Review) // nil if it is unreadable
	}
	if _, r.Verdict = exit.Split(); r.Summary != nil && r.Summary.Verdict != "" {
		r.Verdict = r.Summary.Verdict
	}
	if unmarshal(memo[ace.MemoFork], &r.Fork) != nil || r.Fork != nil && r.Fork.WorkflowID == "" {
		r.Fork = nil
	}
	return r
}

// takeText stores a JSON string in *to. Another value leaves it unchanged.
func takeText(p *commonpb.Payload, to *string) {
	data := history.PayloadJSON(p)
	special := func(b byte) bool { return b < ' ' || b > '~' || b == '"' || b == '\\' }
	if n := len(data) - 1; n > 0 && data[0] == '"' && data[n] == '"' &&
		!slices.ContainsFunc(data[1:n], special) {
		*to = string(data[1:n]) // a list has many, and a decoder takes ten times as long
		return
	}
	_ = unmarshal(p, to)
}

// errNoJSON is the error of a payload that is missing or not JSON.
var errNoJSON = errors.New("no JSON")

// unmarshal decodes a payload in a third of the time that encoding/json takes. One with many objects and
// arrays is decoded by encoding/json, because the faster library recurses without a limit, and a deep value
// would overflow the stack.
func unmarshal(p *commonpb.Payload, v any) error {
	const most = 100
	data := history.PayloadJSON(p)
	if data == nil {
		return errNoJSON // as most are, and an error of the decoder takes time
	}
	if bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) > most {
		return json.Unmarshal(data, v)
	}
	return fastjson.Unmarshal(data, v)
}

// ReviewQuery lists the runs that wait for the review of their operations.
var ReviewQuery = fmt.Sprintf("ExecutionStatus = 'Running' AND %s = %s AND WorkflowType = %s", ace.AttrPhase,
	quote(string(ace.PhaseReview)), quote(ace.TaskWorkflow))

// takeListed sets the fields of a blueprint run from its memo.
func (r *Run) takeListed(memo *commonpb.Payload) {
	var l run.Memo
	if unmarshal(memo, &l) != nil {
		return
	}
	r.Session, r.Parent, r.Blueprint = l.SessionID, l.ParentSessionID, cmp.Or(r.Blueprint, l.AgentName)
}

// takeObserved sets the times and the source of an observed run from its memos.
func (r *Run) takeObserved(memo *commonpb.Payload) {
	var o ace.ObservedStart
	if unmarshal(memo, &o) != nil || o.At.IsZero() {
		return
	}
	r.Observed = &Span{Start: o.At, Source: o.Source, SessionID: o.SessionID}
	if r.Summary != nil {
		r.Observed.End = r.Summary.EndedAt
	}
}

// Intervals and limits of the list reader.
const (
	maxTimeout = 30 * time.Second // longest timeout of a page, which grows after each timeout
	countEvery = 10 * time.Second
	// longest time without reading the list while only its newest run is watched
	stillFor  = 30 * time.Second
	LostRetry = 300 * time.Millisecond
)

// ListOnce reads the first page of the runs that match a query, and returns the token of the next.
func ListOnce(ctx context.Context, c client.Client, query string, size int) ([]Run, []byte, error) {
	return listPage(ctx, c, query, size, nil, cluster.CallTimeout)
}

func listPage(ctx context.Context, c client.Client, query string, size int, token []byte,
	timeout time.Duration) (
	[]Run, []byte, error,
) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s, err := divide(query)
	if err != nil {
		return nil, nil, err
	}
	if !s.exact() {
		size = PageSize // many rows may be left out
	}
	rows, next, err := readRows(ctx, c, withoutHousekeeping(s.server), size, token)
	return s.of(rows), next, err
}

// Newest narrows a visibility query to the newest run of each chain. A query that mentions ContinuedAsNew or
// RunId stays as it is.
func Newest(query string) string {
	if asServer.MatchString(query) {
		return query
	}
	return And(query, `ExecutionStatus != "ContinuedAsNew"`)
}

var asServer = regexp.MustCompile(`(?i)\b(ContinuedAsNew|RunId)\b`)

// tryNewest calls ask with the narrowed query. If the server rejects that, it calls ask with the query
// itself, so that the error refers to the user's text.
func tryNewest(query, newest string, ask func(query string) error) error {
	err := ask(newest)
	if err != nil && badQuery(err) && newest != query {
		err = ask(query)
	}
	return err
}

// And narrows a visibility query.
func And(query, more string) string {
	if strings.TrimSpace(query) == "" {
		return more
	}
	return "(" + query + ") AND " + more
}

// Housekeeping reports whether workflows of a type serve acescope itself: runners, the dispatcher, the store.
func Housekeeping(workflowType string) bool {
	return workflowType == runner.Workflow || workflowType == runner.DispatcherWorkflow ||
		workflowType == ace.StoreWorkflow
}

// notHousekeeping excludes the workflows that serve acescope itself. notSteps excludes blueprint runs that
// execute a step of a task.
const (
	notHousekeeping = `WorkflowType NOT IN ("` + runner.Workflow + `", "` + runner.DispatcherWorkflow +
		`", "` +
		ace.StoreWorkflow + `")`
	notSteps = `WorkflowId NOT STARTS_WITH "` + run.IDPrefix + run.StepPrefix + `"`
)

// withoutHousekeeping narrows a query to the work of users and agents, unless the query names workflow types
// or IDs. A query about blueprints or runners includes steps. The result begins with the query, so that error
// positions stay valid.
//
// It also replaces conditions on relative times, which shifts the positions after them.
func withoutHousekeeping(query string) string {
	query = withTimes(query, time.Now())
	lower := strings.ToLower(query)
	about := func(attribute string) bool { return strings.Contains(lower, strings.ToLower(attribute)) }
	narrow := notHousekeeping
	switch {
	case about("WorkflowType"), about("WorkflowId"), about("RunId"):
		return query
	case !about(ace.AttrBlueprint) && !about(ace.AttrRunner):
		narrow += " AND " + notSteps
	}
	return narrowed(query, narrow)
}

// OfAnyType returns a query for all runs that match a query, including the types and steps that lists leave
// out.
func OfAnyType(query string) string { return narrowed(query, "WorkflowType IS NOT NULL") }

// narrowed narrows a query. The result begins with the query if possible.
func narrowed(query, more string) string {
	switch {
	case strings.TrimSpace(query) == "":
		return more
	case strings.Contains(strings.ToLower(query), " or "):
		return And(query, more)
	}
	return query + " AND " + more
}
