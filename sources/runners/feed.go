package runners

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"

	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/sources/cluster"
	"acescope/sources/feed"
	"acescope/sources/runs"
)

// NewFeed returns a feed that asks the dispatcher for its runners again and again while they are shown, and
// lists the runs of the runner whose ID is wanted, or no runs for "".
func NewFeed(link *cluster.Link) *feed.Feed[string, *Runners] {
	var f *feed.Feed[string, *Runners]
	f = feed.New(link.Wake, func(ctx context.Context, id string, publish func(*Runners)) {
		if link.Connection().Mode == cluster.ModeFile {
			return
		}
		change := feed.Updater(f.Value(), publish)
		r := runnersReader{link: link, id: id, update: func(fn func(*Runners)) {
			change(func(v *Runners) {
				fn(v)
				v.Updated = link.Now()
			})
		}}
		for ctx.Err() == nil {
			var wg sync.WaitGroup
			wg.Go(func() { r.askDispatcher(ctx) })
			wg.Go(func() { r.listRuns(ctx) })
			wg.Wait()
			for cluster.Sleep(ctx, RunnersEvery) == nil && link.Paused() {
			}
		}
	})
	f.Want("")
	return f
}

type runnersReader struct {
	link   *cluster.Link
	id     string // of the runner whose runs are listed
	update func(func(*Runners))
}

func (r *runnersReader) askDispatcher(ctx context.Context) {
	view, err := queryDispatcher(ctx, r.link.Deps)
	if ctx.Err() != nil {
		return
	}
	var none *serviceerror.NotFound
	r.update(func(v *Runners) {
		v.Absent = errors.As(err, &none)
		v.NoWorker = noWorker(err)
		v.Err = ""
		switch {
		case err == nil:
			v.View = view
			v.Answered = r.link.Now()
		case v.Absent:
			v.View = runner.View{}
			v.Answered = time.Time{}
		default:
			v.Err = cluster.PlainError(err)
		}
	})
}

func (r *runnersReader) listRuns(ctx context.Context) {
	var list []runs.Run
	var err error
	if r.id != "" {
		call, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
		query := "WorkflowType = " + strconv.Quote(run.Workflow) + " AND " + ace.AttrRunner + " = " +
			runs.Quote(r.id)
		err = runs.List(call, r.link.Client, query, MaxRunnerRuns+1, func(r runs.Run) error {
			list = append(list, r)
			return nil
		})
		cancel()
	}
	if ctx.Err() != nil {
		return
	}
	r.update(func(v *Runners) {
		switch {
		case err == nil:
			v.RunsErr = ""
			v.More = len(list) > MaxRunnerRuns
			v.Runs = list[:min(len(list), MaxRunnerRuns)]
		case v.Wanted != r.id:
			v.Runs = nil
			v.More = false
			fallthrough
		default:
			v.RunsErr = cluster.PlainError(err)
		}
		v.Wanted = r.id
		v.Runs = withCurrent(v.Runs, v.currentRuns(r.id))
	})
}
