package cli

import (
	"math"

	"acescope/engine/ace"
	"acescope/engine/learning/stats"
)

// AccuracyLimits are the limits of the interval of an accuracy in a JSON line, nil without a labeled task.
type AccuracyLimits struct {
	Low  *float64 `json:"accuracy_low,omitempty"`
	High *float64 `json:"accuracy_high,omitempty"`
}

// LimitsOf returns the limits of the accuracy of correct answers to labeled tasks.
func LimitsOf(correct, labeled int) AccuracyLimits { return Limits(stats.Wilson(correct, labeled)) }

func Limits(i stats.Interval) AccuracyLimits { return AccuracyLimits{Number(i.Low), Number(i.High)} }

// Number returns nil for a number that JSON does not have.
func Number(f float64) *float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

type EpochLine struct {
	ace.EpochResult
	AccuracyLimits
	MeanScore *float64 `json:"mean_score,omitempty"`
}

type EvalLine struct {
	ace.EvalResult
	AccuracyLimits
	MeanScore *float64 `json:"mean_score,omitempty"`
}

// EpochLines adds the intervals of the accuracies and the mean scores. It never returns nil.
func EpochLines(in *ace.ExperimentInput, list []ace.EpochResult) []EpochLine {
	out := make([]EpochLine, len(list))
	for i, e := range list {
		out[i] = EpochLine{e, LimitsOf(e.Correct, e.Labeled()), in.MeanScore(e.Score, e.Labeled())}
	}
	return out
}

// EvalLines adds the intervals of the accuracies and the mean scores. It never returns nil.
func EvalLines(in *ace.ExperimentInput, list []ace.EvalResult) []EvalLine {
	out := make([]EvalLine, len(list))
	for i, e := range list {
		out[i] = EvalLine{e, LimitsOf(e.Correct, e.Labeled()), in.MeanScore(e.Score, e.Labeled())}
	}
	return out
}
