package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"acescope/engine/ace"
)

// Rhythm and bounds of the health reader.
const (
	systemEvery   = 2 * time.Second
	sizeEvery     = 30 * time.Second
	maxSizedFiles = 50_000
	maxQueues     = 8
	queueSample   = 200 // open runs whose task queues are looked at
)

// readSystem reads how the machinery is until ctx ends.
func (s *Store) readSystem(ctx context.Context, d Deps) {
	var size dirSize
	for ctx.Err() == nil {
		snap := s.Snapshot()
		if snap.System == nil {
			first := &System{At: s.now(), Loading: true, Mode: snap.Connection.Mode, Address: snap.Connection.Address, Space: d.Namespace,
				Sources: sourcesOf(snap), Process: ThisProcess()}
			s.update(func(snap *Snapshot) { snap.System = first })
		}
		now := readSystem(ctx, d, snap.Connection, &size)
		if ctx.Err() != nil {
			return
		}
		snap = s.Snapshot()
		now.Sources = sourcesOf(snap)
		now.Process.Snapshots = snap.Seq
		if d.Screen != nil {
			now.Process.Screen = d.Screen()
		}
		s.update(func(snap *Snapshot) { snap.System = now })
		for s.rest(ctx, systemEvery) == nil && s.Snapshot().Runs.Paused {
		}
	}
}

// ReadSystem reads once how the machinery is.
func ReadSystem(ctx context.Context, d Deps, c Connection) *System {
	return readSystem(ctx, d, c, &dirSize{})
}

func readSystem(ctx context.Context, d Deps, c Connection, size *dirSize) *System {
	began := time.Now()
	s := &System{Mode: c.Mode, Address: c.Address, Space: d.Namespace}
	if d.Host != nil {
		s.Host = d.Host()
		size.read(s.Host.DataDir)
		s.Host.Size, s.Host.Files, s.Host.Partial, s.Host.SizeErr = size.bytes, size.files, size.partial, size.err
	}
	if c.Mode == ModeFile {
		s.askCounts(ctx, d)
	} else if s.askServer(ctx, d); s.Err == "" {
		s.askAttributes(ctx, d)
		s.askQueues(ctx, d)
		s.askCounts(ctx, d)
	}
	if d.Meter != nil {
		s.Calls = d.Meter.Stats()
	}
	if d.Agents != nil {
		s.Agents = d.Agents(ctx)
	}
	s.Process = ThisProcess()
	s.At, s.Took = time.Now(), time.Since(began)
	return s
}

func (s *System) askServer(ctx context.Context, d Deps) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	began := time.Now()
	r, err := d.Client.WorkflowService().GetClusterInfo(ctx, &workflowservice.GetClusterInfoRequest{})
	if err != nil && !Away(err) { // a cluster may keep this to itself
		var sys *workflowservice.GetSystemInfoResponse
		if sys, err = d.Client.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{}); err == nil {
			s.Server = ServerInfo{Version: sys.GetServerVersion(), Answered: time.Since(began)}
			return
		}
	}
	if err != nil {
		s.Err = plainError(err)
		return
	}
	s.Server = ServerInfo{Version: r.GetServerVersion(), Cluster: r.GetClusterName(), Store: r.GetPersistenceStore(),
		Search: r.GetVisibilityStore(), Shards: r.GetHistoryShardCount(), Answered: time.Since(began)}
}

func (s *System) askAttributes(ctx context.Context, d Deps) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	missing, err := MissingAttributes(ctx, d.Client, d.Namespace)
	if err != nil {
		s.AttrErr = plainError(err)
	}
	s.Attributes = missing
}

func (s *System) askCounts(ctx context.Context, d Deps) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var err error
	if s.TotalRuns, err = Count(ctx, d.Client, ""); err == nil {
		s.OpenRuns, err = Count(ctx, d.Client, `ExecutionStatus = "Running"`)
	}
	if err != nil {
		s.CountErr = plainError(err)
	}
}

// askQueues describes the contract's task queue and those that open runs are on.
func (s *System) askQueues(ctx context.Context, d Deps) {
	for _, name := range openQueues(ctx, d) {
		for _, kind := range []enumspb.TaskQueueType{enumspb.TASK_QUEUE_TYPE_WORKFLOW, enumspb.TASK_QUEUE_TYPE_ACTIVITY} {
			q := describeQueue(ctx, d, name, kind)
			q.Ours = name == queueOf(d)
			s.Queues = append(s.Queues, q)
		}
	}
}

func queueOf(d Deps) string { return or(d.TaskQueue, ace.TaskQueue) }

func openQueues(ctx context.Context, d Deps) []string {
	names := []string{queueOf(d)}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := d.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: `ExecutionStatus = "Running"`, PageSize: queueSample})
	if err != nil {
		return names
	}
	for _, e := range r.GetExecutions() {
		if q := e.GetTaskQueue(); q != "" && !slices.Contains(names, q) && len(names) < maxQueues {
			names = append(names, q)
		}
	}
	return names
}

