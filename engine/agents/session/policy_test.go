package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"acescope/engine/ace"
)

// policyOf parses rules such as "Bash(git *)=allow". A text without a pattern is the default.
func policyOf(t *testing.T, rules ...string) (p Policy) {
	t.Helper()
	for _, text := range rules {
		at := strings.LastIndex(text, "=")
		r := Rule{Tool: text[:max(at, 0)], Action: Action(text[at+1:])}
		if at < 0 {
			p.Otherwise = r.Action
			continue
		}
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		p.Rules = append(p.Rules, r)
	}
	return p
}

// TestPolicyMatrix holds every pair of a rule and a call.
func TestPolicyMatrix(t *testing.T) {
	served := func(tool, args string, argv ...string) Call {
		return NewServedCall("/w", tool, json.RawMessage(args), argv)
	}
	own := func(tool, args string) Call { return NewCall("/w", tool, json.RawMessage(args)) }
	calls := []Call{
		own("Bash", `{"command":"git push --force"}`),
		own("Bash", `{"command":"git status; rm -rf /"}`),
		own("Read", `{"file_path":"/w/src/../../etc/passwd"}`),
		own("mcp__files__read", `{"target":"/etc/passwd"}`),
		served("run_command", `{"command":"'rm' -rf x"}`, "rm", "-rf", "x"),
		served("run_command", `{"argv":["rm","-rf","x"]}`, "rm", "-rf", "x"),
	}
	// A letter for each call: allow, deny, or "-" for neither.
	for rule, want := range map[string]string{
		"*": "******", "Bash": "**----", "bash": "**----", "Bashful": "------", "B*": "**----",
		"mcp__*": "---***", "mcp__acescope__run_command": "----**", "mcp_acescope_run_command": "----**",
		"acescope_run_command": "----**", "run_command": "----**", "run_*": "----**", "files_read": "---*--",
		"read": "--*---", "mcp__acescope__*": "----**",
		// A rule that denies matches any part of a call, a rule that allows must cover all of it.
		"Bash(git *)": "*d----", "Bash(git*)": "*d----", "Bash(rm *)": "-d----", "Bash(gitk*)": "------",
		"Bash(*)":                    "**----",
		"Bash(git status; rm -rf /)": "-*----", "Bash(*rm*)": "-d----",
		"run_command(rm *)": "----**", "run_command('rm'*)": "----d-", "run_command(git *)": "------",
		"*(rm *)": "-d--**", "*(*x*)": "----**", "Read(/etc/*)": "--*---", "Read(/w/*)": "--d---",
		"mcp__files__*(/etc/*)": "---d--",
	} {
		for i, c := range calls {
			allows := policyOf(t, rule+"=allow").Decide(c).Action == Allow
			denies := policyOf(t, "*=allow", rule+"=deny").Decide(c).Action == Deny
			got := map[[2]bool]string{{true, true}: "*", {false, true}: "d",
				{false, false}: "-"}[[2]bool{allows, denies}]
			if got != want[i:i+1] {
				t.Errorf("%s on call %d %+v: %q, not %q", rule, i, c, got, want[i:i+1])
			}
		}
	}
}

// TestStrictestRuleWins checks that the order of rules does not matter and that the decision names
// what decided.
func TestStrictestRuleWins(t *testing.T) {
	call := NewServedCall("/w", "run_command", json.RawMessage(`{"command":"ls"}`), []string{"ls"})
	rules := []string{"mcp__*=deny", "run_command=ask", "*=allow"}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		var p []string
		for _, i := range order {
			p = append(p, rules[i])
		}
		if v := policyOf(t, p...).Decide(call); v.Action != Deny || v.By != `rule "mcp__*=deny"` {
			t.Errorf("%v: %+v", p, v)
		}
	}
	for want, p := range map[string]Policy{
		`ask by rule "run_command=ask"`:   policyOf(t, "*=allow", "run_command=ask"),
		`allow by rule "run_*(ls)=allow"`: policyOf(t, "run_*(ls)=allow"),
		"deny by --otherwise deny":        policyOf(t, "Bash=allow", "deny"),
		"ask by --otherwise ask":          policyOf(t, "Bash=deny"),
	} {
		if v := p.Decide(call); fmt.Sprintf("%s by %s", v.Action, v.By) != want {
			t.Errorf("%+v, not %s", v, want)
		}
	}
}

