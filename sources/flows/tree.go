package flows

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"acescope/engine/flow"
)

// Step is a step of a flow in a run, or one of its executions in a loop. A step without a status has not
// begun.
type Step struct {
	flow.StepState
	// Label is the path within the enclosing step: "build", or "3/build" in the iteration 3 of a loop.
	Label string `json:"label"`
	Depth int    `json:"depth"`
	// Earlier counts older iterations that are not listed. Such a step has no other fields but Label and
	// Depth.
	Earlier int        `json:"earlier_iterations,omitempty"`
	Op      *Operation `json:"operation,omitempty"` // the last operation that the step requested
}

// Begun reports whether the step has begun.
func (s *Step) Begun() bool { return s.Status != "" }

// Waits reports whether the step waits for an approval.
func (s *Step) Waits() bool { return s.Status == flow.StepWaiting && s.Approval }

// ShownIterations bounds the iterations of a loop that screens list: the newest, and those that are open or
// failed.
const ShownIterations = 20

// tree lists the steps of a run in the order of its flow.
type tree struct {
	state      map[string]*flow.StepState // by path, the newest
	iterations map[string][]int           // by path of the loop, ascending
	// paths of iterations and branches with steps that are open or have failed
	open      map[string]bool
	most      int // iterations of a loop, 0 for all
	operation func(id string) *Operation
	out       []Step
}

// stepTree lists the steps of a run in the order of the flow: those of the state, and those that have not
// begun. A nil flow lists those of the state in the order in which they began. most bounds the iterations of
// a loop; 0 lists all.
func stepTree(f *flow.Flow, s *flow.State, most int, operation func(id string) *Operation) []Step {
	t := &tree{state: map[string]*flow.StepState{}, iterations: map[string][]int{}, open: map[string]bool{},
		most:      most,
		operation: operation}
	for i := range s.Steps {
		t.state[s.Steps[i].Path] = &s.Steps[i]
		t.index(&s.Steps[i])
	}
	for path, list := range t.iterations {
		slices.Sort(list)
		t.iterations[path] = slices.Compact(list)
	}
	if f != nil {
		t.block(f.Steps, "", "", 0, false)
		return t.out
	}
	for i := range s.Steps {
		t.add(&s.Steps[i], s.Steps[i].Path, 0)
	}
	return t.out
}

// index notes the iterations that a step is in.
func (t *tree) index(s *flow.StepState) {
	for at := 0; ; {
		i := strings.IndexByte(s.Path[at:], '/')
		if i < 0 {
			return
		}
		segment, before := s.Path[at:at+i], max(at-1, 0)
		if n, err := strconv.Atoi(segment); err == nil && at > 0 { // IDs and branches begin with a letter
			t.iterations[s.Path[:before]] = append(t.iterations[s.Path[:before]], n)
		}
		at += i + 1
		if !s.Status.Over() || s.Status == flow.StepFailed {
			t.open[s.Path[:at-1]] = true
		}
	}
}

func (t *tree) add(s *flow.StepState, name string, depth int) {
	step := Step{StepState: *s, Label: name, Depth: depth}
	if s.Operation != "" {
		step.Op = t.operation(s.Operation)
	}
	t.out = append(t.out, step)
}

// block lists a block. Of an iteration that has ended, begun is set: it lists only steps that have begun.
func (t *tree) block(list []*flow.Step, scope, prefix string, depth int, begun bool) {
	for _, s := range list {
		path := flow.JoinPath(scope, s.ID)
		state := t.state[path]
		if state == nil {
			if begun {
				continue
			}
			state = &flow.StepState{Path: path, Fact: flow.Fact{Kind: s.Do.Name()}}
		}
		t.add(state, prefix+s.ID, depth)
		for _, b := range s.Do.Blocks() {
			t.inner(b, state, scope, prefix, depth+1, begun)
		}
	}
}

// inner lists the steps of a block of a step.
func (t *tree) inner(b flow.Block, state *flow.StepState, scope, prefix string, depth int, begun bool) {
	path := state.Path
	switch b.Paths {
	case flow.SamePaths:
		t.block(b.Steps, scope, prefix, depth, begun || state.Status.Over() && state.Status != "" &&
			state.Detail != b.Name)
	case flow.BranchPaths:
		t.block(b.Steps, flow.JoinPath(path, b.Name), b.Name+"/", depth, begun)
	case flow.IterationPaths:
		t.loop(b, state, depth)
	case flow.FlowPaths:
		t.block(b.Steps, path, "", depth, begun)
	}
}

// loop lists the iterations of a loop, or the steps of its block if none has begun.
func (t *tree) loop(b flow.Block, state *flow.StepState, depth int) {
	all := t.iterations[state.Path]
	if len(all) == 0 {
		if state.Status == "" || !state.Status.Over() {
			t.block(b.Steps, flow.JoinPath(state.Path, "0"), "", depth, false)
		}
		return
	}
	first := 0
	if t.most > 0 {
		first = max(len(all)-t.most, 0)
	}
	shown := slices.DeleteFunc(slices.Clone(all[:first]),
		func(n int) bool { return !t.open[t.iteration(state, n)] })
	if hidden := max(all[len(all)-1]+1, state.Done) - len(all) + first - len(shown); hidden > 0 {
		t.out = append(t.out, Step{Label: "earlier iterations", Depth: depth, Earlier: hidden})
	}
	running := !state.Status.Over()
	for i, n := range append(shown, all[first:]...) {
		last := i == len(shown)+len(all)-first-1
		path := t.iteration(state, n)
		t.block(b.Steps, path, strconv.Itoa(n)+"/", depth, !(running && (last || t.open[path])))
	}
}

func (t *tree) iteration(loop *flow.StepState, n int) string {
	return flow.JoinPath(loop.Path, strconv.Itoa(n))
}

// Progress returns the iterations of a loop, such as "3/10", or "" for another step.
func (s *Step) Progress() string {
	switch {
	case s.Count == 0 && s.Done == 0:
		return ""
	case s.Kind == "repeat" && s.Status.Over():
		return strconv.Itoa(s.Done)
	}
	return strconv.Itoa(s.Done) + "/" + strconv.Itoa(cmp.Or(s.Count, s.Done))
}
