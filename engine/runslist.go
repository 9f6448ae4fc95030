package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"acescope/engine/ace"
	"acescope/engine/history"
	"acescope/engine/run"
)

// Bounds of a list.
const (
	defaultList = 100
	maxScan     = 20_000 // runs that are looked at for one
)

// List implements [run.Verbs]. Open runs come first, then the newest that ended.
func (r *Runs) List(ctx context.Context, f run.Filter) ([]run.Summary, error) {
	limit := f.Limit
	if limit <= 0 {
		limit = defaultList
	}
	out := []run.Summary{}
	err := r.scan(ctx, f, func(s run.Summary) bool {
		out = append(out, s)
		return len(out) < limit
	})
	return out, err
}

// newestOf is the newest run of a session.
func (r *Runs) newestOf(ctx context.Context, sessionID string) (string, error) {
	r.mu.Lock()
	own, started := r.newest[sessionID]
	r.mu.Unlock()
	newest := run.Summary{RunID: own.RunID, CreatedAt: own.CreatedAt}
	err := r.scan(ctx, run.Filter{SessionID: sessionID}, func(s run.Summary) bool {
		if s.CreatedAt.After(newest.CreatedAt) {
			newest = s
		}
		return true
	})
	if err != nil && !started {
		return "", err
	}
	if newest.RunID == "" {
		return "", fmt.Errorf("%w: %s", run.ErrNotFound, sessionID)
	}
	return newest.RunID, nil
}

// scan goes over the runs of a filter until it is told to stop.
func (r *Runs) scan(ctx context.Context, f run.Filter, take func(run.Summary) bool) error {
	query := []string{"WorkflowType = " + strconv.Quote(run.Workflow)}
	for _, c := range []struct{ attribute, value string }{{ace.AttrTask, f.SessionID}, {ace.AttrBlueprint, f.AgentName}} {
		if c.value == "" {
			continue
		}
		if !run.ValidName(c.value) {
			return nil // nothing is called so
		}
		query = append(query, c.attribute+" = "+strconv.Quote(c.value))
	}
	var token []byte
	for seen := 0; seen < maxScan; {
		page, err := r.e.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: strings.Join(query, " AND "), PageSize: 1000, NextPageToken: token})
		if err != nil {
			return fmt.Errorf("list runs: %w", err)
		}
		for _, info := range page.GetExecutions() {
			s := summaryOf(info)
			if f.Parent != "" && s.ParentSessionID != f.Parent || f.Status != "" && s.Status != f.Status {
				continue
			}
			if !take(s) {
				return nil
			}
		}
		seen += len(page.GetExecutions())
		if token = page.GetNextPageToken(); len(token) == 0 {
			return nil
		}
	}
	return nil
}

// summaryOf reads what lists know of a run. Where its workflow was ended without a word of
// its own, the server's counts.
func summaryOf(info *workflowpb.WorkflowExecutionInfo) run.Summary {
	attributes := info.GetSearchAttributes().GetIndexedFields()
	s := run.Summary{RunID: run.IDOf(info.GetExecution().GetWorkflowId()), SessionID: textIn(attributes, ace.AttrTask),
		AgentName: textIn(attributes, ace.AttrBlueprint), Status: run.Status(textIn(attributes, ace.AttrPhase)),
		ExitStatus: ace.ExitStatus(textIn(attributes, ace.AttrExit)), RunnerID: textIn(attributes, ace.AttrRunner),
		CreatedAt: info.GetStartTime().AsTime()}
	var listed run.Listed
	if json.Unmarshal(history.JSONOf(info.GetMemo().GetFields()[run.MemoRun]), &listed) == nil {
		s.Type, s.ParentSessionID = listed.Type, listed.ParentSessionID
	}
	if info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return s
	}
	s.EndedAt = endOf(info)
	if s.Status.Over() {
		return s
	}
	switch info.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		s.Status, s.ExitStatus = run.Stopped, ace.Cancelled
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		s.Status, s.ExitStatus = run.Failed, ace.Timeout
	default:
		s.Status, s.ExitStatus = run.Failed, ace.Failed
	}
	return s
}

func endOf(info *workflowpb.WorkflowExecutionInfo) time.Time {
	if info.GetCloseTime() == nil {
		return time.Time{}
	}
	return info.GetCloseTime().AsTime()
}

func textIn(fields map[string]*commonpb.Payload, name string) (text string) {
	_ = json.Unmarshal(history.JSONOf(fields[name]), &text)
	return text
}
