package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"acescope/engine/ace"
)

// Values of [Divergence.What].
const (
	WhatInput  = "input"
	WhatResult = "result"
	WhatStatus = "status"
	WhatError  = "error"
	WhatOnly   = "only" // only one run has the step
	WhatOrder  = "order"
	WhatFacts  = "facts" // duration or attempts, with AllFields
	WhatName   = "name"
)

// Divergence describes one difference. A value is nil and an event 0 on the side that lacks it.
type Divergence struct {
	Pair   int             `json:"pair"` // 1-based
	What   string          `json:"what"`
	Step   string          `json:"step"`
	EventA int64           `json:"event_a,omitempty"`
	EventB int64           `json:"event_b,omitempty"`
	RunA   string          `json:"run_a,omitempty"`
	RunB   string          `json:"run_b,omitempty"`
	Path   string          `json:"path,omitempty"`
	A      json.RawMessage `json:"a,omitempty"`
	B      json.RawMessage `json:"b,omitempty"`
	Text   string          `json:"text"` // a sentence
}

func (d *Diff) findFirst() {
	for i := range d.Pairs {
		if !Differs(d.Pairs[i].Status) {
			continue
		}
		if d.First == nil {
			v := d.describe(i, false)
			d.First = &v
		}
		if v := d.describe(d.callOf(i), true); v.What != WhatInput {
			d.FirstResult = &v
			return
		}
	}
}

// callOf returns the first differing tool call of the session at i, which explains the session's result, or i
// without such a call.
func (d *Diff) callOf(i int) int {
	if p := &d.Pairs[i]; p.A == nil || p.B == nil || !p.A.hasCalls && !p.B.hasCalls {
		return i
	}
	for j := i + 1; j < len(d.Pairs) && d.Pairs[j].Step().Kind == KindTool; j++ {
		if Differs(d.Pairs[j].Status) && d.describe(j, true).What != WhatInput {
			return j
		}
	}
	return i
}

// describe describes the difference of pair i. If resultFirst is set, a difference of the result takes
// precedence over one of the input.
func (d *Diff) describe(i int, resultFirst bool) Divergence {
	p := &d.Pairs[i]
	v := Divergence{Pair: i + 1, Step: p.Step().Key}
	if p.A != nil {
		v.EventA, v.RunA = p.A.Event, d.A.RunID(p.A)
	}
	if p.B != nil {
		v.EventB, v.RunB = p.B.Event, d.B.RunID(p.B)
	}
	change := func(what string, list []Change) {
		c := list[0]
		v.What, v.Path, v.A, v.B = what, c.Path, c.A, c.B
	}
	switch {
	case p.A == nil || p.B == nil:
		v.What = WhatOnly
	case !resultFirst && len(p.Input) > 0:
		change(WhatInput, p.Input)
	case p.A.Status != p.B.Status:
		v.What = WhatStatus
	case p.A.error != p.B.error:
		v.What = WhatError
	case len(p.Result) > 0:
		change(WhatResult, p.Result)
	case len(p.Input) > 0:
		change(WhatInput, p.Input)
	case p.A.Name != p.B.Name:
		v.What = WhatName
	case p.Status == Moved:
		v.What = WhatOrder
	default:
		v.What = WhatFacts
	}
	v.Text = d.sentence(i, v)
	return v
}

func (d *Diff) sentence(i int, v Divergence) string {
	p := &d.Pairs[i]
	if v.What == WhatOnly {
		return d.onlyOne(i)
	}
	where := fmt.Sprintf("%s (event %d in A, %d in B)", v.Step, v.EventA, v.EventB)
	switch v.What {
	case WhatStatus:
		return fmt.Sprintf("%s ended differently: %s in A, %s in B.", where, p.A.outcome(), p.B.outcome())
	case WhatError:
		return fmt.Sprintf("%s failed with different errors: %s in A, %s in B.", where, brief(p.A.Error),
			brief(p.B.Error))
	case WhatOrder:
		return fmt.Sprintf("%s is in another place.", where)
	case WhatName:
		return fmt.Sprintf("%s is %s in A, %s in B.", where, brief(p.A.Name), brief(p.B.Name))
	case WhatFacts:
		return fmt.Sprintf("%s took %.0f ms at attempt %d in A, %.0f ms at attempt %d in B.",
			where, p.A.DurationMS, p.A.Attempt, p.B.DurationMS, p.B.Attempt)
	}
	what, changes := "input differs", len(p.Input)
	if v.What == WhatResult {
		what, changes = "result differs", len(p.Result)
	}
	if v.Path != "" {
		what += " at " + v.Path
	}
	more := ""
	if changes > 1 {
		more = ", and in " + ace.Count(changes-1+p.More, "more place")
	}
	return fmt.Sprintf("%s: %s: %s in A, %s in B%s.", where, what, shown(v.A), shown(v.B), more)
}

