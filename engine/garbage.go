package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"acescope/engine/ace"
	"acescope/engine/store/garbage"
	"acescope/engine/temporal/history"
)

// ErrKeepAll means that nothing was deleted, because it is unknown which objects are needed.
var ErrKeepAll = errors.New("nothing was deleted")

const (
	scanPage    = 1000 // workflows of a page
	scanAtATime = 8    // histories that are read at a time
)

// CollectGarbage deletes the artifacts, playbooks and logs to which no workflow, playbook branch or phase
// prompt of the namespace refers, from its shared store or from the data directory. It reads all histories of
// the namespace. progress is called after each history with the number of histories so far; it may be nil.
func CollectGarbage(
	ctx context.Context, e *Engine, o garbage.Options, progress func(histories int),
) (garbage.Report, error) {
	if err := checkSoleUser(ctx, e); err != nil {
		return garbage.Report{}, err
	}
	b, release, err := e.openBucket(ctx)
	if err != nil {
		return garbage.Report{}, err
	}
	defer release()
	if err := e.Books.Sync(ctx); err != nil {
		return garbage.Report{}, err
	}
	roots := garbage.NewRoots()
	addHash := func(hash string) { roots.Add([]byte(hash)) }
	// An item moves from the journal of an evaluation to a history, which is therefore read later.
	for _, dir := range []string{e.journalDir(), e.operationsDir()} {
		if err := addFiles(roots, dir); err != nil {
			return garbage.Report{}, fmt.Errorf("%w: %w", ErrKeepAll, err)
		}
	}
	err = e.Books.Hashes(addHash)
	if err == nil {
		err = e.Prompts.Hashes(ctx, addHash)
	}
	if err != nil {
		return garbage.Report{}, fmt.Errorf("%w: %w", ErrKeepAll, err)
	}
	s := &historyScan{e: e, roots: roots, progress: progress}
	if err := errors.Join(s.run(ctx), s.schedules(ctx)); err != nil {
		return garbage.Report{}, err
	}
	return garbage.Collect(ctx, b, roots, o)
}

