package sources

import (
	"context"
	"fmt"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/system"
)

// readSystemOnce reads how the machinery is until ctx ends.
func (s *Store) readSystem(ctx context.Context, d cluster.Deps) {
	var size system.DirSize
	for ctx.Err() == nil {
		snap := s.Snapshot()
		if snap.System == nil {
			first := &system.System{At: s.now(), Loading: true, Mode: snap.Connection.Mode, Address: snap.Connection.Address, Space: d.Namespace,
				Sources: sourcesOf(snap), Process: system.ThisProcess()}
			s.update(func(snap *Snapshot) { snap.System = first })
		}
		now := system.ReadSystemOnce(ctx, d, snap.Connection, &size)
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
		for s.rest(ctx, system.SystemEvery) == nil && s.Snapshot().Runs.Paused {
		}
	}
}

// sourcesOf lists what the console shows, how fresh it is and what was dropped of it.
func sourcesOf(s *Snapshot) []system.SourceAge {
	var list []system.SourceAge
	for _, h := range s.Health {
		list = append(list, system.SourceAge{Name: h.Name, OK: h.OK, Text: h.Text, Since: h.Since})
	}
	r := s.Runs
	runs := system.SourceAge{Name: "list of runs", OK: r.Err == "", Text: r.Err, Since: r.Loaded}
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
		row := system.SourceAge{Name: "selected run", OK: d.Err == "", Text: string(d.From), Since: d.Updated, Dropped: int64(d.LogDropped)}
		if d.Err != "" {
			row.Text, row.Minor = d.Err, true
		}
		list = append(list, row)
	}
	if t := s.Triage; t != nil {
		row := system.SourceAge{Name: "triage", OK: t.Err == "", Text: t.Err, Since: t.At, Dropped: int64(t.GroupsDropped)}
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
func partsOf(s *Snapshot) []system.SourceAge {
	var list []system.SourceAge
	add := func(name, failed, text string, at time.Time, dropped int64) {
		list = append(list, system.SourceAge{Name: name, OK: failed == "", Minor: true, Text: cluster.Or(failed, text), Since: at, Dropped: dropped})
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
		row := fmt.Sprintf("%d %s", len(b.Branches), system.Plural(len(b.Branches), "line"))
		if b.Branch.Name != "" {
			row += fmt.Sprintf(", %d versions of %s", b.Branch.Versions, b.Branch.Name)
		}
		add("playbooks", b.Err, cluster.Or(b.Missing, row), b.Updated, 0)
	}
	if e := s.Experiments; e != nil {
		dropped := e.More
		for _, series := range e.Series {
			dropped += int64(series.Dropped)
		}
		add("experiments", e.Err, fmt.Sprintf("%d listed, %d with curves", len(e.Rows), len(e.Series)), e.Loaded, dropped)
	}
	if l := s.Logs; l != nil {
		row := fmt.Sprintf("%d lines of %d %s", len(l.Lines), len(l.Files), system.Plural(len(l.Files), "file"))
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
