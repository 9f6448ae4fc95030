package logs

import (
	"slices"
	"strconv"
	"time"

	"acescope/sources/logfile"
)

// merger sorts the lines of several files that existed at the start by time. A line without a time stays
// after the previous line of its file; a file without times comes first.
type merger struct {
	lines []timedEntry
	bytes int64
	last  map[string]time.Time // by file
}

type timedEntry struct {
	Entry
	when time.Time
}

func (m *merger) add(e Entry) {
	if m.last == nil {
		m.last = map[string]time.Time{}
	}
	when := m.last[e.File]
	if t, ok := logTime(logfile.Parse([]byte(e.Text)).Time); ok && t.After(when) {
		when = t
	}
	m.last[e.File] = when
	m.lines = append(m.lines, timedEntry{e, when})
	m.bytes += entryBytes(e)
}

// flush passes the lines to give in order and removes them.
func (m *merger) flush(give func(Entry)) {
	slices.SortStableFunc(m.lines, func(a, b timedEntry) int { return a.when.Compare(b.when) })
	for _, l := range m.lines {
		give(l.Entry)
	}
	m.lines, m.bytes, m.last = nil, 0, nil
}

// logTime parses a date with a time of day, or seconds, milliseconds, microseconds or nanoseconds since 1970.
func logTime(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05Z0700",
		"2006-01-02T15:04:05", time.DateTime,
		"2006-01-02 15:04:05,999", "2006/01/02 15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, true
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < 1e8 || n > 1e20 {
		return time.Time{}, false
	}
	for n > 1e11 {
		n /= 1000
	}
	return time.Unix(0, int64(n*1e9)), true
}

// Ring keeps the newest lines within two bounds. It never changes the lines that it has returned.
type Ring struct {
	MaxLines     int
	MaxBytes     int64
	all          []Entry // lines before from are dropped
	from         int
	Bytes        int64 // of the kept lines
	DroppedBytes int64 // of dropped lines that are still in all
	Dropped      int64
}

func (r *Ring) Add(e Entry) {
	if len(r.all) == cap(r.all) || r.DroppedBytes > r.MaxBytes {
		r.compact()
	}
	r.all = append(r.all, e)
	r.Bytes += entryBytes(e)
	for len(r.all)-r.from > r.MaxLines || r.Bytes > r.MaxBytes && len(r.all)-r.from > 1 {
		n := entryBytes(r.all[r.from])
		r.Bytes, r.DroppedBytes = r.Bytes-n, r.DroppedBytes+n
		r.from++
		r.Dropped++
	}
}

// compact copies the kept lines, so that the dropped ones can be freed.
func (r *Ring) compact() {
	kept := r.all[r.from:]
	r.all = append(make([]Entry, 0, min(2*len(kept)+256, 2*r.MaxLines+256)), kept...)
	r.from, r.DroppedBytes = 0, 0
}

func (r *Ring) Lines() []Entry { return r.all[r.from:len(r.all):len(r.all)] }

func entryBytes(e Entry) int64 { return int64(len(e.Text)) }

// lineRate is a line count of a file and the rate before it.
type lineRate struct {
	at        time.Time
	lines     int64
	perSecond float64
}

// rateOver is the period of a lineRate.
const rateOver = 2 * time.Second
