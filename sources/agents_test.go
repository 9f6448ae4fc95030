package sources

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/price"
	"acescope/engine/agents/transcript"
	"acescope/engine/agents/transcript/transcripttest"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
)

// Transcripts are read while they are shown, without a server, and the requested conversation is followed.
func TestTranscriptsWithoutAServer(t *testing.T) {
	dir := t.TempDir()
	if _, err := transcripttest.Write(dir, transcripttest.Options{Sessions: 4, Bytes: 100_000}); err != nil {
		t.Fatal(err)
	}
	s := NewFeeds()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Transcripts.Run(ctx, sessions.Local{Roots: []transcripts.Root{{Format: transcript.Of(
			agentcli.Claude), Dir: dir}}, Prices: price.Shipped(), Cache: filepath.Join(dir, "cache")})
	}()
	defer func() { stop(); <-done }()
	until := func(what string, ok func(*sessions.Transcripts) bool) *sessions.Transcripts {
		t.Helper()
		late := time.After(time.Minute)
		for {
			if now := s.Transcripts.Value(); now != nil && ok(now) {
				return now
			}
			select {
			case <-s.Link.Changed():
			case <-late:
				t.Fatal("never: " + what)
			}
		}
	}
	if s.Transcripts.Value() != nil {
		t.Error("transcripts are read while they are not shown")
	}
	s.Transcripts.Look(true)
	all := until("all are read", func(now *sessions.Transcripts) bool {
		return len(now.Rows) == 4 && now.Progress.Done == 4
	})
	first := all.Rows[0]
	if first.ID != transcripttest.ID(0) || first.Engine != nil || first.Totals.Calls == 0 || !first.Known {
		t.Errorf("%+v", first)
	}
	s.Transcripts.Conversations.Look(true)
	s.Transcripts.Conversations.Want(first.Key)
	until("its conversation", func(*sessions.Transcripts) bool {
		return s.Transcripts.Conversations.Value() != nil
	})
	talk := s.Transcripts.Conversations.Value()
	before := len(talk.Entries)
	f, err := os.OpenFile(first.Key, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(`{"type":"user","uuid":"new","message":{"role":"user","content":"one more"}}` +
		"\n"); err != nil {
		t.Fatal(err)
	}
	until("what was added", func(now *sessions.Transcripts) bool {
		entries := s.Transcripts.Conversations.Value().Entries
		n := len(entries)
		return n == before+1 && entries[n-1].Text == "one more" && now.Rows[0].Turns == first.Turns+1
	})
	if len(talk.Entries) != before {
		t.Error("a conversation that was handed out has changed")
	}
	s.Transcripts.Look(false)
	s.Transcripts.Look(true)
	s.Transcripts.Conversations.Want("")
	until("no conversation", func(now *sessions.Transcripts) bool {
		return s.Transcripts.Conversations.Value() == nil && now.Progress.Read <= all.Progress.Read+200
	})
}
