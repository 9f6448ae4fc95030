package stepper

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"acescope/engine/ace"
)

// Watch finds the changes of one value of a run. It is safe for concurrent use.
//
// An expression is the path of a value ("phase", "usage.cost_usd", "skills.lookup.calls"), a
// path prefix ("skills.lookup"), the ID of a bullet, or a JSON pointer into the frame
// ("/delta/operations/0/fate").
//
// Tool events change only skills, so a search for other values folds only the few events that
// do more.
type Watch struct {
	Expr string

	s      *Stepper
	get    func(fold) json.RawMessage
	events []int // ascending positions that can change the value
}

// Seen is a value before and after an event that changed it.
type Seen struct {
	Position int             `json:"position"`
	EventID  int64           `json:"event_id"`
	Before   json.RawMessage `json:"before,omitempty"`
	After    json.RawMessage `json:"after,omitempty"`
}

// Watch returns a watch for an expression, or a [WatchError] if the run never has such a value.
func (s *Stepper) Watch(expr string) (*Watch, error) {
	w := &Watch{Expr: expr, s: s, events: s.steps}
	if strings.HasPrefix(expr, "/") {
		keys := pointer(expr)
		w.get = func(f fold) json.RawMessage { return pointed(f, keys) }
		if keys[0] == "skills" || s.About.WorkflowType == ace.ExperimentWorkflow {
			w.events = s.facts
		}
		return w, w.check(nil)
	}
	names := s.Names()
	known := slices.ContainsFunc(names, func(n string) bool { return within(n, expr) })
	if !known && slices.Contains(names, pathBullet+expr) {
		expr = pathBullet + expr
	}
	w.get = func(f fold) json.RawMessage { return below(f.values(), expr) }
	if strings.HasPrefix(expr, "skills") || s.About.WorkflowType == ace.ExperimentWorkflow {
		w.events = s.facts
	}
	return w, w.check(names)
}

// WatchError reports that a run never has a value.
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

// Bounds of the names in an error, and of the steps that are searched for names.
const (
	maxNames   = 40
	namedSteps = 1024
)

// check returns a [WatchError] if the run never has the value.
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

// Names lists the paths of the values at the checkpoints and at the end, in the order of the
// fold.
func (s *Stepper) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]bool{}
	list := []string{}
	add := func(f fold) {
		for _, v := range f.values() {
			if !seen[v.path] {
				seen[v.path] = true
				list = append(list, v.path)
			}
		}
	}
	add(s.seek(len(s.events)))
	for _, state := range s.checks {
		add(state)
	}
	for _, pos := range s.steps[:min(len(s.steps), namedSteps)] {
		add(s.seek(pos))
	}
	return list
}

// within reports whether a path is the expression or lies below it.
func within(path, expr string) bool {
	return path == expr || strings.HasPrefix(path, expr) && path[len(expr)] == '.'
}

// below returns the value at a path, or an object of the values below it, or nil.
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

// pointer splits a JSON pointer (RFC 6901) into its keys.
func pointer(expr string) []string {
	keys := strings.Split(expr[1:], "/")
	for i, k := range keys {
		keys[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(k)
	}
	return keys
}

// pointed returns the value at a JSON pointer into the frame, or nil.
func pointed(f fold, keys []string) json.RawMessage {
	raw, err := json.Marshal(f.piece(keys[0]))
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
	n, found := slices.BinarySearch(w.events, pos)
	rest := w.events[:n]
	if forward {
		if found {
			n++
		}
		rest = w.events[n:]
	}
	const most = 256                          // values that are read between two looks at stop
	for size := 4; len(rest) > 0; size *= 2 { // most changes are near
		select {
		case <-stop:
			return Seen{}, false
		default:
		}
		size = min(size, len(rest), most)
		part := rest[:size]
		if forward {
			rest = rest[size:]
		} else {
			part = rest[len(rest)-size:]
			rest = rest[:len(rest)-size]
		}
		if at, ok := neighbor(w.changes(part), pos, forward); ok {
			return Seen{Position: at, EventID: w.s.EventID(at), Before: w.At(at - 1), After: w.At(at)}, true
		}
	}
	return Seen{}, false
}

// changes returns those of some successive events that change the value.
func (w *Watch) changes(events []int) (list []int) {
	before := w.At(events[0] - 1)
	for _, pos := range events {
		if now := w.At(pos); string(now) != string(before) {
			list = append(list, pos)
			before = now
		}
	}
	return list
}
