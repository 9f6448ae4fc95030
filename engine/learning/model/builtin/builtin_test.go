package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
	"acescope/engine/learning/problems"
)

const roeRecipe = `Return on Equity (ROE): answer = a / b * 100 where a = amount near "income" (often 1st); b = amount near "equity" (often 2nd)`

func bookOf(contents ...string) *playbook.Playbook {
	book := &playbook.Playbook{NextID: len(contents) + 1}
	for i, c := range contents {
		book.Bullets = append(book.Bullets, playbook.Bullet{ID: fmt.Sprintf("calc-%05d", i+1),
			Section: Section, Content: c})
	}
	return book
}

func TestMetadata(t *testing.T) {
	p := New()
	if p.Name() != "builtin" || p.DefaultModel() == "" || !strings.Contains(p.About(), "no language model") {
		t.Errorf("%q, %q, %q", p.Name(), p.DefaultModel(), p.About())
	}
}

func TestUsesRecipeThroughTools(t *testing.T) {
	tools := &recorder{}
	g, answer := solve(t, roeContext, bookOf("Check the units.", roeRecipe), tools)
	if answer != "25.0" || !slices.Equal(g.BulletIDs, []string{"calc-00002"}) ||
		!strings.Contains(g.Plan, "calc-00002") {
		t.Errorf("answer %s by %v: %s", answer, g.BulletIDs, g.Plan)
	}
	if want := []string{"look_up", "inspect", "calculate"}; !slices.Equal(tools.calls, want) {
		t.Errorf("calls %v, want %v", tools.calls, want)
	}
}

func TestGuessesWithoutRecipe(t *testing.T) {
	g, answer := solve(t, roeContext, &playbook.Playbook{}, &recorder{})
	if answer != "0.25" || len(g.BulletIDs) != 0 || !strings.Contains(g.Plan, "Guess") {
		t.Errorf("answer %s by %v: %s", answer, g.BulletIDs, g.Plan)
	}
}

func TestDeniedTools(t *testing.T) {
	for denied, want := range map[string]string{"look_up": "0.25", "inspect": "25.0", "calculate": Unknown} {
		_, answer := solve(t, roeContext, bookOf(roeRecipe), &recorder{denied: []string{denied}})
		if !strings.HasPrefix(answer, want) {
			t.Errorf("without %s: %q, want %q", denied, answer, want)
		}
	}
	if _, answer := solve(t, roeContext, nil,
		&recorder{denied: []string{"look_up", "inspect", "calculate"}}); !strings.HasPrefix(answer, Unknown) {
		t.Errorf("with no tool at all: %q", answer)
	}
}

func TestToolboxErrorEndsSession(t *testing.T) {
	broken := errors.New("the recorder is gone")
	_, err := New().Skills(context.Background(), ace.SkillsInput{Prompt: roeContext}, bookOf(roeRecipe),
		failing{broken})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Call(context.Context, string, any, func(context.Context) (any, error)) (any, error) {
	return nil, f.err
}

func TestDivisionByZero(t *testing.T) {
	_, answer := solve(t, "Use formula X to answer. Question: what are 5 over 0? Answer:", nil, &recorder{})
	if !strings.HasPrefix(answer, Unknown) {
		t.Errorf("answer %q", answer)
	}
}

func TestAnswersAnyPrompt(t *testing.T) {
	for _, prompt := range []string{"What is the capital of France?", "Use formula to answer", "\xff\xfe",
		strings.Repeat("9 ", 100_000),
		"Use formula X to answer the question. Question: none. Answer:"} {
		label := "Paris"
		g, answer := solve(t, prompt, bookOf(roeRecipe), &recorder{})
		if answer == "" || g.Plan == "" || len(g.BulletIDs) != 0 {
			t.Errorf("%.40q: answer %q, plan %q", prompt, answer, g.Plan)
		}
		r := learn(t, problems.Problem{Context: prompt, Target: label}, bookOf(roeRecipe))
		if r.reflected.Correct == nil || *r.reflected.Correct || len(r.curated.Accepted) != 0 {
			t.Errorf("%.40q: %+v", prompt, r)
		}
	}
}

func TestEmptyPromptIsPermanentError(t *testing.T) {
	ctx, p := context.Background(), New()
	_, g := p.Generate(ctx, ace.GeneratorInput{Prompt: " \n"}, nil)
	_, s := p.Skills(ctx, ace.SkillsInput{}, nil, &recorder{})
	_, r := p.Reflect(ctx, ace.ReflectorInput{}, nil)
	for step, err := range map[string]error{"generate": g, "skills": s, "reflect": r} {
		if !errors.Is(err, model.ErrPermanent) {
			t.Errorf("%s: %v", step, err)
		}
	}
}

func TestCanceledContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p := New()
	_, g := p.Generate(ctx, ace.GeneratorInput{Prompt: "x"}, nil)
	_, s := p.Skills(ctx, ace.SkillsInput{Prompt: "x"}, nil, &recorder{})
	_, r := p.Reflect(ctx, ace.ReflectorInput{Prompt: "x"}, nil)
	_, c := p.Curate(ctx, ace.CuratorInput{}, nil)
	for step, err := range map[string]error{"generate": g, "skills": s, "reflect": r, "curate": c} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", step, err)
		}
	}
}

