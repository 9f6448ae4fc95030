package cli

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"syscall"
	"testing"
)

func TestOpenFileErrors(t *testing.T) {
	if _, err := OpenFile(t.Context(), filepath.Join(t.TempDir(), "none")); ExitCode(err) != ExitNotFound {
		t.Errorf("missing: %v", err)
	}
	if _, err := OpenFile(t.Context(), t.TempDir()); ExitCode(err) != ExitUsage {
		t.Errorf("a directory: %v", err)
	}
}

// The pipe has no writer, so that opening it would wait forever.
func TestOpeningAPipeEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	file, err := OpenFile(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cancel()
	if data, err := io.ReadAll(file); !errors.Is(err, ErrInterrupted) {
		t.Errorf("read %q, %v", data, err)
	}
}

func TestNewIDsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 100 { // within a second
		seen[NewID("task")] = true
	}
	if len(seen) != 100 {
		t.Errorf("100 ids are %d different ones", len(seen))
	}
}
