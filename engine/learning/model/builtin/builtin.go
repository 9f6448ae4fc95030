// Package builtin is a provider that needs no language model, key or network: it learns
// calculation recipes. It parses named-formula problems, stores recipes as playbook bullets,
// and searches for recipes that explain a label.
//
// Generate picks the recipe of the formula named in the prompt with the best counters and the
// best fit to the question; without a recipe it guesses the first number divided by the
// second. Skills looks up the recipe, inspects the question and calculates, each through the
// toolbox. Reflect compares the answer with the label. After a mistake it tries the formula
// that the prompt states and a list of common calculations, with every choice of operands,
// for those that produce the label. Curate adds the plausible ones as competing bullets,
// rewords, counts and removes; later tasks decide between competitors. A stated formula is
// used for learning only: Generate knows only the playbook.
//
// Equal inputs give equal outputs, and no state is kept between calls. Every search is bounded
// (maxTrials, maxAssignments), and its findings say if it was cut short. Questions are read up
// to maxQuestion bytes and maxQuantities numbers. Any prompt except an empty one is answered,
// possibly with the statement that no formula is known. The usage counts words as tokens; the
// cost is 0.
package builtin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
)

// New returns the provider.
func New() model.Provider { return learner{} }

// learner has no state: all knowledge is in the playbook.
type learner struct{}

func (learner) Name() string { return ace.Builtin }

func (learner) DefaultModel() string { return "builtin-recipes-1" }

func (learner) About() string {
	return "built-in learner, no language model: it learns calculation recipes for named formulas from labeled problems"
}

// check rejects an empty prompt.
func check(ctx context.Context, prompt string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if strings.TrimSpace(prompt) == "" {
		return fmt.Errorf("builtin: the prompt is empty: %w", model.ErrPermanent)
	}
	return nil
}

// countWords returns a usage that counts words as tokens.
func countWords(in, out string) *ace.Usage {
	words := func(s string) int64 { return int64(len(strings.Fields(s))) }
	return &ace.Usage{InputTokens: words(in), OutputTokens: words(out)}
}

// maxPlanned is the number of recipes in a program.
const maxPlanned = 3

// program tells Skills what to do: calculate with the first bullet that works, or guess.
type program struct {
	Formula    string   `json:"formula,omitempty"`
	BulletIDs  []string `json:"bullet_ids,omitempty"`
	Guess      bool     `json:"guess,omitempty"`
	Confidence float64  `json:"confidence"`
}

func (learner) Generate(ctx context.Context, in ace.GeneratorInput,
	book *playbook.Playbook) (ace.GeneratorResult, error) {
	if err := check(ctx, in.Prompt); err != nil {
		return ace.GeneratorResult{}, err
	}
	p := parseProblem(in.Prompt)
	entries := recipesFor(book, p.Formula)
	opts := options(entries, quantities(p.Question))
	prog := program{Formula: p.Formula, Guess: p.Formula != "" && len(opts) == 0}
	// The trajectory ID is equal for all attempts of a run's phase.
	sum := sha256.Sum256([]byte(in.Task.WorkflowID + "\x00" + in.Task.RunID + "\x00" + in.Task.TaskID))
	res := ace.GeneratorResult{TrajectoryID: "trajectory-" + hex.EncodeToString(sum[:8])}
	if len(opts) > 0 {
		prog.Confidence = trust(opts[0].bullet)
		res.BulletIDs = []string{opts[0].bullet.ID}
	}
	for _, o := range opts[:min(len(opts), maxPlanned)] {
		prog.BulletIDs = append(prog.BulletIDs, o.bullet.ID)
	}
	res.Plan = plan(p, entries, opts)
	raw, err := json.Marshal(prog)
	if err != nil {
		return ace.GeneratorResult{}, fmt.Errorf("generate: encode the program: %w", err)
	}
	res.Program = raw
	res.Usage = countWords(in.Prompt, res.Plan)
	res.PromptTokens, res.CompletionTokens = res.Usage.InputTokens, res.Usage.OutputTokens
	return res, nil
}

// plan describes what Skills will do.
func plan(p problem, entries []entry, opts []option) string {
	switch {
	case p.Formula == "":
		return "The prompt names no formula (\"Use formula … to answer\"). The built-in learner has no language model and " +
			"solves named formulas only, so it will say that it does not know."
	case len(opts) > 0:
		b := opts[0].bullet
		return fmt.Sprintf("%s: compute %s as [%s] says (helpful %d, harmful %d; %d of %d known recipes fit). Look the recipe up, "+
			"inspect the question, calculate.", p.Formula, opts[0].recipe.expr, b.ID, b.Helpful, b.Harmful,
			len(opts), len(entries))
	case len(entries) > 0:
		return fmt.Sprintf("%s: none of %d known recipes fits the question. Guess: the first number over the second.", p.Formula, len(entries))
	}
	return fmt.Sprintf("%s: no recipe is known. Guess: the first number over the second.", p.Formula)
}

// format writes a number like the data sets do, with one or two decimals.
func format(v float64) string {
	s := strconv.FormatFloat(v, 'f', 2, 64)
	s = strings.TrimSuffix(s, "0")
	if s == "-0.0" {
		return "0.0"
	}
	return s
}
