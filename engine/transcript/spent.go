package transcript

import (
	"acescope/engine/ace"
	"acescope/engine/price"
)

// Spent counts what a part of a session has used. Its tokens are those that the messages
// tell. Its cost is what Claude Code counted ([Told]), where it did and that is more, and else
// that of the messages at list prices, without those of subagents, which have files of their
// own. What a process spent that was killed is in it, whichever way the version counts.
type Spent struct {
	*Fold // of the part

	// Counted is the cost of the session that its next process counts on from.
	Counted float64

	begun bool
	seen  float64 // of the cost, by the last count
	cost  float64 // of the part, up to that count
	upTo  Totals  // the same as the messages tell it
	vague bool    // there are prices that neither knows
}

// NewSpent begins a count. seen is what the session is known to have cost before the part.
func NewSpent(prices *price.Prices, seen float64) *Spent {
	return &Spent{Fold: NewFold(prices), seen: seen}
}

// Add takes the next line of the part. With the first one it begins.
func (s *Spent) Add(raw []byte) {
	if !s.begun {
		s.begun, s.seen = true, max(s.seen, s.Counted) // the session may be older than what is known of it
	}
	s.Fold.Add(raw)
}

// Count takes a line if it is a process's count, and tells whether it is. It is to see those
// before the part, too. A count knows more than the messages do, unless it lacks what another
// process spent before that was killed.
func (s *Spent) Count(raw []byte) bool {
	usd, ok := Told(raw)
	if !ok {
		return false
	}
	s.Counted = usd
	if !s.begun {
		return true
	}
	t := s.s.Totals
	if told, list := usd-s.seen, t.CostUSD-s.upTo.CostUSD; told > list {
		s.cost += told
	} else {
		s.cost += list
		s.vague = s.vague || t.Unpriced > s.upTo.Unpriced
	}
	s.seen, s.upTo = usd, t
	return true
}

// Usage is what the part has used so far.
func (s *Spent) Usage() ace.Usage {
	t := s.s.Totals
	return ace.Usage{InputTokens: t.Tokens.Input + t.Tokens.CacheWrite(), OutputTokens: t.Tokens.Output, CacheReadTokens: t.Tokens.CacheRead,
		CostUSD: s.cost + t.CostUSD - s.upTo.CostUSD, Unpriced: s.vague || t.Unpriced > s.upTo.Unpriced}
}
