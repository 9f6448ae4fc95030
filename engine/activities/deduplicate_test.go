package activities

import (
	"context"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/testsuite"

	"acescope/engine/ace"
	"acescope/engine/internal/redact"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
)

// adding is a curator that adds two bullets. All texts that begin with the same letter have the same
// embedding.
type adding struct {
	counting
	embedded []string
	budgets  []int64 // of its requests
}

func (*adding) Name() string                   { return "adding" }
func (*adding) EmbeddingModel() (string, bool) { return "", true }

func (a *adding) Curate(
	_ context.Context, in ace.CuratorInput, _ *playbook.Playbook,
) (ace.CuratorResult, error) {
	a.budgets = append(a.budgets, in.Task.Budget.Tokens)
	return ace.CuratorResult{StepReport: ace.StepReport{Usage: &ace.Usage{OutputTokens: 10}},
		Accepted: []ace.Operation{
			{Type: ace.OpAdd, Section: "OTHERS", Content: "anchor"},
			{Type: ace.OpAdd, Section: "OTHERS", Content: "zebra"},
		}}, nil
}

func (a *adding) Embed(
	_ context.Context, at ace.TaskContext, texts []string,
) (vectors [][]float64, used *ace.Usage, err error) {
	a.budgets = append(a.budgets, at.Budget.Tokens)
	a.embedded = append(a.embedded, texts...)
	if at.Model != "letters" {
		return nil, &ace.Usage{}, model.Errorf(model.NoModel, "no model %s", at.Model)
	}
	for _, text := range texts {
		v := make([]float64, 26)
		v[text[0]-'a'] = 1
		vectors = append(vectors, v)
	}
	return vectors, &ace.Usage{InputTokens: int64(len(texts))}, nil
}

// The embeddings of bullets are requested once, within the budget of the step, and before the curator is
// asked.
func TestDeduplicate(t *testing.T) {
	books, err := playbook.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	hash, err := books.Put(t.Context(), &playbook.Playbook{NextID: 3, Bullets: []playbook.Bullet{
		{ID: "misc-00001", Section: "OTHERS", Content: "apple"},
		{ID: "misc-00002", Section: "OTHERS", Content: "axe", Helpful: 1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	p := &adding{}
	a := &Activities{Books: books, secrets: redact.New(), Providers: []model.Provider{p}, NoCallRecords: true}
	var s testsuite.WorkflowTestSuite
	e := s.NewTestActivityEnvironment()
	a.register(e)
	curate := func(name string) (r ace.CuratorResult, err error) {
		v, err := e.ExecuteActivity(ace.ActivityCurator, ace.CuratorInput{
			Task: ace.TaskContext{Provider: "adding", PlaybookHash: hash,
				Budget: &ace.Budget{Tokens: 100}},
			Deduplicate: &ace.Deduplication{Provider: "adding", Model: name, Similarity: 0.9}})
		if err == nil {
			err = v.Get(&r)
		}
		return r, err
	}

	r, err := curate("letters")
	if err != nil || len(r.Accepted) != 2 || r.Accepted[0].Content != "zebra" || len(r.Rejected) != 1 ||
		r.Rejected[0].Reason != "near-duplicate of misc-00001, similarity at least 1.00 by embeddings of adding/letters" {
		t.Fatalf("%+v, %v", r, err)
	}
	if m := r.Accepted[1]; m.Type != ace.OpMerge || m.BulletID != "misc-00001" ||
		m.SourceIDs[0] != "misc-00002" {
		t.Errorf("%+v", m)
	}
	if r.Usage.InputTokens != 4 || r.Usage.OutputTokens != 10 ||
		!slices.Equal(p.budgets, []int64{100, 98, 88}) {
		t.Errorf("%+v, budgets %v", r.Usage, p.budgets)
	}
	if r, err = curate("letters"); err != nil || len(p.embedded) != 4 || r.Usage.InputTokens != 0 {
		t.Errorf("embedded %v, %+v, %v", p.embedded, r.Usage, err)
	}

	p.budgets = nil
	if _, err = curate("none"); err == nil || !strings.Contains(err.Error(), "no model none") ||
		len(p.budgets) != 1 {
		t.Errorf("%v, budgets %v", err, p.budgets)
	}
}
