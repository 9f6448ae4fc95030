package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"acescope/sources"
	"acescope/sources/cluster"
)

// historyEvents is how many events the long history has: as many as a server allows.
const historyEvents = 50_000

// What is searched for in a long history: a literal in what is shown of an event, and
// one that stands in payloads only.
const (
	shownText   = "7"
	payloadText = "shareholders"
)

// historyTimes is what a child measured of a console that opens a long history.
type historyTimes struct {
	Events     int     `json:"events"`
	ByteMS     float64 `json:"byte_ms"`  // from the key to the first answer
	FirstMS    float64 `json:"first_ms"` // from that to the first screen of the timeline
	AllMS      float64 `json:"all_ms"`   // from that to a screen that knows all events
	HistoryMB  float64 `json:"history_mb"`
	HeapMB     float64 `json:"heap_mb"`   // more than before the timeline was opened
	BeforeMB   float64 `json:"before_mb"` // resident before
	ResidentMB float64 `json:"resident_mb"`
	PeakMB     float64 `json:"peak_mb"`
	SearchMS   float64 `json:"search_ms"` // from the key to the screen
	FullMS     float64 `json:"full_ms"`   // the same, payloads too
	Found      int     `json:"found"`
	FullFound  int     `json:"full_found"`
	BarsP99    float64 `json:"bars_p99_ms"` // a step of the cursor
	ListP99    float64 `json:"list_p99_ms"`
	BarsP50    float64 `json:"bars_p50_ms"`
	ListP50    float64 `json:"list_p50_ms"`
}

// history measures a history of 50,000 events: one that a simulated server hands out,
// and one of a workflow that ran on the embedded server.
func (b *bench) history(ctx context.Context) error {
	if err := b.historyOf(ctx, "simulated", func() (historyTimes, error) { return b.historyOnce(ctx, spec{Variant: simulated}) }); err != nil {
		return err
	}
	dir, err := b.ensureLong(ctx)
	if err != nil {
		return err
	}
	s, err := b.serve(ctx, dir, "history-server")
	if err != nil {
		return err
	}
	err = b.historyOf(ctx, "embedded server", func() (historyTimes, error) {
		return b.historyOnce(ctx, spec{Variant: embeddedServer, Dir: dir})
	})
	return errors.Join(err, s.stop())
}

func (b *bench) historyOnce(ctx context.Context, s spec) (t historyTimes, err error) {
	s.Kind, s.Profile, s.Name = kindHistory, b.profile, "history-"+s.Variant
	err = ask(ctx, s, func(got historyTimes) error { t = got; return nil })
	return t, err
}

func (b *bench) historyOf(ctx context.Context, from string, once func() (historyTimes, error)) error {
	fields := []struct {
		row row
		of  func(historyTimes) float64
	}{
		{row{what: "first byte to the timeline's first screen", unit: "ms", target: below(1000)}, func(t historyTimes) float64 { return t.FirstMS }},
		{row{what: "key to the first byte", unit: "ms"}, func(t historyTimes) float64 { return t.ByteMS }},
		{row{what: "first byte to all events", unit: "ms"}, func(t historyTimes) float64 { return t.AllMS }},
		{row{what: "search in what is shown, key to screen", unit: "ms", target: below(200)}, func(t historyTimes) float64 { return t.SearchMS }},
		{row{what: "search in payloads too, key to screen", unit: "ms", target: below(200)}, func(t historyTimes) float64 { return t.FullMS }},
		{row{what: "step along the bars, p99", unit: "ms", target: below(1000.0 / 60)}, func(t historyTimes) float64 { return t.BarsP99 }},
		{row{what: "step along the list, p99", unit: "ms", target: below(1000.0 / 60)}, func(t historyTimes) float64 { return t.ListP99 }},
		{row{what: "the history as the server stores it", unit: "MB"}, func(t historyTimes) float64 { return t.HistoryMB }},
		{row{what: "heap that it takes", unit: "MB"}, func(t historyTimes) float64 { return t.HeapMB }},
		{row{what: "resident before the timeline is opened", unit: "MB"}, func(t historyTimes) float64 { return t.BeforeMB }},
		{row{what: "resident after it, the console in all", unit: "MB"}, func(t historyTimes) float64 { return t.ResidentMB }},
		{row{what: "peak resident", unit: "MB"}, func(t historyTimes) float64 { return t.PeakMB }},
	}
	for range b.size.runs {
		t, err := once()
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		b.progress("  %s: %d events, first screen after %.0f ms, all after %.0f ms, search %.0f ms and %.0f ms (%d and %d found), step %.2f and %.2f ms",
			from, t.Events, t.FirstMS, t.AllMS, t.SearchMS, t.FullMS, t.Found, t.FullFound, t.BarsP50, t.ListP50)
		for i := range fields {
			f := &fields[i]
			f.row.section, f.row.ours = "history", append(f.row.ours, f.of(t))
		}
	}
	for _, f := range fields {
		f.row.what = fmt.Sprintf("%d events, %s: %s", historyEvents, from, f.row.what)
		b.report.add(f.row)
	}
	return nil
}

