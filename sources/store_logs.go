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
	"acescope/sources/cluster"
	"acescope/sources/logfile"
	"acescope/sources/logs"
)

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
func (s *Store) readLogs(ctx context.Context, d cluster.Deps) {
	s.mu.Lock()
	wish, run := s.logs, s.selected
	s.logs.session++
	session := s.logs.session
	s.mu.Unlock()
	choice, err := chooseLogs(d, wish, run)
	base := logs.Logs{Why: choice.Why, Paths: choice.Options.Paths, Chosen: wish.named(), Mention: choice.Mention, Session: session}
	if len(base.Paths) == 0 && err == nil {
		err = errors.New("there is no data directory here: choose files to follow")
	}
	if err != nil {
		base.Err = err.Error()
		s.publishLogs(base)
		return
	}
	if !base.Chosen {
		base.Base = logs.LogsDir(d.DataDir)
	}
	r := newLogReader(choice, base, s.now)
	done := make(chan struct{})
	go func() { defer close(done); s.publish(ctx, r) }()
	choice.Options.Tail, choice.Options.Partial, choice.Options.MaxLine = logs.LogTail, true, logs.MaxLogLine
	if err := logfile.Follow(ctx, choice.Options, r.handler()); err != nil {
		r.fail(err)
		s.SetHealth("logs", false, err.Error())
	}
	<-done
}

func (s *Store) publishLogs(l logs.Logs) {
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
		if bad := logs.LogHealth(l); bad != health {
			health = bad
			s.SetHealth("logs", bad == "", logs.OrFine(bad))
		}
		pause.Reset(logs.LogPause)
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

// named tells whether somebody chose files, so that they stay when another run is selected.
func (w *logWish) named() bool { return len(w.paths) > 0 || w.calls != nil }

// logWish is what somebody wants to see. Only the store's lock guards it.
type logWish struct {
	paths   []string // nil for those of the selected run
	calls   *ace.Ref // the artifact with the calls of a run, instead
	session int64
}

func chooseLogs(d cluster.Deps, wish logWish, run selection) (logs.LogChoice, error) {
	switch {
	case wish.calls != nil:
		return callLog(d, *wish.calls)
	case len(wish.paths) > 0:
		return logs.ChosenLogs(wish.paths), nil
	case d.DataDir == "":
		return logs.LogChoice{Why: "no logs"}, nil
	}
	return logs.LogsOf(d.DataDir, run.workflowID, run.runID), nil
}

func callLog(d cluster.Deps, ref ace.Ref) (logs.LogChoice, error) {
	choice := logs.LogChoice{Why: "of the run's tool calls, whole, from their artifact"}
	if d.ArtifactPath == nil {
		return choice, errors.New("there are no artifacts here")
	}
	path, err := d.ArtifactPath(ref)
	choice.Options.Paths = []string{path}
	return choice, err
}

func newLogReader(c logs.LogChoice, base logs.Logs, now func() time.Time) *logReader {
	return &logReader{choice: c, base: base, now: now, changed: make(chan struct{}, 1), open: map[string]logs.LogEntry{}, first: &logs.LogMerge{}, rates: map[string]logs.LineRate{},
		ring: logs.LogRing{MaxLines: logs.MaxLogLines, MaxBytes: logs.MaxLogBytes}}
}
