package views

import (
	"acescope/sources"
	"acescope/sources/cluster"
	"acescope/sources/runs"
	"acescope/tui"
)

// source adapts the console's readers to the shell.
type source struct{ feeds *sources.Feeds }

// NewSource returns the data of the shell itself, such as the connection and the counts.
func NewSource(f *sources.Feeds) tui.Source { return source{f} }

func (s source) Changed() <-chan struct{} { return s.feeds.Link.Changed() }
func (s source) Used()                    { s.feeds.Link.Used() }

func (s source) Status() *tui.Status {
	status := statusOf(s.feeds.Link.Status(), s.feeds.Runs.Value(), s.feeds.Approvals.Value().Count())
	status.Quiet = s.feeds.Link.Quiet()
	return status
}

func statusOf(link cluster.Status, list runs.RunList, approvals int) *tui.Status {
	c := link.Connection
	s := &tui.Status{
		Seq: link.Seq,
		Connection: tui.Connection{
			Names: []string{c.Namespace, c.Mode},
			State: string(c.State),
			Ready: c.State == cluster.ConnReady,
			Lost:  c.State == cluster.ConnLost,
			Live:  c.Mode != cluster.ModeFile,
			Since: c.Since,
			Hosts: c.Mode == "embedded",
			Err:   c.Err,
		},
		Filter:    list.Query,
		Counts:    map[string]int64{},
		Wrong:     list.Counts.Wrong,
		Paused:    list.Paused,
		Interval:  list.Interval,
		Loaded:    list.Loaded,
		Approvals: approvals,
	}
	if c.Mode == cluster.ModeFile {
		s.Connection.Names = []string{c.Mode, c.Address}
	}
	for status, n := range list.Counts.Status {
		s.Counts[string(status)] = n
	}
	for _, p := range link.Problems {
		s.Errors = append(s.Errors, tui.Error(p))
	}
	for _, w := range link.Work {
		s.Work = append(s.Work, tui.Work(w))
	}
	for _, h := range link.Health {
		if h.State == cluster.Error {
			s.Unhealthy = h.Name + ": " + h.Text
			break
		}
	}
	return s
}
