// Package logs merges the lines of followed log files by time. Each file keeps a bounded ring of lines; dropped
// lines are counted.
package logs

import (
	"strings"
	"time"

	"acescope/sources/logfile"
)

// Bounds of the lines that are kept; the oldest go first and are counted.
const (
	MaxLogLines = 20_000
	MaxLogBytes = 16 << 20
	// LogTaill is how many lines before the end of a file the reading begins.
	LogTail = 500
	// MaxLogLinee is where lines are cut for the screen, in bytes.
	MaxLogLine = 64 << 10
	// LogPausee is how long new lines wait for more before they are published.
	LogPause = 50 * time.Millisecond
)

// Logs is the log files that are followed, and their newest lines.
type Logs struct {
	Why     string   // which files these are
	Paths   []string // files and directories that are followed
	Chosen  bool     // by name; else those of the selected run or of the data directory
	Mention []string // ids of the selected run, to find it in lines of others
	Base    string   // directory that names are shown below, "" for none
	Session int64    // counts the times that reading began anew
	Files   []LogFile
	Lines   []LogEntry // oldest first
	First   int64      // how many lines came before Lines[0]
	Dropped int64      // lines that fell out
	Bytes   int64      // of Lines
	Open    []LogEntry // last lines whose end is not there yet, one a file at most
	Trouble string     // what lasts: polling, files left out
	Err     string     // why nothing is read
	Updated time.Time
}

// LogFile is a file that is followed and how fast it grows.
type LogFile struct {
	logfile.File
	PerSecond float64   // lines, over the last seconds before RatedAt
	RatedAt   time.Time // zero before the first rate
}

// LogEntry is a line, or a note on what happened to a file. Text is untrusted.
type LogEntry struct {
	File   string
	Number int64 // 0 where nobody counted
	Offset int64
	At     time.Time // of reading
	Text   string
	Cut    int64
	Note   logfile.Kind // "" for a line
	Torn   bool         // its end never came
}

// LogHealth is what is wrong with the files for as long as it is, "" for nothing.
func LogHealth(l Logs) string {
	var bad []string
	if l.Trouble != "" {
		bad = append(bad, l.Trouble)
	}
	for _, f := range l.Files {
		if f.State == logfile.Unreadable {
			bad = append(bad, f.Path+": "+f.Err)
		}
	}
	if len(bad) > 3 {
		bad = append(bad[:3], "and others")
	}
	return strings.Join(bad, "; ")
}

func OrFine(bad string) string {
	if bad == "" {
		return "log files are read"
	}
	return bad
}
