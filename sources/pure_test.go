package sources

import (
	"errors"
	"fmt"
	"testing"

	"acescope/engine/ace"
	"acescope/sources/cluster"
)

func TestQueryErrorAt(t *testing.T) {
	for _, c := range []struct {
		query, message string
		want           int
	}{
		{`ExitStatus = = "wrong"`, `invalid query: malformed SQL query: syntax error at position 42`, 13},
		{`ExitStatus = "wrong" AND AND x`, `syntax error at position 55 near 'AND'`, 25},
		{`a = 1 AND Color = "red"`, `invalid query: invalid search attribute: Color`, 10},
		{`Color = "red"`, `invalid query: column name 'Color' is not defined`, 0},
		{`x`, `something else`, -1},
		{``, `syntax error at position 9999`, 0},
		{`ab`, `syntax error at position 99999999999999999999`, -1},
	} {
		if got := cluster.QueryErrorAt(c.query, errors.New(c.message)); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.query, c.message, got, c.want)
		}
	}
}

func FuzzQueryErrorAt(f *testing.F) {
	f.Add("a = b", "syntax error at position 30 near 'b'")
	f.Fuzz(func(t *testing.T, query, message string) {
		if at := cluster.QueryErrorAt(query, errors.New(message)); at < -1 || at > len(query) {
			t.Fatalf("%q, %q: %d", query, message, at)
		}
	})
}

func TestProblemsAreBounded(t *testing.T) {
	s := NewFeeds()
	for i := range 3 * cluster.MaxProblems {
		s.Link.Report(fmt.Sprint(i))
	}
	p := s.Link.Status().Problems
	if len(p) != cluster.MaxProblems || p[len(p)-1].Text != fmt.Sprint(3*cluster.MaxProblems-1) {
		t.Errorf("%d problems, the last is %+v", len(p), p[len(p)-1])
	}
}

// TestStatusDoesNotChange holds a status while the link changes.
func TestStatusDoesNotChange(t *testing.T) {
	s := NewFeeds()
	s.Link.SetHealth("a", true, "fine")
	before := s.Link.Status()
	s.Link.SetHealth("a", false, "broken")
	s.Link.SetHealth("b", true, "fine")
	s.Link.Report("x")
	if len(before.Health) != 1 || before.Health[0].State != cluster.OK || len(before.Problems) != 0 {
		t.Errorf("the status changed: %+v", before)
	}
	if now := s.Link.Status(); len(now.Health) != 2 || now.Seq <= before.Seq {
		t.Errorf("%+v", now)
	}
}

func TestChangedHoldsOneToken(t *testing.T) {
	s := NewFeeds()
	for range 5 {
		s.Link.Report("x")
	}
	<-s.Link.Changed()
	select {
	case <-s.Link.Changed():
		t.Error("two tokens")
	default:
	}
}

func TestSkillState(t *testing.T) {
	for want, inv := range map[ace.CallState]ace.Invocation{
		ace.CallOK: {Accepted: true, OK: true}, ace.CallFailed: {Accepted: true},
		ace.CallDenied: {OK: true}} {
		if got := (ace.Call{Invocation: inv}).State(); got != want {
			t.Errorf("%+v: %s", inv, got)
		}
	}
	if got := (ace.Call{Invocation: ace.Invocation{Accepted: true},
		Pending: true}).State(); got != ace.CallPending {
		t.Error(got)
	}
}
