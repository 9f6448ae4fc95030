package agentcall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/transcript"
	"acescope/engine/store/durable"
)

// past is what earlier attempts and earlier calls of the session left behind.
type past struct {
	result *Result        // of a call that is already finished
	resume string         // the session to continue, "" for a new one
	begun  bool           // the agent may already have the instruction
	before int64          // length of the session's transcript before the call in bytes; -1 if unknown
	meter  agentcli.Meter // sums from which the agent's process counts
	used   ace.Usage      // of earlier attempts
	logged bool           // the last log has all of that usage
	log    string         // path of the newest log, even if it is incomplete
}

// past reads the logs of earlier attempts and the agent's transcript.
func (x *execution) past(ctx context.Context) (past, error) {
	p := past{resume: x.c.Resume, before: -1}
	if x.c.Resume != "" {
		p.meter = x.r.meter(x.c.Resume)
	}
	if err := x.readLogs(ctx, &p); err != nil || p.result != nil {
		return p, err
	}
	path := x.transcript()
	if path == "" {
		return p, nil
	}
	return p, x.readTranscript(ctx, path, &p)
}

// readLogs reads the logs of earlier attempts, in order.
func (x *execution) readLogs(ctx context.Context, p *past) error {
	digest := instructionOf(x.c.Instruction).SHA256
	for n := int32(1); n < x.c.Log.Attempt; n++ {
		name := x.c.Log
		name.Attempt = n
		paths, err := x.r.logs.Existing(name)
		if err != nil {
			return err
		}
		for _, rel := range paths {
			p.log = rel
			l, err := readLogFile(x.r.logs.Path(rel))
			if err != nil && !errors.Is(err, ErrNoLog) {
				return err
			}
			if err != nil || l.Header.ID != x.c.ID || l.Header.Instruction.SHA256 != digest {
				continue // not a log of this call
			}
			if x.addLog(ctx, p, l, rel); p.result != nil {
				return nil
			}
		}
	}
	return nil
}

func (x *execution) addLog(ctx context.Context, p *past, l Log, rel string) {
	if p.before < 0 {
		p.before = l.Header.Before
	}
	ref, err := x.r.logs.Seal(ctx, rel)
	if err != nil {
		x.r.log.Warn("cannot seal the log of an earlier attempt", "log", rel, "error", err)
	}
	if l.final() {
		p.result = x.loggedResult(l, rel)
		if err == nil {
			p.result.Log = &ref
		}
		return
	}
	p.meter, p.used, p.logged = l.Meter, l.usage(), l.End != nil || l.Ended
	if !p.logged && x.c.CLI == agentcli.Claude && l.Events > 0 {
		p.used.Unpriced = true // unless the transcript has the usage
	}
	if id := l.Outcome.SessionID; agentcli.ValidSessionID(id) && !x.adapter.Features.SessionID {
		p.resume, p.begun = id, true
	}
}

func (x *execution) loggedResult(l Log, rel string) *Result {
	r := x.result(l.Outcome)
	r.Recovered, r.LogPath, r.Events, r.LogComplete = true, rel, l.Events, l.End != nil
	r.setUsage(l.usage())
	if end := l.End; end != nil {
		r.Success, r.ExitClass, r.Error, r.DurationMS = end.Success, end.ExitClass, end.Error, end.DurationMS
	}
	x.saveMeter(r.SessionID, l.Meter)
	return r
}

