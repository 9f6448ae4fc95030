package sources

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/logfile"
)

// Bounds of the lines that are kept; the oldest go first and are counted.
const (
	MaxLogLines = 20_000
	MaxLogBytes = 16 << 20
	// logTail is how many lines before the end of a file the reading begins.
	logTail = 500
	// maxLogLine is where lines are cut for the screen, in bytes.
	maxLogLine = 64 << 10
	// logPause is how long new lines wait for more before they are published.
	logPause = 50 * time.Millisecond
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

// logWish is what somebody wants to see. Only the store's lock guards it.
type logWish struct {
	paths   []string // nil for those of the selected run
	calls   *ace.Ref // the artifact with the calls of a run, instead
	session int64
}

// named tells whether somebody chose files, so that they stay when another run is selected.
func (w *logWish) named() bool { return len(w.paths) > 0 || w.calls != nil }

// FollowCalls shows the artifact that holds the tool calls of a run whole, a line for each.
func (s *Store) FollowCalls(ref ace.Ref) {
	s.mu.Lock()
	s.logs.paths, s.logs.calls = nil, &ref
	s.mu.Unlock()
	s.again(PartLogs)
}

// FollowLogs follows files or directories by name, "~/" being the home directory; none go
// back to those of the selected run.
func (s *Store) FollowLogs(paths []string) {
	paths = slices.Clone(paths)
	for i, p := range paths {
		if rest, ok := strings.CutPrefix(p, "~/"); ok {
			if home, err := os.UserHomeDir(); err == nil {
				paths[i] = filepath.Join(home, rest)
			}
		}
	}
	s.mu.Lock()
	s.logs.paths, s.logs.calls = paths, nil
	s.mu.Unlock()
	s.again(PartLogs)
}

// readLogs follows logs until ctx ends.
func (s *Store) readLogs(ctx context.Context, d Deps) {
	s.mu.Lock()
	wish, run := s.logs, s.selected
	s.logs.session++
	session := s.logs.session
	s.mu.Unlock()
	choice, err := chooseLogs(d, wish, run)
	base := Logs{Why: choice.Why, Paths: choice.Options.Paths, Chosen: wish.named(), Mention: choice.Mention, Session: session}
	if len(base.Paths) == 0 && err == nil {
		err = errors.New("there is no data directory here: choose files to follow")
	}
	if err != nil {
		base.Err = err.Error()
		s.publishLogs(base)
		return
	}
	if !base.Chosen {
		base.Base = LogsDir(d.DataDir)
	}
	r := newLogReader(choice, base, s.now)
	done := make(chan struct{})
	go func() { defer close(done); s.publish(ctx, r) }()
	choice.Options.Tail, choice.Options.Partial, choice.Options.MaxLine = logTail, true, maxLogLine
	if err := logfile.Follow(ctx, choice.Options, r.handler()); err != nil {
		r.fail(err)
		s.SetHealth("logs", false, err.Error())
	}
	<-done
}

func chooseLogs(d Deps, wish logWish, run selection) (LogChoice, error) {
	switch {
	case wish.calls != nil:
		return callLog(d, *wish.calls)
	case len(wish.paths) > 0:
		return ChosenLogs(wish.paths), nil
	case d.DataDir == "":
		return LogChoice{Why: "no logs"}, nil
	}
	return LogsOf(d.DataDir, run.workflowID, run.runID), nil
}

func callLog(d Deps, ref ace.Ref) (LogChoice, error) {
	choice := LogChoice{Why: "of the run's tool calls, whole, from their artifact"}
	if d.ArtifactPath == nil {
		return choice, errors.New("there are no artifacts here")
	}
	path, err := d.ArtifactPath(ref)
	choice.Options.Paths = []string{path}
	return choice, err
}

func (s *Store) publishLogs(l Logs) {
	l.Updated = s.now()
	s.update(func(snap *Snapshot) { snap.Logs = &l })
}

// publish hands out what the reader has whenever it has something new, but leaves time
// between, so that a flood of lines is no flood of snapshots.
func (s *Store) publish(ctx context.Context, r *logReader) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	health := ""
	for {
		l := r.snapshot()
		s.publishLogs(l)
		if bad := logHealth(l); bad != health {
			health = bad
			s.SetHealth("logs", bad == "", orFine(bad))
		}
		pause.Reset(logPause)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
		}
	}
}

// logHealth is what is wrong with the files for as long as it is, "" for nothing.
func logHealth(l Logs) string {
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

func orFine(bad string) string {
	if bad == "" {
		return "log files are read"
	}
	return bad
}
