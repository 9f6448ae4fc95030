package learning

import (
	"cmp"
	"context"
	"fmt"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/learning/dataset"
	"acescope/engine/learning/grade"
	"acescope/engine/learning/model/builtin"
	"acescope/engine/store/artifact"
	"acescope/theme"
	"acescope/tui/widget"
)

// Baseline is a comparison for the accuracy of the built-in learner: the accuracy of a program that learns
// nothing and answers with the formulas that the prompts state, and the number of built-in forms of
// calculation.
type Baseline struct {
	DatasetID string `json:"dataset_id"`
	Labeled   int    `json:"labeled"`
	Correct   int    `json:"correct"`
	Shapes    int    `json:"shapes"`
	Err       string `json:"error,omitempty"`
}

// readBaseline measures the baseline on the evaluation data set of an experiment, or else on that of its
// tasks. It returns nil if the built-in learner does not answer.
func readBaseline(ctx context.Context, store *artifact.Store, in *ace.ExperimentInput) *Baseline {
	if cmp.Or(in.Steps[string(ace.PhaseSkills)], in.Provider) != builtin.New().Name() {
		return nil
	}
	b := &Baseline{DatasetID: in.DatasetID, Shapes: builtin.Shapes()}
	set, count := in.SourceDataset(), in.Tasks
	if in.Eval != nil {
		b.DatasetID, set, count = in.EvalID, *in.Eval, in.EvalTasks
	}
	for from := 0; from < count; {
		tasks, err := dataset.Load(ctx, store, set, from, count-from)
		if err != nil {
			b.Err = cli.OneLine(err)
			return b
		}
		from += len(tasks)
		for _, t := range tasks {
			answer, _ := builtin.Stated(t.Prompt)
			correct, _, err := grade.Verdict(ace.ReflectorInput{Answer: answer, Label: t.Label,
				Grader: in.Grader})
			if err != nil {
				b.Err = cli.OneLine(err)
				return b
			}
			if correct == nil {
				continue
			}
			b.Labeled++
			if *correct {
				b.Correct++
			}
		}
	}
	return b
}

func (b *Baseline) lines(g theme.Glyphs) []string {
	if b == nil {
		return nil
	}
	figure := "unknown: " + b.Err
	if b.Err == "" {
		figure = "accuracy " + widget.Accuracy(b.Correct, b.Labeled, g)
	}
	return []string{
		fmt.Sprintf("baseline without learning: the formulas that the prompts of %s state, %s",
			cmp.Or(b.DatasetID, "the data set"), figure),
		fmt.Sprintf("prior knowledge: %d built-in shapes of calculations, among which the learner searches",
			b.Shapes),
	}
}
