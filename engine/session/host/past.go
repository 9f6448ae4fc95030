package host

import (
	"encoding/json"
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
	log    string              // of the last attempt that has one
	begun  bool                // the agent has the turn's message
	resume string              // the conversation to go on with, "" where it begins
	start  *start              // nil where the agent's own memory is not known
}

// start is what a process of an agent begins with in a turn: the cost of the conversation
// that it counts on from, and what earlier attempts used, which it does not tell.
type start struct {
	Counted float64   `json:"counted"`
	Used    ace.Usage `json:"used"`
}

// inLogs looks for what earlier attempts did in their logs, where the agent's own result may
// be.
func (h *Host) inLogs(r *run, adapter agentcli.Adapter) error {
	if r.in.Resume {
		r.past.resume = r.in.AgentSessionID
	}
	logs, err := h.earlier(r, adapter)
	if err != nil {
		return err
	}
	for _, l := range logs {
		r.past.log = l.path
		if l.result != nil {
			r.slog.Info("the turn was found done in the log of an earlier attempt", "log", l.path)
			r.past.result = h.sealed(r, l.result)
			return nil
		}
		if l.session != "" && !adapter.Features().SessionID {
			r.past.resume, r.past.begun = l.session, true
		}
	}
	return nil
}

// inMemory looks for it in the agent's transcript. No process may be writing there.
func (h *Host) inMemory(r *run, adapter agentcli.Adapter) error {
	if !adapter.Features().SessionID {
		return nil
	}
	t, err := h.memory(adapter).turn(r.give, r.in, r.uuids())
	if err != nil {
		return err
	}
	id := agentSession(r.in)
	if t.Exists {
		r.past.resume = id
	}
	if t.Exists || r.past.resume == "" {
		r.past.start = &start{Counted: t.Counted, Used: t.Usage}
	}
	r.past.begun = t.Begun
	if t.Ended {
		r.slog.Info("the turn was found done in the agent's transcript")
		r.past.result = h.sealed(r, t.result(r.in, id))
	}
	return nil
}

// uuids are the identities of the turn's messages, of all attempts.
func (r *run) uuids() []string {
	list := []string{r.in.UUID}
	for n := int32(2); n <= r.attempt; n++ {
		list = append(list, againUUID(r.in, n))
	}
	return list
}

// result is that of a turn as its transcript tells it.
func (t remembered) result(in session.TurnInput, id string) *session.TurnResult {
	out := session.TurnResult{Turn: in.Turn, Status: session.TurnCompleted, AgentSessionID: id, Model: t.Model, Text: ace.Cut(t.Text, maxText),
		Messages: t.Messages, Omitted: t.Omitted, Summary: "The turn was found done after a crash", Usage: t.Usage,
		CostSeen: in.CostSeen + t.Usage.CostUSD, UsageSeen: in.UsageSeen}
	switch {
	case t.Interrupted:
		out.Status = session.TurnInterrupted
	case t.Failed != "":
		out.Status, out.Failed = session.TurnFailed, &ace.Failure{Kind: ace.Failed, Type: string(agentcli.ClassAPIError), Message: ace.Cut(t.Failed, maxSummary)}
	}
	return &out
}

// sealed is a result that was found, with the log that it is of.
func (h *Host) sealed(r *run, t *session.TurnResult) *session.TurnResult {
	t.Recovered = true
	if t.LogPath = r.past.log; t.LogPath == "" {
		return t
	}
	ref, err := h.logs.Seal(r.give, t.LogPath)
	if err != nil {
		r.slog.Warn("the log of an earlier attempt was not sealed", "error", err)
		return t
	}
	t.Log = &ref
	return t
}

// startType is the type of the line of a log that tells what its process begins with.
const startType = "acescope_start"

// line is the start as a line of a log.
func (s start) line() ([]byte, error) {
	return json.Marshal(struct {
		Type string `json:"type"`
		start
	}{startType, s})
}

// startOf is the start that a log's first event tells.
func startOf(e agentcli.Event) (s start, ok bool) {
	if e.Line != 1 || e.Name != startType {
		return s, false
	}
	return s, json.Unmarshal(e.Raw, &s) == nil
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
		rec, used, ended := newRecord(r.in, uuid, !adapter.Features().Streaming), ace.Usage{}, false
		// A log that a warm process wrote may begin with what it still said of the turn before.
		err = agentcli.NewReader(f, adapter.CLI()).All(func(e agentcli.Event) error {
			if e.SessionID != "" {
				l.session = e.SessionID
			}
			if s, ok := startOf(e); ok {
				rec.judge.Meter.Cost, used = s.Counted, s.Used
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
			l.result.Usage = l.result.Usage.Add(used)
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
