package playbook

import (
	"fmt"

	"acescope/engine/ace"
	"acescope/engine/learning/stats"
)

// Thresholds of findings about answers and operations. Each is what a healthy playbook reaches, and a finding
// needs an interval that excludes it.
const (
	// ZeroTasks is the number of newest graded tasks of which none must be correct. If the accuracy is
	// ZeroAccuracy or more, this happens with probability (1 - ZeroAccuracy)^ZeroTasks, 1.5 %.
	ZeroTasks    = 40
	ZeroAccuracy = 0.10
	// GapShare is the difference of the accuracy on training tasks and on held-out items up to which a
	// playbook is healthy. GapLeast is the minimum number of either.
	GapShare = 0.10
	GapLeast = 10
	// FlatRise is the minimum useful rise in accuracy from the first third of the tasks to the last.
	// FlatTasks is the number of graded tasks from which it is measured.
	FlatRise  = 0.10
	FlatTasks = 30
	// FlatVotes and FlatGrowth are the rise of the helpful votes, in votes and relative to their previous
	// sum, that should have raised accuracy.
	FlatVotes  = 20
	FlatGrowth = 0.25
	// RejectedShare is the share of operations that may be rejected. RejectedTasks is the number of tasks
	// from which it is measured.
	RejectedShare = 0.20
	RejectedTasks = 20
)

// zero finds runs of wrong answers.
func (c *checker) zero(outcomes []Outcome) {
	if len(outcomes) < ZeroTasks {
		c.skip(FindingZero, tooFew(outcomes, ZeroTasks))
		return
	}
	if correctOf(outcomes[len(outcomes)-ZeroTasks:]) > 0 {
		c.add(FindingZero)
		return
	}
	wrong := 0
	for wrong < len(outcomes) && !outcomes[len(outcomes)-1-wrong].Correct {
		wrong++
	}
	high := stats.Wilson(0, wrong).High
	c.add(FindingZero, Finding{Severity: SeverityError,
		Numbers: map[string]float64{"tasks": float64(wrong), "accuracy_high": round2(high)},
		Text: fmt.Sprintf("None of the last %d answers was correct; the accuracy is below %.0f %% (95 %% interval).",
			wrong, 100*high),
		Advice: "Compare an answer with its label: a wrong format, a wrong grader or a broken step is likelier than " +
			"a playbook that spoils every answer."})
}

func tooFew(outcomes []Outcome, needed int) string {
	return fmt.Sprintf("only %s, %d are needed", ace.Count(len(outcomes), "graded task"), needed)
}

// gap compares the newest training tasks with as many held-out items, evaluated with this version. While a
// version is the newest, its experiment's last evaluation counts too.
func (c *checker) gap(outcomes []Outcome, evaluations []Evaluation) {
	if len(evaluations) == 0 {
		c.skip(FindingGap, "no evaluation on held-out items is known")
		return
	}
	held := evaluations[len(evaluations)-1]
	for _, e := range evaluations {
		if e.Playbook == c.history.Head() {
			held = e
		}
	}
	if len(outcomes) < GapLeast || held.Labeled < GapLeast {
		c.skip(FindingGap, fmt.Sprintf("only %s and %s, %d of each are needed",
			ace.Count(len(outcomes), "graded task"), ace.Count(held.Labeled, "held-out item"), GapLeast))
		return
	}
	train := outcomes[len(outcomes)-min(len(outcomes), max(held.Labeled, FlatTasks)):]
	gap := stats.Newcombe(held.Correct, held.Labeled, correctOf(train), len(train))
	if gap.Low <= GapShare {
		c.add(FindingGap)
		return
	}
	c.add(FindingGap, Finding{Severity: SeverityError,
		Numbers: map[string]float64{"tasks": float64(len(train)), "accuracy_tasks": round2(accuracy(train)),
			"held_out":          float64(held.Labeled),
			"accuracy_held_out": round2(stats.Share(held.Correct, held.Labeled)),
			"gap_low":           round2(gap.Low), "gap_high": round2(gap.High)},
		Text: fmt.Sprintf("The last %d training tasks were answered with %s accuracy, %d held-out items with %s: "+
			"%.0f to %.0f points less (95 %% intervals).", len(train),
			shareText(correctOf(train), len(train)), held.Labeled,
			shareText(held.Correct, held.Labeled), 100*gap.Low, 100*gap.High),
		Advice: "Look for bullets that hold answers instead of methods. Otherwise the held-out items are harder: compare " +
			"with the accuracy before learning."})
}

