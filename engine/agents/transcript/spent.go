package transcript

import (
	"bytes"
	"math"
	"strconv"

	"acescope/engine/ace"
	"acescope/engine/agents/price"
)

// CostState returns the cost of the session in dollars if the line is a cost-state line. A
// process writes one when it exits, and the next process counts from there. A process that is
// killed writes none, nor do versions that count per process (2.1.240, but not 2.1.290).
func CostState(raw []byte) (usd float64, ok bool) {
	if !bytes.Contains(raw, []byte(`"cost-state"`)) { // fast path: most lines are read no further
		return 0, false
	}
	var l object
	if !l.parse(raw) || !l.is("cost-state") {
		return 0, false
	}
	usd, err := strconv.ParseFloat(string(l.get("totalCostUSD")), 64)
	return usd, err == nil && usd >= 0 && !math.IsInf(usd, 0)
}

// Spent counts the usage of a part of a session. The tokens come from the messages. The cost
// comes from Claude Code's own count ([CostState]) where that is higher, otherwise from the
// messages at list prices, without subagents, which have their own files. It includes the
// usage of processes that were killed, in all versions.
type Spent struct {
	*Fold // of the part

	// Counted is the cost of the session from which its next process counts.
	Counted float64

	begun    bool
	seen     float64 // cost of the session at the last count
	cost     float64 // cost of the part up to the last count
	upTo     Totals  // totals of the messages at the last count
	unpriced bool    // part of the cost is unknown
}

// NewSpent starts a count. seen is the known cost of the session before the part.
func NewSpent(prices *price.Prices, seen float64) *Spent {
	return &Spent{Fold: NewFold(prices), seen: seen}
}

// Add adds the next line of the part.
func (s *Spent) Add(raw []byte) {
	if !s.begun {
		s.begun = true
		s.seen = max(s.seen, s.Counted)
	}
	s.Fold.Add(raw)
}

// Count handles a cost-state line and reports whether raw is one. It must also see the lines
// before the part. A count is more exact than the messages, except that it lacks the cost of
// an earlier process that was killed.
func (s *Spent) Count(raw []byte) bool {
	usd, ok := CostState(raw)
	if !ok {
		return false
	}
	s.Counted = usd
	if !s.begun {
		return true
	}
	totals := s.s.Totals
	counted, listed := usd-s.seen, totals.CostUSD-s.upTo.CostUSD
	s.cost += max(counted, listed)
	if counted <= listed {
		s.unpriced = s.unpriced || totals.Unpriced > s.upTo.Unpriced
	}
	s.seen, s.upTo = usd, totals
	return true
}

// Usage returns the usage of the part so far.
func (s *Spent) Usage() ace.Usage {
	t := s.s.Totals
	u := t.Usage()
	u.CostUSD = s.cost + t.CostUSD - s.upTo.CostUSD
	u.Unpriced = s.unpriced || t.Unpriced > s.upTo.Unpriced
	return u
}
