package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
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
	err = e.Books.Hashes(addHash)
	if err == nil {
		err = e.Prompts.Hashes(ctx, addHash)
	}
	if err != nil {
		return garbage.Report{}, fmt.Errorf("%w: %w", ErrKeepAll, err)
	}
	s := &historyScan{e: e, roots: roots, progress: progress}
	if err := s.run(ctx); err != nil {
		return garbage.Report{}, err
	}
	return garbage.Collect(ctx, b, roots, o)
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
	events := s.e.Client.GetWorkflowHistory(ctx, run.GetWorkflowId(), run.GetRunId(), false, 0)
	for events.HasNext() {
		event, err := events.Next()
		if missing := new(serviceerror.NotFound); errors.As(err, &missing) {
			break // the server has deleted the run after its retention time
		}
		if err != nil {
			return fmt.Errorf("%w: the history of %s cannot be read: %w", ErrKeepAll, run.GetWorkflowId(),
				err)
		}
		if why := unreadable(event); why != "" {
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

// unreadable returns why the payloads of an event cannot be read, or "".
func unreadable(e *historypb.HistoryEvent) string {
	for _, p := range history.FoldedPayloads(e) {
		if driver, ok := history.StoredBy(p); ok {
			return "a payload is stored by " + driver
		}
	}
	return history.FirstEncoded([]*historypb.HistoryEvent{e})
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
