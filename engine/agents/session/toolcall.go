package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"acescope/engine/ace"
)

// ToolRequest asks for permission for a tool call. The session also executes the call if the
// tool is one of its served tools.
type ToolRequest struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Args    json.RawMessage `json:"args,omitempty"`
	ArgsRef *ace.Ref        `json:"args_ref,omitempty"` // if set, Args is a preview
	Turn    int             `json:"turn"`
	Attempt int32           `json:"attempt"`          // of the turn
	Served  bool            `json:"served,omitempty"` // the session executes the call
	Seq     int             `json:"seq,omitempty"`    // sequence number, set by the session
	// PolicyDecision is the decision by the session's policy, made on the unredacted arguments.
	PolicyDecision *PolicyDecision `json:"policy_decision,omitempty"`
}

// Named returns the request with its id, which defaults to the update id.
func (r ToolRequest) Named(updateID string) ToolRequest {
	r.ID = cmp.Or(r.ID, updateID)
	return r
}

// ToolAnswer is the answer to a [ToolRequest].
type ToolAnswer struct {
	ID     string `json:"id"`
	Action Action `json:"action"` // allow or deny
	Reason string `json:"reason,omitempty"`
	By     string `json:"by"`            // what decided: a rule, --otherwise, person, session
	Seq    int    `json:"seq,omitempty"` // of the request
	// Result and Failed are set if the session executed the call.
	Result *ToolResult  `json:"result,omitempty"`
	Failed *ace.Failure `json:"failure,omitempty"`
}

// Decision is the user's answer to a pending tool call.
type Decision struct {
	ID     string `json:"id"`
	Action Action `json:"action"` // allow or deny
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
}

// ToolCall is the input of [ActivityTool], which executes a call of a served tool.
type ToolCall struct {
	SessionID  string          `json:"session_id"`
	WorkingDir string          `json:"working_dir"`
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Args       json.RawMessage `json:"args,omitempty"`
	ArgsRef    *ace.Ref        `json:"args_ref,omitempty"`
}

// ToolResult is the result of a served tool. A failure of the tool itself (file not found,
// exit code 1) is a result with Error.
type ToolResult struct {
	Text  string   `json:"text,omitempty"`
	Ref   *ace.Ref `json:"text_ref,omitempty"` // the whole text, if Text was cut
	Error bool     `json:"is_error,omitempty"`
}

// ToolCount counts the outcomes of the calls of one tool.
type ToolCount struct {
	Name    string `json:"name"`
	Asked   int    `json:"asked"`
	Allowed int    `json:"allowed"`
	Denied  int    `json:"denied"`
	Failed  int    `json:"failed"`
}

// ToolCalls is the part of a [State] about tool calls.
type ToolCalls struct {
	Pending []ToolRequest `json:"pending,omitempty"`       // wait for the user
	Running []ToolRequest `json:"running_tools,omitempty"` // executed by the session
	Decided []ToolAnswer  `json:"decided,omitempty"`       // the newest answers, in the order of the requests
	Tools   []ToolCount   `json:"tools,omitempty"`
	Asked   int           `json:"asked,omitempty"` // all requests
}

// Answer returns the answer to a tool call, or nil before it is answered.
func (c *ToolCalls) Answer(id string) *ToolAnswer {
	for _, a := range slices.Backward(c.Decided) {
		if a.ID == id {
			return &a
		}
	}
	return nil
}

// IsPending reports whether the call waits for the user.
func (c *ToolCalls) IsPending(id string) bool { return indexCall(c.Pending, id) >= 0 }

// IsRunning reports whether the session executes the call now.
func (c *ToolCalls) IsRunning(id string) bool { return indexCall(c.Running, id) >= 0 }

func indexCall(calls []ToolRequest, id string) int {
	return slices.IndexFunc(calls, func(r ToolRequest) bool { return r.ID == id })
}

func removeCall(calls *[]ToolRequest, id string) (r ToolRequest, ok bool) {
	i := indexCall(*calls, id)
	if i < 0 {
		return r, false
	}
	r = (*calls)[i]
	*calls = without(*calls, i)
	return r, true
}

// decided applies a decision: an allowed call of a served tool runs, any other call is answered.
func (c *ToolCalls) decided(r ToolRequest, action Action, reason, by string) {
	if action == Allow && r.Served {
		c.count(r.Name, func(n *ToolCount) { n.Allowed++ })
		c.Running = append(slices.Clone(c.Running), r)
		return
	}
	c.answer(r, action, reason, by)
}

func (c *ToolCalls) answer(r ToolRequest, action Action, reason, by string) {
	c.count(r.Name, func(n *ToolCount) {
		if action == Allow {
			n.Allowed++
		} else {
			n.Denied++
		}
	})
	c.keep(ToolAnswer{ID: r.ID, Action: action, Reason: reason, By: by, Seq: r.Seq})
}

