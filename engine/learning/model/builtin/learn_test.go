package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
	"acescope/engine/learning/problems"
)

// recorder is a toolbox that records calls and denies the given tools.
type recorder struct {
	denied []string
	calls  []string
}

func (r *recorder) Call(ctx context.Context, name string, args any,
	fn func(context.Context) (any, error)) (any, error) {
	r.calls = append(r.calls, name)
	if slices.Contains(r.denied, name) {
		return nil, fmt.Errorf("%s: %w", name, model.ErrDenied)
	}
	if _, err := json.Marshal(args); err != nil {
		return nil, err
	}
	res, err := fn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := json.Marshal(res); err != nil {
		return nil, err
	}
	return res, nil
}

// run executes the four phases of one task.
type run struct {
	generated ace.GeneratorResult
	answer    string
	reflected ace.ReflectorResult
	curated   ace.CuratorResult
}

func solve(t testing.TB, prompt string, book *playbook.Playbook, tools model.Toolbox) (ace.GeneratorResult,
	string) {
	t.Helper()
	ctx, p := context.Background(), New()
	g, err := p.Generate(ctx, ace.GeneratorInput{Prompt: prompt}, book)
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Skills(ctx, ace.SkillsInput{Prompt: prompt, Plan: g.Plan, Program: g.Program,
		BulletIDs: g.BulletIDs}, book, tools)
	if err != nil {
		t.Fatal(err)
	}
	return g, s.Answer
}

func learn(t testing.TB, p problems.Problem, book *playbook.Playbook) run {
	t.Helper()
	ctx := context.Background()
	var r run
	r.generated, r.answer = solve(t, p.Context, book, &recorder{})
	var err error
	r.reflected, err = New().Reflect(ctx,
		ace.ReflectorInput{Prompt: p.Context, BulletIDs: r.generated.BulletIDs, Answer: r.answer,
			Label: &p.Target}, book)
	if err != nil {
		t.Fatal(err)
	}
	r.curated, err = New().Curate(ctx, ace.CuratorInput{Insights: r.reflected.Insights,
		BulletTags: r.reflected.BulletTags, Findings: r.reflected.Findings}, book)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func train(t testing.TB, set []problems.Problem) *playbook.Playbook {
	book := &playbook.Playbook{}
	for _, p := range set {
		next, fates := playbook.Apply(book, learn(t, p, book).curated.Accepted)
		for _, f := range fates {
			if f.Outcome == ace.OutcomeRejected || f.Outcome == ace.OutcomeUnparsable {
				t.Fatalf("the playbook refused %+v", f)
			}
		}
		book = next
	}
	return book
}

func accuracy(t testing.TB, set []problems.Problem, book *playbook.Playbook) float64 {
	right := 0
	for _, p := range set {
		if _, answer := solve(t, p.Context, book, &recorder{}); model.SameAnswer(answer, p.Target) {
			right++
		}
	}
	return float64(right) / float64(len(set))
}

func TestLearningRaisesAccuracyOnUnseenProblems(t *testing.T) {
	held := problems.Finance(9001, 200)
	base := accuracy(t, held, &playbook.Playbook{})
	if base > 0.4 {
		t.Errorf("base accuracy %.3f: the problems are too easy to show learning", base)
	}
	set := problems.Finance(17, 300)
	early, late := accuracy(t, held, train(t, set[:120])), accuracy(t, held, train(t, set))
	t.Logf("base %.3f, after 120 tasks %.3f, after 300 tasks %.3f", base, early, late)
	if early < base+0.3 || late < 0.75 || late < early-0.05 {
		t.Errorf("base %.3f, after 120 tasks %.3f, after 300 tasks %.3f", base, early, late)
	}
}

func TestStepsAreDeterministic(t *testing.T) {
	set := problems.Finance(5, 60)
	book := train(t, set)
	if again := train(t, set); !reflect.DeepEqual(book, again) {
		t.Fatal("two equal trainings gave different playbooks")
	}
	want := learn(t, set[7], book)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if got := learn(t, set[7], book); !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
		})
	}
	wait.Wait()
}

func TestAllOperationsOccur(t *testing.T) {
	count := map[string]int{}
	book := &playbook.Playbook{}
	for _, p := range problems.Finance(3, 400) {
		c := learn(t, p, book).curated
		if c.Rationale == "" {
			t.Fatal("no rationale")
		}
		for _, op := range c.Accepted {
			count[string(op.Type)]++
		}
		for _, op := range c.Rejected {
			count["rejected"]++
			if op.Reason == "" || op.Outcome != ace.OutcomeRejected {
				t.Fatalf("rejected without a reason: %+v", op)
			}
		}
		book, _ = playbook.Apply(book, c.Accepted)
	}
	for _, kind := range []string{"ADD", "UPDATE", "TAG", "REMOVE", "rejected"} {
		if count[kind] == 0 {
			t.Errorf("%s never came up: %v", kind, count)
		}
	}
}

func BenchmarkTask(b *testing.B) {
	set := problems.Finance(11, 400)
	book := train(b, set)
	for i := 0; b.Loop(); i++ {
		learn(b, set[i%len(set)], book)
	}
	b.ReportMetric(float64(len(book.Bullets)), "bullets")
}
