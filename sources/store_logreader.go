package sources

import (
	"maps"
	"slices"
	"sync"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/logfile"
	"acescope/sources/logs"
)

func (r *logReader) handler() logfile.Handler {
	return logfile.Handler{Lines: r.lines, Event: r.event, Files: r.state}
}

func (r *logReader) lines(batch []logfile.Line) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range batch {
		if !r.choice.Keeps(l.Path, l.Text) {
			continue
		}
		e := logs.LogEntry{File: l.Path, Number: l.Number, Offset: l.Offset, At: l.At, Text: string(l.Text), Cut: l.Cut, Torn: l.Torn}
		if l.Partial {
			r.open[l.Path] = e
			continue
		}
		delete(r.open, l.Path)
		r.add(e)
	}
	cluster.Signal(r.changed)
	return nil
}

// add keeps a line; at the beginning it waits for those that other files have.
func (r *logReader) add(e logs.LogEntry) {
	if r.first == nil {
		r.ring.Add(e)
		return
	}
	if r.first.Add(e); r.first.Full() {
		r.ordered()
	}
}

// ordered ends the beginning.
func (r *logReader) ordered() {
	if r.first != nil {
		r.first.Flush(r.ring.Add)
		r.first = nil
	}
}

func (r *logReader) event(e logfile.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e.Kind {
	case logfile.Opened:
	case logfile.Polling, logfile.LeftOut:
		r.trouble = e.Text
	default:
		r.add(logs.LogEntry{File: e.Path, At: e.At, Text: e.Text, Note: e.Kind})
	}
	cluster.Signal(r.changed)
	return nil
}

func (r *logReader) state(files []logfile.File) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ordered() // it comes when what was there is read, or after a while
	r.files = make([]logs.LogFile, len(files))
	for i, f := range files {
		r.files[i] = r.rated(f)
	}
	cluster.Signal(r.changed)
	return nil
}

// rated adds how many lines a second the file gave lately.
func (r *logReader) rated(f logfile.File) logs.LogFile {
	now, old := r.now(), r.rates[f.Path]
	if old.At.IsZero() {
		r.rates[f.Path] = logs.LineRate{At: now, Lines: f.Lines}
		return logs.LogFile{File: f}
	}
	if took := now.Sub(old.At); took >= logs.RateOver {
		old = logs.LineRate{At: now, Lines: f.Lines, PerSecond: float64(f.Lines-old.Lines) / took.Seconds()}
		r.rates[f.Path] = old
	}
	return logs.LogFile{File: f, PerSecond: old.PerSecond, RatedAt: old.At}
}

func (r *logReader) fail(err error) {
	r.mu.Lock()
	r.err = err.Error()
	r.mu.Unlock()
	cluster.Signal(r.changed)
}

func (r *logReader) snapshot() logs.Logs {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.base
	l.Files, l.Lines, l.First, l.Dropped, l.Bytes = r.files, r.ring.Lines(), r.ring.Dropped, r.ring.Dropped, r.ring.Bytes
	for _, path := range slices.Sorted(maps.Keys(r.open)) {
		l.Open = append(l.Open, r.open[path])
	}
	l.Trouble, l.Err = r.trouble, r.err
	return l
}

// logReader takes what a following gives and keeps the newest of it. It never waits: what
// does not fit falls out and is counted.
type logReader struct {
	choice  logs.LogChoice
	now     func() time.Time
	changed chan struct{}

	mu      sync.Mutex
	base    logs.Logs
	ring    logs.LogRing
	first   *logs.LogMerge           // of what is there at the beginning, nil after it
	open    map[string]logs.LogEntry // by file: the line under way
	files   []logs.LogFile
	rates   map[string]logs.LineRate
	trouble string
	err     string
}
