package activities

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"acescope/engine/ace"
)

func TestReadBreakdown(t *testing.T) {
	two := []ace.BreakdownTask{{ID: "a", Title: "first", Description: "do it"},
		{ID: "t2", Description: "then that"}}
	plain := `{"outline": "o", "tasks": [{"id": "a", "title": "first", "description": "do it"}, "then that"]}`
	for text, want := range map[string]ace.Breakdown{
		plain: {Outline: "o", Tasks: two},
		"Here it is:\n```json\n" + plain + "\n```":                 {Outline: "o", Tasks: two},
		"{not JSON} but " + plain + " so there":                    {Outline: "o", Tasks: two},
		`{"tasks": [{"description": "old"}]} no, better: ` + plain: {Outline: "o", Tasks: two},
		`[{"task": "x", "files": ["a.go"]}]`: {Tasks: []ace.BreakdownTask{{ID: "t1",
			Title: "x", Details: map[string]any{"files": []any{"a.go"}}}}},
		`{"tasks": [{"id": 7, "instruction": {"do": 1}}], "outline": ["a"]}`: {Outline: `["a"]`,
			Tasks: []ace.BreakdownTask{{ID: "7", Description: `{"do":1}`}}},
	} {
		got, err := readBreakdown(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n%v %+v", text, err, got)
		}
	}
	for _, text := range []string{"", "no", "{", `{"tasks": []}`, `{"tasks": "none"}`, `{"tasks": [{}]}`,
		`{"tasks": [null]}`, strings.Repeat("{", 100_000),
		`{"tasks": [` + strings.Repeat(`"x",`, maxTasks) + `"x"]}`, strings.Repeat("x", maxBreakdown+1)} {
		if b, err := readBreakdown(text); err == nil {
			t.Errorf("%.80s gives %+v", text, b)
		}
	}
}

func TestBreakdownText(t *testing.T) {
	a := agents{inputs: &inputs{}}
	if _, err := a.breakdownText(t.Context(),
		ace.BreakdownInput{Phase: "dream", PlanContent: "x"}); err == nil ||
		!strings.Contains(err.Error(), "use scaffold or implement") {
		t.Error(err)
	}
	if _, err := a.breakdownText(t.Context(), ace.BreakdownInput{Phase: "scaffold"}); err == nil {
		t.Error("empty input accepted")
	}
	text, err := a.breakdownText(t.Context(), ace.BreakdownInput{Phase: "scaffold", PlanContent: "the plan",
		RequirementsContent: "the needs"})
	if err != nil || !strings.Contains(text, "the plan") || !strings.Contains(text, "the needs") {
		t.Errorf("%v: %s", err, text)
	}
}

// FuzzBreakdown checks that the tasks of any answer are bounded, have an ID and are not empty.
func FuzzBreakdown(f *testing.F) {
	f.Add(`{"outline": "o", "tasks": [{"id": "a", "title": "first", "description": "do it"}, "then that"]}`)
	f.Add("```json\n[{\"task\": \"x\", \"files\": [1, null, {}]}]\n``` {\"tasks\": 3} [")
	f.Add(`{"tasks": [[], {}, 3, null, "x"]} trailing {`)
	f.Fuzz(func(t *testing.T, text string) {
		b, err := readBreakdown(text)
		if err != nil {
			return
		}
		if len(b.Tasks) == 0 || len(b.Tasks) > maxTasks {
			t.Fatalf("%d tasks", len(b.Tasks))
		}
		data, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		var again ace.Breakdown
		if err := json.Unmarshal(data, &again); err != nil {
			t.Fatal(err)
		}
		for _, task := range again.Tasks {
			if said, err := taskText(task); err != nil || said == "" || task.ID == "" {
				t.Errorf("%+v: %q, %v", task, said, err)
			}
		}
	})
}
