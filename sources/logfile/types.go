package logfile

import (
	"os"
	"time"
)

// Bounds.
const (
	// MaxFiles is how many files are followed at most.
	MaxFiles = 1000
	// DefaultDepth is how many levels of directories are looked into.
	DefaultDepth = 6
	// DefaultMaxLine is where lines are cut, in bytes.
	DefaultMaxLine = 1 << 20
	// PollEvery is how often everything is looked at where there are no watches.
	PollEvery = time.Second
	// countBelow is how many bytes are read to number the lines of a file that is begun
	// near its end; beyond, its lines have no numbers.
	countBelow = 64 << 20
)

// DefaultMatch is which files of a directory are followed.
func DefaultMatch() []string { return []string{"*.log", "*.jsonl", "*.ndjson"} }

// Options say what is followed.
type Options struct {
	Paths []string // files and directories, there or not
	Match []string // patterns of file names in directories, nil for DefaultMatch
	Skip  []string // patterns of names of directories that are not looked into
	Depth int      // 0 for DefaultDepth; 1 is the directory itself
	// FromStart reads files that are there at the beginning from their start, else
	// only their last Tail lines are read. Files that come later are read from their start.
	FromStart bool
	Tail      int
	// Once ends when everything that is there was read.
	Once    bool
	Partial bool // give lines whose end is not there yet
	MaxLine int  // bytes, 0 for DefaultMaxLine
	Poll    bool // do without watches

	watcher func() (watcher, error)             // nil for fsnotify
	open    func(path string) (*os.File, error) // nil for the system's
	ticks   func() (<-chan time.Time, func())   // nil for a ticker of PollEvery
}

// Line is one line of a file. Text is the handler's only during the call.
type Line struct {
	Path    string
	Offset  int64 // of its first byte in the file
	Number  int64 // 1 is the first of the file; 0 where nobody counted
	At      time.Time
	Text    []byte // without its end (\n or \r\n)
	Cut     int64  // bytes that were left out at its end
	Partial bool   // its end is not there yet: it comes again
	Torn    bool   // its end will never come
}

// File is what is known of a file that is followed.
type File struct {
	Path      string
	State     State
	Err       string // why it is Unreadable, or which file it is the Same as
	Size      int64  // when it was last looked at
	Read      int64  // offset up to which it was read
	Lines     int64  // read so far
	Cut       int64  // lines that were cut
	Truncated int    // times it was emptied
	Rotated   int    // times another file took its name
}

// State is what a file does.
type State string

// States.
const (
	Following  State = "following"
	Waiting    State = "waiting"    // not there yet
	Removed    State = "removed"    // was there; waited for
	Truncated  State = "truncated"  // was emptied, nothing new came yet
	Unreadable State = "unreadable" // tried again when it changes
	Same       State = "same"       // another name of a file that is followed
)

// Event is something that happened beside lines.
type Event struct {
	At   time.Time
	Kind Kind
	Path string // "" where it is about all
	Text string
}

// Kind is what happened.
type Kind string

// Kinds of events. Polling lasts until the end; Unreadable until the file is Opened.
const (
	Opened      Kind = "opened"
	WasRotated  Kind = "rotated"
	WasEmptied  Kind = "truncated"
	WasRemoved  Kind = "removed"
	NotReadable Kind = "unreadable"
	LeftOut     Kind = "left_out" // more than MaxFiles
	Polling     Kind = "polling"
	Overflow    Kind = "overflow" // notices were lost; everything was looked at again
)

// Handler gets what is read. Its functions are called from one goroutine; each may be
// nil, and an error of one ends the following.
type Handler struct {
	Lines func([]Line) error
	Event func(Event) error
	// Files gets the state of all, in the order of their names, when reading pauses and
	// now and then while it does not. It may keep the slice.
	Files func([]File) error
}
