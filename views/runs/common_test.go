package runs

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/theme"
)

func tasks(n int) []runs.Run {
	rows := make([]runs.Run, n)
	for i := range rows {
		rows[i] = runs.Run{TaskID: fmt.Sprint("q-", i), Type: ace.TaskWorkflow, Experiment: "e", Model: "m",
			Status: ace.Completed, Verdict: ace.Wrong, Close: time.Unix(1, 0),
			Summary: &ace.Summary{Subject: fmt.Sprint("Use formula ", i, " to answer"),
				Usage: ace.Usage{InputTokens: 1}}}
	}
	return rows
}

// TestCommonColumns checks that columns with one value are left out, and that one whose values differ comes
// back and stays until the query changes.
func TestCommonColumns(t *testing.T) {
	s := theme.NoColor().Styles(theme.Unicode())
	var c common
	look := func(query string, rows []runs.Run) []string {
		c.look(&runs.RunList{Query: query, Rows: rows}, time.Unix(2, 0), s)
		return c.shared(s.Glyphs)
	}
	want := []string{"■ completed", "✗ wrong", "e", "m", "cost $0"}
	if got := look("", tasks(2)); len(got) > 0 {
		t.Errorf("of two rows: %q", got)
	}
	if got := look("", tasks(3)); !slices.Equal(got, want) {
		t.Errorf("of three rows: %q", got)
	}
	other := tasks(4)
	other[3].Model, other[3].Summary = "n", nil // a number may be missing
	if got := look("", other); !slices.Equal(got, []string{"■ completed", "✗ wrong", "e", "cost $0"}) {
		t.Errorf("with another model: %q", got)
	}
	if got := look("", tasks(5)); slices.Contains(got, "m") {
		t.Errorf("the column went away again: %q", got)
	}
	// Until the rows of another query are read, the list holds those of the query before.
	c.look(&runs.RunList{Query: "wrong", Rows: other, Loading: true}, time.Unix(2, 0), s)
	if got := look("wrong", tasks(5)); !slices.Equal(got, want) {
		t.Errorf("of another query: %q", got)
	}
}

// TestCommonColumnsOfManyRows checks that another value in a long list is found before the whole list is
// compared again, without comparing all rows at each change.
func TestCommonColumnsOfManyRows(t *testing.T) {
	s := theme.NoColor().Styles(theme.Unicode())
	var c common
	at := time.Unix(100, 0)
	look := func(rows []runs.Run) bool {
		c.look(&runs.RunList{Rows: rows}, at, s)
		return slices.Contains(c.shared(s.Glyphs), "m")
	}
	look(tasks(2 * manyRows))
	other := tasks(2 * manyRows)
	other[2*manyRows-1].Model = "n"
	at = at.Add(compareEvery / 4)
	if !look(other) {
		t.Error("all rows were compared")
	}
	for range 3 {
		at = at.Add(compareEvery / 4)
		look(slices.Clone(other))
	}
	if look(slices.Clone(other)) {
		t.Error("the other value was not found")
	}
}

func TestLead(t *testing.T) {
	rows := tasks(4)
	lead := leadOf(rows, "")
	if lead != "Use formula " {
		t.Fatalf("lead %q", lead)
	}
	c := common{lead: lead}
	if got := c.shorten(subjectOf(rows[1])); got != "1 to answer" {
		t.Errorf("shortened to %q", got)
	}
	rows[0].Summary = &ace.Summary{Subject: "Count the primes below 100"}
	if got := leadOf(rows, lead); got != lead {
		t.Errorf("after one other subject: %q", got)
	}
	rows[1].Summary, rows[2].Summary = rows[0].Summary, rows[0].Summary
	if got := leadOf(rows, lead); got != "" {
		t.Errorf("after three other subjects: %q", got)
	}
	for i := range rows {
		rows[i].Summary = &ace.Summary{Subject: "Say hello"}
	}
	if got := leadOf(rows, ""); got != "" {
		t.Errorf("of equal subjects: %q", got)
	}
}
