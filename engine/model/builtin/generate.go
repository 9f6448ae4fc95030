package builtin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"acescope/engine/ace"
	"acescope/engine/playbook"
)

// maxPlanned bounds the recipes that a program names.
const maxPlanned = 3

// program is what Generate tells Skills to do: compute with the first of the bullets
// that works, or guess where there is none.
type program struct {
	Formula    string   `json:"formula,omitempty"`
	BulletIDs  []string `json:"bullet_ids,omitempty"`
	Guess      bool     `json:"guess,omitempty"`
	Confidence float64  `json:"confidence"`
}

// Generate implements [model.Provider].
func (learner) Generate(ctx context.Context, in ace.GeneratorInput, book *playbook.Playbook) (ace.GeneratorResult, error) {
	if err := check(ctx, in.Prompt); err != nil {
		return ace.GeneratorResult{}, err
	}
	p := parseProblem(in.Prompt)
	entries := recipesFor(book, p.Formula)
	opts := options(entries, quantities(p.Question))
	prog := program{Formula: p.Formula, Guess: p.Formula != "" && len(opts) == 0}
	res := ace.GeneratorResult{TrajectoryID: trajectoryID(in.Task)}
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
		return ace.GeneratorResult{}, fmt.Errorf("generate: encoding the program: %w", err)
	}
	res.Program = raw
	res.Usage = countWords(in.Prompt, res.Plan)
	res.PromptTokens, res.CompletionTokens = res.Usage.InputTokens, res.Usage.OutputTokens
	return res, nil
}

// plan says in words what Skills will do.
func plan(p problem, entries []entry, opts []option) string {
	switch {
	case p.Formula == "":
		return "The prompt names no formula (\"Use formula … to answer\"). The built-in learner has no language model and " +
			"solves named formulas only: it will say that it does not know."
	case len(opts) > 0:
		b := opts[0].bullet
		return fmt.Sprintf("%s: compute %s as [%s] says (helpful %d, harmful %d; %d of %d known recipes fit). Look the recipe up, "+
			"inspect the question, calculate.", p.Formula, opts[0].recipe.expr, b.ID, b.Helpful, b.Harmful, len(opts), len(entries))
	case len(entries) > 0:
		return fmt.Sprintf("%s: none of %d known recipes fits the question. Guess: the first number over the second.", p.Formula, len(entries))
	}
	return fmt.Sprintf("%s: no recipe is known. Guess: the first number over the second.", p.Formula)
}

// trajectoryID is equal for every attempt at one run's step.
func trajectoryID(t ace.TaskContext) string {
	sum := sha256.Sum256([]byte(t.WorkflowID + "\x00" + t.RunID + "\x00" + t.TaskID))
	return "trajectory-" + hex.EncodeToString(sum[:8])
}
