package sources

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
)

// Bounds and rhythm of the list reader.
const (
	listPage      = 200
	callTimeout   = 3 * time.Second
	countEvery    = 10 * time.Second
	lostRetry     = 300 * time.Millisecond
	runningInList = 500
	askAtMost     = 10
	askTimeout    = time.Second
)

// listing is what the list reader holds between readings. Pages beyond the first are
// read once; what is open among them is read again each time.
type listing struct {
	first   []Run
	older   []Run
	token   []byte
	loaded  int // pages
	counted time.Time
	newest  string
}

// watchRuns reads the list at the store's interval, at once when woken, and sooner
// while the server is away.
func (s *Store) watchRuns(ctx context.Context, c client.Client) {
	for {
		s.readRuns(ctx, c)
		if s.sleep(ctx) != nil {
			return
		}
	}
}

func (s *Store) sleep(ctx context.Context) error {
	for {
		snap := s.Snapshot()
		wait := snap.Runs.Interval
		if snap.Connection.State == ConnLost {
			wait = lostRetry
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-s.wake:
			timer.Stop()
			return nil
		case <-timer.C:
			if !s.Snapshot().Runs.Paused {
				return nil
			}
		}
	}
}

func (s *Store) readRuns(ctx context.Context, c client.Client) {
	s.mu.Lock()
	query, pages, state := s.query, s.pages, s.listing
	s.mu.Unlock()
	err := state.read(ctx, c, query, pages)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.listFailed(query, err)
		return
	}
	s.reached()
	if !s.keep(query, state) {
		return
	}
	s.count(ctx, c, query, state)
	s.askOpen(ctx, c, query, state.first)
}

// askOpen asks the newest open tasks for their skills so far, since only a run that has
// ended leaves a summary. The first that does not answer ends the round.
func (s *Store) askOpen(ctx context.Context, c client.Client, query string, rows []Run) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	sums := map[string]*ace.Summary{}
	for _, r := range rows {
		if len(sums) >= askAtMost {
			break
		}
		if !r.Open() || r.Type != ace.TaskWorkflow {
			continue
		}
		sum, err := liveSummary(ctx, c, r)
		if err != nil {
			break
		}
		sums[r.RunID] = sum
	}
	if len(sums) == 0 {
		return
	}
	s.update(func(snap *Snapshot) {
		if s.query != query {
			return
		}
		list := slices.Clone(snap.Runs.Rows)
		for i := range list {
			if sum := sums[list[i].RunID]; sum != nil && list[i].Summary == nil {
				list[i].Summary = sum
			}
		}
		snap.Runs.Rows = list
	})
}

func liveSummary(ctx context.Context, c client.Client, r Run) (*ace.Summary, error) {
	v, err := c.QueryWorkflow(ctx, r.WorkflowID, r.RunID, ace.QuerySkills)
	if err != nil {
		return nil, err
	}
	var a ace.SkillAnswer
	if err := v.Get(&a); err != nil {
		return nil, err
	}
	sum := &ace.Summary{}
	for _, u := range a.Skills {
		sum.Skills += u.Calls
		sum.SkillsOK += u.OK
	}
	return sum, nil
}

// keep publishes a reading unless another query was asked for meanwhile.
func (s *Store) keep(query string, state listing) bool {
	rows := state.rows()
	current := true
	s.update(func(snap *Snapshot) {
		if s.query != query {
			current = false
			return
		}
		state.counted, state.newest = s.listing.counted, s.listing.newest
		s.listing = state
		snap.Runs.Rows, snap.Runs.More = rows, len(state.token) > 0
		snap.Runs.Loaded, snap.Runs.Loading = s.now(), false
		snap.Runs.Err, snap.Runs.ErrAt = "", -1
	})
	return current
}

func (l *listing) read(ctx context.Context, c client.Client, query string, pages int) error {
	infos, token, err := listOnce(ctx, c, query, listPage, nil)
	if err != nil {
		return err
	}
	l.first = infos
	if l.loaded == 0 {
		l.loaded, l.token = 1, token
	}
	for l.loaded < pages && len(l.token) > 0 {
		more, next, err := listOnce(ctx, c, query, listPage, l.token)
		if err != nil {
			return err
		}
		l.older = append(l.older[:len(l.older):len(l.older)], more...)
		l.token = next
		l.loaded++
	}
	return l.refreshOpen(ctx, c, query)
}

