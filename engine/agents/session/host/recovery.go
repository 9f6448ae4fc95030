package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
	"acescope/engine/agents/transcript"
	"acescope/engine/internal/process"
)

// past is what earlier attempts left of a turn and its conversation.
type past struct {
	result   *session.TurnResult // of a completed turn
	log      string              // path of the newest log
	started  bool                // the agent has the turn's message
	resume   string              // the conversation to resume, or "" to start one
	baseline *baseline           // nil if the agent's transcript is unknown
	out      outList             // messages of earlier attempts, without a result
	rebuilt  *session.Rebuilt    // the conversation was rebuilt
}

// baseline is where an agent's process starts counting in a turn: the conversation's cost, and
// what earlier attempts used, which the process does not report.
type baseline struct {
	Counted float64   `json:"counted"`
	Used    ace.Usage `json:"used"`
}

// baselineType is the type of the log line with the baseline.
const baselineType = "acescope_start"

type baselineLine struct {
	Type string `json:"type"`
	baseline
}

// baselineOf decodes the baseline from the first event of a log.
func baselineOf(e agentcli.Event) (b baseline, ok bool) {
	if e.Line != 1 || e.Name != baselineType {
		return b, false
	}
	return b, json.Unmarshal(e.Raw, &b) == nil
}

// uuids returns the identities of the turn's messages, of all attempts.
func (t *attempt) uuids() []string {
	list := []string{t.in.UUID}
	for n := int32(2); n <= t.number; n++ {
		list = append(list, resumeUUID(t.in, n))
	}
	return list
}

// searchLogs looks for the turn's result in the logs of earlier attempts.
func (t *attempt) searchLogs() error {
	if t.in.Resume {
		t.past.resume = t.in.AgentSessionID
	}
	for i, uuid := range t.uuids()[:t.number-1] {
		number := int32(i + 1)
		path := t.logName(number).Path()
		f, err := os.Open(t.h.logs.Path(path))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		result, conversation, err := t.readLog(f, uuid)
		_ = f.Close()
		if err != nil {
			return err
		}
		t.past.log = path
		if result != nil {
			t.slog.Info("found the completed turn in the log of an earlier attempt", "log", path)
			result.Continued = number > 1
			t.past.result = t.sealPast(result)
			return nil
		}
		if conversation != "" && !t.adapter.Features.SessionID {
			t.past.resume, t.past.started = conversation, true
		}
	}
	return nil
}

// readLog returns the result in the log of an earlier attempt, or nil, and the agent's id of the
// conversation. Without a result, it keeps the messages.
func (t *attempt) readLog(f *os.File, uuid string) (
	result *session.TurnResult, conversation string, err error,
) {
	// The log of a warm process may start with events of the previous turn.
	rec := newRecord(t.in, uuid, !t.adapter.Features.Streaming)
	rec.outList = t.past.out
	var used ace.Usage
	ended := false
	err = agentcli.NewReader(f, t.adapter.CLI).All(func(e agentcli.Event) error {
		conversation = cmp.Or(e.SessionID, conversation)
		if b, ok := baselineOf(e); ok {
			rec.judge.Meter.Cost = b.Counted
			used = b.Used
		}
		if l, ok := rebuiltOf(e); ok {
			t.startOver(l)
			rec, conversation, ended = newRecord(t.in, uuid, !t.adapter.Features.Streaming), "", false
			rec.outList = t.past.out
		}
		// OpenCode's reader ends every stream with a result that is not in the log (line 0).
		ended = rec.add(e) && e.Line > 0 || ended
		return nil
	})
	o := rec.judge.Outcome(process.Exit{}, "")
	if err != nil || !ended || o.Class == agentcli.ClassUnknownSession {
		t.past.out = rec.outList
		return nil, conversation, err
	}
	r := rec.result(t.in, o)
	t.setStatus(&r, o)
	r.Usage = r.Usage.Add(used)
	return &r, conversation, nil
}

// searchTranscript looks for the turn in the agent's transcript. No process may be writing it.
func (t *attempt) searchTranscript() error {
	if !t.adapter.Features.SessionID {
		return nil
	}
	m, err := t.findTurn()
	if err != nil {
		return err
	}
	id := agentSession(t.in)
	if m.Exists {
		t.past.resume = id
	}
	if m.Exists || t.past.resume == "" {
		t.past.baseline = &baseline{Counted: m.Counted, Used: m.Usage}
	}
	t.past.started = m.Started
	if len(t.past.out.list) == 0 {
		t.past.out = m.outList
	}
	if m.Ended {
		t.slog.Info("found the completed turn in the agent's transcript")
		t.past.result = t.sealPast(m.result(t.in, id))
	}
	return nil
}

// sealPast marks a result as recovered and adds its log.
func (t *attempt) sealPast(r *session.TurnResult) *session.TurnResult {
	r.Recovered = true
	r.LogPath = t.past.log
	if r.LogPath == "" {
		return r
	}
	ref, err := t.h.logs.Seal(t.life, r.LogPath)
	if err != nil {
		t.slog.Warn("the log of an earlier attempt was not stored as an artifact", "error", err)
		return r
	}
	r.Log = &ref
	return r
}

// transcriptTurn is a turn as the agent's transcript records it.
type transcriptTurn struct {
	transcript.Turn
	outList
	Exists bool // the conversation has a transcript
}

func (m transcriptTurn) result(in session.TurnInput, id string) *session.TurnResult {
	r := session.TurnResult{
		Turn: in.Turn, Status: session.TurnCompleted, AgentSessionID: id, Model: m.Model,
		Text: ace.Cut(m.Text, maxText), Messages: m.list, Omitted: m.omitted,
		Summary: "The turn was found completed after a crash", Usage: m.Usage,
		CostSeen: in.CostSeen + m.Usage.CostUSD, UsageSeen: in.UsageSeen,
	}
	switch {
	case m.Interrupted:
		r.Status = session.TurnInterrupted
	case m.Failed != "":
		r.Status = session.TurnFailed
		r.Failed = newFailure(string(agentcli.ClassAPIError), ace.Cut(m.Failed, maxSummary))
	}
	return &r
}

// findTurn finds the turn in a transcript of the agents that this host starts.
func (t *attempt) findTurn() (transcriptTurn, error) {
	dir := transcript.ConfigDir(t.h.environ(t.adapter, agentcli.Command{}))
	return findTurn(t.life, dir, t.in, t.uuids())
}

// findTurn finds the turn whose message has one of the uuids, in a configuration directory of
// Claude Code.
func findTurn(ctx context.Context, configDir string, in session.TurnInput, uuids []string) (
	transcriptTurn, error,
) {
	id := agentSession(in)
	if configDir == "" || !agentcli.ValidSessionID(id) {
		return transcriptTurn{}, nil
	}
	path, err := transcript.Find(configDir, id)
	if err != nil || path == "" {
		return transcriptTurn{}, err
	}
	rec := newRecord(in, "", true)
	starts := func(raw []byte, _ int64) bool {
		mentioned := func(uuid string) bool { return bytes.Contains(raw, []byte(uuid)) }
		return slices.ContainsFunc(uuids, mentioned) && slices.Contains(uuids, transcript.Events(raw)[0].UUID)
	}
	turn, err := transcript.ReadTurn(ctx, path, in.CostSeen, starts, rec.addOut)
	if err != nil {
		return transcriptTurn{}, fmt.Errorf("transcript: %w", err)
	}
	return transcriptTurn{Turn: turn, Exists: true, outList: rec.outList}, nil
}