// opening is the child: a console that opens the one run that there is.
func opening(ctx context.Context, s spec) (err error) {
	long, closeLong, err := longRun(ctx, s)
	if err != nil {
		return err
	}
	defer closeLong()
	store, stop := runStore(ctx, cluster.Deps{Client: long, Namespace: long.namespace})
	defer stop()
	p, err := openProbe(ctx, store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if _, err := p.until(ctx, "the run is read", func(s *sources.Snapshot) bool {
		return len(s.Runs.Rows) > 0 && s.Detail != nil && s.Detail.Events >= historyEvents
	}); err != nil {
		return err
	}
	end, err := profile(s, s.Name)
	if err != nil {
		return err
	}
	t, err := lookInto(ctx, p, long)
	end()
	if err != nil {
		return err
	}
	return tell(t)
}

func lookInto(ctx context.Context, p *probe, long *longClient) (t historyTimes, err error) {
	before := heapMB()
	t.BeforeMB = ownMB()
	pressed, err := p.press("3")
	if err != nil {
		return t, err
	}
	first, err := p.until(ctx, "the first screen", func(s *sources.Snapshot) bool { return s.Events != nil && s.Events.Len() > 0 })
	if err != nil {
		return t, err
	}
	all, err := p.until(ctx, "all events", func(s *sources.Snapshot) bool {
		l := s.Events
		return l != nil && l.Left == 0 && !l.Reading && l.Len() >= historyEvents
	})
	if err != nil {
		return t, err
	}
	answered := long.first()
	t.ByteMS, t.FirstMS, t.AllMS = millis(answered.Sub(pressed)), millis(first.Sub(answered)), millis(all.Sub(answered))
	p.mu.Lock()
	log := p.drawn.Events
	p.mu.Unlock()
	t.Events, t.HistoryMB = log.Len(), float64(log.Bytes)/(1<<20)
	t.HeapMB, t.ResidentMB = heapMB()-before, ownMB()
	t.PeakMB = ownPeakMB()
	return t, walkAndSearch(ctx, p, &t)
}

// walkAndSearch types in the bars and in the list, and searches there.
func walkAndSearch(ctx context.Context, p *probe, t *historyTimes) error {
	bars, err := upAndDown(ctx, p)
	if err != nil {
		return err
	}
	if _, err := p.press("t"); err != nil {
		return err
	}
	list, err := upAndDown(ctx, p)
	if err != nil {
		return err
	}
	t.BarsP50, t.BarsP99, t.ListP50, t.ListP99 = bars.percentile(50), bars.percentile(99), list.percentile(50), list.percentile(99)
	if t.SearchMS, t.Found, err = searchFor(ctx, p, shownText, false); err != nil {
		return err
	}
	if _, err := p.press("f"); err != nil {
		return err
	}
	t.FullMS, t.FullFound, err = searchFor(ctx, p, payloadText, true)
	return err
}

// walkKeys is how often each direction is typed.
const walkKeys = 300

func upAndDown(ctx context.Context, p *probe) (series, error) {
	up, err := p.steps(ctx, "k", walkKeys)
	if err != nil {
		return nil, err
	}
	down, err := p.steps(ctx, "j", walkKeys)
	return append(up, down...), err
}

// searchFor types a search and waits for the screen that shows what it found.
func searchFor(ctx context.Context, p *probe, text string, full bool) (ms float64, found int, err error) {
	if _, err := p.press("/\x15" + text); err != nil { // ctrl+u empties the line
		return 0, 0, err
	}
	at, err := p.press("\r")
	if err != nil {
		return 0, 0, err
	}
	shown, err := p.until(ctx, "the search for "+text, func(s *sources.Snapshot) bool {
		l := s.Events
		if l == nil || l.Filter.Include != text || l.Filter.Full != full {
			return false
		}
		found = l.Shown()
		return true
	})
	if err == nil && (found == 0 || found == historyEvents) {
		err = fmt.Errorf("the search for %q found %d events", text, found)
	}
	return float64(shown.Sub(at)) / float64(time.Millisecond), found, err
}

// ensureLong is a data directory with one run of a long history, made where it is missing.
func (b *bench) ensureLong(ctx context.Context) (string, error) {
	dir := filepath.Join(b.dir, fmt.Sprintf("history-%d", historyEvents))
	if exists(dir) {
		return dir, nil
	}
	b.progress("  making a run of %d events in %s, once", historyEvents, dir)
	tmp, remove, err := b.fresh("making")
	if err != nil {
		return "", err
	}
	defer remove()
	var events int64
	err = ask(ctx, spec{Kind: kindLong, Dir: tmp}, func(got struct{ Events int64 }) error { events = got.Events; return nil })
	if err != nil {
		return "", err
	}
	if events < historyEvents {
		return "", fmt.Errorf("the run has %d events", events)
	}
	return dir, os.Rename(tmp, dir)
}
