package session

import (
	"slices"

	"acescope/engine/ace"
)

// request decides a tool call by the rules, or lets it wait for a person.
func (s *State) request(r ToolRequest) {
	if s.Answer(r.ID) != nil || s.waits(r.ID) {
		return
	}
	s.Asked++
	r.Seq = s.Asked
	s.count(r.Name, func(c *ToolCount) { c.Asked++ })
	s.supersede(r)
	switch {
	case s.Current == nil || r.Turn != s.Current.Turn || !s.Open():
		s.answer(r, ToolAnswer{ID: r.ID, Action: Deny, Reason: "the turn that asks has ended", By: "session"})
	default:
		action, reason := s.policy(r)
		if action == Ask {
			s.Pending = append(slices.Clone(s.Pending), r)
			s.say(Out{Kind: OutApproval, Turn: r.Turn, Tool: r.Name, CallID: r.ID, Args: ace.Preview(r.Args)})
			return
		}
		s.decided(r, action, reason, "rule")
	}
}

// policy is what the rules say of a call.
func (s *State) policy(r ToolRequest) (Action, string) {
	for _, rule := range s.Input.Rules {
		if rule.Matches(r) {
			return rule.Action, rule.Reason
		}
	}
	if s.Input.Otherwise != "" {
		return s.Input.Otherwise, ""
	}
	return Ask, ""
}

// supersede answers the calls that an earlier attempt of the turn asked about: that
// attempt is dead.
func (s *State) supersede(r ToolRequest) {
	if s.Current == nil || r.Turn != s.Current.Turn || r.Attempt <= s.Current.Attempt {
		return
	}
	c := *s.Current
	c.Attempt = r.Attempt
	s.Current = &c
	s.voidWhere("the process that asked is gone", func(p ToolRequest) bool { return p.Attempt < r.Attempt })
}

func (s *State) decide(d Decision) {
	i := slices.IndexFunc(s.Pending, func(r ToolRequest) bool { return r.ID == d.ID })
	if i < 0 {
		return
	}
	r := s.Pending[i]
	s.Pending = slices.Delete(slices.Clone(s.Pending), i, i+1)
	by := "person"
	if d.By != "" {
		by += " " + d.By
	}
	s.decided(r, d.Action, d.Reason, by)
}

func (s *State) decided(r ToolRequest, action Action, reason, by string) {
	if action == Allow && r.Served {
		s.count(r.Name, func(c *ToolCount) { c.Allowed++ })
		s.Running = append(slices.Clone(s.Running), r)
		return
	}
	s.answer(r, ToolAnswer{ID: r.ID, Action: action, Reason: reason, By: by})
}

// ran keeps what came of a call that the session made.
func (s *State) ran(id string, result *ToolResult, failure *ace.Failure) {
	i := slices.IndexFunc(s.Running, func(r ToolRequest) bool { return r.ID == id })
	if i < 0 {
		return
	}
	r := s.Running[i]
	s.Running = slices.Delete(slices.Clone(s.Running), i, i+1)
	if result == nil || result.Error {
		s.count(r.Name, func(c *ToolCount) { c.Failed++ })
	}
	if result != nil {
		result = &ToolResult{Text: ace.Cut(result.Text, ace.PreviewBytes), Ref: result.Ref, Error: result.Error}
	}
	s.keep(ToolAnswer{ID: id, Action: Allow, By: "session", Seq: r.Seq, Result: result, Failed: failure})
}

func (s *State) answer(r ToolRequest, a ToolAnswer) {
	s.count(r.Name, func(c *ToolCount) {
		if a.Action == Allow {
			c.Allowed++
		} else {
			c.Denied++
		}
	})
	a.Seq = r.Seq
	s.keep(a)
}

// keep remembers an answer, in the order in which the calls were asked for.
func (s *State) keep(a ToolAnswer) {
	at, _ := slices.BinarySearchFunc(s.Decided, a.Seq, func(b ToolAnswer, seq int) int { return b.Seq - seq })
	s.Decided = newest(slices.Insert(slices.Clone(s.Decided), at, a), MaxDecided)
}

// void denies all calls that wait for a person.
func (s *State) void(reason string) {
	s.voidWhere(reason, func(ToolRequest) bool { return true })
}

func (s *State) voidWhere(reason string, which func(ToolRequest) bool) {
	var left []ToolRequest
	for _, r := range s.Pending {
		if !which(r) {
			left = append(left, r)
			continue
		}
		s.answer(r, ToolAnswer{ID: r.ID, Action: Deny, Reason: reason, By: "session"})
	}
	s.Pending = left
}

// Answer is the answer to a tool call, nil while there is none.
func (s *State) Answer(id string) *ToolAnswer {
	for _, a := range slices.Backward(s.Decided) {
		if a.ID == id {
			return &a
		}
	}
	return nil
}

func (s *State) waits(id string) bool { return s.Waits(id) || s.Makes(id) }

// Waits tells whether the call waits for a person.
func (s *State) Waits(id string) bool { return has(s.Pending, id) }

// Makes tells whether the session makes the call.
func (s *State) Makes(id string) bool { return has(s.Running, id) }

func has(calls []ToolRequest, id string) bool {
	return slices.ContainsFunc(calls, func(r ToolRequest) bool { return r.ID == id })
}

// count changes the counts of one tool. Tools beyond the bound share the last row.
func (s *State) count(name string, change func(*ToolCount)) {
	s.Tools = slices.Clone(s.Tools)
	i := slices.IndexFunc(s.Tools, func(c ToolCount) bool { return c.Name == name })
	if i < 0 && len(s.Tools) >= MaxTools {
		name = "(others)"
		i = slices.IndexFunc(s.Tools, func(c ToolCount) bool { return c.Name == name })
	}
	if i < 0 {
		s.Tools = append(s.Tools, ToolCount{Name: name})
		i = len(s.Tools) - 1
	}
	change(&s.Tools[i])
}
