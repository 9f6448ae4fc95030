package agentcli

import (
	"math"

	"acescope/engine/ace"
)

// Meter makes of what a CLI sums up over a session what each turn took. Its state is that of
// the session: keep it (it is JSON) where the session is kept, also over processes. The
// zero Meter is that of a new session.
type Meter struct {
	Cost  float64   `json:"cost,omitempty"`  // as last told, where it is cumulative
	Usage ace.Usage `json:"usage,omitempty"` // the same of tokens
}

// Take is what the turn that ended with this result took.
//
// A sum that is smaller than the last one, or the same though something was said, began
// anew: older versions of Claude Code count per process.
func (m *Meter) Take(r Result) ace.Usage {
	u := r.Usage
	if r.Cumulative {
		u = m.tokens(u)
	}
	if r.CostCumulative {
		last := m.Cost
		m.Cost = r.Usage.CostUSD
		u.CostUSD = r.Usage.CostUSD
		if u.CostUSD > last || u.CostUSD == last && r.Usage.OutputTokens == 0 {
			u.CostUSD = round(u.CostUSD - last)
		}
	}
	return u
}

// tokens is the difference to the last sum.
func (m *Meter) tokens(u ace.Usage) ace.Usage {
	if u.InputTokens == 0 && u.OutputTokens == 0 && u.CacheReadTokens == 0 {
		return u // a turn that failed tells no sum
	}
	last := m.Usage
	m.Usage = ace.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CacheReadTokens: u.CacheReadTokens}
	if u.OutputTokens < last.OutputTokens || u.InputTokens < last.InputTokens || u.CacheReadTokens < last.CacheReadTokens {
		return u
	}
	u.InputTokens -= last.InputTokens
	u.OutputTokens -= last.OutputTokens
	u.CacheReadTokens -= last.CacheReadTokens
	return u
}

// round takes away what subtraction of floating numbers leaves: no price has parts of a
// billionth of a dollar.
func round(dollars float64) float64 { return math.Round(dollars*1e9) / 1e9 }
