package logs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"acescope/sources/cluster"
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
