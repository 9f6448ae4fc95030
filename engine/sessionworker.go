package engine

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"acescope/engine/agentcli"
	"acescope/engine/session/host"
)

// maxSessionActivities bounds the turns and tool calls that one process runs at a time. A
// turn that waits for a tool must not keep the tool from running, so there is room.
const maxSessionActivities = 1000

// sessionWorker serves the sessions of the data directory, while this process is the one
// that does.
type sessionWorker struct {
	end  context.CancelFunc
	done chan struct{}
}

// startSessions serves sessions as soon as no other process of the data directory does.
func startSessions(c client.Client, h *host.Host, log *slog.Logger) *sessionWorker {
	ctx, cancel := context.WithCancel(context.Background())
	s := &sessionWorker{end: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		defer h.Close()
		release, err := h.Hold(ctx)
		if err != nil {
			if ctx.Err() == nil {
				log.Error("sessions are not served here", "error", err)
			}
			return
		}
		defer release()
		serveSessions(ctx, c, h, log)
	}()
	return s
}

// startAgain is how long is waited before a worker that could not be started is tried again.
const startAgain = time.Second

func serveSessions(ctx context.Context, c client.Client, h *host.Host, log *slog.Logger) {
	for {
		w := worker.New(c, h.Queue(), workerOptions(maxSessionActivities))
		h.Register(w)
		err := w.Start()
		if err == nil {
			log.Info("sessions are served here", "queue", h.Queue())
			<-ctx.Done()
			w.Stop()
			h.Close()
			return
		}
		log.Warn("sessions are not served yet", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(startAgain):
		}
	}
}

func (s *sessionWorker) stop() {
	s.end()
	<-s.done
}

// sessionsOf are the options of sessions, with what is said of agents in general.
func sessionsOf(o Options) host.Options {
	s := o.Sessions
	if o.Agents == nil {
		return s
	}
	s.Binaries, s.AllowFull = map[agentcli.CLI]string{}, map[agentcli.CLI]bool{}
	for cli, a := range o.Agents {
		if a.Command != "" {
			s.Binaries[cli] = a.Command
		}
		s.AllowFull[cli] = a.AllowFull
	}
	return s
}
