package histories

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"acescope/engine/ace"
	"acescope/sources/runs"
)

// A fork stands behind the run that it was made from, whatever the order of the list.
func TestLineageOrder(t *testing.T) {
	start := time.Unix(1000, 0)
	run := func(id, runID, of, ofRun string, at int) runs.Run {
		r := runs.Run{WorkflowID: id, RunID: runID, Start: start.Add(time.Duration(at) * time.Second)}
		if of != "" {
			r.Fork = &ace.Forked{WorkflowID: of, RunID: ofRun}
		}
		return r
	}
	nodes := lineageOf([]runs.Run{
		run("ace/q~f10", "i", "ace/q", "b", 9), run("ace/q~f4", "g", "ace/q~f1", "c", 6),
		run("ace/q~f2", "d", "ace/q", "b", 3),
		run("ace/q~f1", "c", "ace/q", "a", 2), run("ace/q", "a", "", "", 0), run("ace/q", "b", "", "", 1),
		run("ace/q~f3", "e", "ace/q~f2", "gone", 4), run("ace/q~f5", "h", "ace/x", "gone", 7),
		run("ace/q~f6", "j", "ace/q~f6", "j", 8),
	})
	var got []string
	for _, n := range nodes {
		got = append(got, fmt.Sprintf("%d%s%v", n.Depth, n.Run.RunID, n.Last))
	}
	want := "0afalse 1ctrue 2gtrue 0bfalse 1dfalse 2etrue 1itrue 0hfalse 0jtrue"
	if strings.Join(got, " ") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, " "), want)
	}
}

// A run that was reset stands behind the one that it was reset from, a fork too.
func TestLineageOfResets(t *testing.T) {
	nodes := lineageOf([]runs.Run{{WorkflowID: "ace/q", RunID: "a"},
		{WorkflowID: "ace/q", RunID: "b", ResetFrom: "a", Start: time.Unix(9, 0)},
		{WorkflowID: "ace/q~f1", RunID: "c", Fork: &ace.Forked{WorkflowID: "ace/q", RunID: "b"}},
		{WorkflowID: "ace/q~f1", RunID: "d", ResetFrom: "c",
			Fork: &ace.Forked{WorkflowID: "ace/q", RunID: "b"}, Start: time.Unix(9, 0)},
		{WorkflowID: "ace/q~f2", RunID: "e", ResetFrom: "gone"}})
	var got []string
	for _, n := range nodes {
		got = append(got, fmt.Sprintf("%d%s<%d", n.Depth, n.Run.RunID, n.Original))
	}
	if all := strings.Join(got, " "); all != "0a<-1 1b<0 2c<1 3d<2 0e<-1" {
		t.Error(all)
	}
}

// Forks whose memos name each other as originals are shown, without an original.
func TestLineageOfACycle(t *testing.T) {
	run := func(id, of string) runs.Run {
		return runs.Run{WorkflowID: "ace/q~f" + id, RunID: id, Fork: &ace.Forked{WorkflowID: "ace/q~f" + of,
			RunID: of}}
	}
	nodes := lineageOf([]runs.Run{run("1", "2"), run("2", "3"), run("3", "1"), run("4", "3"), run("5", "5")})
	var got []string
	for _, n := range nodes {
		got = append(got, fmt.Sprintf("%d%s<%d", n.Depth, n.Run.RunID, n.Original))
	}
	if all := strings.Join(got, " "); all != "01<-1 13<0 22<1 24<1 05<-1" {
		t.Error(all)
	}
}

// The effect of a fork compares its outcome with that of its original.
func TestEffects(t *testing.T) {
	yes, no := true, false
	of := func(exit ace.Status, answer string, correct *bool) *LineageNode {
		n := &LineageNode{Run: runs.Run{Status: exit}}
		if exit == ace.Completed {
			n.Outcome = &Outcome{answer, correct}
		}
		return n
	}
	right, wrong, unjudged := of(ace.Completed, "1", &yes), of(ace.Completed, "2", &no),
		of(ace.Completed, "1", nil)
	failed, running, cancelled := of(ace.Failed, "", nil), of(ace.Running, "", nil), of(ace.Canceled, "", nil)
	for i, c := range []struct {
		was, is *LineageNode
		want    Effect
	}{
		{wrong, right, EffectBetter}, {right, wrong, EffectWorse}, {failed, wrong, EffectBetter},
		{right, failed, EffectWorse},
		{failed, unjudged, EffectBetter}, {unjudged, failed, EffectWorse}, {failed, failed, EffectSame},
		{right, right, EffectSame}, {wrong, of(ace.Completed, "3", &no), EffectOther},
		{unjudged, wrong, EffectOther}, {unjudged, right, EffectSame},
		{right, running, EffectUnknown}, {cancelled, right, EffectUnknown},
		{&LineageNode{Run: runs.Run{Status: ace.Completed}}, right, EffectUnknown},
	} {
		if got := effectOf(c.was, c.is); got != c.want {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
}
