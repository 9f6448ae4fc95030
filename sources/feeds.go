// Package sources assembles the feeds of one console. Every feed is a package of its own; this package
// connects them: it passes on the selected run and the query of the list of runs, and rereads payloads when
// the codec server answers again.
package sources

import (
	"context"
	"sync"

	"acescope/sources/cluster"
	"acescope/sources/costs"
	"acescope/sources/detail"
	"acescope/sources/evaluations"
	"acescope/sources/experiments"
	"acescope/sources/feed"
	"acescope/sources/histories"
	"acescope/sources/logs"
	"acescope/sources/phaseprompts"
	"acescope/sources/playbooks"
	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/sources/scoreboard"
	"acescope/sources/sessions"
	"acescope/sources/system"
	"acescope/sources/traces"
	"acescope/sources/triage"
)

// Feeds are the feeds of one console. Run reads them; the screens show them.
type Feeds struct {
	Link        *cluster.Link
	Runs        *runs.ListFeed
	Facets      *runs.FacetFeed
	RunCounts   *runs.CountFeed
	Detail      *feed.Feed[runs.ID, *histories.Detail] // of the selected run
	Events      *histories.EventFeed
	Artifacts   *histories.ArtifactFeed
	Replay      *histories.ReplayFeed
	Lineage     *histories.LineageFeed
	Diff        *feed.Feed[histories.DiffAsk, *histories.RunDiff]
	Scoreboard  *feed.Feed[string, *scoreboard.Scoreboard]
	Verified    *histories.VerifyFeed
	Logs        *logs.Feed
	Playbooks   *playbooks.Feed
	Prompts     *feed.Feed[phaseprompts.Ask, *phaseprompts.Prompts]
	Experiments *experiments.Feed
	Evaluations *feed.Feed[string, *evaluations.Evaluated]
	Triage      *triage.Feed
	Sessions    *sessions.Feed
	Approvals   *sessions.ApprovalFeed
	Transcripts *sessions.TranscriptFeed
	Costs       *feed.Feed[struct{}, *costs.Costs]
	Runners     *feed.Feed[string, *runners.Runners]
	System      *feed.Feed[struct{}, *system.System]

	retryCodec chan struct{} // one slot
	connected  chan struct{} // closed once Link.Deps is set
}

// NewFeeds returns feeds that are not connected yet.
func NewFeeds() *Feeds {
	link := cluster.NewLink()
	list := runs.NewListFeed(link)
	verified := histories.NewVerifyFeed(link)
	f := &Feeds{
		Link:        link,
		Runs:        list,
		Facets:      runs.NewFacetFeed(link, list),
		RunCounts:   runs.NewCountFeed(link, list),
		Detail:      detail.NewFeed(link),
		Events:      histories.NewEventFeed(link),
		Artifacts:   histories.NewArtifactFeed(link),
		Replay:      histories.NewReplayFeed(link, verified),
		Lineage:     histories.NewLineageFeed(link),
		Diff:        histories.NewDiffFeed(link),
		Scoreboard:  scoreboard.NewFeed(link),
		Verified:    verified,
		Logs:        logs.NewFeed(link),
		Playbooks:   playbooks.NewFeed(link),
		Prompts:     phaseprompts.NewFeed(link),
		Experiments: experiments.NewFeed(link),
		Evaluations: evaluations.NewFeed(link),
		Triage:      triage.NewFeed(link),
		Sessions:    sessions.NewFeed(link),
		Approvals:   sessions.NewApprovalFeed(link),
		Transcripts: sessions.NewTranscriptFeed(link),
		Costs:       costs.NewFeed(link, list),
		Runners:     runners.NewFeed(link),
		retryCodec:  make(chan struct{}, 1),
		connected:   make(chan struct{}),
	}
	f.System = newSystemFeed(f)
	return f
}

// Run reads from a server until ctx ends. Transcripts are read by [sessions.TranscriptFeed.Run], which needs
// no server.
func (f *Feeds) Run(ctx context.Context, d cluster.Deps) {
	f.Link.Deps = d
	read := traces.NewReader(traces.New(d.TraceCache, d.Version), d.Client, d.Namespace)
	read.Report = func(err error) { f.Link.Report(cluster.PlainError(err)) }
	f.Runs.Traces = read
	close(f.connected)
	var wg sync.WaitGroup
	for _, run := range []func(context.Context){
		f.Runs.Run, f.Facets.Run, f.RunCounts.Run, f.Detail.Run, f.Events.Run, f.Artifacts.Run, f.Replay.Run,
		f.Lineage.Run,
		f.Diff.Run, f.Scoreboard.Run, f.Verified.Run, f.Logs.Run, f.Playbooks.Run, f.Prompts.Run,
		f.Experiments.Run, f.Triage.Run,
		f.Sessions.Run, f.Approvals.Run, f.Runners.Run, f.Costs.Run, f.Evaluations.Run, f.System.Run,
		f.watchCodec,
	} {
		wg.Go(func() { run(ctx) })
	}
	wg.Wait()
}

// Select reads everything about one run.
func (f *Feeds) Select(id runs.ID) {
	f.Detail.Refine(id)
	f.Events.Want(id)
	f.Replay.Refine(id)
	f.Lineage.Refine(id.WorkflowID)
	f.Logs.Select(id)
}

// FindRun finds a run; see [runs.Resolve]. It waits for the connection.
func (f *Feeds) FindRun(ctx context.Context, name string) (runs.Run, error) {
	select {
	case <-f.connected:
	case <-ctx.Done():
		return runs.Run{}, ctx.Err()
	}
	d, err := runs.Resolve(ctx, f.Link.Client, name)
	if err != nil {
		return runs.Run{}, err
	}
	return runs.Of(d.GetWorkflowExecutionInfo()), nil
}

// SetQuery sets the query of the list of runs, the facets and triage.
func (f *Feeds) SetQuery(query string) {
	f.Runs.SetQuery(query)
	f.Facets.Again()
	f.Triage.SetQuery(query)
}

// Refresh reads the list of runs, triage and health now, and retries the codec server.
func (f *Feeds) Refresh() {
	f.Runs.Refresh()
	cluster.Signal(f.retryCodec)
	f.Triage.Again()
	f.System.Again()
}

// Connection returns the state of the connection to the server.
func (f *Feeds) Connection() cluster.Connection { return f.Link.Connection() }

// SetPaused stops all readers from refreshing by themselves, or lets them refresh again.
func (f *Feeds) SetPaused(paused bool) { f.Runs.SetPaused(paused) }

// StartWork shows a long operation that the user can stop; see [cluster.Link.StartWork].
func (f *Feeds) StartWork(ctx context.Context, label string) (context.Context, func(done, total int64),
	func()) {
	return f.Link.StartWork(ctx, label)
}

// Compare compares two runs, again even if they are the same as before.
func (f *Feeds) Compare(ask histories.DiffAsk) {
	if !f.Diff.Want(ask) {
		f.Diff.Again()
	}
}

// VerifyRun verifies the selected run in the time machine.
func (f *Feeds) VerifyRun(strict bool) { f.Replay.VerifyRun(strict) }

// VerifyRuns verifies many runs.
func (f *Feeds) VerifyRuns(w histories.VerifyRequest) { f.Verified.Verify(w) }
