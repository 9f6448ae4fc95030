package sources

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/logfile"
	"acescope/sources/logs"
	"acescope/sources/runs"
)

// reading runs a log reader and waits for published lines.
type reading struct {
	t     *testing.T
	store *Feeds
	last  *logs.Logs
}

func readingLogs(t *testing.T, dataDir string) *reading {
	t.Helper()
	s := NewFeeds()
	s.Link.DataDir = dataDir
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		s.Logs.Run(ctx)
	})
	t.Cleanup(func() { stop(); wg.Wait() })
	return &reading{t: t, store: s}
}

func (r *reading) until(what string, ok func(*logs.Logs) bool) *logs.Logs {
	r.t.Helper()
	deadline := time.After(time.Minute)
	for {
		if l := r.store.Logs.Value(); l != nil {
			if r.last = l; ok(l) {
				return l
			}
		}
		select {
		case <-r.store.Link.Changed():
		case <-deadline:
			r.t.Fatalf("%s never came; %+v", what, r.last)
		}
	}
}

func texts(l *logs.Logs) string {
	var all []string
	for _, e := range l.Lines {
		all = append(all, e.Text)
	}
	return strings.Join(all, "|")
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(content); err != nil {
		t.Fatal(err)
	}
}

func TestReadLogs(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other.txt")
	main := filepath.Join(dir, "logs", "acescope.log")
	write(t, main, "one about run-1\ntwo\nthr")
	r := readingLogs(t, dir)
	r.store.Logs.Look(true)
	l := r.until("the data directory's logs", func(l *logs.Logs) bool {
		return texts(l) == "one about run-1|two" && len(l.Open) == 1 && l.Open[0].Text == "thr" &&
			len(l.Files) == 1
	})
	if l.Chosen || l.Description == "" || l.Base != filepath.Join(dir, "logs") ||
		l.Files[0].State != logfile.Following {
		t.Errorf("logs %+v", l)
	}
	write(t, main, "ee\n")
	r.until("the rest of the line", func(l *logs.Logs) bool {
		return texts(l) == "one about run-1|two|three" && len(l.Open) == 0
	})

	// A run with its own logs: these, and lines of other logs that mention it.
	write(t, filepath.Join(logs.RunDir(dir, "ace/q", "run-1"), "agent.jsonl"), "{\"mine\":1}\n")
	write(t, filepath.Join(logs.RunDir(dir, "ace/q", "run-2"), "agent.jsonl"), "{\"not mine\":1}\n")
	r.store.Select(runs.ID{WorkflowID: "ace/q", RunID: "run-1"}) // the logs of the selected run
	r.until("the run's logs", func(l *logs.Logs) bool { return texts(l) == "one about run-1|{\"mine\":1}" })

	write(t, other, "elsewhere\n")
	r.store.Logs.FollowLogs([]string{other})
	r.until("another file", func(l *logs.Logs) bool { return l.Chosen && texts(l) == "elsewhere" })
	if err := os.Truncate(other, 0); err != nil {
		t.Fatal(err)
	}
	r.until("a note", func(l *logs.Logs) bool {
		return len(l.Lines) == 2 && l.Lines[1].Note == logfile.WasEmptied
	})
	r.store.Select(runs.ID{WorkflowID: "ace/q", RunID: "run-2"})
	r.store.Select(runs.ID{WorkflowID: "ace/q", RunID: "run-1"}) // chosen files stay
	if l := r.store.Logs.Value(); !l.Chosen || len(l.Lines) != 2 {
		t.Errorf("logs %+v", l)
	}
	r.store.Logs.FollowLogs(nil)
	r.until("the run's logs again", func(l *logs.Logs) bool { return !l.Chosen && len(l.Lines) == 2 })
}

