package host

import (
	"errors"
	"io/fs"
	"os"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
	"acescope/engine/artifact"
	"acescope/engine/session"
)

// past is what is known of a turn, and of its conversation, from before this attempt.
type past struct {
	result *session.TurnResult // of a turn that was found done
	begun  bool                // the agent has the turn's message
	resume string              // the conversation to go on with, "" where it begins
	used   ace.Usage           // by earlier attempts, as far as the agent remembers
}

// past looks for what earlier attempts did: in their logs, where the agent's own result may
// be, and in the agent's transcript. cold tells that a process is to be started.
func (h *Host) past(r *run, adapter agentcli.Adapter, cold bool) (past, error) {
	p := past{}
	if r.in.Resume {
		p.resume = r.in.AgentSessionID
	}
	logs, err := h.earlier(r, adapter)
	if err != nil {
		return p, err
	}
	for _, l := range logs {
		if l.result != nil {
			r.slog.Info("the turn was found done in the log of an earlier attempt", "log", l.path)
			p.result = h.sealed(r, l.result, l.path)
			return p, nil
		}
		if l.session != "" && !adapter.Features().SessionID {
			p.resume, p.begun = l.session, true
		}
	}
	if !adapter.Features().SessionID || !cold && r.attempt == 1 {
		return p, nil
	}
	id := agentSession(r.in)
	t, err := h.memory(adapter).turn(id, r.in.Turn, r.uuids())
	if err != nil {
		return p, err
	}
	if t.Exists {
		p.resume = id
	}
	p.begun, p.used = t.Begun, t.Usage
	if t.Ended {
		r.slog.Info("the turn was found done in the agent's transcript")
		path := ""
		if len(logs) > 0 {
			path = logs[len(logs)-1].path
		}
		p.result = h.sealed(r, t.result(r.in, id), path)
	}
	return p, nil
}

// uuids are the identities of the turn's messages, of all attempts.
func (r *run) uuids() []string {
	list := []string{r.in.UUID}
	for n := int32(2); n <= r.attempt; n++ {
		list = append(list, againUUID(r.in, n))
	}
	return list
}

// result is that of a turn as its transcript tells it. What it cost is not told there; where
// the agent sums up, the next turn's difference has it.
func (t remembered) result(in session.TurnInput, id string) *session.TurnResult {
	out := session.TurnResult{Turn: in.Turn, Status: session.TurnCompleted, AgentSessionID: id, Model: t.Model, Text: cut(t.Text, maxText),
		Messages: t.Messages, Omitted: t.Omitted, Summary: "The turn was found done after a crash", Usage: t.Usage,
		CostSeen: in.CostSeen, UsageSeen: in.UsageSeen}
	switch {
	case t.Interrupted:
		out.Status = session.TurnInterrupted
	case t.Failed != "":
		out.Status, out.Failed = session.TurnFailed, &ace.Failure{Kind: ace.Failed, Type: string(agentcli.ClassAPIError), Message: cut(t.Failed, maxSummary)}
	}
	return &out
}

// sealed is a result that was found, with its log.
func (h *Host) sealed(r *run, t *session.TurnResult, path string) *session.TurnResult {
	t.Recovered = true
	if path == "" {
		return t
	}
	t.LogPath = path
	ref, err := h.logs.Seal(r.give, path)
	if err != nil {
		r.slog.Warn("the log of an earlier attempt was not sealed", "error", err)
		return t
	}
	t.Log = &ref
	return t
}

// found is what the log of an earlier attempt tells.
type found struct {
	path    string
	session string // the agent's id of the conversation
	result  *session.TurnResult
}

// earlier reads the logs of earlier attempts, in their order.
func (h *Host) earlier(r *run, adapter agentcli.Adapter) (list []found, err error) {
	for n := int32(1); n < r.attempt; n++ {
		name := artifact.LogName{WorkflowID: r.in.WorkflowID, RunID: r.in.RunID, Activity: session.ActivityTurn, Seq: r.in.Turn, Attempt: n}
		f, err := os.Open(h.logs.Path(name.Path()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		uuid := r.in.UUID
		if n > 1 {
			uuid = againUUID(r.in, n)
		}
		l := found{path: name.Path()}
		rec, ended := newRecord(r.in, uuid, !adapter.Features().Streaming), false
		// A log that a warm process wrote may begin with what it still said of the turn before.
		err = agentcli.NewReader(f, adapter.CLI()).All(func(e agentcli.Event) error {
			if e.SessionID != "" {
				l.session = e.SessionID
			}
			// The end that OpenCode's reader makes of any stream's end is none.
			ended = rec.add(e) && e.Line > 0 || ended
			return nil
		})
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		if ended {
			l.result = r.told(rec, n)
		}
		list = append(list, l)
	}
	return list, nil
}

// told is the result that a log tells.
func (r *run) told(rec *record, attempt int32) *session.TurnResult {
	o := rec.judge.Outcome(agentcli.Exit{Alive: true}, "")
	t := rec.result(r.in, o)
	t.Continued = attempt > 1
	switch {
	case o.OK:
		t.Status = session.TurnCompleted
	case o.Class == agentcli.ClassInterrupted:
		t.Status = session.TurnInterrupted
	default:
		t.Status, t.Failed = session.TurnFailed, &ace.Failure{Kind: ace.Failed, Type: string(o.Class), Message: o.Sentence}
	}
	return &t
}
