package playbooks

import (
	"context"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/feed"
)

// Feed reads the playbooks again and again while they are shown.
type Feed struct {
	*feed.Feed[BookWish, *Books]
	link   *cluster.Link
	reader PlaybookReader // only the reader uses it
}

// NewFeed returns a feed of all playbooks.
func NewFeed(link *cluster.Link) *Feed {
	f := &Feed{link: link}
	f.Feed = feed.New(link.Wake, f.read)
	f.Refine(BookWish{Seq: -1, Around: -1})
	return f
}

// read reads at an interval. It reads once even if the console is paused.
func (f *Feed) read(ctx context.Context, wish BookWish, publish func(*Books)) {
	tick := time.NewTicker(BooksEvery)
	defer tick.Stop()
	for {
		f.readOnce(ctx, wish, publish)
		for again := false; !again; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				again = !f.link.Paused()
			}
		}
	}
}

func (f *Feed) readOnce(ctx context.Context, wish BookWish, publish func(*Books)) {
	d := f.link.Deps
	if d.Books == nil {
		publish(&Books{Missing: "this console has no playbook store: a remote cluster's playbooks are where its worker runs"})
		return
	}
	f.reader.Wish = wish
	// The reader goes on changing b: each publication is a copy.
	show := func(b *Books) {
		next := *b
		publish(&next)
	}
	b := &Books{Updated: f.link.Now()}
	if err := f.reader.Read(ctx, d.Books, wish, b, show); err != nil && ctx.Err() == nil {
		b.Err = cluster.PlainError(err)
	}
	if len(b.Branches) == 0 && b.Err == "" && d.NoBooks != nil {
		b.Missing = d.NoBooks()
	}
	show(b)
	if f.reader.Ask(ctx, d, wish, b) && ctx.Err() == nil {
		next := *b
		f.reader.Give(&next, wish)
		show(&next)
	}
}
