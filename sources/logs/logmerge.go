package logs

import (
	"slices"
	"strconv"
	"time"

	"acescope/sources/logfile"
)

// LogMerge puts the lines that are there at the beginning in the order of their times,
// whichever files they come from. A line without a time stays behind the one before it in
// its file; a file without any comes first.
type LogMerge struct {
	lines []timedEntry
	bytes int64
	last  map[string]time.Time // by file
}

type timedEntry struct {
	LogEntry
	when time.Time
}

func (m *LogMerge) Add(e LogEntry) {
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

// Full tells that no more may wait for the order.
func (m *LogMerge) Full() bool { return len(m.lines) >= MaxLogLines || m.bytes >= MaxLogBytes }

// Flush gives the lines in order and forgets them.
func (m *LogMerge) Flush(give func(LogEntry)) {
	slices.SortStableFunc(m.lines, func(a, b timedEntry) int { return a.when.Compare(b.when) })
	for _, l := range m.lines {
		give(l.LogEntry)
	}
	m.lines, m.bytes, m.last = nil, 0, nil
}

// logTime reads the times that logs are written with: dates with a time of day, or seconds,
// milliseconds, microseconds or nanoseconds since 1970.
func logTime(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", time.DateTime,
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
