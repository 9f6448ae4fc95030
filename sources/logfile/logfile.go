// Package logfile follows log files: given ones, and those in directories. It
// imports no other package of acescope.
//
// Watching: directories are watched with fsnotify; nothing is polled. For a missing file the
// nearest existing parent is watched. If the system offers no watch (too many watches, a file
// system without them) everything is checked every [PollEvery] instead, and an event says so.
// When the system has lost notifications, everything is checked again. Directories are searched
// [Options.Depth] levels deep, without hidden directories and symbolic links to directories;
// files whose names match [Options.Match] are followed, at most the newest [MaxFiles].
//
// Changes: when a file grows, its new lines are read. When it is renamed, its rest and what a
// writer still appends to it are read under the old name until the next rename; the new file
// of the old name is read from its start. A file renamed to a name that is also followed is
// followed there. A truncated file (also one that has since grown beyond the old position,
// which the last bytes read reveal) is read from its start. When a file is removed, its rest
// is read, and its name is watched. A file with two names is followed once.
//
// Order: the lines of a file come in order; between files there is no order. One goroutine
// reads and calls the [Handler].
//
// Bounds: a buffer of 256 KiB for all files, and for each file one unfinished line of at most
// [Options.MaxLine] bytes; the rest of a longer line is dropped and counted in [Line.Cut].
// Nothing else is lost. A slow handler delays reading; unread data stays in the files. Only
// data that is removed or truncated before it was read is lost.
//
// A last line without an end is reported as [Line.Partial] if [Options.Partial] is set, and
// again when it has grown or ended; if its end cannot come any more, it is reported as
// [Line.Torn]. Text is as it is in the file, any bytes; the code that draws it makes it safe.
package logfile

import (
	"os"
	"time"
)

// Bounds.
const (
	// MaxFiles is the maximum number of followed files.
	MaxFiles = 1000
	// DefaultDepth is how many levels of directories are searched.
	DefaultDepth = 6
	// DefaultMaxLine is where lines are cut, in bytes.
	DefaultMaxLine = 1 << 20
	// PollEvery is how often everything is checked without watches.
	PollEvery = time.Second
	// maxCounted is how many bytes are read to number the lines of a file that is followed
	// from near its end; beyond that, its lines have no numbers.
	maxCounted = 64 << 20
)

// Options select what is followed, and how.
type Options struct {
	Paths []string // files and directories, existing or not
	Match []string // patterns of file names in directories, nil for *.log, *.jsonl and *.ndjson
	Skip  []string // patterns of names of directories that are not searched
	Depth int      // 0 for DefaultDepth; 1 is the directory itself
	// FromStart reads existing files from their start; otherwise only their last Tail lines
	// are read. Files that appear later are read from their start.
	FromStart bool
	Tail      int
	Once      bool // stop when everything is read
	Partial   bool // report unfinished lines
	MaxLine   int  // bytes, 0 for DefaultMaxLine
	Poll      bool // do not use watches

	watcher func() (watcher, error)             // nil for fsnotify
	open    func(path string) (*os.File, error) // nil for the system's
	ticks   func() (<-chan time.Time, func())   // nil for a ticker of PollEvery
}

// Line is one line of a file. Text belongs to the handler only during the call.
type Line struct {
	Path    string
	Offset  int64 // of its first byte in the file
	Number  int64 // from 1; 0 if unknown
	At      time.Time
	Text    []byte // without its end (\n or \r\n)
	Cut     int64  // bytes that were dropped at its end
	Partial bool   // unfinished: it comes again
	Torn    bool   // its end will never come
}

// File is the state of a followed file.
type File struct {
	Path      string
	State     State
	Err       string // why it is Unreadable, or the file that it is the Same as
	Size      int64  // at the last check
	Lines     int64  // read so far
	Cut       int64  // lines that were cut
	Truncated int    // number of truncations
}

// State is the condition of a followed file.
type State string

// States.
const (
	Following  State = "following"
	Waiting    State = "waiting"    // it does not exist yet
	Removed    State = "removed"    // it existed and may return
	Truncated  State = "truncated"  // without new data since
	Unreadable State = "unreadable" // tried again when it changes
	Same       State = "same"       // another name of a followed file
)

// Event is something other than lines that happened.
type Event struct {
	At   time.Time
	Kind Kind
	Path string // "" if it concerns all files
	Text string
}

// Kind is the kind of an [Event].
type Kind string

// Kinds of events. Polling lasts until the end; NotReadable lasts until the file is Opened.
const (
	Opened      Kind = "opened"
	WasRotated  Kind = "rotated"
	WasEmptied  Kind = "truncated"
	WasRemoved  Kind = "removed"
	NotReadable Kind = "unreadable"
	LeftOut     Kind = "left_out" // more than MaxFiles
	Polling     Kind = "polling"
	Overflow    Kind = "overflow" // notifications were lost; everything was checked again
)

// Handler receives what is read. Its functions are called from one goroutine and may be nil;
// if one returns an error, following ends with it.
type Handler struct {
	Lines func([]Line) error
	Event func(Event) error
	// Files receives the state of all files, sorted by name, after reading, and at intervals
	// while it goes on. It may keep the slice.
	Files func([]File) error
}