// addFiles adds the digests in the files of a directory, which may not exist.
func addFiles(roots *garbage.Roots, dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		var text []byte
		if err == nil && !d.IsDir() {
			text, err = os.ReadFile(path)
			roots.Add(text)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// clustersFile marks the artifacts of a data directory that are also used by the runs of a cluster without a
// shared store.
const clustersFile = "used-by-clusters"

// checkSoleUser returns an error if runs of other namespaces use the store: their histories are not read.
func checkSoleUser(ctx context.Context, e *Engine) error {
	if e.shared == nil {
		_, err := os.Stat(filepath.Join(e.dir, "artifacts", clustersFile))
		if e.node == nil || err == nil {
			return fmt.Errorf("%w: clusters without a shared store use %s too, and what they need is unknown",
				ErrKeepAll, e.dir)
		}
		return nil
	}
	users := 0
	for _, err := range e.shared.List(ctx, usersPrefix) {
		if err != nil {
			return err
		}
		users++
	}
	if users > 1 {
		return fmt.Errorf("%w: %d namespaces use the store %s, and what the others need is unknown; "+
			"give each namespace a store of its own, for example with ?prefix=NAME/", ErrKeepAll, users,
			e.shared)
	}
	return nil
}

// historyScan adds the objects to which the histories of a namespace refer.
type historyScan struct {
	e        *Engine
	progress func(int)

	mu    sync.Mutex
	roots *garbage.Roots
	read  int
}

func (s *historyScan) run(ctx context.Context) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(scanAtATime)
	list := &workflowservice.ListWorkflowExecutionsRequest{Namespace: s.e.namespace, PageSize: scanPage}
	for first := true; first || len(list.NextPageToken) > 0; first = false {
		page, err := s.e.Client.ListWorkflow(ctx, list)
		if err != nil {
			return errors.Join(fmt.Errorf("list the workflows: %w", err), work.Wait())
		}
		for _, info := range page.GetExecutions() {
			work.Go(func() error { return s.scan(ctx, info) })
		}
		list.NextPageToken = page.GetNextPageToken()
	}
	return work.Wait()
}

// scan reads the history of one run.
func (s *historyScan) scan(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) error {
	run := info.GetExecution()
	if err := s.add(info); err != nil {
		return err
	}
	// Before the history: the result of a step replaces its heartbeats.
	if info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		if err := s.pending(ctx, run); err != nil {
			return err
		}
	}
	events := s.e.Client.GetWorkflowHistory(ctx, run.GetWorkflowId(), run.GetRunId(), false, 0)
	for events.HasNext() {
		event, err := events.Next()
		if isNotFound(err) {
			break // the server has deleted the run after its retention time
		}
		if err != nil {
			return fmt.Errorf("%w: the history of %s cannot be read: %w", ErrKeepAll, run.GetWorkflowId(),
				err)
		}
		if why := history.FirstEncoded([]*historypb.HistoryEvent{event}); why != "" {
			return fmt.Errorf("%w: what %s needs is unknown, because %s", ErrKeepAll, run.GetWorkflowId(),
				why)
		}
		if err := s.add(event); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roots.AddLogs(ace.RunLogsDir(run.GetWorkflowId(), run.GetRunId()))
	s.read++
	if s.progress != nil {
		s.progress(s.read)
	}
	return nil
}

// pending adds what an open run has besides its history: heartbeats and failures of pending steps.
func (s *historyScan) pending(ctx context.Context, run *commonpb.WorkflowExecution) error {
	d, err := s.e.Client.DescribeWorkflowExecution(ctx, run.GetWorkflowId(), run.GetRunId())
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: the pending steps of %s cannot be read: %w", ErrKeepAll, run.GetWorkflowId(),
			err)
	}
	for _, a := range d.GetPendingActivities() {
		if err := readable(a.GetHeartbeatDetails(), "a heartbeat of "+run.GetWorkflowId()); err != nil {
			return err
		}
	}
	return s.add(d)
}

// schedules adds the inputs of the runs that schedules will start.
func (s *historyScan) schedules(ctx context.Context) error {
	service := s.e.Client.WorkflowService()
	list := &workflowservice.ListSchedulesRequest{Namespace: s.e.namespace, MaximumPageSize: scanPage}
	for first := true; first || len(list.NextPageToken) > 0; first = false {
		page, err := service.ListSchedules(ctx, list)
		if err != nil {
			return fmt.Errorf("%w: list the schedules: %w", ErrKeepAll, err)
		}
		for _, entry := range page.GetSchedules() {
			id := entry.GetScheduleId()
			d, err := service.DescribeSchedule(ctx, &workflowservice.DescribeScheduleRequest{
				Namespace: s.e.namespace, ScheduleId: id})
			if isNotFound(err) {
				continue
			}
			if err == nil {
				err = readable(d.GetSchedule().GetAction().GetStartWorkflow().GetInput(), "the schedule "+id)
			}
			if err == nil {
				err = s.add(d)
			}
			if err != nil {
				return fmt.Errorf("read the schedule %s: %w", id, err)
			}
		}
		list.NextPageToken = page.GetNextPageToken()
	}
	return nil
}

// readable returns an [ErrKeepAll] if payloads cannot be read.
func readable(list *commonpb.Payloads, what string) error {
	for _, p := range list.GetPayloads() {
		if why := history.Unreadable(p); why != "" {
			return fmt.Errorf("%w: what %s needs is unknown, because a payload is %s", ErrKeepAll, what, why)
		}
	}
	return nil
}

// add adds the digests in a message. They are in the texts of its payloads, which the protobuf encoding
// contains unchanged.
func (s *historyScan) add(m proto.Message) error {
	content, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roots.Add(content)
	return nil
}
