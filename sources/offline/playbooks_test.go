package offline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/sources/historytest"
	"acescope/sources/offline"
)

// task returns the history of a task that merged operations as version seq of a branch.
func task(t *testing.T, book *playbook.Playbook, name string, seq int, ops ...ace.Operation) (offline.Source,
	*playbook.Playbook) {
	t.Helper()
	after, done := playbook.Apply(book, ops)
	b := historytest.New(ace.TaskWorkflow, ace.TaskInput{TaskID: name, Prompt: "why", Branch: "line"})
	began := b.Events[0].GetWorkflowExecutionStartedEventAttributes()
	began.WorkflowId, began.OriginalExecutionRunId = ace.WorkflowID(name), "run-"+name
	b.Activity(time.Millisecond, time.Millisecond, ace.PhaseCurator.Activity(), nil,
		ace.CuratorResult{Accepted: ops,
			Rejected: []ace.Operation{{Type: ace.OpAdd, Content: "turned down",
				Outcome: ace.OutcomeRejected}}})
	b.Activity(time.Millisecond, time.Millisecond, ace.PhasePersist.Activity(), nil,
		ace.PersistResult{PlaybookBefore: book.Hash(),
			PlaybookAfter: after.Hash(), Operations: done, Bullets: len(after.Bullets), Seq: seq})
	b.Close(time.Millisecond, ace.TaskResult{TaskID: name, ExitStatus: ace.ExitSuccess})
	return source(name+".json", text(t, b.Events)), after
}

func add(content string) ace.Operation {
	return ace.Operation{Type: ace.OpAdd, Section: "misc", Content: content}
}

// TestBooks checks that playbooks are rebuilt as far as the files contain all merges.
func TestBooks(t *testing.T) {
	start := &playbook.Playbook{}
	one, v1 := task(t, start, "one", 1, add("first"))
	two, v2 := task(t, v1, "two", 2, add("second"), add("first")) // a duplicate is refused
	none, _ := task(t, v2, "none", 2)
	three, v3 := task(t, v2, "three", 3, ace.Operation{Type: ace.OpTag, BulletID: v1.Bullets[0].ID,
		Metadata: map[string]int{"helpful": 1}})
	for name, c := range map[string]struct {
		files    []offline.Source
		versions int
		head     string
		short    string
	}{
		"all": {[]offline.Source{three, none, two, one}, 3, v3.Hash(), ""},
		"one is missing": {[]offline.Source{one, three}, 1, v1.Hash(),
			"rebuilt up to version 1: the files lack the history of the task that made version 2"},
		"no begin": {[]offline.Source{two, three}, 0, "",
			"cannot be rebuilt: the files lack the history of the task that made version 1"},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := load(t, c.files...)
			store, err := playbook.OpenStore(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			short, err := f.Playbooks(t.Context(), store)
			if err != nil || !strings.Contains(fmt.Sprint(short), c.short) ||
				(c.short == "") != (len(short) == 0) {
				t.Errorf("%q, %v", short, err)
			}
			list, err := store.Branches()
			if err != nil || (len(list) == 0) != (c.versions == 0) || len(list) > 0 &&
				(list[0].Versions != c.versions || list[0].Head != c.head) {
				t.Errorf("%+v, %v", list, err)
			}
		})
	}
}
