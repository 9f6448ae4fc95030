package session

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Action is the decision on a tool call.
type Action string

// Actions.
const (
	Allow Action = "allow"
	Deny  Action = "deny"
	Ask   Action = "ask"
)

// Rule decides the tool calls that its pattern matches: "Bash", "mcp__*", "Bash(git *)".
// The part in parentheses is matched against the call's main argument (its command, path or
// URL); * matches any text. Names are compared without case.
type Rule struct {
	Tool   string `json:"tool"`
	Action Action `json:"action"`
	Reason string `json:"reason,omitempty"` // shown to the agent
}

func (r Rule) String() string { return r.Tool + "=" + string(r.Action) }

// Check reports the first problem of the rule, or nil.
func (r Rule) Check() error {
	name, _, err := r.split()
	if err != nil {
		return err
	}
	if name == "" || strings.ContainsAny(name, `?[]\ `) {
		return fmt.Errorf("tool rule %q: use the name of a tool; * matches any text", r.Tool)
	}
	if r.Action != Allow && r.Action != Deny && r.Action != Ask {
		return fmt.Errorf("tool rule %q: action %q must be allow, deny or ask", r.Tool, r.Action)
	}
	return nil
}

// split returns the patterns of the name and of the main argument, which is "*" if the rule has
// none.
func (r Rule) split() (name, arg string, err error) {
	name, rest, has := strings.Cut(r.Tool, "(")
	if !has {
		return name, "*", nil
	}
	arg, ok := strings.CutSuffix(rest, ")")
	if !ok {
		return "", "", fmt.Errorf("tool rule %q: add a closing parenthesis", r.Tool)
	}
	return name, arg, nil
}

// matchesName reports whether the rule applies to a tool with these names. A rule that a check
// would reject applies to all tools, unless it allows them.
func (r Rule) matchesName(names []string) bool {
	if r.Check() != nil {
		return r.Action != Allow
	}
	name, _, _ := r.split()
	return slices.ContainsFunc(names, func(n string) bool {
		return matchWildcard(strings.ToLower(name), strings.ToLower(n))
	})
}

// touches reports whether the rule matches anything in the call.
func (r Rule) touches(c Call) bool {
	if !r.matchesName(c.Names) {
		return false
	}
	_, arg, err := r.split()
	matches := func(text string) bool { return matchWildcard(arg, text) }
	return err != nil || arg == "*" || slices.ContainsFunc(c.Texts, matches) ||
		slices.ContainsFunc(slices.Concat(c.Parts...), matches)
}

// covers reports whether the rule matches the part of the call, in one of its spellings. A rule
// for the whole tool covers every part, and so does a pattern that is the call's whole argument.
func (r Rule) covers(c Call, part []string) bool {
	if !r.matchesName(c.Names) {
		return false
	}
	_, arg, _ := r.split()
	if arg == "*" || !strings.Contains(arg, "*") && arg == c.Main {
		return true
	}
	return !c.Opaque && slices.ContainsFunc(part, func(text string) bool { return matchWildcard(arg, text) })
}

// matchWildcard matches text against a pattern in which * matches any text, including slashes
// and newlines.
func matchWildcard(pattern, text string) bool {
	expression := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
	ok, err := regexp.MatchString("(?s)^"+expression+"$", text)
	return ok && err == nil
}

// Policy decides the tool calls of a session. The host of a session applies it, because only the
// host has the whole arguments, and reports the decision to the workflow.
type Policy struct {
	Rules     []Rule `json:"rules,omitempty"`
	Otherwise Action `json:"otherwise,omitempty"` // "": ask
}

// PolicyDecision is the decision of a policy on a call.
type PolicyDecision struct {
	Action Action `json:"action"`
	By     string `json:"by"` // what decided, such as: rule "mcp__*=deny"
	Reason string `json:"reason,omitempty"`
}

// Decide returns the decision on a call. The order of the rules does not matter: a rule that
// denies wins over one that asks, which wins over one that allows. A call is allowed if rules
// that allow cover all of it, and denied if a rule that denies matches any of it.
func (p Policy) Decide(c Call) PolicyDecision {
	if v, ok := p.Restrict(c); ok {
		return v
	}
	if r, ok := p.allows(c); ok {
		return r.decision()
	}
	return p.otherwise()
}

func (p Policy) otherwise() PolicyDecision {
	action := cmp.Or(p.Otherwise, Ask)
	return PolicyDecision{Action: action, By: "--otherwise " + string(action),
		Reason: "no rule matches the whole call"}
}

// Restrict returns the decision of the strictest rule that denies a call or asks about it. It also applies to
// calls that the agent would make without asking.
func (p Policy) Restrict(c Call) (v PolicyDecision, ok bool) {
	for _, action := range []Action{Deny, Ask} {
		for _, r := range p.Rules {
			if r.Action == action && r.touches(c) {
				return r.decision(), true
			}
		}
	}
	return v, false
}

// Restricts reports whether a rule denies or asks.
func (p Policy) Restricts() bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Action != Allow })
}

func (r Rule) decision() PolicyDecision {
	return PolicyDecision{Action: r.Action, By: fmt.Sprintf("rule %q", r), Reason: r.Reason}
}

// allows returns the first of the rules that together cover the whole call.
func (p Policy) allows(c Call) (first Rule, ok bool) {
	parts := c.Parts
	if len(parts) == 0 {
		parts = [][]string{nil}
	}
	for i, part := range parts {
		covers := func(r Rule) bool { return r.Action == Allow && r.covers(c, part) }
		at := slices.IndexFunc(p.Rules, covers)
		if at < 0 {
			return first, false
		}
		if i == 0 {
			first = p.Rules[at]
		}
	}
	return first, true
}

// Asks reports whether an agent asks before it uses a tool. On other agents, rules have no effect.
func Asks(agent string) bool { return agent == "claude" }

// modeFull is the permission mode in which an agent asks only where a rule says so.
const modeFull = "full"

// checkPolicy returns which rule of a session is invalid or why rules would have no effect, or nil.
func (in Input) checkPolicy() error {
	for _, r := range in.Rules {
		if err := r.Check(); err != nil {
			return err
		}
	}
	switch denies := in.DefaultAction == Deny; {
	case (denies || len(in.Rules) > 0) && !Asks(in.Agent):
		return fmt.Errorf("%s does not ask before it uses a tool, so rules have no effect; limit it with "+
			"--permission-mode, or use agent claude", in.Agent)
	case denies && in.PermissionMode == modeFull:
		return fmt.Errorf("with permission mode %s %s asks only where a rule says so, "+
			"so --otherwise deny has no effect; use another mode", modeFull, in.Agent)
	}
	return nil
}

// policyDecision returns the decision that a request carries. A request without one is decided by the first
// rule that matches the name and the exact argument: hosts up to commit 0d05089 made such requests, and
// recorded histories must replay.
func (in *Input) policyDecision(q ToolRequest) PolicyDecision {
	if q.PolicyDecision != nil {
		return *q.PolicyDecision
	}
	for _, r := range in.Rules {
		name, arg, err := r.split()
		named, _ := path.Match(name, q.Name)
		if err == nil && named && (arg == "*" || matchWildcard(arg, recordedArgument(q.Args))) {
			return r.decision()
		}
	}
	return Policy{Otherwise: in.DefaultAction}.otherwise()
}
