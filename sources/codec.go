package sources

import (
	"context"
	"fmt"
	"time"

	"acescope/engine/temporal/codec"
	"acescope/sources/cluster"
	"acescope/sources/system"
)

// watchCodec reports the health of the codec server. Payloads that were read while it failed are read again
// when it answers again, or when the user refreshes.
func (f *Feeds) watchCodec(ctx context.Context) {
	c := f.Link.Codec
	if c == nil {
		return
	}
	w := codecWatch{link: f.Link, c: c}
	w.show()
	tick := time.NewTicker(system.ProbeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.Changes():
			w.show()
		case <-f.retryCodec:
			if st := c.Status(); !st.OK || st.Reason != "" {
				c.Retry()
				w.show()
				f.rereadAll()
			}
		case <-tick.C:
			if c.Probe(ctx) {
				w.show()
				f.rereadAll()
			}
		}
	}
}

// rereadAll starts every reader of payloads again.
func (f *Feeds) rereadAll() {
	f.Link.ForgetHistories()
	f.Runs.Refresh()
	f.Experiments.Reread()
	for _, again := range []func(){f.Detail.Again, f.Events.Again, f.Replay.Again, f.Triage.Again,
		f.Diff.Again, f.Facets.Again, f.Playbooks.Again} {
		again()
	}
}

// show sets the health of the codec server, and reports a problem once until it changes.
func (w *codecWatch) show() {
	st, name := w.c.Status(), w.c.Name()
	text, problem := name, ""
	switch {
	case !st.OK:
		text = fmt.Sprintf("%s: %s; payloads are shown encoded; retrying", name, st.Reason)
		problem = fmt.Sprintf("codec server %s: %s", name, st.Reason)
	case st.Reason != "":
		text = fmt.Sprintf("%s: cannot decode some payloads: %s", name, st.Reason)
		problem = fmt.Sprintf("codec server %s cannot decode some payloads: %s", name, st.Reason)
	}
	w.link.SetHealth(system.CodecHealth, problem == "", text)
	if problem != "" && problem != w.told {
		w.told = problem
		w.link.Report(problem)
	}
	if w.down && st.OK {
		w.told = problem
	}
	w.down = !st.OK
}

// codecWatch shows changes of a codec server's health.
type codecWatch struct {
	link *cluster.Link
	c    *codec.Server
	told string // the last reported problem
	down bool
}
