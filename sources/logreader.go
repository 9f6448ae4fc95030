package sources

import (
	"maps"
	"slices"
	"sync"
	"time"

	"acescope/sources/logfile"
)

// logReader takes what a following gives and keeps the newest of it. It never waits: what
// does not fit falls out and is counted.
type logReader struct {
	choice  LogChoice
	now     func() time.Time
	changed chan struct{}

	mu      sync.Mutex
	base    Logs
	ring    logRing
	first   *logMerge           // of what is there at the beginning, nil after it
	open    map[string]LogEntry // by file: the line under way
	files   []LogFile
	rates   map[string]lineRate
	trouble string
	err     string
}

// lineRate is lines of a file counted at some moment, and how fast they came before it.
type lineRate struct {
	at        time.Time
	lines     int64
	perSecond float64
}

// rateOver is how long lines are counted for a lineRate.
const rateOver = 2 * time.Second

func newLogReader(c LogChoice, base Logs, now func() time.Time) *logReader {
	return &logReader{choice: c, base: base, now: now, changed: make(chan struct{}, 1), open: map[string]LogEntry{}, first: &logMerge{}, rates: map[string]lineRate{},
		ring: logRing{maxLines: MaxLogLines, maxBytes: MaxLogBytes}}
}

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
		e := LogEntry{File: l.Path, Number: l.Number, Offset: l.Offset, At: l.At, Text: string(l.Text), Cut: l.Cut, Torn: l.Torn}
		if l.Partial {
			r.open[l.Path] = e
			continue
		}
		delete(r.open, l.Path)
		r.add(e)
	}
	signal(r.changed)
	return nil
}

// add keeps a line; at the beginning it waits for those that other files have.
func (r *logReader) add(e LogEntry) {
	if r.first == nil {
		r.ring.add(e)
		return
	}
	if r.first.add(e); r.first.full() {
		r.ordered()
	}
}

// ordered ends the beginning.
func (r *logReader) ordered() {
	if r.first != nil {
		r.first.flush(r.ring.add)
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
		r.add(LogEntry{File: e.Path, At: e.At, Text: e.Text, Note: e.Kind})
	}
	signal(r.changed)
	return nil
}

func (r *logReader) state(files []logfile.File) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ordered() // it comes when what was there is read, or after a while
	r.files = make([]LogFile, len(files))
	for i, f := range files {
		r.files[i] = r.rated(f)
	}
	signal(r.changed)
	return nil
}

// rated adds how many lines a second the file gave lately.
func (r *logReader) rated(f logfile.File) LogFile {
	now, old := r.now(), r.rates[f.Path]
	if old.at.IsZero() {
		r.rates[f.Path] = lineRate{at: now, lines: f.Lines}
		return LogFile{File: f}
	}
	if took := now.Sub(old.at); took >= rateOver {
		old = lineRate{at: now, lines: f.Lines, perSecond: float64(f.Lines-old.lines) / took.Seconds()}
		r.rates[f.Path] = old
	}
	return LogFile{File: f, PerSecond: old.perSecond, RatedAt: old.at}
}

func (r *logReader) fail(err error) {
	r.mu.Lock()
	r.err = err.Error()
	r.mu.Unlock()
	signal(r.changed)
}

func (r *logReader) snapshot() Logs {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.base
	l.Files, l.Lines, l.First, l.Dropped, l.Bytes = r.files, r.ring.lines(), r.ring.dropped, r.ring.dropped, r.ring.bytes
	for _, path := range slices.Sorted(maps.Keys(r.open)) {
		l.Open = append(l.Open, r.open[path])
	}
	l.Trouble, l.Err = r.trouble, r.err
	return l
}
