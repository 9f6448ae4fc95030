package sources

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"acescope/engine/ace"
)

// A fork stands behind the run that it was made from, whatever the order of the list.
func TestLineageOrder(t *testing.T) {
	start := time.Unix(1000, 0)
	run := func(id, runID, of, ofRun string, at int) Run {
		r := Run{WorkflowID: id, RunID: runID, Start: start.Add(time.Duration(at) * time.Second)}
		if of != "" {
			r.Fork = &ace.Forked{WorkflowID: of, RunID: ofRun}
		}
		return r
	}
	nodes := lineageOf([]Run{
		run("ace/q~f10", "i", "ace/q", "b", 9), run("ace/q~f4", "g", "ace/q~f1", "c", 6), run("ace/q~f2", "d", "ace/q", "b", 3),
		run("ace/q~f1", "c", "ace/q", "a", 2), run("ace/q", "a", "", "", 0), run("ace/q", "b", "", "", 1),
		run("ace/q~f3", "e", "ace/q~f2", "gone", 4), run("ace/q~f5", "h", "ace/x", "gone", 7), run("ace/q~f6", "j", "ace/q~f6", "j", 8),
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
