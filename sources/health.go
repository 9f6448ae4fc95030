package sources

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/experiments"
	"acescope/sources/feed"
	"acescope/sources/histories"
	"acescope/sources/logs"
	"acescope/sources/playbooks"
	"acescope/sources/runs"
	"acescope/sources/system"
)

// newSystemFeed returns a feed of the health of the server, the workers and the readers themselves.
func newSystemFeed(f *Feeds) *feed.Feed[struct{}, *system.System] {
	var out *feed.Feed[struct{}, *system.System]
	out = feed.New(f.Link.Wake, func(ctx context.Context, _ struct{}, publish func(*system.System)) {
		var slow system.Slow
		link := f.Link
		for ctx.Err() == nil {
			conn := link.Connection()
			if out.Value() == nil {
				publish(&system.System{At: link.Now(), Loading: true, Mode: conn.Mode, Address: conn.Address,
					Space:   link.Namespace,
					Sources: f.sourceAges(), Process: system.ThisProcess()})
			}
			now := system.ReadOnce(ctx, link.Deps, conn, &slow)
			if ctx.Err() != nil {
				return
			}
			now.Sources = f.sourceAges()
			now.Process.Snapshots = link.Status().Seq
			if link.Screen != nil {
				now.Process.Screen = link.Screen()
			}
			publish(now)
			for cluster.Sleep(ctx, system.ReadEvery) == nil && link.Paused() {
			}
		}
	})
	out.Want(struct{}{})
	return out
}

// sourceAges lists the sources of the console, their age, and their dropped items.
func (f *Feeds) sourceAges() []system.SourceAge {
	var list []system.SourceAge
	for _, h := range f.Link.Status().Health {
		list = append(list, system.SourceAge{Name: h.Name, State: h.State, Text: h.Text, Since: h.Since})
	}
	r := f.Runs.Value()
	state := cluster.ErrorUnless(r.Err == "")
	runs := system.SourceAge{Name: "list of runs", State: state, Text: r.Err, Since: r.Loaded}
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
	if d := f.Detail.Value(); d != nil {
		row := system.SourceAge{Name: "selected run", State: cluster.OK, Text: string(d.From),
			Since: d.Updated, Dropped: int64(d.LogDropped)}
		if d.Err != "" {
			row.Text, row.State = d.Err, cluster.Warning
		}
		list = append(list, row)
	}
	if t := f.Triage.Value(); t != nil {
		row := system.SourceAge{Name: "triage", State: cluster.ErrorUnless(t.Err == ""), Text: t.Err,
			Since: t.At, Dropped: int64(t.GroupsDropped)}
		switch {
		case t.Err != "":
		case t.Scan.Running:
			row.Text = "scanning: " + t.Scan.Stage
		default:
			row.Text = ace.Count(t.Ended, "closed run") + " scanned"
		}
		list = append(list, row)
	}
	return append(list, shownAges(f.Events.Value(), f.Playbooks.Value(), f.Experiments.Value(),
		f.Logs.Value(), f.Facets.Value())...)
}

// shownAges returns the ages of values that are read only while their screen is shown. Their errors are
// warnings here, because that screen shows them. A nil value was never read.
func shownAges(
	e *histories.EventLog, b *playbooks.Playbooks, x *experiments.Experiments, l *logs.Logs,
	facets *runs.Facets,
) []system.SourceAge {
	var list []system.SourceAge
	add := func(name, failed, text string, at time.Time, dropped int64) {
		row := system.SourceAge{Name: name, State: cluster.OK, Text: cmp.Or(failed, text), Since: at,
			Dropped: dropped}
		if failed != "" {
			row.State = cluster.Warning
		}
		list = append(list, row)
	}
	if e != nil {
		row := ace.Count(e.Len(), "event") + " held"
		if e.Unread > 0 {
			row += ", " + ace.Number(e.Unread) + " not read yet"
		}
		add("timeline", e.Err, row, e.Updated, 0)
	}
	if b != nil {
		row := ace.Count(len(b.Branches), "branch")
		if b.Branch.Name != "" {
			row += ", " + ace.Count(b.Branch.Versions, "version") + " of " + b.Branch.Name
		}
		add("playbooks", b.Err, cmp.Or(b.Missing, row), b.Updated, 0)
	}
	if x != nil {
		dropped := x.More
		for _, series := range x.Series {
			dropped += int64(series.Dropped)
		}
		add("experiments", x.Err, fmt.Sprintf("%d listed, %d with curves", len(x.Rows), len(x.Series)),
			x.Loaded, dropped)
	}
	if l != nil {
		row := ace.Count(len(l.Lines), "line") + " of " + ace.Count(len(l.Files), "file")
		if l.Problem != "" {
			row += ", " + l.Problem
		}
		add("logs", l.Err, row, l.Updated, l.Dropped)
	}
	if facets != nil {
		add("facets", facets.Err, ace.Count(len(facets.List), "attribute")+" counted", facets.Counted, 0)
	}
	return list
}
