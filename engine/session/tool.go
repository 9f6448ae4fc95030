package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"acescope/engine/ace"
)

// Action is what is done about a tool call.
type Action string

// Actions.
const (
	Allow Action = "allow"
	Deny  Action = "deny"
	Ask   Action = "ask"
)

func (a Action) valid() bool { return a == Allow || a == Deny || a == Ask }

// CheckTool says what is wrong with a request as the session stands.
func (s *State) CheckTool(r ToolRequest) error {
	switch {
	case r.ID == "" || r.Name == "":
		return errors.New("a tool request needs an id and a name")
	case len(r.Args) > ace.InlineBytes:
		return fmt.Errorf("the arguments have %d bytes; above %d they must be an artifact", len(r.Args), ace.InlineBytes)
	case len(s.Pending) >= MaxPending:
		return fmt.Errorf("%d tool calls wait for a person already", MaxPending)
	}
	return nil
}

// CheckDecision says what is wrong with a decision as the session stands.
func (s *State) CheckDecision(d Decision) error {
	if d.Action != Allow && d.Action != Deny {
		return fmt.Errorf("decision %q: allow or deny is needed", d.Action)
	}
	if s.Waits(d.ID) {
		return nil
	}
	if a := s.Answer(d.ID); a != nil {
		return fmt.Errorf("tool call %s was answered already: %s by %s", d.ID, a.Action, a.By)
	}
	return fmt.Errorf("no tool call %s waits in this session", d.ID)
}

// CheckMessage says what is wrong with a message as the session stands.
func (s *State) CheckMessage(m Message) error {
	if s.Known(m.ID) {
		return nil
	}
	size, wait := len(m.Text), 0
	for _, q := range s.Queue {
		if !q.Callback { // those do not crowd out what people say
			size, wait = size+len(q.Text), wait+1
		}
	}
	switch {
	case !s.Open():
		return fmt.Errorf("the session is %s: it takes no more messages", s.Status)
	case wait >= MaxQueue || size > MaxQueueBytes || s.Held >= MaxHeld:
		return fmt.Errorf("%d messages wait already: let the agent answer first", len(s.Queue))
	}
	return m.check()
}

// Rule decides the tool calls that its pattern matches: "Bash", "mcp__*", "Bash(git *)".
// What is in parentheses is matched against the call's main argument (its command, path
// or URL), with * for anything.
type Rule struct {
	Tool   string `json:"tool"`
	Action Action `json:"action"`
	Reason string `json:"reason,omitempty"` // told to the agent
}

// Check says what is wrong with the rule.
func (r Rule) Check() error {
	name, _, err := r.split()
	if err != nil {
		return err
	}
	if _, err := path.Match(name, ""); err != nil || name == "" {
		return fmt.Errorf("tool rule %q: no pattern", r.Tool)
	}
	if !r.Action.valid() {
		return fmt.Errorf("tool rule %q: action %q is none of allow, deny, ask", r.Tool, r.Action)
	}
	return nil
}

func (r Rule) split() (name string, arg *string, err error) {
	name, rest, has := strings.Cut(r.Tool, "(")
	if !has {
		return name, nil, nil
	}
	inner, ok := strings.CutSuffix(rest, ")")
	if !ok {
		return "", nil, fmt.Errorf("tool rule %q: the parenthesis is not closed", r.Tool)
	}
	return name, &inner, nil
}

// Matches tells whether the rule speaks of the call.
func (r Rule) Matches(req ToolRequest) bool {
	name, arg, err := r.split()
	if err != nil {
		return false
	}
	if ok, err := path.Match(name, req.Name); err != nil || !ok {
		return false
	}
	return arg == nil || wild(*arg, mainArgument(req.Args))
}

// wild matches text against a pattern in which * stands for anything, slashes and
// newlines included.
func wild(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(text, first) {
		return false
	}
	text = text[len(first):]
	for _, p := range parts[1 : len(parts)-1] {
		at := strings.Index(text, p)
		if at < 0 {
			return false
		}
		text = text[at+len(p):]
	}
	return strings.HasSuffix(text, last)
}

// mainArgument is the argument that says what a call is about, "" where there is none.
func mainArgument(args json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(args, &fields) != nil {
		return ""
	}
	for _, key := range []string{"command", "file_path", "path", "notebook_path", "url", "pattern"} {
		var text string
		if json.Unmarshal(fields[key], &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

// ToolRequest asks whether a tool call may be made, and of a tool that the session
// serves, makes it.
type ToolRequest struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Args    json.RawMessage `json:"args,omitempty"`
	ArgsRef *ace.Ref        `json:"args_ref,omitempty"` // Args is then a preview
	Turn    int             `json:"turn"`
	Attempt int32           `json:"attempt"` // of the turn
	// Served tells that the session is to make the call.
	Served bool `json:"served,omitempty"`
	// Seq is the call's number among those that the session was asked for; it is the
	// session's to set.
	Seq int `json:"seq,omitempty"`
}

// ToolAnswer is what became of a [ToolRequest].
type ToolAnswer struct {
	ID     string `json:"id"`
	Action Action `json:"action"` // allow or deny
	Reason string `json:"reason,omitempty"`
	By     string `json:"by"`            // rule, person, session
	Seq    int    `json:"seq,omitempty"` // of the request
	// Result and Failed are of a call that the session made.
	Result *ToolResult  `json:"result,omitempty"`
	Failed *ace.Failure `json:"failure,omitempty"`
}

// Decision is a person's answer to a tool call that waits.
type Decision struct {
	ID     string `json:"id"`
	Action Action `json:"action"` // allow or deny
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
}

// ToolCall is the input of the activity that makes a call which the session serves.
type ToolCall struct {
	SessionID  string          `json:"session_id"`
	WorkingDir string          `json:"working_dir"`
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Args       json.RawMessage `json:"args,omitempty"`
	ArgsRef    *ace.Ref        `json:"args_ref,omitempty"`
}

// ToolResult is what a tool that the session serves answered. A tool's own failure (no
// such file, exit code 1) is a result with Error.
type ToolResult struct {
	Text  string   `json:"text,omitempty"`
	Ref   *ace.Ref `json:"text_ref,omitempty"` // the whole, where Text was cut
	Error bool     `json:"is_error,omitempty"`
}