func TestTrajectoryID(t *testing.T) {
	id := func(run string) string {
		g, err := New().Generate(context.Background(),
			ace.GeneratorInput{Task: ace.TaskContext{WorkflowID: "ace/q", RunID: run}, Prompt: "x"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return g.TrajectoryID
	}
	if id("1") != id("1") || id("1") == id("2") {
		t.Errorf("%s, %s, %s", id("1"), id("1"), id("2"))
	}
}

func TestReflectWithoutLabel(t *testing.T) {
	book := bookOf(roeRecipe)
	r, err := New().Reflect(context.Background(),
		ace.ReflectorInput{Prompt: roeContext, BulletIDs: []string{"calc-00001"}, Answer: "25.0"}, book)
	if err != nil || r.Correct != nil || len(r.BulletTags) != 1 || r.BulletTags[0].Tag != neutral {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestLearnsStatedFormula(t *testing.T) {
	r := learn(t, problems.Problem{Context: roeContext, Target: "25.0"}, &playbook.Playbook{})
	if *r.reflected.Correct || len(r.curated.Accepted) == 0 {
		t.Fatalf("%+v", r)
	}
	op := r.curated.Accepted[0]
	if op.Type != ace.OpAdd || op.Section != Section ||
		!strings.Contains(op.Content, "net_income / shareholders_equity * 100") {
		t.Errorf("%+v", op)
	}
	book, _ := playbook.Apply(&playbook.Playbook{}, r.curated.Accepted)
	if _, answer := solve(t, strings.NewReplacer("Net income is $50 and equity $200",
		"An equity of $1 million earns net income of $80,000").Replace(roeContext), book,
		&recorder{}); answer != "8.0" {
		t.Errorf("the lesson does not carry over: %s", answer)
	}
}

// curate runs the curator on findings.
func curate(t *testing.T, book *playbook.Playbook, f findings, tags ...ace.BulletTag) ace.CuratorResult {
	t.Helper()
	raw, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New().Curate(context.Background(), ace.CuratorInput{Findings: raw, BulletTags: tags}, book)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRemovesHarmfulRecipes(t *testing.T) {
	book := bookOf(roeRecipe)
	book.Bullets[0].Harmful = 2
	f := findings{Formula: "Return on Equity (ROE)"}
	if c := curate(t, book, f, ace.BulletTag{ID: "calc-00001", Tag: helpful}); len(c.Accepted) != 1 {
		t.Errorf("harmful twice, now helpful: %+v", c.Accepted)
	}
	c := curate(t, book, f, ace.BulletTag{ID: "calc-00001", Tag: harmful})
	if len(c.Accepted) != 2 || c.Accepted[0].Type != ace.OpTag || c.Accepted[1].Type != ace.OpRemove {
		t.Errorf("harmful for the third time: %+v", c.Accepted)
	}
}

func TestRejectsProposals(t *testing.T) {
	const formula = "Return on Equity (ROE)"
	recipes := func(exprs ...string) (fs []finding) {
		for i, e := range exprs {
			fs = append(fs, finding{Recipe: formula + recipeMark + e + " where a = amount; b = amount",
				Score: 3 - float64(i)*0.1, Source: fromText})
		}
		return fs
	}
	full := bookOf()
	for i := range maxPerFormula {
		full.Bullets = append(full.Bullets, playbook.Bullet{ID: fmt.Sprint(i), Section: Section,
			Content: fmt.Sprintf("%s%sa / b + %d where a = amount; b = amount", formula, recipeMark, i)})
	}
	proven := bookOf(roeRecipe)
	proven.Bullets[0].Helpful = 5
	wide := recipes("a * b")
	wide[0].Unused = 1
	far := recipes("a * b", "a - b")
	far[1].Score = 0
	for reason, c := range map[string]ace.CuratorResult{
		"duplicate of [calc-00001]": curate(t, bookOf(roeRecipe),
			findings{Formula: formula, Candidates: recipes("a / b * 100")}),
		"full:": curate(t, full,
			findings{Formula: formula, Candidates: recipes("a * b")}),
		"unsupported:": curate(t, proven, findings{Formula: formula, Candidates: wide}),
		"coincidence:": curate(t, bookOf(), findings{Formula: formula, Candidates: far}),
		"at most 2": curate(t, bookOf(),
			findings{Formula: formula, Candidates: recipes("a * b", "a - b", "a + b")}),
		"unreadable:": curate(t, bookOf(),
			findings{Formula: formula, Candidates: []finding{{Recipe: "???"}}}),
		"not found": curate(t, bookOf(), findings{}, ace.BulletTag{ID: "gone", Tag: helpful}),
		"is not a tag": curate(t, bookOf(roeRecipe), findings{},
			ace.BulletTag{ID: "calc-00001", Tag: "great"}),
	} {
		if len(c.Rejected) != 1 || !strings.Contains(c.Rejected[0].Reason, reason) ||
			!strings.Contains(c.Rationale, "rejected") {
			t.Errorf("%s: %+v", reason, c)
		}
	}
}

func TestUpdateKeepsConcurrentChanges(t *testing.T) {
	r := refined{BulletID: "calc-00001", Before: roeRecipe, After: strings.Replace(roeRecipe, `"income"`,
		`"income", "profit"`, 1)}
	for now, want := range map[string]string{
		roeRecipe: r.After,
		strings.Replace(roeRecipe, `"equity"`, `"equity", "owner"`, 1): strings.Replace(r.After, `"equity"`,
			`"equity", "owner"`, 1),
	} {
		c := curate(t, bookOf(now), findings{Formula: "Return on Equity (ROE)", Refine: []refined{r}})
		if len(c.Accepted) != 1 || c.Accepted[0].Type != ace.OpUpdate || c.Accepted[0].Content != want {
			t.Errorf("%s\nbecame %+v", now, c)
		}
	}
	for _, now := range []string{"Something else.", r.After} {
		if c := curate(t, bookOf(now), findings{Refine: []refined{r}}); len(c.Rejected) != 1 ||
			len(c.Accepted) != 0 {
			t.Errorf("%s\nbecame %+v", now, c)
		}
	}
}

func TestMergesDuplicates(t *testing.T) {
	twin := strings.NewReplacer(`"equity"`, `"equity", "owner"`, "a / b", "x / y", "a =", "x =", "b =",
		"y =").Replace(roeRecipe)
	book := bookOf(roeRecipe, twin)
	book.Bullets[1].Helpful, book.Bullets[1].Harmful = 4, 1
	c := curate(t, book, findings{Formula: "Return on Equity (ROE)"})
	next, fates := playbook.Apply(book, c.Accepted)
	for _, f := range fates {
		if f.Outcome != ace.OutcomeAccepted {
			t.Errorf("%+v", f)
		}
	}
	if len(next.Bullets) != 1 || next.Bullets[0].Helpful != 4 || next.Bullets[0].Harmful != 1 ||
		!strings.Contains(next.Bullets[0].Content, `"owner"`) {
		t.Errorf("%+v", next.Bullets)
	}
}

func TestIgnoresForeignFindings(t *testing.T) {
	for _, raw := range []string{"", "null", "[1]", `{"formula": 5}`, "{"} {
		c, err := New().Curate(context.Background(), ace.CuratorInput{Findings: json.RawMessage(raw)},
			bookOf(roeRecipe))
		if err != nil || len(c.Accepted)+len(c.Rejected) != 0 || c.Rationale == "" {
			t.Errorf("%q: %+v, %v", raw, c, err)
		}
	}
}

func TestSearchIsBounded(t *testing.T) {
	question := "given"
	for i := range 40 {
		question += fmt.Sprintf(" $%d.37 then %d%% then %d years,", 1000+i*37, i+3, i+2)
	}
	p := parseProblem("Use formula Y to answer. Question: " + question)
	qs := quantities(p.Question)
	for _, label := range []float64{0, 1, 0.123456} {
		if res := searchRecipes(p, qs, label); !res.capped || res.trials > maxTrials ||
			len(res.best) > maxHypotheses || len(qs) > maxQuantities {
			t.Errorf("%v: %d trials on %d quantities, %d found, capped %v", label, res.trials, len(qs),
				len(res.best), res.capped)
		}
	}
}

func FuzzTask(f *testing.F) {
	for i, p := range problems.Finance(1, 20) {
		f.Add(p.Context, p.Target, fmt.Sprint(i))
	}
	f.Add(roeContext, "25.0", roeRecipe)
	f.Fuzz(func(t *testing.T, prompt, label, bullet string) {
		if strings.TrimSpace(prompt) == "" {
			return
		}
		book, _ := playbook.Apply(&playbook.Playbook{},
			[]ace.Operation{{Type: ace.OpAdd, Section: Section, Content: bullet}})
		r := learn(t, problems.Problem{Context: prompt, Target: label}, book)
		_, fates := playbook.Apply(book, r.curated.Accepted)
		for i, op := range fates {
			if op.Outcome != ace.OutcomeAccepted {
				t.Fatalf("proposed %+v, which became %s: %s", r.curated.Accepted[i], op.Outcome, op.Reason)
			}
			if op.Type == ace.OpAdd {
				if _, err := parseRecipe(op.Content); err != nil {
					t.Fatalf("added %q: %v", op.Content, err)
				}
			}
		}
	})
}
