package flows

import (
	"fmt"
	"strings"
	"testing"

	"acescope/engine/flow"
)

const nested = `flow: nested
steps:
  - {id: first, run: [a]}
  - if: steps.first.exit_code == 0
    then:
      - {id: yes, run: [a]}
    else:
      - {id: no, run: [a]}
  - id: each
    for_each: "[1, 2, 3]"
    steps:
      - {id: one, run: [a]}
      - {id: two, run: [a]}
  - id: sides
    parallel:
      left:
        - {id: l, run: [a]}
      right:
        - {id: r, run: [a]}
`

// drawn returns the tree of a state, a line for each step.
func drawn(t *testing.T, s flow.State, most int) string {
	t.Helper()
	f, err := flow.Parse(flow.Source{Main: "f.yaml",
		Files: map[string]string{"f.yaml": strings.ReplaceAll(nested, "yes", "good")}})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, step := range stepTree(f, &s, most, func(string) *Operation { return nil }) {
		if step.Earlier > 0 {
			step.Label = fmt.Sprint(step.Earlier, " earlier")
		}
		lines = append(lines, strings.Repeat("  ",
			step.Depth)+strings.TrimSpace(step.Label+" "+string(step.Status)+" "+step.Progress()))
	}
	return strings.Join(lines, "\n")
}

func state(lines ...string) (s flow.State) {
	for _, l := range lines {
		var path, status string
		fmt.Sscan(l, &path, &status)
		s.Steps = append(s.Steps, flow.StepState{Path: path, Fact: flow.Fact{Status: flow.Status(status)}})
	}
	return s
}

func TestTree(t *testing.T) {
	if got, want := drawn(t, flow.State{}, 0), `first
if_1
  good
  no
each
  one
  two
sides
  left/l
  right/r`; got != want {
		t.Errorf("a run that has not begun:\n%s\nwant:\n%s", got, want)
	}
	s := state("first completed", "if_1 completed", "good completed", "each running", "each/0/one completed",
		"each/0/two completed", "each/1/one failed", "each/2/one completed", "each/3/one running")
	s.Steps[1].Detail = "then"
	s.Steps[3].Count, s.Steps[3].Done = 4, 3
	if got, want := drawn(t, s, 1), `first completed
if_1 completed
  good completed
each running 3/4
  2 earlier
  1/one failed
  1/two
  3/one running
  3/two
sides
  left/l
  right/r`; got != want {
		t.Errorf("a loop:\n%s\nwant:\n%s", got, want)
	}
}
