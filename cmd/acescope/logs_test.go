package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
)

// TestLogsFollow follows a file that does not exist yet, has an incomplete last line and is truncated.
func TestLogsFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "later.log")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	in, out := io.Pipe()
	a := &cli.App{Out: out, Err: io.Discard, JSON: true}
	done := make(chan error, 1)
	go func() {
		err := runs.Logs(a, ctx, &runs.LogsFlags{Follow: true, FromStart: true}, []string{path})
		out.Close()
		done <- err
	}()
	if err := os.WriteFile(path, []byte("one\n{\"n\":2}\nha"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := scanLines(t, in)
	lines.has(`"event":"opened"`, `"line":1,`, `"text":"one"`, `"line":2,`, `"data":{"n":2}`)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	lines.has(`"partial":true,"text":"ha"`, `"event":"truncated"`)
	stop()
	go func() { _, _ = io.Copy(io.Discard, in) }()
	if err := <-done; !errors.Is(err, cli.ErrInterrupted) || cli.ExitCode(err) != cli.ExitInterrupted {
		t.Errorf("logs -f ended with %v", err)
	}
}

// scanned is output that arrives in pieces.
type scanned struct {
	t    *testing.T
	from io.Reader
	text strings.Builder
}

func scanLines(t *testing.T, r io.Reader) *scanned { return &scanned{t: t, from: r} }

// has reads until the output contains the parts in order.
func (s *scanned) has(parts ...string) {
	s.t.Helper()
	buf := make([]byte, 4096)
	for {
		rest, missing := s.text.String(), ""
		for _, p := range parts {
			_, after, ok := strings.Cut(rest, p)
			if !ok {
				missing = p
				break
			}
			rest = after
		}
		if missing == "" {
			return
		}
		n, err := s.from.Read(buf)
		s.text.Write(buf[:n])
		if err != nil {
			s.t.Fatal(fmt.Errorf("%q is missing in %s: %w", missing, s.text.String(), err))
		}
	}
}
