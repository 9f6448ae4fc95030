// Package runs lists and counts runs by visibility query. Window holds a bounded part of a list of any length.
package runs

import (
	"cmp"
	"context"
	"encoding/json"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/history"
)

// PageSize is how many runs are asked of the server at a time: half of its largest page,
// which costs little time and saves memory.
const PageSize = 500

// List calls fn for every run that matches the query, in the server's order, until fn
// returns an error or limit runs were given (0: all). The next page is read while fn
// works on one; no more than two pages are held.
func List(ctx context.Context, c client.Client, query string, limit int, fn func(Run) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pages := make(chan page)
	go readPages(ctx, c, query, limit, pages)
	given := 0
	for p := range pages {
		if p.err != nil {
			return p.err
		}
		for _, info := range p.runs {
			if err := fn(runOf(info)); err != nil {
				return err
			}
			if given++; limit > 0 && given >= limit {
				return nil
			}
		}
	}
	return ctx.Err()
}

// ListNewest is [List] of the newest of the runs that continue one another as new; see
// [Newest].
func ListNewest(ctx context.Context, c client.Client, query string, limit int, fn func(Run) error) error {
	return OfNewest(query, Newest(query), func(query string) error { return List(ctx, c, query, limit, fn) })
}

type page struct {
	runs []*workflowpb.WorkflowExecutionInfo
	err  error
}

// firstPage is small, so that the first line is out while the server reads the rest.
const firstPage = 50

func readPages(ctx context.Context, c client.Client, query string, limit int, out chan<- page) {
	defer close(out)
	size := firstPage
	var token []byte
	for {
		if limit > 0 {
			size = min(size, limit)
		}
		r, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: work(query), PageSize: int32(size), NextPageToken: token})
		select {
		case out <- page{r.GetExecutions(), err}:
		case <-ctx.Done():
			return
		}
		token = r.GetNextPageToken()
		if err != nil || len(token) == 0 {
			return
		}
		size = PageSize
	}
}

// Count is how many runs match the query.
func Count(ctx context.Context, c client.Client, query string) (int64, error) {
	r, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: work(query)})
	return r.GetCount(), err
}

// runOf reads what visibility knows of a run.
func runOf(info *workflowpb.WorkflowExecutionInfo) Run {
	attrs := info.GetSearchAttributes().GetIndexedFields()
	r := Run{
		WorkflowID: info.GetExecution().GetWorkflowId(),
		RunID:      info.GetExecution().GetRunId(),
		Type:       info.GetType().GetName(),
		TaskID:     keyword(attrs, ace.AttrTask),
		Experiment: keyword(attrs, ace.AttrExperiment),
		Dataset:    keyword(attrs, ace.AttrDataset),
		Model:      keyword(attrs, ace.AttrModel),
		Adapter:    keyword(attrs, ace.AttrAdapter),
		Blueprint:  keyword(attrs, ace.AttrBlueprint),
		Runner:     keyword(attrs, ace.AttrRunner),
		Phase:      ace.Phase(keyword(attrs, ace.AttrPhase)),
		Exit:       exitOf(info, keyword(attrs, ace.AttrExit)),
		Start:      info.GetStartTime().AsTime(),
		Events:     info.GetHistoryLength(),
	}
	if info.GetCloseTime() != nil {
		r.Close = info.GetCloseTime().AsTime()
	}
	if r.Type == run.Workflow {
		r.takeListed(info.GetMemo().GetFields()[run.MemoKey])
	}
	if r.TaskID == "" && r.Type != ace.ExperimentWorkflow {
		r.TaskID = ace.TaskIDOf(r.WorkflowID)
	}
	if data := history.PayloadJSON(info.GetMemo().GetFields()[ace.MemoSummary]); data != nil {
		var sum ace.Summary
		if json.Unmarshal(data, &sum) == nil {
			r.Summary = &sum
		}
	}
	if data := history.PayloadJSON(info.GetMemo().GetFields()[ace.MemoFork]); data != nil {
		var from ace.Forked
		if json.Unmarshal(data, &from) == nil && from.WorkflowID != "" {
			r.Fork = &from
		}
	}
	return r
}

// takeListed takes over what a run of a blueprint was started with, as far as lists tell.
func (r *Run) takeListed(memo *commonpb.Payload) {
	var l run.Memo
	if json.Unmarshal(history.PayloadJSON(memo), &l) != nil {
		return
	}
	r.Session, r.Parent, r.Blueprint = l.SessionID, l.ParentSessionID, cmp.Or(r.Blueprint, l.AgentName)
}

func keyword(attrs map[string]*commonpb.Payload, name string) string {
	data := history.PayloadJSON(attrs[name])
	if data == nil {
		return ""
	}
	var text string
	if json.Unmarshal(data, &text) != nil {
		return ""
	}
	return text
}

// exitOf trusts the server over the attribute: a run that was terminated, timed out or
// never had the attribute did not set it.
func exitOf(info *workflowpb.WorkflowExecutionInfo, attr string) ace.ExitStatus {
	said := ace.ExitStatus(attr)
	if said != "" && said != ace.Running {
		return said
	}
	return exitOfStatus(info.GetStatus())
}
