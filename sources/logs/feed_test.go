package logs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"acescope/sources/cluster"
	"acescope/sources/logfile"
	"acescope/sources/runs"
)

// TestRunLogsBegin checks that the feed reads the logs of the selected run as soon as there are any, and
// those of the data directory before.
func TestRunLogsBegin(t *testing.T) {
	link := cluster.NewLink()
	link.DataDir = t.TempDir()
	if err := os.MkdirAll(Dir(link.DataDir), 0o700); err != nil {
		t.Fatal(err)
	}
	all := filepath.Join(Dir(link.DataDir), "acescope.log")
	if err := os.WriteFile(all, []byte("of another run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	own := RunDir(link.DataDir, "ace/t", "run-7")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var failed error
	began := false
	NewFeed(link).read(ctx, ask{run: runs.ID{WorkflowID: "ace/t", RunID: "run-7"}}, func(l *Logs) {
		switch {
		case len(l.Lines) == 0:
		case l.Lines[0].Text == "first" && len(l.Lines) == 1:
			if !began {
				t.Error("the logs of the data directory were not read before")
			}
			stop()
		case !began:
			began = true
			failed = errors.Join(os.MkdirAll(own, 0o700),
				os.WriteFile(filepath.Join(own, "agent.log"), []byte("first\n"), 0o600))
		}
	})
	if failed != nil {
		t.Fatal(failed)
	}
}

// TestProblemEnds checks that a problem of some logs is over when others are read.
func TestProblemEnds(t *testing.T) {
	link := cluster.NewLink()
	many, one := t.TempDir(), filepath.Join(t.TempDir(), "a.log")
	for i := range logfile.MaxFiles + 1 {
		if err := os.WriteFile(filepath.Join(many, strconv.Itoa(i)+".log"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(one, []byte("line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := NewFeed(link)
	for i, path := range []string{many, one} {
		ctx, stop := context.WithCancel(t.Context())
		f.read(ctx, ask{paths: path}, func(l *Logs) {
			if len(l.Files) > 0 {
				stop()
			}
		})
		if got := link.Status().Health; len(got) != 1 || (got[0].State == cluster.OK) != (i == 1) {
			t.Errorf("after %s: %+v", path, got)
		}
	}
}
