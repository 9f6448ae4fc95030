package runs

import (
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
)

func TestNewest(t *testing.T) {
	for query, want := range map[string]string{
		"":                                   `ExecutionStatus != "ContinuedAsNew"`,
		`ExitStatus = "a" OR TaskId="b"`:     `(ExitStatus = "a" OR TaskId="b") AND ExecutionStatus != "ContinuedAsNew"`,
		`ExecutionStatus = "ContinuedAsNew"`: `ExecutionStatus = "ContinuedAsNew"`,
		`RunId = "r"`:                        `RunId = "r"`,
	} {
		if got := Newest(query); got != want {
			t.Errorf("%q becomes %q, want %q", query, got, want)
		}
	}
}

// A query that the server rejects is sent once, as written.
func TestNewestOfAQueryThatIsRefused(t *testing.T) {
	s := newSim(simRuns(3)...)
	s.pageErr = serviceerror.NewInvalidArgument("invalid query")
	for query, want := range map[string]int{"nonsense": 2, `RunId = nonsense`: 1} {
		s.lists = 0
		err := ListNewest(t.Context(), s, query, 0, func(Run) error { return nil })
		if err == nil || s.lists != want {
			t.Errorf("%q: %d listings, %v", query, s.lists, err)
		}
	}
}

func TestDistance(t *testing.T) {
	for pair, want := range map[string]int{"abc abc": 0, "abc ab": 1, "kitten sitting": 3, "a-e1-001 a-e1-0001": 1, "x yyy": 3} {
		a, b, _ := strings.Cut(pair, " ")
		if got := distance(a, b); got != want {
			t.Errorf("%s: %d, want %d", pair, got, want)
		}
	}
}

func TestAnd(t *testing.T) {
	if got := And(" ", "b"); got != "b" {
		t.Error(got)
	}
	if got := And("a OR c", "b"); got != "(a OR c) AND b" {
		t.Error(got)
	}
}
