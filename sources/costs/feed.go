package costs

import (
	"context"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/feed"
	"acescope/sources/runs"
)

// Interval is the time between two reads of a feed.
const Interval = 10 * time.Second

// NewFeed returns a feed that reads the costs of runs while they are shown. list has the reader of histories.
func NewFeed(link *cluster.Link, list *runs.ListFeed) *feed.Feed[struct{}, *Costs] {
	x := NewIndex()
	f := feed.New(link.Wake, func(ctx context.Context, _ struct{}, publish func(*Costs)) {
		if link.Connection().Mode == cluster.ModeFile {
			return
		}
		x.Traces = list.Traces
		for ctx.Err() == nil {
			err := x.Read(ctx, link.Client, time.Time{}, link.Now())
			if ctx.Err() != nil {
				return
			}
			c := x.Costs()
			if err != nil {
				c.Err = cluster.PlainError(err)
			}
			publish(c)
			for link.Rest(ctx, Interval) == nil && link.Paused() {
			}
		}
	})
	f.Want(struct{}{})
	return f
}
