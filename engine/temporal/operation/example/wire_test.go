package example_test

import (
	"context"
	"path/filepath"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"acescope/engine/store/artifact"
	"acescope/engine/temporal/operation"
	"acescope/engine/temporal/operation/example"
)

// wire creates a worker as docs/guides/workflows.md shows.
func wire(c client.Client, dir string, artifacts *artifact.Store, outbox example.Outbox) (worker.Worker,
	error) {
	h, err := example.Handlers(outbox)
	if err != nil {
		return nil, err
	}
	h.Put = artifacts.PutBytes // keeps results of more than 32 KiB
	if h.Cache, err = operation.OpenFileCache(filepath.Join(dir, "results"), 10_000, 1<<30); err != nil {
		return nil, err
	}
	w := worker.New(c, "operations", worker.Options{})
	example.Register(w)
	h.Register(w)
	return w, nil
}

type nowhere struct{}

func (nowhere) Publish(context.Context, string, example.Page) (string, error) { return "", nil }

func TestWire(t *testing.T) {
	c, err := client.NewLazyClient(client.Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	dir := t.TempDir()
	store, err := artifact.Open(filepath.Join(dir, "artifacts"))
	if err != nil {
		t.Fatal(err)
	}
	if w, err := wire(c, dir, store, nowhere{}); err != nil || w == nil {
		t.Fatal(err)
	}
}