// readTranscript adds to p what the agent's transcript says about the call.
func (x *execution) readTranscript(ctx context.Context, path string, p *past) error {
	first := x.c.Log.Attempt <= 1
	// The log is created before the process starts, so without a log the transcript of a resumed session has
	// nothing of the call yet.
	if p.before < 0 && (first || x.c.Resume != "") {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		p.before = info.Size()
	}
	turn, err := readTurn(ctx, path, p.before)
	if err != nil {
		return err
	}
	p.meter = agentcli.Meter{Cost: turn.Counted}
	if !p.logged {
		p.used = turn.Usage
	}
	if first {
		return nil
	}
	p.resume, p.begun = x.session, turn.Started
	if !answered(turn) {
		return nil
	}
	x.r.log.Info("the agent's transcript shows that the call is finished", "workflow", x.c.Log.WorkflowID,
		"run", x.c.Log.RunID, "session", x.session)
	p.result = x.result(agentcli.Outcome{
		Class: agentcli.ClassOK, OK: true, Text: turn.Text, SessionID: x.session, Usage: p.used,
	})
	p.result.Recovered = true
	if p.log != "" {
		p.result.LogPath = p.log
		if ref, err := x.r.logs.Seal(context.WithoutCancel(ctx), p.log); err == nil {
			p.result.Log = &ref
		}
	}
	return nil
}

// transcript returns the path of the session's transcript, or "" if it is unknown.
func (x *execution) transcript() string {
	id := cmp.Or(x.c.Resume, x.newID)
	dir := transcript.ConfigDir(x.r.environ(x.adapter, agentcli.Command{}))
	if x.c.CLI != agentcli.Claude || !agentcli.ValidSessionID(id) || dir == "" {
		return ""
	}
	path, err := transcript.Find(dir, id)
	if err != nil {
		x.r.log.Warn("cannot find the agent's transcript", "session", id, "error", err)
	}
	return path
}

// readTurn reads the turn of the call, which begins at the offset before or later, from a transcript that no
// process is writing.
func readTurn(ctx context.Context, path string, before int64) (transcript.Turn, error) {
	isMessage := func(e agentcli.Event) bool { return e.Kind == agentcli.KindUser && e.ParentID == "" }
	starts := func(raw []byte, at int64) bool {
		return at >= before && slices.ContainsFunc(transcript.Events(raw), isMessage)
	}
	return transcript.ReadTurn(ctx, path, 0, starts, nil)
}

// answered reports whether the agent has certainly answered the call.
func answered(t transcript.Turn) bool {
	return t.Ended && !t.Interrupted && t.Failed == "" && t.Text != "" && t.Oversized == 0
}

// usage returns the usage of this attempt, own, and of those before it. Without a result of the agent, only
// the transcript has the usage.
func (x *execution) usage(ctx context.Context, own ace.Usage, p past) ace.Usage {
	all := own.Add(p.used)
	if x.judge.Ended() || x.c.CLI != agentcli.Claude {
		return all
	}
	path := x.transcript()
	if path == "" {
		all.Unpriced = all.Unpriced || x.events > 0
		return all
	}
	turn, err := readTurn(context.WithoutCancel(ctx), path, max(p.before, 0))
	if err != nil {
		x.r.log.Warn("the cost of the call is unknown", "session", x.session, "error", err)
		all.Unpriced = true
		return all
	}
	if !turn.Started { // the transcript has no message of the call that this program recognizes
		all.Unpriced = all.Unpriced || x.events > 0
		return all
	}
	return turn.Usage
}

// Codex reports tokens, and Claude Code its cost, as sums over a session. Unless a transcript has the last
// sums, they are kept in the data directory of the machine, to which the session is local as well.

func (r *Runner) meterPath(session string) string {
	return filepath.Join(r.o.DataDir, sessionsDir, ace.FileName(session)+".json")
}

func (r *Runner) meter(session string) (m agentcli.Meter) {
	data, err := os.ReadFile(r.meterPath(session))
	if err == nil && json.Unmarshal(data, &m) != nil {
		r.log.Warn("the earlier cost of a session is unreadable", "session", session)
		m = agentcli.Meter{}
	}
	return m
}

func (x *execution) saveMeter(session string, m agentcli.Meter) {
	if session == "" || m == (agentcli.Meter{}) || x.transcript() != "" {
		return
	}
	data, err := json.Marshal(m)
	if err == nil {
		path := x.r.meterPath(session)
		err = durable.WriteFile(path, filepath.Dir(path), data, false)
	}
	if err != nil {
		x.r.log.Warn("cannot save the cost of a session; the next call counts it again",
			"session", session, "error", err)
	}
}
