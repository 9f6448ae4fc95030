package agentrun

import (
	"encoding/json"
	"os"
	"path/filepath"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
)

// Agents that sum up costs over a session tell the sum with every call. What it was before
// is kept beside the logs, by session: the session's files are on this machine only, too.

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

// keepMeter writes down what a session has cost. A call that will be tried again is not
// counted yet: its next attempt tells of both.
func (x *run) keepMeter(e *End, m agentcli.Meter) {
	if e.Retry || e.SessionID == "" || m == (agentcli.Meter{}) {
		return
	}
	data, err := json.Marshal(m)
	path := x.r.meterPath(e.SessionID)
	if err == nil {
		err = os.WriteFile(path+".tmp", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		x.r.log.Warn("what the session cost is not kept: the next call will count it again", "session", e.SessionID, "error", err)
	}
}

// sumCost and sumUsage are what a result sums up.
func sumCost(o agentcli.Outcome) float64 {
	if o.Result == nil || !o.Result.CostCumulative {
		return 0
	}
	return o.Result.Usage.CostUSD
}

func sumUsage(o agentcli.Outcome) (u ace.Usage) {
	if o.Result != nil && o.Result.Cumulative {
		u = ace.Usage{InputTokens: o.Result.Usage.InputTokens, OutputTokens: o.Result.Usage.OutputTokens, CacheReadTokens: o.Result.Usage.CacheReadTokens}
	}
	return u
}
