package transcripts

import (
	"math"

	"acescope/engine/agents/transcript"
)

// Usage is the usage of some lines, also by model and by day.
type Usage struct {
	transcript.Totals
	Models []transcript.ModelUse `json:"models,omitempty"`
	Days   []transcript.DayUse   `json:"days,omitempty"`
}

// Totals returns the usage of the session and its subagents, without copied lines.
func (s *Session) Totals() transcript.Totals {
	t := minus(s.Summary.Totals, s.Inherits.Totals)
	for _, a := range s.Agents {
		t = t.Add(minus(a.Summary.Totals, a.Inherits.Totals))
	}
	return t
}

func minus(t, u transcript.Totals) transcript.Totals {
	return transcript.Totals{
		Tokens: t.Tokens.Sub(u.Tokens), CostUSD: roundUSD(t.CostUSD - u.CostUSD),
		Priced: t.Priced - u.Priced, Unpriced: t.Unpriced - u.Unpriced,
		Calls: t.Calls - u.Calls, Failed: t.Failed - u.Failed, Denied: t.Denied - u.Denied,
	}
}

// roundUSD hides rounding errors of sums.
func roundUSD(usd float64) float64 { return math.Round(usd*1e9) / 1e9 }

// days returns the usage by day and model of the session and its subagents, without copied lines.
func (s *Session) days() []transcript.DayUse {
	if len(s.Agents) == 0 && len(s.Inherits.Days) == 0 {
		return s.Summary.Days
	}
	var days sums[transcript.DayUse, [2]string]
	days.key = func(d transcript.DayUse) [2]string { return [2]string{d.Day, d.Model} }
	days.add = func(d *transcript.DayUse, e transcript.DayUse, sign int64) {
		d.Tokens = addTokens(d.Tokens, e.Tokens, sign)
		d.CostUSD = roundUSD(d.CostUSD + float64(sign)*e.CostUSD)
	}
	days.addAll(s.Summary.Days, s.Inherits.Days)
	for _, a := range s.Agents {
		days.addAll(a.Summary.Days, a.Inherits.Days)
	}
	return days.list(func(d transcript.DayUse) bool { return d.Tokens != transcript.Tokens{} })
}

// Models returns the usage by model of the session and its subagents, without copied lines.
func (s *Session) Models() []transcript.ModelUse {
	var models sums[transcript.ModelUse, string]
	models.key = func(m transcript.ModelUse) string { return m.Name }
	models.add = func(m *transcript.ModelUse, n transcript.ModelUse, sign int64) {
		m.Messages += int(sign) * n.Messages
		m.Tokens = addTokens(m.Tokens, n.Tokens, sign)
		m.CostUSD = roundUSD(m.CostUSD + float64(sign)*n.CostUSD)
	}
	models.addAll(s.Summary.Models, s.Inherits.Models)
	for _, a := range s.Agents {
		models.addAll(a.Summary.Models, a.Inherits.Models)
	}
	return models.list(func(m transcript.ModelUse) bool { return m.Messages != 0 })
}

func addTokens(t, u transcript.Tokens, sign int64) transcript.Tokens {
	if sign < 0 {
		return t.Sub(u)
	}
	return t.Add(u)
}

// sums adds up usage by a key.
type sums[U any, K comparable] struct {
	key  func(U) K
	add  func(to *U, u U, sign int64)
	uses []U
	at   map[K]int // indexes of uses
}

// addAll adds the usage of a transcript and subtracts the usage that it copied from other transcripts.
func (s *sums[U, K]) addAll(all, copied []U) {
	if s.at == nil {
		s.at = map[K]int{}
	}
	for _, u := range all {
		k := s.key(u)
		if i, known := s.at[k]; known {
			s.add(&s.uses[i], u, 1)
			continue
		}
		s.at[k] = len(s.uses)
		s.uses = append(s.uses, u)
	}
	for _, u := range copied {
		if i, known := s.at[s.key(u)]; known {
			s.add(&s.uses[i], u, -1)
		}
	}
}

// list returns the sums to keep, in the order of their first part.
func (s *sums[U, K]) list(keep func(U) bool) (list []U) {
	for _, u := range s.uses {
		if keep(u) {
			list = append(list, u)
		}
	}
	return list
}
