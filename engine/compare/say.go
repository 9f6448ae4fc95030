package compare

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// What differs in a pair, the first of it.
const (
	WhatInput  = "input"
	WhatResult = "result"
	WhatStatus = "status"
	WhatError  = "error"
	WhatOnly   = "only" // only one has it
	WhatOrder  = "order"
	WhatFacts  = "facts" // duration or attempts, where those count
	WhatName   = "name"
)

// Divergence is a difference, named. Values are nil where that side has none; events are
// 0 where that side has no such step.
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
	Text   string          `json:"text"` // in a sentence
}

// first names the first difference, and the first in what came out.
func (d *Diff) first() {
	for i := range d.Pairs {
		if !Differs(d.Pairs[i].Status) {
			continue
		}
		if d.First == nil {
			v := d.name(i, false)
			d.First = &v
		}
		if v := d.name(d.within(i), true); v.What != WhatInput {
			d.FirstResult = &v
			return
		}
	}
}

// within is the first tool call that differs of the session at i, since that is what the
// session's result follows from; i where there is none.
func (d *Diff) within(i int) int {
	if p := &d.Pairs[i]; p.A == nil || p.B == nil || !p.A.calls && !p.B.calls {
		return i
	}
	for j := i + 1; j < len(d.Pairs) && d.Pairs[j].Step().Kind == KindTool; j++ {
		if Differs(d.Pairs[j].Status) && d.name(j, true).What != WhatInput {
			return j
		}
	}
	return i
}

// name names what differs in a pair; with out, what came out of it before what was given.
func (d *Diff) name(i int, out bool) Divergence {
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
	case !out && len(p.Input) > 0:
		change(WhatInput, p.Input)
	case p.A.Status != p.B.Status:
		v.What = WhatStatus
	case p.errors():
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

// sentence says what differs and where.
func (d *Diff) sentence(i int, v Divergence) string {
	p := &d.Pairs[i]
	if v.What == WhatOnly {
		return d.onlyOne(i)
	}
	where := fmt.Sprintf("%s (event %d in A, %d in B)", v.Step, v.EventA, v.EventB)
	switch v.What {
	case WhatStatus:
		return fmt.Sprintf("%s ended otherwise: %s in A, %s in B.", where, p.A.outcome(), p.B.outcome())
	case WhatError:
		return fmt.Sprintf("%s failed for another reason: %s in A, %s in B.", where, Brief(p.A.Error), Brief(p.B.Error))
	case WhatOrder:
		return fmt.Sprintf("%s stands in another place.", where)
	case WhatName:
		return fmt.Sprintf("%s is %s in A, %s in B.", where, Brief(p.A.Name), Brief(p.B.Name))
	case WhatFacts:
		return fmt.Sprintf("%s took %.0f ms at attempt %d in A, %.0f ms at attempt %d in B.", where, p.A.DurationMS, p.A.Attempt, p.B.DurationMS, p.B.Attempt)
	}
	what, n := "was given something else", len(p.Input)
	if v.What == WhatResult {
		what, n = "came to something else", len(p.Result)
	}
	at := "at " + v.Path
	if v.Path == "" {
		at = "as a whole"
	}
	more := ""
	if n > 1 {
		more = fmt.Sprintf(", and in %d more", n-1+p.More)
		if n == 2 && p.More == 0 {
			more = ", and in one more"
		}
		more += " places"
		more = strings.Replace(more, "one more places", "one more place", 1)
	}
	return fmt.Sprintf("%s %s %s: %s in A, %s in B%s.", where, what, at, said(v.A), said(v.B), more)
}

// onlyOne says which side has a step alone, and what the other does instead.
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
			return fmt.Sprintf("%s; %s goes on with %s (event %d).", text, other, o.Key, o.Event)
		}
	}
	return text + "; " + other + " ends before it."
}

// forkNote says what a fork has from its original.
func (d *Diff) forkNote(name string, s *stepper) {
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
		text += "it took nothing over."
	} else {
		text += "what it took over was not executed again, and what that used belongs to the original: " + strings.Join(taken, ", ") + "."
	}
	d.Notes = append(d.Notes, text)
}

// outcome is how a step ended, and why.
func (s *Step) outcome() string {
	if s.Error != "" {
		return s.Status + " (" + Brief(s.Error) + ")"
	}
	return s.Status
}

func said(raw json.RawMessage) string {
	if raw == nil {
		return "nothing"
	}
	return Brief(string(raw))
}

// maxBrief is how many letters of a value stand in a sentence.
const maxBrief = 72

// Brief is the beginning of a text in one line, without control characters.
func Brief(s string) string {
	letters := []rune(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " "))
	if len(letters) > maxBrief {
		return string(letters[:maxBrief]) + "…"
	}
	return string(letters)
}
