package builtin

import (
	"context"
	"fmt"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/model"
)

// New makes the provider.
func New() model.Provider { return learner{} }

// learner has no state: what it knows is in the playbook.
type learner struct{}

// Name implements [model.Provider].
func (learner) Name() string { return "builtin" }

// DefaultModel implements [model.Provider].
func (learner) DefaultModel() string { return "builtin-recipes-1" }

// About implements [model.Provider].
func (learner) About() string {
	return "built-in learner, no language model: it learns calculation recipes for named formulas from labelled problems"
}

// check refuses what no step can work on.
func check(ctx context.Context, prompt string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if strings.TrimSpace(prompt) == "" {
		return fmt.Errorf("builtin: the prompt is empty: %w", model.ErrPermanent)
	}
	return nil
}

// countWords reports words as tokens, the nearest thing that there is.
func countWords(in, out string) *ace.Usage {
	return &ace.Usage{InputTokens: int64(wordCount(in)), OutputTokens: int64(wordCount(out))}
}

func wordCount(text string) int {
	n := 0
	for range strings.FieldsSeq(text) {
		n++
	}
	return n
}
