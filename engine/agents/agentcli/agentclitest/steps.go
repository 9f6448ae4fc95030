//go:build unix

package agentclitest

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ending is how a turn ends.
type ending struct {
	kind     string // "" for success, "aborted", or the failing step
	code     int    // exit code; -1 for the usual one
	extra    int    // results before the last one
	noResult bool
}

// failure is how a failing turn ends. Claude reports those with a subtype as errors without an
// answer.
type failure struct {
	Status                int // of the API
	Fault, Text           string
	Subtype, Reason, Stop string
	Code                  int // exit code of Claude
}

// Values of several failures.
const (
	apiError    = "api_error"
	stopped     = "stop_sequence"
	badRequest  = "invalid_request"
	serverError = "server_error"
)

var failures = map[string]failure{
	"tooold":      {},
	"usage":       {},
	"error":       {0, "unknown", "Something went wrong inside", "", "", "end_turn", 0},
	"overloaded":  {529, serverError, "API Error: 529 Overloaded", "", apiError, stopped, 1},
	"servererror": {500, serverError, "API Error: 500 Internal server error", "", apiError, stopped, 1},
	"ratelimit": {429, "rate_limit", "API Error: 429 This request would exceed your rate limit", "",
		apiError, stopped, 1},
	"apierror": {400, badRequest, "API Error: 400 messages: at least one message is required", "",
		apiError, stopped, 1},
	"notloggedin": {0, "authentication_failed", "Not logged in · Please run /login", "", "", stopped, 1},
	"refusal": {0, badRequest, "API Error: Claude Code is unable to respond to this request", "", "",
		"refusal", 1},
	"maxtokens": {0, "max_output_tokens", "API Error: Claude's response exceeded the output token maximum",
		"", "", "max_tokens", 1},
	"maxturns": {0, "", "Reached maximum number of turns (1)", "error_max_turns", "max_turns", "", 1},
	"budget":   {0, "", "Reached maximum budget ($0.01)", "error_max_budget_usd", "max_budget", "", 1},
	"aborted":  {0, "", "Request was aborted.", "error_during_execution", "aborted_streaming", "", 0},
}

func (p *process) steps(out printer, instruction string, turn int) ending {
	_, script, given := strings.Cut(instruction, "SCENARIO:")
	if !given {
		script = ruleOf(instruction)
	}
	if strings.Trim(script, "; \t\n") == "" {
		p.apiCall()
		out.text(fmt.Sprintf("reply %d to: %s", turn, instruction))
	}
	for step := range strings.SplitSeq(script, ";") {
		words := strings.Fields(step)
		if len(words) == 0 {
			continue
		}
		if e, ends := p.step(out, words[0], words[1:]); ends {
			return e
		}
	}
	return ending{code: -1}
}

// ruleOf returns the steps of the first rule whose text is in the instruction, or "".
func ruleOf(instruction string) string {
	data, _ := os.ReadFile(RulesFile)
	for line := range strings.Lines(string(data)) {
		if text, steps, ok := strings.Cut(line, " => "); ok && strings.Contains(instruction, text) {
			return steps
		}
	}
	return ""
}

// step runs one step and reports whether it ends the turn.
func (p *process) step(out printer, name string, args []string) (e ending, ends bool) {
	if f, fails := failures[name]; fails {
		if f.Text != "" && name != "notloggedin" {
			p.apiCall()
		}
		return ending{kind: name, code: -1}, true
	}
	ok := true
	switch name {
	case "gate":
		ok = p.waitFor(strings.Join(args, "-"))
	case "children":
		p.startChildren()
	case "hang":
		p.journal("hang", Entry{})
		for p.wait(time.Hour) {
		}
		ok = false
	case "ignoreterm":
		signal.Ignore(syscall.SIGTERM)
		p.journal("hang", Entry{})
		for {
			time.Sleep(time.Hour)
		}
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "noise":
		fmt.Fprint(os.Stderr, strings.Repeat("noise on standard error, and more of it\n",
			num(args, 0, 256)<<10/40))
	case "garbage":
		p.write([]byte("(node:42) Warning: this is no JSON\n\n{\"type\":\"assist\n[1,2\n\x00\xff\xfe\n"))
	case "partial":
		p.write([]byte(`{"type":"assistant","message":{"id":"msg_half","content":[{"type":"te`))
		return ending{noResult: true}, true
	case "noresult":
		return ending{noResult: true, code: num(args, 0, 0)}, true
	case "exit":
		return ending{code: num(args, 0, 3)}, true
	case "tworesults":
		p.apiCall()
		out.text("first")
		return ending{code: -1, extra: 1}, true
	case "unknown":
		p.emit("unknown", object{})
	default:
		p.apiCall()
		ok = p.output(out, name, args)
	}
	return ending{kind: "aborted", code: -1}, !ok
}

// output runs a step that prints texts or tool calls. It returns false if that ends the turn.
func (p *process) output(out printer, name string, args []string) bool {
	rest := strings.Join(args, " ")
	switch name {
	case "say":
		out.text(rest)
	case "write":
		check(os.WriteFile(args[0], []byte(strings.Join(args[1:], " ")+"\n"), 0o600))
		out.text("wrote " + args[0])
	case "env":
		out.text(rest + "=" + os.Getenv(rest))
	case "secret":
		out.text(secrets)
	case "tools":
		out.text("I will run a command.")
		if !out.tools(bash("echo hello")) {
			return false
		}
		p.apiCall()
		out.text("Done.")
	case "parallel":
		return out.tools(bash("echo one"), bash("echo two"))
	case "bash":
		return out.tools(bash(rest))
	case "badtool":
		return out.tools(toolCall{name: "Bash", args: `{"command":"exit 3"}`, output: "Exit code 3",
			failed: true})
	case "denied":
		c := bash("rm -rf build")
		c.denied, c.failed = true, true
		c.output = "Claude requested permissions to use Bash, but you haven't granted it yet."
		return out.tools(c)
	case "tool":
		tool, input, _ := strings.Cut(rest, " ")
		input = cmp.Or(input, "{}")
		return out.tools(toolCall{name: tool, args: input, output: tool + " did it"})
	case "subagent":
		out.subagent()
	case "slow":
		return p.slowText(out, num(args, 0, 5), time.Duration(num(args, 1, 10))*time.Millisecond)
	case "big":
		for i := range num(args, 0, 100) {
			out.text(fmt.Sprintf("%d %s", i, strings.Repeat("big text ", num(args, 1, 10)<<10/9)))
		}
	case "longline":
		out.text(strings.Repeat("0123456789abcdef", num(args, 0, 50)<<16))
	default:
		out.text("no such step: " + name)
	}
	return true
}

// slowText prints a text in parts. It returns false if the turn is interrupted.
func (p *process) slowText(out printer, parts int, interval time.Duration) bool {
	whole := ""
	for i := range parts {
		part := fmt.Sprintf("part %d. ", i+1)
		whole += part
		out.delta(part)
		if !p.wait(interval) {
			return false
		}
	}
	out.text(whole)
	return true
}

// secrets have the shapes of secrets but are not valid.
const secrets = "The key is sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789 and AKIAQ7XJ4K2M5N8P3R6T; " +
	"Authorization: Bearer abcDEF123456ghiJKL789012 for https://bob:hunter2secret@example.com/x"

// num returns a number of a step, or a default.
func num(args []string, at, otherwise int) int {
	if at < len(args) {
		if n, err := strconv.Atoi(args[at]); err == nil {
			return n
		}
	}
	return otherwise
}
