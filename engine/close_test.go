package engine

import (
	"context"
	"errors"
	"testing"

	"acescope/engine/agents/observe"
)

// TestCloseEndsWithItsContext checks that Close returns when its context ends although a part of the
// engine does not.
func TestCloseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	stuck := make(chan struct{})
	e := &Engine{forwarder: &spoolForwarder{observe.NewTemporal(nil, "", nil, nil),
		inBackground(func(context.Context) { <-stuck })}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("close: %v", err)
	}
	close(stuck)
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
