package engine_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.temporal.io/sdk/client"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/server"
)

func openTrust(t *testing.T, o engine.Options) *engine.Engine {
	t.Helper()
	o.Version = "test"
	e, err := engine.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// TestUnconfirmed opens a data directory that the user did not make: without a confirmation nothing executes
// its runs.
func TestUnconfirmed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	keyOf := func(letter string) server.Key {
		return func() ([]byte, error) { return bytes.Repeat([]byte(letter), 64), nil }
	}
	made := openTrust(t, engine.Options{DataDir: dir, Key: keyOf("a"), Worker: true})
	if !made.Serves() || made.Withheld() != nil {
		t.Errorf("a new directory: %v", made.Withheld())
	}
	if err := made.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var unconfirmed *server.Unconfirmed
	_, err := engine.Open(t.Context(), engine.Options{DataDir: dir, Key: keyOf("b"), Worker: true})
	if !errors.As(err, &unconfirmed) || unconfirmed.Dir != dir {
		t.Fatalf("a worker: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "host.lock")); err != nil {
		t.Error(err)
	}
	e := openTrust(t, engine.Options{DataDir: dir, Key: keyOf("b"), Worker: true, LookOnly: true})
	if e.Serves() || !errors.As(e.Withheld(), &unconfirmed) {
		t.Errorf("a process that looks serves: %t, %v", e.Serves(), e.Withheld())
	}
	if err := e.Confirm(); err != nil || !e.Serves() {
		t.Errorf("confirmed: serves %t, %v", e.Serves(), err)
	}
	again := openTrust(t, engine.Options{DataDir: dir, Key: keyOf("b"), Worker: true})
	if !again.Serves() {
		t.Error("the confirmation was not recorded")
	}
	back := openTrust(t, engine.Options{DataDir: dir, Key: keyOf("a"), Trust: true})
	if back.Withheld() != nil || server.CheckTrust(dir, keyOf("a")) != nil {
		t.Error("Trust does not confirm", back.Withheld())
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := engine.Open(t.Context(), engine.Options{DataDir: dir, ReadOnly: true}); !errors.Is(err,
		engine.ErrReadOnly) {
		t.Errorf("a process that is to change something: %v", err)
	}
	e := openTrust(t, engine.Options{DataDir: dir, ReadOnly: true, LookOnly: true, Worker: true})
	if e.Serves() || !errors.Is(e.Withheld(), engine.ErrReadOnly) {
		t.Errorf("serves: %t, %v", e.Serves(), e.Withheld())
	}
	_, err := e.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "w", TaskQueue: "q"},
		ace.TaskWorkflow, ace.TaskInput{})
	if err == nil || err.Error() != engine.ErrReadOnly.Error() {
		t.Errorf("a start: %v", err)
	}
	if _, err := e.Client.CheckHealth(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
