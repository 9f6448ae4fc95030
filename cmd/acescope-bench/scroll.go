package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"acescope/sources"
	"acescope/sources/cluster"
	"acescope/sources/runstest"
)

// scrollRuns is how many runs somebody scrolls through.
const scrollRuns = 100_000

// Keys of scrolling.
const (
	keyPageDown = "\x1b[6~"
	keyLast     = "G"
	keyFirst    = "g"
)

// scrollTimes is what a child measured of a console that goes through all runs.
type scrollTimes struct {
	Seconds  float64 `json:"seconds"` // page by page to the last
	Seen     int     `json:"seen"`    // runs that were on the screen's list, each counted once
	Held     int     `json:"held"`    // at most, at a time
	Keys     int     `json:"keys"`
	KeyP99   float64 `json:"key_p99_ms"`
	LastMS   float64 `json:"last_ms"`   // from the first run to the last by one key
	BeforeMB float64 `json:"before_mb"` // resident once the first page is there
	PeakMB   float64 `json:"peak_mb"`
	HeapMB   float64 `json:"heap_mb"`
}

// scroll measures going through more runs than are held, on a server that is simulated
// and holds none of them either, so that the memory is the console's.
func (b *bench) scroll(ctx context.Context) error {
	count := fmt.Sprintf("%d runs", scrollRuns)
	peak := row{section: "scroll", what: count + ", page by page to the last, every one seen once: peak resident", unit: "MB", target: below(200)}
	before := row{section: "scroll", what: "resident with the first page", unit: "MB"}
	heap := row{section: "scroll", what: "heap at the last", unit: "MB"}
	took := row{section: "scroll", what: "time for that", unit: "s"}
	key := row{section: "scroll", what: "page key to drawn frame meanwhile, p99", unit: "ms", target: below(1000.0 / 60)}
	held := row{section: "scroll", what: "runs held at most", unit: "runs"}
	last := row{section: "scroll", what: "from the first to the last by one key, the way known", unit: "ms"}
	for range b.size.runs {
		var t scrollTimes
		if err := ask(ctx, spec{Kind: kindScroll, Profile: b.profile}, func(got scrollTimes) error { t = got; return nil }); err != nil {
			return err
		}
		if t.Seen != scrollRuns {
			return fmt.Errorf("%d of %d runs were seen", t.Seen, scrollRuns)
		}
		b.progress("  %d keys, %.1f s, peak %.0f MB", t.Keys, t.Seconds, t.PeakMB)
		for _, f := range []struct {
			row   *row
			value float64
		}{{&peak, t.PeakMB}, {&before, t.BeforeMB}, {&heap, t.HeapMB}, {&took, t.Seconds}, {&key, t.KeyP99}, {&held, float64(t.Held)}, {&last, t.LastMS}} {
			f.row.ours = append(f.row.ours, f.value)
		}
	}
	b.report.add(peak, before, heap, took, key, held, last)
	return nil
}

// scrolling is the child.
func scrolling(ctx context.Context, s spec) (err error) {
	store, stop := runStore(ctx, cluster.Deps{Client: runstest.New(scrollRuns), Namespace: "bench"})
	defer stop()
	p, err := openProbe(ctx, store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	end, err := profile(s, "scroll")
	if err != nil {
		return err
	}
	t, err := scrollDown(ctx, p)
	end()
	if err != nil {
		return err
	}
	if t.LastMS, err = jumpToLast(ctx, p); err != nil {
		return err
	}
	t.PeakMB = ownPeakMB()
	return tell(t)
}

// scrollDown types page after page until there is none, and checks that no run is left
// out, doubled or out of its place in what the list was given.
func scrollDown(ctx context.Context, p *probe) (t scrollTimes, err error) {
	if _, err := p.until(ctx, "the list is read", func(s *sources.Snapshot) bool { return len(s.Runs.Rows) > 0 && s.Runs.Total == scrollRuns }); err != nil {
		return t, err
	}
	t.BeforeMB = ownMB()
	begun := time.Now()
	var work series
	for {
		p.mu.Lock()
		list := p.drawn.Runs
		p.mu.Unlock()
		for i, r := range list.Rows {
			if at := int(list.First) + i; r.RunID != runstest.RunID(at) {
				return t, fmt.Errorf("row %d is %s", at, r.RunID)
			}
		}
		if int(list.First) > t.Seen {
			return t, fmt.Errorf("runs %d to %d were never there", t.Seen, list.First)
		}
		t.Seen, t.Held = max(t.Seen, int(list.First)+len(list.Rows)), max(t.Held, len(list.Rows))
		if !list.More {
			break
		}
		took, err := p.steps(ctx, keyPageDown, 1)
		if err != nil {
			return t, err
		}
		work = append(work, took...)
	}
	t.Seconds, t.Keys, t.KeyP99, t.HeapMB = time.Since(begun).Seconds(), len(work), work.percentile(99), heapMB()
	return t, nil
}

// jumpToLast goes to the first run and from there to the last, in milliseconds.
func jumpToLast(ctx context.Context, p *probe) (float64, error) {
	if _, err := p.press(keyFirst); err != nil {
		return 0, err
	}
	if _, err := p.until(ctx, "the first run", func(s *sources.Snapshot) bool { return s.Runs.First == 0 }); err != nil {
		return 0, err
	}
	from, err := p.press(keyLast)
	if err != nil {
		return 0, err
	}
	at, err := p.until(ctx, "the last run", func(s *sources.Snapshot) bool { return !s.Runs.More && s.Runs.Walking == 0 })
	return millis(at.Sub(from)), err
}

// runStore runs a store until stop is called.
func runStore(ctx context.Context, d cluster.Deps) (s *sources.Store, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	s = sources.NewStore()
	s.SetConnection(cluster.Connection{State: cluster.ConnReady, Mode: "remote", Namespace: d.Namespace})
	var wg sync.WaitGroup
	wg.Go(func() { s.Run(ctx, d) })
	return s, func() { cancel(); wg.Wait() }
}
