package system

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"acescope/engine/ace"
	"acescope/engine/agents/observe"
	"acescope/engine/agents/observe/spool"
	"acescope/engine/temporal/searchattr"
	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// Intervals and bounds of the health reader.
const (
	ReadEvery     = 2 * time.Second
	sizeEvery     = 30 * time.Second
	maxSizedFiles = 50_000
	maxQueues     = 8
	queueSample   = 200 // open runs whose task queues are described
)

// Read reads the health once.
func Read(ctx context.Context, d cluster.Deps, c cluster.Connection) *System {
	return ReadOnce(ctx, d, c, &Slow{})
}

func ReadOnce(ctx context.Context, d cluster.Deps, c cluster.Connection, slow *Slow) *System {
	began := time.Now()
	s := New(c.Mode, c.Address, d.Namespace)
	if d.Host != nil {
		s.Host = d.Host()
	}
	slow.read(ctx, d, s.Host.DataDir)
	size := slow.size
	s.Store, s.Host.Size, s.Host.Files, s.Host.Partial, s.Host.SizeErr = slow.store, size.bytes, size.files,
		size.partial, size.err
	if c.Mode == cluster.ModeFile {
		s.askCounts(ctx, d)
	} else if s.askServer(ctx, d); s.Err == "" {
		s.askAttributes(ctx, d)
		s.Queues = append(s.Queues, Queues(ctx, d)...)
		s.askCounts(ctx, d)
	}
	if d.Spool != "" {
		q, err := observe.ReadQuarantine(d.Spool)
		err = cmp.Or(spool.Check(d.Spool), err, spool.CheckSpace(d.Spool))
		if s.Spool = &q; err != nil {
			s.SpoolErr = err.Error()
		}
	}
	if d.Meter != nil {
		s.Calls = d.Meter.Stats()
	}
	if d.Agents != nil {
		s.Agents = d.Agents(ctx)
	}
	s.Process = ThisProcess()
	s.At, s.TookMS = time.Now().UTC(), cluster.Millis(time.Since(began))
	return s
}

func (s *System) askServer(ctx context.Context, d cluster.Deps) {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	began := time.Now()
	r, err := d.Client.WorkflowService().GetClusterInfo(ctx, &workflowservice.GetClusterInfoRequest{})
	if err != nil && !cluster.Unreachable(err) { // a cluster may deny this
		var sys *workflowservice.GetSystemInfoResponse
		if sys, err = d.Client.WorkflowService().GetSystemInfo(ctx,
			&workflowservice.GetSystemInfoRequest{}); err == nil {
			s.Server = ServerInfo{Version: sys.GetServerVersion(),
				AnsweredMS: cluster.Millis(time.Since(began))}
			return
		}
	}
	if err != nil {
		s.Err = cluster.PlainError(err)
		return
	}
	s.Server = ServerInfo{Version: r.GetServerVersion(), Cluster: r.GetClusterName(),
		Store:  r.GetPersistenceStore(),
		Search: r.GetVisibilityStore(), Shards: r.GetHistoryShardCount(),
		AnsweredMS: cluster.Millis(time.Since(began))}
}

func (s *System) askAttributes(ctx context.Context, d cluster.Deps) {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	gap, err := searchattr.ReadGap(ctx, d.Client.WorkflowService(), d.Namespace)
	if err != nil {
		_, s.noNamespace = errors.AsType[*serviceerror.NamespaceNotFound](err)
		s.AttrErr = cluster.PlainError(err)
		return
	}
	s.Attributes = gap.All()
}

func (s *System) askCounts(ctx context.Context, d cluster.Deps) {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	var err error
	if s.TotalRuns, err = runs.Count(ctx, d.Client, ""); err == nil {
		s.OpenRuns, err = runs.Count(ctx, d.Client, `ExecutionStatus = "Running"`)
	}
	if err != nil {
		s.CountErr = cluster.PlainError(err)
	}
}

// Queues describes the contract's task queue and those of open runs.
func Queues(ctx context.Context, d cluster.Deps) (list []Queue) {
	for _, name := range openQueues(ctx, d) {
		for _, kind := range []enumspb.TaskQueueType{enumspb.TASK_QUEUE_TYPE_WORKFLOW,
			enumspb.TASK_QUEUE_TYPE_ACTIVITY} {
			q := describeQueue(ctx, d, name, kind)
			q.Ours = name == queueOf(d)
			list = append(list, q)
		}
	}
	return list
}

