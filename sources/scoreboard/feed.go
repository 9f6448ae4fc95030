package scoreboard

import (
	"context"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/feed"
)

// The time between two reads of a batch with open forks, and of one without.
const (
	Interval     = time.Second
	restInterval = 10 * time.Second
)

// NewFeed returns a feed that reads a batch while it is shown. The ask is the ID of the batch.
func NewFeed(link *cluster.Link) *feed.Feed[string, *Scoreboard] {
	return feed.New(link.Wake, func(ctx context.Context, batch string, publish func(*Scoreboard)) {
		last := &Scoreboard{Batch: batch}
		for ctx.Err() == nil {
			wait := Interval
			s, err := Read(ctx, link.Client, batch)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				failed := *last
				failed.Err = cluster.PlainError(err)
				publish(&failed)
			default:
				last = s
				publish(s)
				if s.Counts[Running] == 0 {
					wait = restInterval
				}
			}
			for cluster.Sleep(ctx, wait) == nil && link.Paused() {
			}
		}
	})
}
