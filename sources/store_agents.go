package sources

import (
	"context"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
)

// RunLocal reads what needs no server, while somebody looks at it, until ctx ends.
func (s *Store) RunLocal(ctx context.Context, l sessions.Local) {
	changed := make(chan struct{}, 1)
	index := transcripts.New(transcripts.Options{Roots: l.Roots, Prices: l.Prices, Cache: l.Cache, Changed: func() { cluster.Signal(changed) }})
	s.watchPart(ctx, PartTranscripts, func(ctx context.Context) {
		done := make(chan struct{})
		go func() { defer close(done); s.showTranscripts(ctx, l, index, changed) }()
		index.Run(ctx)
		<-done
	})
}

// ReadTalk wants the conversation of a transcript; "" wants none. It is called for each row
// that the cursor passes.
func (s *Store) ReadTalk(path string) {
	s.mu.Lock()
	changed := s.talk.path != path
	s.talk.path = path
	s.mu.Unlock()
	if changed {
		cluster.Signal(s.talk.wake)
	}
}

// showTranscripts hands out what the index finds, and follows one conversation.
func (s *Store) showTranscripts(ctx context.Context, l sessions.Local, index *transcripts.Index, changed <-chan struct{}) {
	var follower *transcripts.Follower
	var talk *sessions.Conversation
	wanted := ""
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-s.talk.wake:
			timer.Reset(sessions.TalkRest)
			continue
		case <-timer.C:
			timer.Reset(sessions.TalkPoll)
			s.mu.Lock()
			path := s.talk.path
			s.mu.Unlock()
			if path != wanted {
				wanted, follower, talk = path, nil, nil
			}
			if wanted == "" {
				break
			}
			if follower == nil {
				follower = transcripts.Follow(wanted)
			}
			if !follower.Read(ctx) || ctx.Err() != nil {
				continue
			}
			c := follower.Conversation()
			c.Updated = s.now()
			talk = &c
		}
		s.publishTranscripts(l, index, wanted, talk)
	}
}

func (s *Store) publishTranscripts(l sessions.Local, index *transcripts.Index, wanted string, talk *sessions.Conversation) {
	list, progress := index.Sessions()
	t := &sessions.Transcripts{Roots: l.Roots, Progress: progress, Talk: talk, Wanted: wanted, Updated: s.now()}
	t.Dropped = max(len(list)-sessions.MaxSessions, 0)
	for _, one := range list[:len(list)-t.Dropped] {
		t.Rows = append(t.Rows, sessions.RowOf(one))
	}
	s.update(func(snap *Snapshot) { snap.Transcripts = t })
	s.transcriptHealth(progress)
}

// transcriptHealth shows for as long as it lasts that transcripts cannot be read.
func (s *Store) transcriptHealth(p transcripts.Progress) {
	s.mu.Lock()
	known := s.talk.trouble
	s.talk.trouble = p.Trouble
	s.mu.Unlock()
	if known == p.Trouble {
		return
	}
	if p.Trouble == "" {
		s.SetHealth("transcripts", true, "transcripts are read")
		return
	}
	s.SetHealth("transcripts", false, p.Trouble)
}

// talkWish is the conversation that somebody wants to read. Only the store's lock guards it.
type talkWish struct {
	path    string
	wake    chan struct{}
	trouble string // that health shows
}