// flat finds votes that rise without accuracy: the interval of the rise from the first to the last third of
// the tasks excludes a useful rise.
func (c *checker) flat(list []Outcome) {
	if len(list) < FlatTasks {
		c.skip(FindingFlat, tooFew(list, FlatTasks))
		return
	}
	third := len(list) / 3
	early, late := list[:third], list[len(list)-third:]
	sizes := c.history.Sizes()
	before, after := sizes.before(early[third-1].At).Helpful, sizes.before(list[len(list)-1].At).Helpful
	votes := after - before
	if votes < FlatVotes || float64(votes) < FlatGrowth*float64(before) || accuracy(early) > 1-FlatRise {
		c.add(FindingFlat)
		return
	}
	rise := stats.Newcombe(correctOf(early), third, correctOf(late), third)
	if rise.High >= FlatRise {
		if rise.Low <= 0 {
			c.skip(FindingFlat, fmt.Sprintf(
				"%d graded tasks are too few to tell: accuracy changed by %+.0f to %+.0f points",
				len(list), 100*rise.Low, 100*rise.High))
			return
		}
		c.add(FindingFlat)
		return
	}
	c.add(FindingFlat, Finding{Severity: SeverityError,
		Numbers: map[string]float64{"tasks": float64(len(list)), "accuracy_first": round2(accuracy(early)),
			"accuracy_last": round2(accuracy(late)), "rise_low": round2(rise.Low),
			"rise_high":      round2(rise.High),
			"helpful_before": float64(before), "helpful_after": float64(after)},
		Text: fmt.Sprintf("The helpful votes rose from %d to %d, but accuracy went from %s in the first %d tasks to %s "+
			"in the last %d: by %.0f points at most (95 %% intervals).", before, after,
			shareText(correctOf(early), third), third, shareText(correctOf(late), third), third,
			100*rise.High),
		Advice: "The reflector's votes do not predict correct answers. Check them against labels before learning more."})
}

// rejections finds curators whose operations are rejected too often. The versions of a branch hold only the
// operations that the merge rejected, so they stand in for the proposals only if it rejected some. All
// operations of a task may share their outcome, so they are worth one independent operation.
func (c *checker) rejections(known Proposals) {
	if t := c.history.totals; known.Tasks == 0 && t.Refused > 0 {
		accepted := t.Added + t.Updated + t.Removed + t.Tagged + t.Merged
		known = Proposals{t.Merges, accepted + t.Refused, t.Refused}
	}
	if known.Tasks < RejectedTasks || known.Operations == 0 {
		c.skip(FindingRejected, fmt.Sprintf("the operations of only %s are known, %d are needed",
			ace.Count(known.Tasks, "task"), RejectedTasks))
		return
	}
	rejected := stats.Share(known.Rejected, known.Operations)
	share := stats.WilsonShare(rejected, float64(min(known.Tasks, known.Operations)))
	if share.Low <= RejectedShare {
		c.add(FindingRejected)
		return
	}
	c.add(FindingRejected, Finding{Severity: SeverityWarning,
		Numbers: map[string]float64{"rejected": float64(known.Rejected),
			"operations": float64(known.Operations),
			"share_low":  round2(share.Low), "share_high": round2(share.High)},
		Text: fmt.Sprintf("%d of %d operations were rejected, %.0f %% (%.0f–%.0f).", known.Rejected,
			known.Operations, 100*rejected, 100*share.Low, 100*share.High),
		Advice: "Read their reasons with acescope show on some tasks, and name in the prompt of the curator the " +
			"operations and bullets that exist."})
}

// budget finds experiments that spent their budget. Without a budget there is nothing to check.
func (c *checker) budget(e Evidence) {
	if e.Budget == nil {
		return
	}
	spent := e.Budget.Spent(e.Usage)
	if spent == "" {
		c.add(FindingBudget)
		return
	}
	c.add(FindingBudget, Finding{Severity: SeverityWarning,
		Numbers: map[string]float64{"cost_usd": e.Usage.CostUSD, "max_cost_usd": e.Budget.CostUSD,
			"tokens": float64(e.Usage.Tokens()), "max_tokens": float64(e.Budget.Tokens)},
		Text: "The experiment spent its " + spent + ".",
		Advice: "What it learned is kept. Start another one from this branch, or allow more with --max-cost or " +
			"--max-tokens."})
}

func accuracy(list []Outcome) float64 { return stats.Share(correctOf(list), len(list)) }

// shareText returns a share with its interval: "40 % (26–56)".
func shareText(k, n int) string {
	i := stats.Wilson(k, n)
	return fmt.Sprintf("%.0f %% (%.0f–%.0f)", 100*stats.Share(k, n), 100*i.Low, 100*i.High)
}

func correctOf(list []Outcome) int {
	correct := 0
	for _, o := range list {
		if o.Correct {
			correct++
		}
	}
	return correct
}
