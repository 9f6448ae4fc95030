package mcp

import (
	"context"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"acescope/engine/run"
)

// stateWithin bounds how long a run is asked how it stands, beside the wait for its end.
const stateWithin = 5 * time.Second

// await waits for the end of a run, for the time that a call may take. When that is over,
// or the server ends, the answer says how to go on.
func (s *Server) await(ctx context.Context, c call, out outcome) (any, error) {
	wait, cancel := context.WithTimeout(ctx, s.o.Wait)
	defer cancel()
	defer context.AfterFunc(s.bye, cancel)()
	go s.tell(wait, c, out.RunID)
	res, err := s.o.Verbs.Await(wait, out.RunID)
	if err == nil {
		return s.ended(out, res), nil
	}
	ask := "ask get_agent_session_status or get_agent_session_result with run_id " + out.RunID + "; stop_agent_session stops it"
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the call was given up (%w), and run %s of session %s goes on: %s", ctx.Err(), out.RunID, out.SessionID, ask)
	case s.bye.Err() != nil:
		out.Message = "This server ends, and the run goes on where it is served: " + ask + "."
	case wait.Err() != nil:
		out.Message = fmt.Sprintf("The run has not ended within %s, which is as long as a call may wait. It goes on: %s.", s.o.Wait, ask)
	default:
		return nil, err
	}
	out.Status = s.statusNow(ctx, out.RunID, run.Running)
	return out, nil
}

// statusNow asks how a run stands; where nobody answers in time it is what it was.
func (s *Server) statusNow(ctx context.Context, id string, was run.Status) run.Status {
	ctx, cancel := context.WithTimeout(ctx, stateWithin)
	defer cancel()
	state, err := s.o.Verbs.State(ctx, id)
	if err != nil || state.Status == "" {
		return was
	}
	return state.Status
}

// tell sends notices of progress, now and then, until the context ends, to a client that
// asked for them.
func (s *Server) tell(ctx context.Context, c call, id string) {
	token := c.req.Params.GetProgressToken()
	if token == nil {
		return
	}
	began, status := time.Now(), run.Pending
	tick := time.NewTicker(s.o.Progress)
	defer tick.Stop()
	for n := 1.0; ; n++ {
		said := fmt.Sprintf("%s, %s since the start", status, time.Since(began).Round(time.Second))
		err := c.req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: said})
		if err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		status = s.statusNow(ctx, id, status)
	}
}