func describeQueue(ctx context.Context, d Deps, name string, kind enumspb.TaskQueueType) Queue {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	q := Queue{Name: name, Kind: "workflow"}
	if kind == enumspb.TASK_QUEUE_TYPE_ACTIVITY {
		q.Kind = "activity"
	}
	r, err := d.Client.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: d.Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: name, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		TaskQueueType: kind, ReportStats: true})
	if err != nil {
		q.Err = plainError(err)
		return q
	}
	for _, p := range r.GetPollers() {
		q.Pollers = append(q.Pollers, Poller{p.GetIdentity(), p.GetLastAccessTime().AsTime(), p.GetRatePerSecond()})
	}
	slices.SortFunc(q.Pollers, func(a, b Poller) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Identity, b.Identity))
	})
	st := r.GetStats()
	q.Backlog, q.Oldest = st.GetApproximateBacklogCount(), st.GetApproximateBacklogAge().AsDuration()
	q.In, q.Out = float64(st.GetTasksAddRate()), float64(st.GetTasksDispatchRate())
	return q
}

// dirSize is how much a directory holds, read now and then.
type dirSize struct {
	at      time.Time
	bytes   int64
	files   int
	partial bool
	err     string
}

func (d *dirSize) read(dir string) {
	if dir == "" || time.Since(d.at) < sizeEvery && !d.at.IsZero() {
		return
	}
	*d = dirSize{at: time.Now()}
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went while we looked
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

// sourcesOf lists what the console shows, how fresh it is and what was dropped of it.
func sourcesOf(s *Snapshot) []SourceAge {
	var list []SourceAge
	for _, h := range s.Health {
		list = append(list, SourceAge{Name: h.Name, OK: h.OK, Text: h.Text, Since: h.Since})
	}
	r := s.Runs
	runs := SourceAge{Name: "list of runs", OK: r.Err == "", Text: r.Err, Since: r.Loaded}
	switch {
	case r.Err != "":
	case r.Paused:
		runs.Text = "paused"
	case r.Loaded.IsZero():
		runs.Text = "not read yet"
	default:
		runs.Text = "read every " + r.Interval.String()
	}
	list = append(list, runs)
	if d := s.Detail; d != nil {
		row := SourceAge{Name: "selected run", OK: d.Err == "", Text: string(d.From), Since: d.Updated, Dropped: int64(d.LogDropped)}
		if d.Err != "" {
			row.Text, row.Minor = d.Err, true
		}
		list = append(list, row)
	}
	if t := s.Triage; t != nil {
		row := SourceAge{Name: "triage", OK: t.Err == "", Text: t.Err, Since: t.At, Dropped: int64(t.GroupsDropped)}
		switch {
		case t.Err != "":
		case t.Scan.Running:
			row.Text = "scanning: " + t.Scan.Stage
		default:
			row.Text = fmt.Sprintf("%d ended runs scanned", t.Ended)
		}
		list = append(list, row)
	}
	return append(list, partsOf(s)...)
}

// partsOf is [sourcesOf] for what is read only while its screen is shown. A failure to
// read one is told there, and is no fault of the machinery.
func partsOf(s *Snapshot) []SourceAge {
	var list []SourceAge
	add := func(name, failed, text string, at time.Time, dropped int64) {
		list = append(list, SourceAge{Name: name, OK: failed == "", Minor: true, Text: or(failed, text), Since: at, Dropped: dropped})
	}
	if e := s.Events; e != nil {
		row := fmt.Sprintf("%d events held", e.Len())
		unread := int64(0)
		switch {
		case e.Cut:
			unread = e.Left
		case e.Left > 0:
			row += fmt.Sprintf(", %d not read yet", e.Left)
		}
		add("timeline", e.Err, row, e.Updated, unread)
	}
	if b := s.Books; b != nil {
		row := fmt.Sprintf("%d %s", len(b.Branches), plural(len(b.Branches), "line"))
		if b.Branch.Name != "" {
			row += fmt.Sprintf(", %d versions of %s", b.Branch.Versions, b.Branch.Name)
		}
		add("playbooks", b.Err, or(b.Missing, row), b.Updated, 0)
	}
	if e := s.Experiments; e != nil {
		dropped := e.More
		for _, series := range e.Series {
			dropped += int64(series.Dropped)
		}
		add("experiments", e.Err, fmt.Sprintf("%d listed, %d with curves", len(e.Rows), len(e.Series)), e.Loaded, dropped)
	}
	if l := s.Logs; l != nil {
		row := fmt.Sprintf("%d lines of %d %s", len(l.Lines), len(l.Files), plural(len(l.Files), "file"))
		if l.Trouble != "" {
			row += ", " + l.Trouble
		}
		add("logs", l.Err, row, l.Updated, l.Dropped)
	}
	if f := s.Facets; f != nil {
		add("facets", f.Err, fmt.Sprintf("%d attributes counted", len(f.List)), f.Counted, 0)
	}
	return list
}
