//go:build unix

package filelock

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestTake holds that one has a lock at a time, and that who waits notices that its file was
// removed.
func TestTake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	first, err := Take(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Take(ctx, path, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	got := make(chan error)
	go func() {
		second, err := Take(t.Context(), path, nil)
		if err == nil {
			second.Release()
		}
		got <- err
	}()
	first.Release()
	if err := <-got; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
}

// TestLeftBehind holds that a program that has a lock, though the one who started it does
// not any more, is ended.
func TestLeftBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	l, err := Take(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "1000")
	cmd.ExtraFiles = []*os.File{l.File}
	cmd.SysProcAttr = ownGroup()
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	if err := l.Sign(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // as the end of this process would
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	left := 0
	again, err := Take(t.Context(), path, func(pid int) { left = pid })
	if err != nil || left != cmd.Process.Pid {
		t.Fatalf("%v, process %d", err, left)
	}
	again.Release()
	if err := <-ended; err == nil {
		t.Error("it ended by itself")
	}
}
