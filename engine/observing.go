package engine

import (
	"context"
	"sync"

	"acescope/engine/observe"
)

// observing forwards a spool while this process serves.
type observing struct {
	to     *observe.Temporal
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// forward begins to take what observers leave in the spool to its runs.
func (e *Engine) forward(spool string, redact observe.Redact) {
	if spool == "" {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	o := &observing{to: observe.NewTemporal(e.Client, redact, e.log), cancel: cancel}
	f := &observe.Forwarder{Dir: spool, To: o.to, Artifacts: e.Artifacts, Redact: redact, Log: e.log}
	o.done.Go(func() {
		if err := f.Run(ctx); err != nil {
			e.log.Error("what was observed is not forwarded", "spool", spool, "error", err)
		}
	})
	e.observing = o
}

// stop ends the forwarding. What has not arrived stays in the spool.
func (o *observing) stop() {
	if o == nil {
		return
	}
	o.cancel()
	closed, cancel := context.WithCancel(context.Background())
	cancel()
	o.to.Close(closed)
	o.done.Wait()
}
