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
	reader Reader // only the reader uses it
}

// NewFeed returns a feed of all playbooks.
func NewFeed(link *cluster.Link) *Feed {
	f := &Feed{link: link}
	f.Feed = feed.New(link.Wake, f.read)
	f.Refine(Ask{Seq: -1, Around: -1})
	return f
}

// read reads at an interval. It reads once even if the console is paused.
func (f *Feed) read(ctx context.Context, wish Ask, publish func(*Playbooks)) {
	for ctx.Err() == nil {
		f.readOnce(ctx, wish, publish)
		for cluster.Sleep(ctx, readEvery) == nil && f.link.Paused() {
		}
	}
}

func (f *Feed) readOnce(ctx context.Context, wish Ask, publish func(*Playbooks)) {
	d := f.link.Deps
	if d.Playbooks == nil {
		publish(&Playbooks{Missing: "this console has no playbook store: a remote cluster's playbooks are where its worker runs"})
		return
	}
	f.reader.ask = wish
	// The reader continues to change b, so each published value is a copy.
	show := func(b *Playbooks) {
		next := *b
		publish(&next)
	}
	b := &Playbooks{Updated: f.link.Now()}
	if err := f.reader.Read(ctx, d.Playbooks, wish, b, show); err != nil && ctx.Err() == nil {
		b.Err = cluster.PlainError(err)
	}
	if len(b.Branches) == 0 && b.Err == "" && d.NoPlaybooks != nil {
		b.Missing = d.NoPlaybooks()
	}
	show(b)
	if f.reader.readServer(ctx, d, wish, b) && ctx.Err() == nil {
		next := *b
		f.reader.fill(&next, wish)
		show(&next)
	}
}
