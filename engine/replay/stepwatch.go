package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"acescope/engine/ace"
)

// Watch follows one value through a run. It may be used by several goroutines.
//
// An expression names a value by its path ("phase", "usage.cost_usd",
// "skills.lookup.calls"), all below a path ("skills.lookup"), a bullet by its id, or a
// piece of the folded state by a JSON pointer ("/delta/operations/0/fate").
//
// How a change is found: tool events change nothing but what is said of skills, so that
// for other values only the few events that tell of more are folded; the number of all
// calls only grows, so that the checkpoints are searched for it by halves; of other values
// every event that says something is folded, once: what was found is kept.
type Watch struct {
	Expr string

	s    *Stepper
	get  func(*mark) json.RawMessage
	over []int // positions that can change it, ascending
	grow bool  // it never goes back to what it was

	mu    sync.Mutex
	known map[int][]int // changes by stretch between two checkpoints
}

// Seen is a value at an event that changed it.
type Seen struct {
	Position int             `json:"position"`
	EventID  int64           `json:"event_id"`
	Before   json.RawMessage `json:"before,omitempty"`
	After    json.RawMessage `json:"after,omitempty"`
}

// Watch makes a watch of an expression. It fails where nothing in the run ever has such a
// value.
func (s *Stepper) Watch(expr string) (*Watch, error) {
	w := &Watch{Expr: expr, s: s, known: map[int][]int{}, over: s.steps}
	if strings.HasPrefix(expr, "/") {
		keys := pointer(expr)
		w.get = func(m *mark) json.RawMessage { return m.pointed(keys) }
		if keys[0] == "skills" || s.About.WorkflowType == ace.ExperimentWorkflow {
			w.over = s.facts
		}
		return w, w.check(nil)
	}
	names := s.names()
	if !slices.ContainsFunc(names, func(n string) bool { return within(n, expr) }) && slices.Contains(names, pathBullet+expr) {
		expr = pathBullet + expr
	}
	w.get = func(m *mark) json.RawMessage { return below(m.values(), expr) }
	if strings.HasPrefix(expr, "skills") || s.About.WorkflowType == ace.ExperimentWorkflow {
		w.over = s.facts
	}
	w.grow = expr == pathTotal
	return w, w.check(names)
}

// WatchError says that a run has no such value.
type WatchError struct {
	Expr  string
	Names []string // that there are
}

func (e *WatchError) Error() string {
	text := fmt.Sprintf("nothing in this run is called %q", e.Expr)
	if len(e.Names) > 0 {
		text += "; there are: " + strings.Join(e.Names, ", ")
	}
	return text
}

// maxNames bounds the names in an error.
const maxNames = 40

// check refuses what never has a value.
func (w *Watch) check(names []string) error {
	if slices.ContainsFunc(names, func(n string) bool { return within(n, w.Expr) || n == pathBullet+w.Expr }) {
		return nil
	}
	if _, ok := w.Next(0, true, nil); ok {
		return nil
	}
	if names == nil {
		names = []string{"/phase", "/skills", "/delta", "/experiment", "/plan", "/trajectory_id", "/bullet_ids"}
	}
	return &WatchError{Expr: w.Expr, Names: names[:min(len(names), maxNames)]}
}

// Names lists what can be watched, in the order of the fold.
func (s *Stepper) Names() []string { return s.names() }

// names lists the paths that the checkpoints and the end have.
func (s *Stepper) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]bool{}
	list := []string{}
	add := func(m *mark) {
		for _, v := range m.values() {
			if !seen[v.path] {
				seen[v.path] = true
				list = append(list, v.path)
			}
		}
	}
	add(s.seek(len(s.events)))
	for _, m := range s.checks {
		add(m)
	}
	for _, pos := range s.steps[:min(len(s.steps), maxChecks)] {
		add(s.seek(pos))
	}
	return list
}

// within tells whether a path is the expression or lies below it.
func within(path, expr string) bool {
	return path == expr || strings.HasPrefix(path, expr) && path[len(expr)] == '.'
}

// below is a value; of several below a path all of them as an object.
func below(all []value, expr string) json.RawMessage {
	some := map[string]any{}
	for _, v := range all {
		if v.path == expr {
			return rawOf(v.v)
		}
		if within(v.path, expr) {
			some[v.path[len(expr)+1:]] = v.v
		}
	}
	if len(some) == 0 {
		return nil
	}
	return rawOf(some)
}

