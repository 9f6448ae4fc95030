package runs

import "acescope/engine/ace"

// Bounds of asking open runs.
const (
	AskAtMost = 10
)

// Asked is what an open run's worker said of it.
type Asked struct {
	Sum   *ace.Summary
	Phase ace.Phase // of an experiment its stage
}
