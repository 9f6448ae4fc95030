package triage

import (
	"context"
	"sync"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/feed"
)

// Times of a scan: how often it is published while it runs, and how long it rests before the next; longer,
// the more open runs each scan queries.
const (
	publishEvery = 200 * time.Millisecond
	restScan     = 5 * time.Second
	restPerOpen  = 50 * time.Millisecond
)

// Feed scans runs for failures, stuck, slow and expensive ones while the triage is shown.
type Feed struct {
	*feed.Feed[Options, *Result]
	link    *cluster.Link
	scanner *scanner // only the reader uses it

	mu   sync.Mutex
	ask  Options
	stop context.CancelFunc // cancels the scan under way
}

// NewFeed returns a feed that scans all runs.
func NewFeed(link *cluster.Link) *Feed {
	f := &Feed{link: link}
	f.Feed = feed.New(link.Wake, f.read)
	f.Refine(f.ask)
	return f
}

// SetQuery scans other runs.
func (f *Feed) SetQuery(query string) { f.change(func(o *Options) { o.Query = query }) }

// SetWindow bounds the scanned closed runs.
func (f *Feed) SetWindow(closed int) {
	f.change(func(o *Options) { o.Window = max(1, min(closed, MaxWindow)) })
}

// SetSince scans only runs that closed at most d ago; 0 is any.
func (f *Feed) SetSince(d time.Duration) { f.change(func(o *Options) { o.Since = max(d, 0) }) }

func (f *Feed) change(change func(*Options)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.ask)
	f.Refine(f.ask)
}

// Stop cancels the scan under way. Its results stay, and no other scan begins until Again or a new ask.
func (f *Feed) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop != nil {
		f.stop()
	}
}

// read scans again and again, with a rest between two scans.
func (f *Feed) read(ctx context.Context, ask Options, publish func(*Result)) {
	ask.Namespace = f.link.Namespace
	if f.scanner == nil {
		f.scanner = newScanner(f.link.Client, ask)
	}
	f.scanner.choose(ask)
	for ctx.Err() == nil {
		sc := f.scanner
		if !f.scan(ctx, sc, publish) {
			return
		}
		rest := restScan + time.Duration(len(sc.facts.Open))*restPerOpen
		for f.link.Rest(ctx, rest) == nil && f.link.Paused() {
			rest = time.Second
		}
	}
}

// scan scans once and publishes meanwhile. It reports false if the user stopped it.
func (f *Feed) scan(ctx context.Context, sc *scanner, publish func(*Result)) bool {
	scan, stop := context.WithCancel(ctx)
	defer stop()
	f.mu.Lock()
	f.stop = stop
	f.mu.Unlock()
	var last time.Time
	sc.publish = func(facts *Facts) {
		if now := time.Now(); scan.Err() == nil && now.Sub(last) >= publishEvery {
			last = now
			f.publish(publish, facts, sc.state, "")
		}
	}
	err := sc.scan(scan)
	if ctx.Err() != nil {
		return true
	}
	stopped := scan.Err() != nil
	sc.state.Stopped = stopped
	reason := ""
	if err != nil && !stopped {
		reason = cluster.PlainError(err)
	}
	f.publish(publish, &sc.facts, sc.state, reason)
	return !stopped
}

func (f *Feed) publish(publish func(*Result), facts *Facts, state Scan, reason string) {
	t := facts.Analyze(f.link.Now())
	t.Scan = state
	t.Err = reason
	publish(t)
}
