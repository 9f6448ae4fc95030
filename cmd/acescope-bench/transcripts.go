package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"acescope/engine/agents/price"
	"acescope/engine/agents/transcript/transcripttest"
	"acescope/sources"
	"acescope/sources/sessions"
)

// transcriptSize is how large a session is on average, in bytes.
const transcriptSize = 1 << 20

// indexTimes is what a child measured of a console while transcripts were read behind it.
type indexTimes struct {
	FirstMS float64 `json:"first_ms"` // from the key to the newest session, read
	Seconds float64 `json:"seconds"`  // from the key to the last
	ReadMB  float64 `json:"read_mb"`
	CPU     float64 `json:"cpu_seconds"` // of the whole process meanwhile
	Keys    int     `json:"keys"`
	KeyP50  float64 `json:"key_p50_ms"`
	KeyP99  float64 `json:"key_p99_ms"`
	HeapMB  float64 `json:"heap_mb"`
	PeakMB  float64 `json:"peak_mb"`
	Tokens  int64   `json:"tokens"`
}

// transcripts measures how fast a directory of transcripts is indexed behind a console that
// somebody types in, and how fast again by the next process.
func (b *bench) transcripts(ctx context.Context) error {
	dir, remove, err := b.fresh("transcripts")
	if err != nil {
		return err
	}
	defer remove()
	size := int64(b.size.logMB) << 20
	made, err := transcripttest.Write(dir, transcripttest.Options{Sessions: int(size / transcriptSize), Bytes: size, Subagent: 10, Newest: time.Now()})
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d MB in %d transcripts", made.Bytes>>20, made.Files)
	rate := row{section: "transcripts", what: what + ", indexed while somebody types", unit: "MB/s", target: above(200)}
	whole := row{section: "transcripts", what: "time for that", unit: "s"}
	cpu := row{section: "transcripts", what: "processor time for that, the console's drawing in it", unit: "s"}
	first := row{section: "transcripts", what: "the newest session on the screen", unit: "ms", target: below(500)}
	key := row{section: "transcripts", what: "key to drawn frame meanwhile, p99", unit: "ms", target: below(1000.0 / 60)}
	peak := row{section: "transcripts", what: "peak resident", unit: "MB", target: below(200)}
	heap := row{section: "transcripts", what: "heap once all is read", unit: "MB"}
	again := row{section: "transcripts", what: "restart: all sessions on the screen, from the cache", unit: "ms"}
	for n := range b.size.runs {
		cache := filepath.Join(dir, fmt.Sprintf("cache-%d", n))
		var t, warm indexTimes
		for _, to := range []*indexTimes{&t, &warm} {
			if err := ask(ctx, spec{Kind: kindTranscripts, Dir: dir, Name: cache, Tasks: made.Files, Profile: b.profile}, func(got indexTimes) error { *to = got; return nil }); err != nil {
				return err
			}
			if to.Tokens != made.Tokens {
				return fmt.Errorf("%d tokens were counted, not %d", to.Tokens, made.Tokens)
			}
		}
		if warm.ReadMB > 0 {
			return fmt.Errorf("a restart read %.0f MB again", warm.ReadMB)
		}
		b.progress("  %.2f s, %d keys, p50 %.2f ms", t.Seconds, t.Keys, t.KeyP50)
		for _, f := range []struct {
			row   *row
			value float64
		}{{&rate, t.ReadMB / t.Seconds}, {&whole, t.Seconds}, {&cpu, t.CPU}, {&first, t.FirstMS}, {&key, t.KeyP99}, {&peak, t.PeakMB}, {&heap, t.HeapMB}, {&again, warm.Seconds * 1000}} {
			f.row.ours = append(f.row.ours, f.value)
		}
	}
	b.report.add(rate, whole, cpu, first, key, peak, heap, again)
	return nil
}

// indexing is the child: a console without a server.
func indexing(ctx context.Context, s spec) (err error) {
	store := sources.NewStore()
	local, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		store.RunLocal(local, sessions.Local{Roots: []string{s.Dir}, Prices: price.Shipped(), Cache: s.Name})
	})
	defer wg.Wait()
	defer stop()
	p, err := openProbe(ctx, store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	end, err := profile(s, "transcripts")
	if err != nil {
		return err
	}
	t, err := indexWhileTyping(ctx, p, s.Tasks)
	end()
	if err != nil {
		return err
	}
	t.PeakMB, t.HeapMB = ownPeakMB(), heapMB()
	return tell(t)
}

func indexWhileTyping(ctx context.Context, p *probe, files int) (t indexTimes, err error) {
	cpu := ownCPU()
	begun, err := p.press("0")
	if err != nil {
		return t, err
	}
	at, err := p.until(ctx, "the newest session is read", func(s *sources.Snapshot) bool {
		return s.Transcripts != nil && len(s.Transcripts.Rows) > 0 && s.Transcripts.Rows[0].Known
	})
	if err != nil {
		return t, err
	}
	t.FirstMS = millis(at.Sub(begun))
	var work series
	for {
		p.mu.Lock()
		now, at := p.drawn.Transcripts, p.at
		p.mu.Unlock()
		if now.Progress.Files == files && now.Progress.Done == files {
			t.Seconds, t.ReadMB = at.Sub(begun).Seconds(), float64(now.Progress.Read)/(1<<20)
			t.CPU = (ownCPU() - cpu).Seconds()
			for _, r := range now.Rows {
				t.Tokens += r.Totals.Tokens.Total()
			}
			break
		}
		took, err := p.steps(ctx, map[bool]string{true: "j", false: "k"}[len(work)/50%2 == 0], 1)
		if err != nil {
			return t, err
		}
		work = append(work, took...)
		time.Sleep(typingPause)
	}
	if len(work) > 0 {
		t.Keys, t.KeyP50, t.KeyP99 = len(work), work.percentile(50), work.percentile(99)
	}
	return t, nil
}

// typingPause is between two keys.
const typingPause = 10 * time.Millisecond
