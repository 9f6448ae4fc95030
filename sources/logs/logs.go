// Package logs collects the lines of followed log files: those that exist at the start sorted by time, then
// new ones as they come. It keeps the newest lines of all files in a bounded ring and counts dropped lines.
package logs

import (
	"strings"
	"time"

	"acescope/sources/logfile"
)

// Bounds of the kept lines; the oldest are dropped and counted.
const (
	MaxLines = 20_000
	maxBytes = 16 << 20
	// tailLines is the number of existing lines to read of each file.
	tailLines = 500
	// MaxLine bounds the bytes of a line on the screen.
	MaxLine = 64 << 10
)

// Logs holds the followed log files and their newest lines.
type Logs struct {
	Description string   // which files these are
	Chosen      bool     // the user chose them; otherwise those of the selected run or of the data directory
	Mention     []string // ids of the selected run, to find it in other files
	Base        string   // directory that file names are relative to, or ""
	Session     int64    // number of the reading
	Files       []File
	Lines       []Entry // oldest first
	First       int64   // number of lines before Lines[0]
	Dropped     int64   // number of dropped lines
	Open        []Entry // incomplete last lines, at most one per file
	Problem     string  // a lasting problem: polling, too many files
	Err         string  // why nothing is read
	Updated     time.Time
}

// File is a followed file and its growth.
type File struct {
	logfile.File
	PerSecond float64   // lines in the last seconds before RatedAt
	RatedAt   time.Time // zero before the first rate
}

// Entry is a line, or a note about a file. Text is untrusted.
type Entry struct {
	File       string
	Number     int64 // 0 if unknown
	Offset     int64
	At         time.Time // when it was read
	Text       string
	Cut        int64
	Note       logfile.Kind // "" for a line
	Incomplete bool         // its end is missing
}

// healthText returns the lasting problems of the files, or "".
func healthText(l Logs) string {
	var bad []string
	if l.Problem != "" {
		bad = append(bad, l.Problem)
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