func queueOf(d cluster.Deps) string { return cmp.Or(d.TaskQueue, ace.TaskQueue) }

func openQueues(ctx context.Context, d cluster.Deps) []string {
	names := []string{queueOf(d)}
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	r, err := d.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: `ExecutionStatus = "Running"`, PageSize: queueSample})
	if err != nil {
		return names
	}
	for _, e := range r.GetExecutions() {
		if e.GetType().GetName() == ace.StoreWorkflow {
			continue // no worker executes it
		}
		if q := e.GetTaskQueue(); q != "" && !slices.Contains(names, q) && len(names) < maxQueues {
			names = append(names, q)
		}
	}
	return names
}

func describeQueue(ctx context.Context, d cluster.Deps, name string, kind enumspb.TaskQueueType) Queue {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	q := Queue{Name: name, Kind: "workflow", Pollers: []Poller{}}
	if kind == enumspb.TASK_QUEUE_TYPE_ACTIVITY {
		q.Kind = "activity"
	}
	r, err := d.Client.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: d.Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: name,
			Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		TaskQueueType: kind, ReportStats: true})
	if err != nil {
		q.Err = cluster.PlainError(err)
		return q
	}
	q.Pollers, q.Gone = LivePollers(r.GetPollers(), time.Now())
	st := r.GetStats()
	q.Backlog, q.OldestMS = st.GetApproximateBacklogCount(),
		cluster.Millis(st.GetApproximateBacklogAge().AsDuration())
	q.In, q.Out = float64(st.GetTasksAddRate()), float64(st.GetTasksDispatchRate())
	return q
}

// LivePollers returns the workers that poll, the most recent first, and the newest access of those that
// ended, or zero. A server lists workers for five minutes after their last access; a worker that polls
// returns once a minute. If the server's clock differs from now by more than that allows, the last access is
// taken to be now; a smaller difference adds to their age.
func LivePollers(listed []*taskqueuepb.PollerInfo, now time.Time) (alive []Poller, gone time.Time) {
	var newest time.Time
	for _, p := range listed {
		if last := p.GetLastAccessTime().AsTime(); last.After(newest) {
			newest = last
		}
	}
	if age := now.Sub(newest); age < 0 || age > listedFor {
		now = newest
	}
	alive = []Poller{}
	for _, p := range listed {
		last := p.GetLastAccessTime().AsTime()
		if now.Sub(last) <= oldPoller {
			alive = append(alive, Poller{p.GetIdentity(), last, p.GetRatePerSecond()})
		} else if last.After(gone) {
			gone = last
		}
	}
	slices.SortFunc(alive, func(a, b Poller) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Identity, b.Identity))
	})
	return alive, gone
}

// Slow holds the readings that take long, which are repeated from time to time.
type Slow struct {
	at    time.Time
	size  dirSize
	store StoreInfo
}

func (w *Slow) read(ctx context.Context, d cluster.Deps, dir string) {
	if time.Since(w.at) < sizeEvery && !w.at.IsZero() {
		return
	}
	*w = Slow{at: time.Now()}
	if dir != "" {
		w.size.read(dir)
	}
	if d.Store != nil {
		w.store.read(ctx, d)
	}
}

func (i *StoreInfo) read(ctx context.Context, d cluster.Deps) {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	began := time.Now()
	var err error
	i.URL, err = d.Store(ctx)
	if i.AnsweredMS = cluster.Millis(time.Since(began)); err != nil {
		i.Err = cluster.PlainError(err)
	}
}

// dirSize is the size of a directory.
type dirSize struct {
	bytes   int64
	files   int
	partial bool
	err     string
}

func (d *dirSize) read(dir string) {
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the file was deleted meanwhile
		}
		if err != nil {
			return err
		}
		if d.files >= maxSizedFiles {
			d.partial = true
			return fs.SkipAll
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			d.bytes += info.Size()
			d.files++
		}
		return nil
	})
	if err != nil {
		d.err = err.Error()
	}
}