// onlyOne names the side that has the step, and the step with which the other side continues.
func (d *Diff) onlyOne(i int) string {
	p := &d.Pairs[i]
	has, other, s := "A", "B", p.A
	if s == nil {
		has, other, s = "B", "A", p.B
	}
	text := fmt.Sprintf("%s (event %d) is only in %s", s.Key, s.Event, has)
	for _, next := range d.Pairs[i+1:] {
		o := next.B
		if has == "B" {
			o = next.A
		}
		if o != nil {
			return fmt.Sprintf("%s; %s continues with %s (event %d).", text, other, o.Key, o.Event)
		}
	}
	return text + "; " + other + " ends before it."
}

func (d *Diff) addForkNote(name string, s *builder) {
	f := s.about.Fork
	if f == nil {
		return
	}
	of, other := f.WorkflowID, &d.A
	if name == "A" {
		other = &d.B
	}
	if slices.Contains(other.RunIDs, f.RunID) {
		of = map[string]string{"A": "B", "B": "A"}[name]
	}
	var taken []string
	for i := range s.steps {
		if st := &s.steps[i]; st.Taken && st.Kind == KindActivity {
			taken = append(taken, st.Name)
		}
	}
	text := fmt.Sprintf("%s was forked from %s at event %d; ", name, of, f.Event)
	if len(taken) == 0 {
		text += "it reuses no steps."
	} else {
		text += "reused steps were not executed again, and their usage belongs to the original: " +
			strings.Join(taken, ", ") + "."
	}
	d.Notes = append(d.Notes, text)
}

func (s *Step) outcome() string {
	if s.Error != "" {
		return s.Status + " (" + brief(s.Error) + ")"
	}
	return s.Status
}

func shown(raw json.RawMessage) string {
	if raw == nil {
		return "(missing)"
	}
	return brief(string(raw))
}

const maxBrief = 72

// brief returns the beginning of a text in one line, without control characters.
func brief(s string) string {
	words := strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	runes := []rune(strings.Join(words, " "))
	if len(runes) > maxBrief {
		return string(runes[:maxBrief]) + "…"
	}
	return string(runes)
}

func (d *Diff) addNotes(sa, sb *builder) {
	note := func(format string, args ...any) { d.Notes = append(d.Notes, fmt.Sprintf(format, args...)) }
	a, b := &d.A, &d.B
	if len(a.RunIDs) > 0 && len(a.RunIDs) == len(b.RunIDs) && a.RunIDs[0] != "" &&
		a.RunIDs[0] == b.RunIDs[0] &&
		a.WorkflowID == b.WorkflowID {
		note("A and B are the same run, %s.", a.RunIDs[0])
	}
	if a.Type != b.Type {
		note("The workflow types differ, %s and %s: only steps of the same kind and name are aligned.",
			cmp.Or(a.Type, "(unknown)"), cmp.Or(b.Type, "(unknown)"))
	}
	d.addSideNotes("A", sa)
	d.addSideNotes("B", sb)
	if n := d.Counts[Unreadable]; n > 0 {
		note("Payloads of %s are encoded and their bytes differ: whether their contents differ is unknown.",
			ace.Count(n, "step"))
	}
}

func (d *Diff) addSideNotes(name string, s *builder) {
	note := func(format string, args ...any) { d.Notes = append(d.Notes, fmt.Sprintf(format, args...)) }
	a := s.about
	switch {
	case a.Events == 0:
		note("%s has no events.", name)
	case a.Partial != "":
		note("The history of %s is incomplete (%s): the comparison ends there.", name, a.Partial)
	case a.Open && a.Type != "":
		note("%s is still running: the comparison ends with its last event.", name)
	}
	d.addForkNote(name, s)
	if a.Before != "" {
		note("Runs before the first run of %s are missing: %s.", name, a.Before)
	}
	if s.clockBack > 0 {
		note("The clock of %s went back %s: negative durations are shown as 0.", name,
			ace.Count(s.clockBack, "time"))
	}
	if a.Runs > 1 {
		note("%s is a chain of %d runs, compared as one.", name, a.Runs)
	}
	for _, n := range s.notes {
		note("%s: %s.", name, n)
	}
}
