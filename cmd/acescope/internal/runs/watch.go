package runs

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// Watch writes the open runs, then each run that starts or changes, until it is interrupted.
func Watch(a *cli.App, ctx context.Context) error {
	e, err := a.OpenFollowing(ctx)
	if err != nil {
		return err
	}
	out := cli.NewLines(a)
	return watchRuns(a, ctx, e, "", func(r runs.Run) error { return out.Write(cli.ListLine(r)) }, nil)
}

// maxWatched bounds the open runs that are loaded. The list drops rows when it holds twice as many.
const maxWatched = 2000

// watchRuns reads the list of runs as the console does. It calls put for each open run, then for each run
// that starts or changes. After each reading it calls ended with the number of open runs, and returns if that
// returns true; ended may be nil. It returns nil if ctx ends.
func watchRuns(
	a *cli.App, ctx context.Context, e *engine.Engine, query string,
	put func(runs.Run) error, ended func(open int) (bool, error),
) error {
	if _, _, err := runs.ListOnce(ctx, e.Client, query, 1); err != nil {
		return cli.QueryError(query, err)
	}
	ctx, stop := context.WithCancel(ctx)
	link := cluster.NewLink()
	link.Deps = cluster.Deps{Client: e.Client, Namespace: e.Namespace()}
	link.SetInterval(a.Settings.Refresh)
	list := runs.NewListFeed(link)
	list.SetQuery(query)
	var reader sync.WaitGroup
	reader.Go(func() { list.Run(ctx) })
	defer reader.Wait()
	defer stop()

	var seen watched
	var loaded time.Time
	report, lost := ReportConnection(a), ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-link.Changed():
		}
		if away := link.Connection().Err; away != lost {
			lost = away
			report(errorOf(away))
		}
		l := list.Value()
		if l.Loaded.IsZero() {
			continue
		}
		if n := len(l.Rows); n > 0 && n < maxWatched && l.More && l.Rows[n-1].Open() {
			list.Load(runs.LoadOlder)
		}
		for _, r := range seen.changed(l) {
			if err := put(r); err != nil {
				return err
			}
		}
		if ended == nil || l.Loaded.Equal(loaded) {
			continue
		}
		loaded = l.Loaded
		if end, err := ended(seen.open); end || err != nil {
			return err
		}
	}
}

// errorOf returns nil for an empty text.
func errorOf(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// watched holds the rows of the last reading, by run id.
type watched struct {
	rows  map[string]runs.Run
	open  int
	began bool      // all open runs of the first reading are known
	since time.Time // when the newest run of the first reading closed; older ones are not reported
}

// changed returns the rows that are new or differ from the last reading, oldest first.
func (w *watched) changed(l runs.RunList) (out []runs.Run) {
	rows := map[string]runs.Run{}
	w.open = 0
	for i := len(l.Rows) - 1; i >= 0; i-- {
		r := l.Rows[i]
		rows[r.RunID] = r
		old, known := w.rows[r.RunID]
		switch {
		case r.Open():
			w.open++
		case !w.began && r.Close.After(w.since):
			w.since = r.Close
		}
		if known && reflect.DeepEqual(old, r) || !known && !r.Open() && !r.Close.After(w.since) {
			continue
		}
		out = append(out, r)
	}
	n := len(l.Rows)
	w.began = w.began || !l.More || n >= maxWatched || n > 0 && !l.Rows[n-1].Open()
	w.rows = rows
	return out
}