func TestFirstLinesComeInTheOrderOfTheirTimes(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(logs.Dir(dir), "a.log"),
		"{\"time\":\"2026-03-01T10:00:01Z\",\"msg\":\"1\"}\n{\"time\":\"2026-03-01T10:00:05Z\",\"msg\":\"5\"}\n")
	write(t, filepath.Join(logs.Dir(dir), "b.log"),
		"{\"ts\":1772359202.5,\"msg\":\"2\"}\n  of 2\n{\"time\":\"2026-03-01T10:00:04.000Z\",\"msg\":\"4\"}\n")
	write(t, filepath.Join(logs.Dir(dir), "c.log"), "no time\n")
	r := readingLogs(t, dir)
	r.store.Logs.Look(true)
	l := r.until("all lines", func(l *logs.Logs) bool { return len(l.Lines) == 6 })
	var order []string
	for _, e := range l.Lines {
		order = append(order, filepath.Base(e.File)[:1])
	}
	if got := strings.Join(order, ""); got != "cabbba" {
		t.Errorf("files in the order %s: %s", got, texts(l))
	}
	write(t, filepath.Join(logs.Dir(dir), "a.log"), "{\"time\":\"2026-03-01T09:00:00Z\"}\n")
	r.until("a late line at the end", func(l *logs.Logs) bool {
		return len(l.Lines) == 7 && strings.Contains(l.Lines[6].Text, "09:00")
	})
}

func TestCallsOfARun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sum")
	write(t, file, "{\"call\":1}\n")
	r := readingLogs(t, t.TempDir())
	r.store.Logs.FollowCalls(ace.Ref{SHA256: "sum"})
	r.store.Logs.Look(true)
	r.until("that there are no artifacts", func(l *logs.Logs) bool { return l.Err != "" && l.Chosen })

	s := NewFeeds()
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		s.Link.ArtifactPath = func(context.Context, ace.Ref) (string, error) { return file, nil }
		s.Logs.Run(ctx)
	})
	t.Cleanup(func() { stop(); wg.Wait() })
	r = &reading{t: t, store: s}
	s.Logs.FollowCalls(ace.Ref{SHA256: "sum"})
	s.Logs.Look(true)
	r.until("the calls", func(l *logs.Logs) bool { return texts(l) == "{\"call\":1}" })
}

func TestReadLogsOfNothing(t *testing.T) {
	r := readingLogs(t, "")
	r.store.Logs.Look(true)
	r.until("an error", func(l *logs.Logs) bool { return l.Err != "" })
	file := filepath.Join(t.TempDir(), "a.log")
	if err := os.Mkdir(file+".d", 0o700); err != nil {
		t.Fatal(err)
	}
	r.store.Logs.FollowLogs([]string{file, "/dev/null"})
	r.until("an invalid file", func(l *logs.Logs) bool {
		return len(l.Files) == 2 && l.Files[0].State == logfile.Unreadable &&
			l.Files[1].State == logfile.Waiting
	})
	for _, h := range r.store.Link.Status().Health {
		if h.Name == "logs" && h.State == cluster.Error {
			return
		}
	}
	t.Error("no lasting row says that a file cannot be read")
}

func TestLogRing(t *testing.T) {
	r := logs.Ring{MaxLines: 10, MaxBytes: 100}
	var shown []logs.Entry
	for i := range 1000 {
		r.Add(logs.Entry{Text: fmt.Sprintf("%03d", i), Offset: int64(i)})
		if i == 500 {
			shown = r.Lines()
		}
	}
	if n := r.Lines(); len(n) != 10 || n[9].Offset != 999 || r.Dropped != 990 || r.Bytes != 30 {
		t.Errorf("%d lines, %d dropped, %d bytes", len(n), r.Dropped, r.Bytes)
	}
	for i, e := range shown {
		if e.Offset != int64(491+i) {
			t.Fatalf("what was handed out changed: %+v", e)
		}
	}
	for range 50 {
		r.Add(logs.Entry{Text: strings.Repeat("x", 60)})
		if r.DroppedBytes > 200 || r.Bytes > 100 {
			t.Fatalf("%d bytes kept, %d not freed", r.Bytes, r.DroppedBytes)
		}
	}
	r.Add(logs.Entry{Text: strings.Repeat("x", 500)})
	if len(r.Lines()) != 1 {
		t.Error("the newest line is kept, however long")
	}
}
