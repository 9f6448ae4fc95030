package agentrun

import (
	"encoding/json"
	"os"
	"path/filepath"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
)

// Codex sums tokens up over a session and tells the sum with every call. What it was last is
// kept beside the logs, by session: the session's files are on this machine only, too. The
// same is kept of a session of Claude Code whose transcript lies where it is not found; else
// that tells, see [memory]. The others tell what a call used.

func (r *Runner) meterPath(session string) string {
	return filepath.Join(r.o.DataDir, sessionsDir, ace.FileName(session)+".json")
}

func (r *Runner) meter(session string) (m agentcli.Meter) {
	data, err := os.ReadFile(r.meterPath(session))
	if err == nil && json.Unmarshal(data, &m) != nil {
		r.log.Warn("what a session cost before is not known", "session", session)
		m = agentcli.Meter{}
	}
	return m
}

// keepMeter writes down what a session has cost.
func (x *run) keepMeter(session string, m agentcli.Meter) {
	if session == "" || m == (agentcli.Meter{}) || x.transcript() != "" {
		return
	}
	data, err := json.Marshal(m)
	path := x.r.meterPath(session)
	if err == nil {
		err = os.WriteFile(path+".tmp", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		x.r.log.Warn("what the session cost is not kept: the next call will count it again", "session", session, "error", err)
	}
}
