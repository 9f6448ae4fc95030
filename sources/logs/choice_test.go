package logs

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"acescope/sources/logfile"
)

// TestAwaitedLogs checks that the missing logs of a run are read when they appear, and that lines of other
// logs are left out unless they mention the run.
func TestAwaitedLogs(t *testing.T) {
	dir := t.TempDir()
	write := func(path, content string) error {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(content), 0o600)
	}
	server := filepath.Join(Dir(dir), "acescope.log")
	if err := write(server, "of another run\nstarted ace/t\n"); err != nil {
		t.Fatal(err)
	}
	c := ChooseRun(dir, "ace/t", "run-7")
	c.Options.FromStart = true
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var got []string
	err := logfile.Follow(ctx, c.Options, logfile.Handler{Lines: func(batch []logfile.Line) error {
		for _, l := range batch {
			if !c.Keeps(l.Path, l.Text) {
				continue
			}
			switch got = append(got, string(l.Text)); len(got) {
			case 1:
				other := filepath.Join(RunDir(dir, "ace/other", "run-8"), "agent.log")
				if err := write(other, "of another agent\n"); err != nil {
					return err
				}
				return write(filepath.Join(RunDir(dir, "ace/t", "run-7"), "agent.log"), "first\n")
			case 2:
				stop()
			}
		}
		return nil
	}})
	if want := []string{"started ace/t", "first"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, want %q: %v", got, want, err)
	}
}
