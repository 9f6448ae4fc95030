package server

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/internal/sleep"
)

// childDir makes the test binary host that directory, for tests that kill it.
const childDir = "ACESCOPE_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
	}
	os.Exit(m.Run())
}

// child joins, prints its role, and runs until its parent closes its input or kills it.
func child(dir string) {
	n, err := Join(context.Background(), Options{Dir: dir, Version: "child"})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(n.Role())
	io.Copy(io.Discard, os.Stdin)
	if err := n.Close(context.Background()); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// testVersion is shared by all tests because the build ID belongs to the process.
const testVersion = "1.2.3"

func join(t *testing.T, opts Options) *Node {
	t.Helper()
	opts.Version = testVersion
	n, err := Join(testContext(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { leave(t, n) })
	return n
}

func leave(t *testing.T, n *Node) {
	t.Helper()
	if err := n.Close(context.Background()); err != nil {
		t.Errorf("close: %v", err)
	}
}

func dial(t *testing.T, n *Node) client.Client {
	t.Helper()
	c, err := n.Dial(testContext(t), n.ClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// await waits for a condition that other processes or goroutines make true.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx := testContext(t)
	for !ok() {
		if sleep.For(ctx, 5*time.Millisecond) != nil {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// awaitRole waits for a role by Changes.
func awaitRole(t *testing.T, n *Node, want Role) {
	t.Helper()
	ctx := testContext(t)
	for n.Role() != want {
		select {
		case <-n.Changes():
		case <-ctx.Done():
			t.Fatalf("role is %v, want %v", n.Role(), want)
		}
	}
}

const queue = "test"

// echo waits for its signal and returns the signal's text.
func echo(ctx workflow.Context) (string, error) {
	var text string
	workflow.GetSignalChannel(ctx, "say").Receive(ctx, &text)
	return text, nil
}

func work(t *testing.T, c client.Client) {
	t.Helper()
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflow(echo)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
}

func start(t *testing.T, c client.Client, id string) client.WorkflowRun {
	t.Helper()
	run, err := c.ExecuteWorkflow(testContext(t), client.StartWorkflowOptions{ID: id, TaskQueue: queue}, echo)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// finish signals a run and reads its result.
func finish(t *testing.T, c client.Client, id string) {
	t.Helper()
	ctx := testContext(t)
	if err := c.SignalWorkflow(ctx, id, "", "say", "done "+id); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := c.GetWorkflow(ctx, id, "").Get(ctx, &got); err != nil {
		t.Fatal(err)
	}
	if got != "done "+id {
		t.Errorf("result of %s is %q", id, got)
	}
}
