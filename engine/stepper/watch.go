package stepper

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"acescope/engine/ace"
	"acescope/engine/kind"
)

// Watch finds the changes of one value of a run. It is safe for concurrent use.
//
// An expression is the path of a value ("phase", "usage.cost_usd", "skills.look_up.calls"), a
// path prefix ("skills.look_up"), the ID of a bullet, or a JSON pointer into the frame
// ("/delta/operations/0/fate").
//
// Tool events change only skills, so a search for other values folds only the few other events. The total
// number of calls only grows, so a search for it bisects the checkpoints. Other
// searches fold every event that changes the state once and keep the result.
type Watch struct {
	Expr string

	s      *Stepper
	get    func(kind.Fold) json.RawMessage
	events []int // ascending positions that can change the value
	grows  bool  // the value never becomes an earlier value again

	mu    sync.Mutex
	known map[int][]int // changes by the checkpoint before them
}

// Seen is a value before and after an event that changed it.
type Seen struct {
	Position int             `json:"position"`
	EventID  int64           `json:"event_id"`
	Before   json.RawMessage `json:"before,omitempty"`
	After    json.RawMessage `json:"after,omitempty"`
}

// Watch returns a watch for an expression, or a [WatchError] if the run never has the value.
func (s *Stepper) Watch(expr string) (*Watch, error) {
	w := &Watch{Expr: expr, s: s, known: map[int][]int{}, events: s.steps}
	if strings.HasPrefix(expr, "/") {
		keys := pointer(expr)
		w.get = func(f kind.Fold) json.RawMessage { return pointed(f, keys) }
		if keys[0] == "skills" || s.About.WorkflowType == ace.ExperimentWorkflow {
			w.events = s.facts
		}
		return w, w.check(nil)
	}
	names := s.Names()
	known := slices.ContainsFunc(names, func(n string) bool { return within(n, expr) })
	if !known && slices.Contains(names, kind.PathBullet+expr) {
		expr = kind.PathBullet + expr
	}
	w.get = func(f kind.Fold) json.RawMessage { return below(f.Values(), expr) }
	if strings.HasPrefix(expr, "skills") || s.About.WorkflowType == ace.ExperimentWorkflow {
		w.events = s.facts
	}
	w.grows = expr == kind.PathTotal
	return w, w.check(names)
}

// WatchError is the error for a value that a run never has.
type WatchError struct {
	Expr  string
	Names []string // available values
}

func (e *WatchError) Error() string {
	text := fmt.Sprintf("this run has no value named %q", e.Expr)
	if len(e.Names) > 0 {
		text += "; available: " + strings.Join(e.Names, ", ")
	}
	return text
}

// maxNames bounds the names in an error.
const maxNames = 40

// check returns a [WatchError] if the run never has the value.
func (w *Watch) check(names []string) error {
	if slices.ContainsFunc(names, func(n string) bool {
		return within(n, w.Expr) || n == kind.PathBullet+w.Expr
	}) {
		return nil
	}
	if _, ok := w.Next(0, true, nil); ok {
		return nil
	}
	if names == nil {
		names = []string{"/phase", "/skills", "/delta", "/experiment", "/session", "/run_state", "/flow",
			"/plan", "/trajectory_id", "/bullet_ids"}
	}
	return &WatchError{Expr: w.Expr, Names: names[:min(len(names), maxNames)]}
}

// Names lists the paths of the values at the checkpoints and at the end, in the order of the
// fold.
func (s *Stepper) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]bool{}
	list := []string{}
	add := func(f kind.Fold) {
		for _, v := range f.Values() {
			if !seen[v.Path] {
				seen[v.Path] = true
				list = append(list, v.Path)
			}
		}
	}
	add(s.seek(len(s.events)))
	for _, m := range s.checks {
		add(m.fold)
	}
	for _, pos := range s.steps[:min(len(s.steps), maxChecks)] {
		add(s.seek(pos))
	}
	return list
}

// within reports whether a path is the expression or lies below it.
func within(path, expr string) bool {
	return path == expr || strings.HasPrefix(path, expr) && path[len(expr)] == '.'
}

// below returns the value at a path, or an object of the values below it, or nil.
func below(all []kind.Value, expr string) json.RawMessage {
	some := map[string]any{}
	for _, v := range all {
		if v.Path == expr {
			return kind.RawOf(v.V)
		}
		if within(v.Path, expr) {
			some[v.Path[len(expr)+1:]] = v.V
		}
	}
	if len(some) == 0 {
		return nil
	}
	return kind.RawOf(some)
}

// pointer splits a JSON pointer (RFC 6901) into its keys.
func pointer(expr string) []string {
	keys := strings.Split(expr[1:], "/")
	for i, k := range keys {
		keys[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(k)
	}
	return keys
}

// pointed returns the value at a JSON pointer into the frame, or nil.
func pointed(f kind.Fold, keys []string) json.RawMessage {
	var answers kind.Answers
	f.Answer(&answers)
	raw := member(reflect.ValueOf(answers), keys[0])
	for _, key := range keys[1:] {
		raw = child(raw, key)
	}
	return raw
}

// member returns the field with a JSON name, or nil if it is absent or empty.
func member(of reflect.Value, name string) json.RawMessage {
	for i := range of.NumField() {
		tag := of.Type().Field(i).Tag.Get("json")
		if tag == name+",omitempty" && !of.Field(i).IsZero() {
			return kind.RawOf(of.Field(i).Interface())
		}
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

// At returns the value at a position, or nil.
func (w *Watch) At(pos int) json.RawMessage {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.get(w.s.seek(pos))
}

// Next returns the first change after a position, or the last one before it if forward is
// false. It returns false without such a change, or if stop is closed during the search.
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
		if w.grows {
			if i = w.skip(i, by); i < 0 || i > last {
				return Seen{}, false
			}
		}
		if at, ok := neighbor(w.changes(i), pos, forward); ok {
			return Seen{Position: at, EventID: w.s.EventID(at), Before: w.At(at - 1), After: w.At(at)}, true
		}
	}
	return Seen{}, false
}

// skip returns the first segment from i on in which a growing value changes. A segment is the
// part between a checkpoint and the next one.
func (w *Watch) skip(i, by int) int {
	last := len(w.s.checks) - 1
	atEnd := func(i int) string {
		if i == last {
			return string(w.At(w.s.Len()))
		}
		return string(w.atCheck(i + 1))
	}
	if by > 0 {
		start := string(w.atCheck(i))
		return i + sort.Search(last-i+1, func(n int) bool { return atEnd(i+n) != start })
	}
	end := atEnd(i)
	return i - sort.Search(i+1, func(n int) bool { return string(w.atCheck(i-n)) != end })
}

// atCheck returns the value at a checkpoint.
func (w *Watch) atCheck(i int) json.RawMessage {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.get(w.s.checks[i].fold)
}

// changes lists the positions after checkpoint i, up to the next one, that change the value.
func (w *Watch) changes(i int) []int {
	if list, ok := w.known[i]; ok {
		return list
	}
	from, to := w.s.checks[i].at, w.s.Len()
	if i+1 < len(w.s.checks) {
		to = w.s.checks[i+1].at
	}
	first, _ := slices.BinarySearch(w.events, from+1)
	end, _ := slices.BinarySearch(w.events, to+1)
	list := []int{}
	var before json.RawMessage
	if first < end {
		before = w.At(from)
	}
	for _, pos := range w.events[first:end] {
		if now := w.At(pos); string(now) != string(before) {
			list = append(list, pos)
			before = now
		}
	}
	w.known[i] = list
	return list
}
