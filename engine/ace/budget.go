package ace

import (
	"fmt"
	"strconv"
	"strings"
)

// Budget bounds the usage of a run. A zero field sets no bound; a negative field is a spent budget.
type Budget struct {
	CostUSD float64 `json:"cost_usd,omitempty"`
	Tokens  int64   `json:"tokens,omitempty"`
}

// TypeBudget is the failure type of a step that stopped before a request because its budget was spent. The
// run then completes without further steps.
const TypeBudget = "BudgetSpent"

// Spent returns why no request may start after the usage, or "". A nil budget is never spent. Tokens without
// a known price spend a bound of the cost, because it cannot be enforced.
func (b *Budget) Spent(u Usage) string {
	switch {
	case b == nil:
		return ""
	case b.Tokens != 0 && u.Tokens() >= b.Tokens:
		return tokensUsed(u, max(b.Tokens, 0))
	case b.CostUSD != 0 && nanos(u.CostUSD) >= nanos(b.CostUSD):
		return "budget: " + u.Cost() + " of " + b.dollars() + " spent"
	case b.CostUSD != 0 && u.Unpriced:
		return "budget: some tokens have no known price, so the limit of " + b.dollars() +
			" cannot be enforced"
	}
	return ""
}

// tokensUsed returns a reason that results of workflows hold. With another text, earlier runs would have
// drifted.
func tokensUsed(u Usage, limit int64) string {
	return fmt.Sprintf("budget: %d of %d tokens used", u.Tokens(), limit)
}

func (b *Budget) dollars() string { return "$" + strconv.FormatFloat(max(b.CostUSD, 0), 'f', -1, 64) }

// Less returns the budget that is left after the usage.
func (b *Budget) Less(u Usage) *Budget {
	if b == nil {
		return nil
	}
	left := *b
	if b.Tokens != 0 {
		if left.Tokens -= u.Tokens(); left.Tokens == 0 {
			left.Tokens = -1
		}
	}
	if b.CostUSD != 0 {
		left.CostUSD = dollars(nanos(b.CostUSD) - nanos(u.CostUSD))
		if left.CostUSD == 0 || u.Unpriced {
			left.CostUSD = -1
		}
	}
	return &left
}

// Share returns the share of the budget for each of n parallel runs. It is above 0 unless the budget is
// spent.
func (b *Budget) Share(n int) *Budget {
	if b == nil || n < 2 {
		return b
	}
	share := *b
	if b.Tokens > 0 {
		share.Tokens = max(b.Tokens/int64(n), 1)
	}
	if b.CostUSD > 0 {
		share.CostUSD = dollars(max(nanos(b.CostUSD)/int64(n), 1))
	}
	return &share
}

// Limits returns the budget of the experiment, or nil.
func (b ExperimentBounds) Limits() *Budget {
	if b.MaxCostUSD == 0 && b.MaxTokens == 0 {
		return nil
	}
	return &Budget{CostUSD: b.MaxCostUSD, Tokens: b.MaxTokens}
}

// Left returns the budget for each of n runs that start now. The budgets of open runs are reserved. A nil
// result is no limit.
func (s *ExperimentState) Left(n int, open []*Budget) *Budget {
	left := s.Input.Limits().Less(s.Progress.Usage)
	for _, b := range open {
		if b != nil {
			left = left.Less(Usage{InputTokens: b.Tokens, CostUSD: b.CostUSD})
		}
	}
	return left.Share(n)
}

// stopForBudget sets Progress.Stopped and returns true if the budget is spent, by the usage of the experiment
// or by a run that spent its share.
func (s *ExperimentState) stopForBudget() bool {
	limits := s.Input.Limits()
	why := limits.Spent(s.Progress.Usage)
	if why == "" && s.shareSpent {
		u := s.Progress.Usage
		if why = tokensUsed(u, limits.Tokens); limits.Tokens == 0 {
			why = "budget: " + u.Cost() + " of " + limits.dollars() + " spent"
		}
		why += ", the rest is less than the parallel tasks may need"
	}
	if why != "" {
		s.Progress.Stopped = why
	}
	return why != ""
}

// OverBudget reports whether the experiment ended because its budget was spent.
func (p *ExperimentProgress) OverBudget() bool { return strings.HasPrefix(p.Stopped, "budget: ") }

// asksModel reports whether a step may send requests that cost something.
func asksModel(p Phase) bool { return p != PhasePersist && p != PhaseDone }
