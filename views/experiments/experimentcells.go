package experiments

import (
	"math"

	"acescope/engine/ace"
	"acescope/sources/experiments"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/views/console"
)

// done is how many tasks have ended over all epochs, and of how many.
func done(p *ace.ExperimentProgress) (ended, of int) {
	for _, e := range p.Epochs {
		ended += e.Tasks
	}
	return ended, p.TotalTasks * p.TotalEpochs
}

func tasksCell(p *ace.ExperimentProgress, g theme.Glyphs) string {
	ended, of := done(p)
	if of == 0 {
		return g.Dash
	}
	return text.Count(int64(ended)) + "/" + text.Count(int64(of))
}

// accuracyOf is the share of right answers over all epochs, -1 where none was judged.
func accuracyOf(r experiments.Experiment) float64 {
	if r.Progress == nil {
		return -1
	}
	right, judged := 0, 0
	for _, e := range r.Progress.Epochs {
		right, judged = right+e.Correct, judged+e.Tasks-e.Unlabeled
	}
	if judged == 0 {
		return -1
	}
	return float64(right) / float64(judged)
}

// lastEval is the newest measurement, -1 where there is none.
func lastEval(r experiments.Experiment) float64 {
	if r.Progress == nil || len(r.Progress.Eval) == 0 {
		return -1
	}
	return r.Progress.Eval[len(r.Progress.Eval)-1].Accuracy
}

func costSoFar(r experiments.Experiment) float64 {
	if r.Progress == nil {
		return -1
	}
	return r.Progress.Usage.CostUSD
}

func rateCell(f float64, g theme.Glyphs) string {
	if f < 0 || math.IsNaN(f) {
		return g.Dash
	}
	return console.Percent(f)
}

// evalCell is the first measurement and the last: "20.0→65.0%".
func evalCell(list []ace.EvalResult, g theme.Glyphs) string {
	switch len(list) {
	case 0:
		return g.Dash
	case 1:
		return console.Percent(list[0].Accuracy)
	}
	before := console.Percent(list[0].Accuracy)
	return before[:len(before)-1] + g.Arrow + console.Percent(list[len(list)-1].Accuracy)
}

func countOrDash(n int, g theme.Glyphs) string {
	if n == 0 {
		return g.Dash
	}
	return text.Count(int64(n))
}