// pointer takes a JSON pointer (RFC 6901) apart.
func pointer(expr string) []string {
	keys := strings.Split(expr[1:], "/")
	for i, k := range keys {
		keys[i] = strings.ReplaceAll(strings.ReplaceAll(k, "~1", "/"), "~0", "~")
	}
	return keys
}

// pointed is what a JSON pointer names in the frame at a mark, nil where there is nothing.
func (m *mark) pointed(keys []string) json.RawMessage {
	raw, err := json.Marshal(m.piece(keys[0]))
	if err != nil || string(raw) == "null" || string(raw) == `""` {
		return nil
	}
	for _, key := range keys[1:] {
		if raw = child(raw, key); raw == nil {
			return nil
		}
	}
	return raw
}

// piece is a field of a frame, by its JSON name.
func (m *mark) piece(name string) any {
	if m.experiment != nil {
		if name == "experiment" {
			return m.experiment.Progress
		}
		return nil
	}
	switch name {
	case "phase":
		p := m.task.CurrentPhase()
		p.ExitStatus = m.task.ExitStatus()
		return p
	case "skills":
		return m.task.SkillUsage()
	case "delta":
		return m.task.PlaybookDelta()
	case "plan":
		return m.task.Plan
	case "trajectory_id":
		return m.task.TrajectoryID
	case "bullet_ids":
		return m.task.BulletIDs
	}
	return nil
}

func child(raw json.RawMessage, key string) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil {
		return object[key]
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(list) {
			return list[i]
		}
	}
	return nil
}

// at is the value at a position.
func (w *Watch) at(pos int) json.RawMessage {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.get(w.s.seek(pos))
}

// At is the value as of a position, nil where there is none.
func (w *Watch) At(pos int) json.RawMessage { return w.at(pos) }

// Next is the first change after a position, or with forward false the last one before
// it; false where there is none. Stop, where it is not nil, ends a long search.
func (w *Watch) Next(pos int, forward bool, stop <-chan struct{}) (Seen, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := len(w.s.checks) - 1
	from := sort.Search(last+1, func(i int) bool { return w.s.checks[i].at >= pos }) - 1
	by := -1
	if forward {
		by = 1
		from = sort.Search(last+1, func(i int) bool { return w.s.checks[i].at > pos }) - 1
	}
	for i := max(from, 0); i >= 0 && i <= last; i += by {
		select {
		case <-stop:
			return Seen{}, false
		default:
		}
		if w.grow {
			if i = w.leap(i, by); i < 0 || i > last {
				return Seen{}, false
			}
		}
		if at, ok := beside(w.changes(i), pos, forward); ok {
			return Seen{Position: at, EventID: w.s.EventID(at), Before: w.at(at - 1), After: w.at(at)}, true
		}
	}
	return Seen{}, false
}

// leap is the first stretch from i on in which a value changes that only grows: at the
// begin of all stretches up to it, it is what it is at the begin of stretch i.
func (w *Watch) leap(i, by int) int {
	last := len(w.s.checks) - 1
	end := func(i int) string { // at the end of a stretch
		if i == last {
			return string(w.at(w.s.Len()))
		}
		return string(w.checked(i + 1))
	}
	if by > 0 {
		begin := string(w.checked(i))
		return i + sort.Search(last-i+1, func(n int) bool { return end(i+n) != begin })
	}
	now := end(i)
	return i - sort.Search(i+1, func(n int) bool { return string(w.checked(i-n)) != now })
}

// checked is the value at a checkpoint.
func (w *Watch) checked(i int) json.RawMessage {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.get(w.s.checks[i])
}

// changes lists the positions behind checkpoint i, up to the next one, that change the
// value.
func (w *Watch) changes(i int) []int {
	if list, ok := w.known[i]; ok {
		return list
	}
	from, to := w.s.checks[i].at, w.s.Len()
	if i+1 < len(w.s.checks) {
		to = w.s.checks[i+1].at
	}
	list := []int{}
	var before json.RawMessage
	for n, at := 0, sort.SearchInts(w.over, from+1); at < len(w.over) && w.over[at] <= to; n, at = n+1, at+1 {
		if n == 0 {
			before = w.at(from)
		}
		if now := w.at(w.over[at]); string(now) != string(before) {
			list = append(list, w.over[at])
			before = now
		}
	}
	w.known[i] = list
	return list
}
