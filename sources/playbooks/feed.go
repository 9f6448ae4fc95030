package playbooks

import (
	"context"

	"acescope/sources/cluster"
	"acescope/sources/feed"
)

// Feed reads the playbooks again and again while they are shown.
type Feed struct {
	*feed.Feed[Ask, *Playbooks]
	link   *cluster.Link
	reader reader // only the reader uses it
}

// NewFeed returns a feed of all playbooks.
func NewFeed(link *cluster.Link) *Feed {
	f := &Feed{link: link}
	f.Feed = feed.New(link.Wake, f.read)
	f.Refine(Ask{Seq: -1, Around: -1})
	return f
}

// read reads at an interval. It reads once even if the console is paused.
func (f *Feed) read(ctx context.Context, ask Ask, publish func(*Playbooks)) {
	last := &Playbooks{}
	for ctx.Err() == nil {
		last = f.readOnce(ctx, ask, last, publish)
		for f.link.Rest(ctx, readEvery) == nil && f.link.Paused() {
		}
	}
}

// readOnce returns the last value that it has published.
func (f *Feed) readOnce(ctx context.Context, ask Ask, last *Playbooks, publish func(*Playbooks)) *Playbooks {
	d := f.link.Deps
	if d.Playbooks == nil {
		b := &Playbooks{Missing: "this console has no playbook store: " +
			"a remote cluster's playbooks are where its worker runs"}
		publish(b)
		return b
	}
	b := &Playbooks{Updated: f.link.Now()}
	if err := f.reader.read(ctx, d.Playbooks, ask, last, b, publish); err != nil && ctx.Err() == nil {
		b.Err = cluster.PlainError(err)
	}
	if len(b.Branches) == 0 && b.Err == "" && d.NoPlaybooks != nil {
		b.Missing = d.NoPlaybooks()
	}
	publish(b)
	next := *b
	if f.reader.readServer(ctx, d, ask, &next) && ctx.Err() == nil {
		publish(&next)
		return &next
	}
	return b
}
