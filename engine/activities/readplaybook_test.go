package activities

import (
	"encoding/json"
	"strings"
	"testing"

	"go.temporal.io/sdk/testsuite"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/store/artifact"
)

// A worker of another program reads any version: the bullets of a small one, a reference to those of a large
// one.
func TestReadPlaybook(t *testing.T) {
	books, err := playbook.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	artifacts, err := artifact.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := &Activities{Books: books, Artifacts: artifacts}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	a.register(env)
	read := func(hash string) (r PlaybookContent, err error) {
		v, err := env.ExecuteActivity(ace.ActivityReadPlaybook, ace.ReadPlaybookInput{PlaybookHash: hash})
		if err == nil {
			err = v.Get(&r)
		}
		return r, err
	}
	book := &playbook.Playbook{Bullets: []playbook.Bullet{{ID: "a-00001", Section: "S",
		Content: "look twice"}}}
	hash, err := books.Put(t.Context(), book)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := read(hash); err != nil || r.Count != 1 || len(r.Bullets) != 1 ||
		r.Bullets[0] != book.Bullets[0] || r.Ref != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := read(""); err != nil || r.Bullets == nil || r.Count != 0 {
		t.Errorf("the empty playbook: %+v, %v", r, err)
	}
	if _, err := read(strings.Repeat("0", 64)); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("a missing version: %v", err)
	}
	for range 20 {
		book, _ = playbook.Apply(book, []ace.Operation{{Type: ace.OpAdd,
			Content: strings.Repeat("x", 4000) + book.Hash()}})
	}
	if hash, err = books.Put(t.Context(), book); err != nil {
		t.Fatal(err)
	}
	r, err := read(hash)
	if err != nil || r.Bullets != nil || r.Ref == nil || r.Count != 21 {
		t.Fatalf("%+v, %v", r, err)
	}
	content, err := artifacts.Get(t.Context(), *r.Ref, 1<<20)
	var bullets []playbook.Bullet
	if err != nil || json.Unmarshal(content, &bullets) != nil || len(bullets) != 21 {
		t.Errorf("%d bullets, %v", len(bullets), err)
	}
}
