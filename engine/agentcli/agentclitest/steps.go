package agentclitest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// stayName is the name under which the stand-in's children run.
const stayName = "stand-in-child"

// voice is how an agent of one CLI says what it does.
type voice interface {
	say(text string)
	think(text string)
	delta(text string)
	// use calls tools, all in one message, and gives their results. It is false where the
	// turn is over then.
	use(calls ...call) bool
	unknown()
	subagent()
}

// call is a call of a tool.
type call struct {
	name   string
	args   string // JSON
	output string
	failed bool
	denied bool
}

// end is how a turn ends.
type end struct {
	kind string // "" for well; or the step that made it fail
	code int    // exit code; -1 for the one that goes with the kind
	also int    // results besides the one
	mute bool   // no result at all
}

// steps are what an instruction asks for.
func steps(instruction string) [][]string {
	_, script, ok := strings.Cut(instruction, "SCENARIO:")
	if !ok {
		return nil
	}
	var list [][]string
	for step := range strings.SplitSeq(script, ";") {
		if words := strings.Fields(step); len(words) > 0 {
			list = append(list, words)
		}
	}
	return list
}

// perform runs the steps of an instruction.
func (a *agent) perform(v voice, instruction string, turn int) end {
	list := steps(instruction)
	if a.set.LoggedOut {
		list = [][]string{{"notloggedin"}}
	}
	if len(list) == 0 {
		a.apiCall()
		v.say(fmt.Sprintf("reply %d to: %s", turn, instruction))
		return end{code: -1}
	}
	for _, words := range list {
		if e, over := a.step(v, words[0], words[1:]); over {
			return e
		}
	}
	return end{code: -1}
}

// step runs one step; over tells that the turn ends with it.
func (a *agent) step(v voice, name string, args []string) (e end, over bool) {
	e.code = -1
	if a.failing(name) {
		if name != "tooold" && name != "usage" && name != "notloggedin" {
			a.apiCall()
		}
		e.kind = name
		return e, true
	}
	switch name {
	case "gate":
		if !a.wait(strings.Join(args, "-")) {
			e.kind = "aborted"
			return e, true
		}
	case "children":
		a.children()
	case "hang":
		a.journal("hang", Entry{})
		for a.pause(time.Hour) {
		}
		e.kind = "aborted"
		return e, true
	case "ignoreterm":
		ignoreTerm()
		a.journal("hang", Entry{})
		for {
			time.Sleep(time.Hour)
		}
	case "kill":
		killSelf()
	case "noise":
		fmt.Fprint(os.Stderr, strings.Repeat("noise on standard error, and more of it\n", num(args, 0, 256)<<10/40))
	case "garbage":
		a.write([]byte("(node:42) Warning: this is no JSON\n\n{\"type\":\"assist\n[1,2\n\x00\xff\xfe\n"))
	case "partial":
		a.write([]byte(`{"type":"assistant","message":{"id":"msg_half","content":[{"type":"te`))
		e.mute, e.code = true, 0
		return e, true
	case "noresult":
		e.mute, e.code = true, num(args, 0, 0)
		return e, true
	case "exit":
		e.code = num(args, 0, 3)
		return e, true
	case "tworesults":
		a.apiCall()
		v.say("first")
		e.also = 1
		return e, true
	default:
		if !a.speak(v, name, args) {
			e.kind = "aborted"
			return e, true
		}
	}
	return e, false
}

// failing tells whether a step is a failure of the turn.
func (a *agent) failing(name string) bool {
	switch name {
	case "error", "notloggedin", "tooold", "overloaded", "ratelimit", "apierror", "servererror", "refusal", "maxturns",
		"budget", "maxtokens", "usage":
		return true
	}
	return false
}

// speak runs a step in which the agent says or does something. It is false where the turn is
// over.
func (a *agent) speak(v voice, name string, args []string) bool {
	rest := strings.Join(args, " ")
	if name != "unknown" {
		a.apiCall()
	}
	switch name {
	case "say":
		v.say(rest)
	case "think":
		v.think(rest)
	case "env":
		v.say(rest + "=" + os.Getenv(rest))
	case "secret":
		v.say(secrets)
	case "tools":
		v.say("I will run a command.")
		if !v.use(bash("echo hello")) {
			return false
		}
		a.apiCall()
		v.say("Done.")
	case "parallel":
		return v.use(bash("echo one"), bash("echo two"))
	case "bash":
		return v.use(bash(rest))
	case "badtool":
		return v.use(call{name: "Bash", args: `{"command":"exit 3"}`, output: "Exit code 3", failed: true})
	case "denied":
		c := bash("rm -rf build")
		c.denied, c.failed, c.output = true, true, "Claude requested permissions to use Bash, but you haven't granted it yet."
		return v.use(c)
	case "tool":
		if len(args) == 0 {
			args = []string{"Read"}
		}
		input := strings.Join(args[1:], " ")
		if input == "" {
			input = "{}"
		}
		return v.use(call{name: args[0], args: input, output: args[0] + " did it"})
	case "subagent":
		v.subagent()
	case "slow":
		return a.slowly(v, num(args, 0, 5), num(args, 1, 10))
	case "big":
		for i := range num(args, 0, 100) {
			v.say(fmt.Sprintf("%d %s", i, strings.Repeat("big text ", num(args, 1, 10)<<10/9)))
		}
	case "longline":
		v.say(strings.Repeat("0123456789abcdef", num(args, 0, 50)<<16))
	case "unknown":
		v.unknown()
	default:
		v.say("no such step: " + name)
	}
	return true
}

// slowly says a text in parts. It is false when the turn is interrupted meanwhile.
func (a *agent) slowly(v voice, parts, ms int) bool {
	var whole strings.Builder
	for i := range parts {
		part := fmt.Sprintf("part %d. ", i+1)
		whole.WriteString(part)
		v.delta(part)
		if !a.pause(time.Duration(ms) * time.Millisecond) {
			return false
		}
	}
	v.say(whole.String())
	return true
}

// bash is a call of a shell. Nothing is run: the output is what echo would say.
func bash(command string) call {
	args := fmt.Sprintf(`{"command":%q,"description":"a command"}`, command)
	return call{name: "Bash", args: args, output: strings.TrimPrefix(command, "echo ")}
}

// children starts two processes that stay and hold standard output: one in the agent's group,
// one in a group of its own, as shells are.
func (a *agent) children() {
	for _, own := range []bool{false, true} {
		cmd := exec.Command(filepath.Join(a.dir, stayName))
		cmd.Stdout = os.Stdout
		if own {
			ownGroup(cmd)
		}
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(os.Stderr, "stand-in:", err)
			continue
		}
		remember(cmd.Process.Pid)
		a.journal("child", Entry{Text: fmt.Sprint(cmd.Process.Pid)})
	}
}

// secrets have the shapes of secrets, and are none.
const secrets = "The key is sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789 and AKIAQ7XJ4K2M5N8P3R6T; " +
	"Authorization: Bearer abcDEF123456ghiJKL789012 for https://bob:hunter2secret@example.com/x"
