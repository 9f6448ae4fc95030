//go:build unix

package filelock

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestAcquire checks mutual exclusion, and that a waiting process notices that the file was removed.
func TestAcquire(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	first, err := Acquire(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Acquire(ctx, path, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	got := make(chan error)
	go func() {
		second, err := Acquire(t.Context(), path, nil)
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
		t.Errorf("the file still exists: %v", err)
	}
}

// TestEndsOrphan checks that a program that still holds the lock of a dead process is ended.
func TestEndsOrphan(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	l, err := Acquire(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "1000")
	cmd.ExtraFiles = []*os.File{l.File}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	if err := l.WritePID(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // as the end of this process would
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	orphan := 0
	again, err := Acquire(t.Context(), path, func(pid int) { orphan = pid })
	if err != nil || orphan != cmd.Process.Pid {
		t.Fatalf("%v, process %d", err, orphan)
	}
	again.Release()
	if err := <-ended; err == nil {
		t.Error("the program ended by itself")
	}
}
