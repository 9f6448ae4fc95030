//go:build unix

package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/builtin"
	"acescope/engine/learning/playbook"
	"acescope/engine/learning/problems"
)

const (
	evalItems    = 1000
	evalChunk    = 25 // items of an activity, as in acescope
	evalParallel = 2
	learnItems   = 200
)

// callTools calls tools without a record.
type callTools struct{}

func (callTools) Call(ctx context.Context, _ string, _ any, fn func(context.Context) (any, error)) (any,
	error) {
	return fn(ctx)
}

// answerItem answers a problem with the built-in learner, as an activity without acescope would.
func answerItem(ctx context.Context, book *playbook.Playbook, p problems.Problem) (
	g ace.GeneratorResult, answer string, correct bool, err error,
) {
	learner := builtin.New()
	g, err = learner.Generate(ctx, ace.GeneratorInput{Prompt: p.Context}, book)
	if err != nil {
		return g, "", false, err
	}
	s, err := learner.Skills(ctx, ace.SkillsInput{Prompt: p.Context, Plan: g.Plan, Program: g.Program,
		BulletIDs: g.BulletIDs, Answer: g.Answer}, book, callTools{})
	return g, s.Answer, model.SameAnswer(s.Answer, p.Target), err
}

// learnedBook returns what the built-in learner learns from some problems.
func learnedBook(b *testing.B) *playbook.Playbook {
	b.Helper()
	book := &playbook.Playbook{}
	for _, p := range problems.Finance(1, learnItems) {
		g, answer, _, err := answerItem(b.Context(), book, p)
		if err != nil {
			b.Fatal(err)
		}
		r, err := builtin.New().Reflect(b.Context(), ace.ReflectorInput{Prompt: p.Context, Plan: g.Plan,
			Program: g.Program, BulletIDs: g.BulletIDs, Answer: answer, Label: &p.Target}, book)
		if err != nil {
			b.Fatal(err)
		}
		c, err := builtin.New().Curate(b.Context(),
			ace.CuratorInput{Insights: r.Insights, BulletTags: r.BulletTags,
				Findings: r.Findings, Correct: r.Correct}, book)
		if err != nil {
			b.Fatal(err)
		}
		book, _ = playbook.Apply(book, c.Accepted)
	}
	return book
}

// bareEvaluation is a workflow that answers all items in activities of size items each, evalParallel chunks
// at a time.
func bareEvaluation(ctx workflow.Context, size int) (correct int, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	for from := 0; from < evalItems; {
		var open []workflow.Future
		for ; len(open) < evalParallel*evalChunk/size && from < evalItems; from += size {
			open = append(open, workflow.ExecuteActivity(ctx, "answer", from, size))
		}
		for _, f := range open {
			var n int
			if err := f.Get(ctx, &n); err != nil {
				return 0, err
			}
			correct += n
		}
	}
	return correct, nil
}

// BenchmarkEvaluation compares an evaluation, which keeps each answer with its plan, tool calls and verdict,
// with bare activities that only answer the same items and count the correct ones: one for each item, and one
// for each chunk.
func BenchmarkEvaluation(b *testing.B) {
	e := openBench(b)
	book := learnedBook(b)
	items := problems.Finance(2, evalItems)
	hash, err := e.Books.Put(b.Context(), book)
	if err != nil {
		b.Fatal(err)
	}
	var lines bytes.Buffer
	if err := problems.WriteJSONL(&lines, items); err != nil {
		b.Fatal(err)
	}
	ref, err := e.Artifacts.PutBytes(b.Context(), lines.Bytes(), "application/jsonl")
	if err != nil {
		b.Fatal(err)
	}
	w := worker.New(e.Client, plainQueue, worker.Options{})
	w.RegisterWorkflow(bareEvaluation)
	w.RegisterActivityWithOptions(func(ctx context.Context, from, size int) (correct int, err error) {
		for _, p := range items[from : from+size] {
			_, _, right, err := answerItem(ctx, book, p)
			if err != nil {
				return 0, err
			}
			if right {
				correct++
			}
		}
		return correct, nil
	}, activity.RegisterOptions{Name: "answer"})
	if err := w.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(w.Stop)
	var n atomic.Int64
	correct := map[string]int{}
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			id := fmt.Sprint("eval-", n.Add(1))
			in := ace.ExperimentInput{ExperimentID: id, DatasetID: "bench",
				EvaluationPlan: ace.EvaluationPlan{EvalID: "bench", Eval: &ref, EvalTasks: evalItems},
				Adapter:        ace.Offline, Provider: "builtin", Model: "builtin", PlaybookHash: hash,
				Parallel: evalParallel}
			runID, err := e.StartExperiment(b.Context(), in)
			if err != nil {
				b.Fatal(err)
			}
			var p ace.ExperimentProgress
			workflowID := ace.ExperimentWorkflowID(id)
			if err := e.Client.GetWorkflow(b.Context(), workflowID, runID).Get(b.Context(), &p); err != nil {
				b.Fatal(err)
			}
			correct["ours"] = p.Eval[0].Correct
		}
	})
	for name, size := range map[string]int{"items": 1, "chunks": evalChunk} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				run, err := e.Client.ExecuteWorkflow(b.Context(), client.StartWorkflowOptions{
					ID: fmt.Sprint("bare-", n.Add(1)), TaskQueue: plainQueue}, bareEvaluation, size)
				if err != nil {
					b.Fatal(err)
				}
				var right int
				if err := run.Get(b.Context(), &right); err != nil {
					b.Fatal(err)
				}
				correct["bare"] = right
			}
		})
	}
	if len(correct) == 2 && correct["ours"] != correct["bare"] {
		b.Fatalf("they differ: %v", correct)
	}
}