// TestArgumentsOfCalls checks what a rule that allows must cover.
func TestArgumentsOfCalls(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	p := policyOf(t, "Bash(git *)=allow", "Bash(go test *)=allow", "Write(/w/*)=allow", "mcp__*(git *)=allow",
		"deny")
	for _, c := range []struct {
		tool, args string
		want       Action
	}{
		{"Bash", `{"command":"git log"}`, Allow},
		{"Bash", `{"command":"git add . && go test ./... 2>&1 >/dev/null"}`, Allow},
		{"Bash", `{"command":"git log ` + long + `"}`, Allow},
		{"Bash", `{"command":"git log ` + long + `; rm x"}`, Deny},
		{"Bash", `{"command":"git log $(rm x)"}`, Deny},
		{"Bash", "{\"command\":\"git log `rm x`\"}", Deny},
		{"Bash", `{"command":"git log | sh"}`, Deny},
		{"Bash", `{"command":"git log > ~/.bashrc"}`, Deny},
		{"Bash", `{"command":"git log >& x"}`, Deny},
		{"Bash", `{"command":"git log &\nrm x"}`, Deny},
		{"Bash", `{"command":"PATH=/evil git log"}`, Deny},
		{"Bash", `{"command":"export PATH=/evil; git log"}`, Deny},
		{"Bash", `{"command":"git log 'open"}`, Deny},
		{"Bash", `{"command":""}`, Deny},
		{"Bash", `{}`, Deny},
		{"Bash", `{"command":"git log","Command":"rm x"}`, Deny},
		{"Bash", `{"command":"rm x","command":"git log"}`, Allow}, // the last is executed
		{"Bash", `{"command":"git log","command":"rm x"}`, Deny},
		{"Write", `{"file_path":"/w/a"}`, Allow},
		{"Write", `{"file_path":"a/b"}`, Allow},
		{"Write", `{"file_path":"/w/../etc/passwd"}`, Deny},
		{"Write", `{"file_path":"../x"}`, Deny},
		{"mcp__x__run", `{"cmd":"git log"}`, Deny},
		{"mcp__x__run", `{"command":"git log","path":"/etc"}`, Deny},
	} {
		args, err := NormalizeArgs(json.RawMessage(c.args))
		if err != nil {
			t.Fatal(err)
		}
		if v := p.Decide(NewCall("/w", c.tool, args)); v.Action != c.want {
			t.Errorf("%s %.80s: %+v", c.tool, c.args, v)
		}
	}
	for _, bad := range []string{`[]`, `null`, `"x"`, `{`, `{}{}`, `not json`} {
		if args, err := NormalizeArgs(json.RawMessage(bad)); err == nil {
			t.Errorf("%s: %s", bad, args)
		}
	}
	if args, err := NormalizeArgs(json.RawMessage(`{"n":12345678901234567890,"s":"<&>"}`)); err != nil ||
		string(args) != `{"n":12345678901234567890,"s":"<&>"}` {
		t.Errorf("%s, %v", args, err)
	}
}

// TestRulesHold checks that a session is refused if its agent would not ask.
func TestRulesHold(t *testing.T) {
	for _, agent := range ace.Agents() {
		in := Input{SessionID: "s", Agent: agent, WorkingDir: "/w"}
		if err := in.Check(); err != nil {
			t.Error(err)
		}
		denies := in
		denies.DefaultAction = Deny
		ruled := in
		ruled.Rules = []Rule{{Tool: "Bash", Action: Deny}}
		for _, in := range []Input{denies, ruled} {
			if err := in.Check(); (err == nil) != Asks(agent) || err != nil &&
				!strings.Contains(err.Error(), agent+" does not ask") {
				t.Errorf("%s: %v", agent, err)
			}
		}
		denies.PermissionMode = "full"
		if err := denies.Check(); err == nil {
			t.Errorf("%s in mode full: no error", agent)
		}
	}
}