// finished records the outcome of a call that the session executed.
func (c *ToolCalls) finished(id string, result *ToolResult, failure *ace.Failure) {
	r, ok := removeCall(&c.Running, id)
	if !ok {
		return
	}
	if result == nil || result.Error {
		c.count(r.Name, func(n *ToolCount) { n.Failed++ })
	}
	if result != nil {
		result = &ToolResult{Text: ace.Cut(result.Text, ace.PreviewBytes), Ref: result.Ref,
			Error: result.Error}
	}
	c.keep(ToolAnswer{ID: id, Action: Allow, By: "session", Seq: r.Seq, Result: result, Failed: failure})
}

// keep stores an answer, in the order of the requests.
func (c *ToolCalls) keep(a ToolAnswer) {
	at, _ := slices.BinarySearchFunc(c.Decided, a.Seq, func(b ToolAnswer, seq int) int { return b.Seq - seq })
	c.Decided = newest(slices.Insert(slices.Clone(c.Decided), at, a), MaxDecided)
}

func (c *ToolCalls) denyPending(reason string) {
	c.denyPendingIf(reason, func(ToolRequest) bool { return true })
}

func (c *ToolCalls) denyPendingIf(reason string, which func(ToolRequest) bool) {
	var left []ToolRequest
	for _, r := range c.Pending {
		if which(r) {
			c.answer(r, Deny, reason, "session")
		} else {
			left = append(left, r)
		}
	}
	c.Pending = left
}

// count changes the counts of one tool. Tools beyond [MaxTools] share the last row.
func (c *ToolCalls) count(name string, change func(*ToolCount)) {
	c.Tools = slices.Clone(c.Tools)
	named := func(n ToolCount) bool { return n.Name == name }
	i := slices.IndexFunc(c.Tools, named)
	if i < 0 && len(c.Tools) >= MaxTools {
		name = "(others)"
		i = slices.IndexFunc(c.Tools, named)
	}
	if i < 0 {
		c.Tools = append(c.Tools, ToolCount{Name: name})
		i = len(c.Tools) - 1
	}
	change(&c.Tools[i])
}

// requestTool applies the policy on a tool call, or leaves it pending for the user.
func (s *State) requestTool(r ToolRequest) {
	if s.Answer(r.ID) != nil || s.IsPending(r.ID) || s.IsRunning(r.ID) {
		return
	}
	s.Asked++
	r.Seq = s.Asked
	s.count(r.Name, func(n *ToolCount) { n.Asked++ })
	s.supersede(r)
	if s.Current == nil || r.Turn != s.Current.Turn || !s.Open() {
		s.answer(r, Deny, "the turn that requested the call has ended", "session")
		return
	}
	v := s.Input.policyDecision(r)
	if v.Action != Ask {
		s.decided(r, v.Action, v.Reason, v.By)
		return
	}
	s.Pending = append(slices.Clone(s.Pending), r)
	s.emit(Out{Kind: OutApproval, Turn: r.Turn, Tool: r.Name, CallID: r.ID, Args: ace.Preview(r.Args)})
}

// supersede denies the pending calls of earlier attempts of the turn, whose process is gone.
func (s *State) supersede(r ToolRequest) {
	if s.Current == nil || r.Turn != s.Current.Turn || r.Attempt <= s.Current.Attempt {
		return
	}
	c := *s.Current
	c.Attempt = r.Attempt
	s.Current = &c
	earlier := func(p ToolRequest) bool { return p.Attempt < r.Attempt }
	s.denyPendingIf("the agent process that requested approval has exited", earlier)
}

// decide applies the user's decision on a pending call.
func (c *ToolCalls) decide(d Decision) {
	r, ok := removeCall(&c.Pending, d.ID)
	if !ok {
		return
	}
	by := "person"
	if d.By != "" {
		by += " " + d.By
	}
	c.decided(r, d.Action, d.Reason, by)
}

// CheckTool returns why the session cannot accept the request now, or nil.
func (c *ToolCalls) CheckTool(r ToolRequest) error {
	switch {
	case r.ID == "" || r.Name == "":
		return errors.New("a tool request needs an id and a name")
	case len(r.Args) > ace.InlineBytes:
		return fmt.Errorf("the arguments have %d bytes; above %d they must be an artifact", len(r.Args),
			ace.InlineBytes)
	case len(c.Pending) >= MaxPending:
		return fmt.Errorf("%d tool calls already wait for the user", MaxPending)
	}
	return nil
}

// CheckDecision returns why the decision does not apply now, or nil.
func (c *ToolCalls) CheckDecision(d Decision) error {
	if d.Action != Allow && d.Action != Deny {
		return fmt.Errorf("decision %q: use allow or deny", d.Action)
	}
	if c.IsPending(d.ID) {
		return nil
	}
	if a := c.Answer(d.ID); a != nil {
		return fmt.Errorf("tool call %s was answered already: %s by %s", d.ID, a.Action, a.By)
	}
	return fmt.Errorf("tool call %s is not pending in this session", d.ID)
}