// refreshOpen reads again those older rows that were open when they were loaded.
func (l *listing) refreshOpen(ctx context.Context, c client.Client, query string) error {
	if !slices.ContainsFunc(l.older, Run.Open) {
		return nil
	}
	open, _, err := listOnce(ctx, c, And(query, `ExecutionStatus = "Running"`), runningInList, nil)
	if err != nil {
		return err
	}
	still := map[string]Run{}
	for _, r := range open {
		still[r.RunID] = r
	}
	older := make([]Run, 0, len(l.older))
	for _, r := range l.older {
		if r.Open() {
			now, ok := still[r.RunID]
			if !ok { // it closed: the first page has it, or the next loading will
				continue
			}
			r = now
		}
		older = append(older, r)
	}
	l.older = older
	return nil
}

// rows joins the pages, each run once, in the server's order: open runs by start,
// then closed ones by close, newest first.
func (l *listing) rows() []Run {
	seen := make(map[string]bool, len(l.first)+len(l.older))
	rows := make([]Run, 0, len(l.first)+len(l.older))
	for _, part := range [][]Run{l.first, l.older} {
		for _, r := range part {
			if !seen[r.RunID] {
				seen[r.RunID] = true
				rows = append(rows, r)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b Run) int {
		if a.Open() != b.Open() {
			if a.Open() {
				return -1
			}
			return 1
		}
		return cmp.Or(b.Close.Compare(a.Close), b.Start.Compare(a.Start))
	})
	return rows
}

func listOnce(ctx context.Context, c client.Client, query string, size int, token []byte) ([]Run, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: query, PageSize: int32(size), NextPageToken: token})
	if err != nil {
		return nil, nil, err
	}
	return runsOf(r.GetExecutions()), r.GetNextPageToken(), nil
}

func runsOf(infos []*workflowpb.WorkflowExecutionInfo) []Run {
	runs := make([]Run, 0, len(infos))
	for _, info := range infos {
		runs = append(runs, runOf(info))
	}
	return runs
}

// count asks how many runs there are by outcome, when the list has changed or the last
// counts are old.
func (s *Store) count(ctx context.Context, c client.Client, query string, state listing) {
	newest := fingerprint(state.first)
	s.mu.Lock()
	fresh := s.listing.newest == newest && s.now().Sub(s.listing.counted) < countEvery
	s.mu.Unlock()
	if fresh {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	total, err := Count(ctx, c, query)
	counts := map[ace.ExitStatus]int64{}
	for _, exit := range ace.ExitStatuses() {
		if err != nil {
			break
		}
		counts[exit], err = Count(ctx, c, And(query, ace.AttrExit+` = "`+string(exit)+`"`))
	}
	if err != nil {
		return // the list itself was read: the counts keep their age
	}
	s.update(func(snap *Snapshot) {
		if s.query == query {
			snap.Runs.Total, snap.Runs.Counts = total, counts
			s.listing.counted, s.listing.newest = s.now(), newest
		}
	})
}

func fingerprint(rows []Run) string {
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(r.RunID)
		b.WriteString(string(r.Exit))
	}
	return b.String()
}

func (s *Store) listFailed(query string, err error) {
	if Away(err) {
		s.failed(err)
		return
	}
	s.update(func(snap *Snapshot) {
		if s.query == query {
			snap.Runs.Err, snap.Runs.Loading = plainError(err), false
			snap.Runs.ErrAt = QueryErrorAt(query, err)
		}
	})
}

// And narrows a visibility query.
func And(query, more string) string {
	if strings.TrimSpace(query) == "" {
		return more
	}
	return "(" + query + ") AND " + more
}

// plainError is an error's text in one line, without the wrapping that gRPC adds.
func plainError(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if _, after, ok := strings.Cut(text, "desc = "); ok {
		text = after
	}
	return text
}
