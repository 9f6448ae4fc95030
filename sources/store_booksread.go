package sources

import (
	"context"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/playbooks"
)

// readBooks brings the playbooks up to date at an interval, until ctx ends. Once it reads
// even where the console is paused.
func (s *Store) readBooks(ctx context.Context, d cluster.Deps) {
	tick := time.NewTicker(playbooks.BooksEvery)
	defer tick.Stop()
	for {
		s.readBooksOnce(ctx, d)
		for again := false; !again; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				again = !s.Snapshot().Runs.Paused
			}
		}
	}
}

func (s *Store) readBooksOnce(ctx context.Context, d cluster.Deps) {
	if d.Books == nil {
		s.publishBooks(&playbooks.Books{Missing: "this console has no playbook store: a remote cluster's playbooks lie where its worker runs"})
		return
	}
	s.mu.Lock()
	wish := s.books.Wish
	s.mu.Unlock()
	b := &playbooks.Books{Updated: s.now()}
	if err := s.books.Read(ctx, d.Books, wish, b, s.publishBooks); err != nil && ctx.Err() == nil {
		b.Err = cluster.PlainError(err)
	}
	if len(b.Branches) == 0 && b.Err == "" && d.NoBooks != nil {
		b.Missing = d.NoBooks()
	}
	if ctx.Err() != nil {
		return
	}
	s.publishBooks(b)
	if s.books.Ask(ctx, d, wish, b) && ctx.Err() == nil {
		next := *b
		s.books.Give(&next, wish)
		s.publishBooks(&next)
	}
}

// publishBooks shows a state of the playbooks that is not changed any more.
func (s *Store) publishBooks(b *playbooks.Books) {
	shown := *b
	s.update(func(snap *Snapshot) { snap.Books = &shown })
}
