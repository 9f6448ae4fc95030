//go:build unix

package agentclitest

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"text/template"
	"time"
)

//go:embed streams.tmpl
var streamsText string

// streams are the formats of events, named CLI/EVENT.
var streams = template.Must(template.New("").Funcs(template.FuncMap{
	"json":   toJSON,
	"uuid":   func() string { return strconv.Quote(newUUID()) },
	"now":    func() string { return strconv.Quote(now()) },
	"millis": func() int64 { return time.Now().UnixMilli() },
	"mul":    func(a, b int) int { return a * b },
}).Parse(streamsText))

// childName is the name of the stand-in's own children.
const childName = "stand-in-child"

// Main runs the stand-in and does not return if this process was started as one. Otherwise it
// does nothing.
func Main() {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if name == childName {
		time.Sleep(time.Hour)
		os.Exit(0)
	}
	if versions[name] == "" {
		return
	}
	path, err := exec.LookPath(os.Args[0])
	if err != nil {
		return
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return
	}
	data, err := os.ReadFile(filepath.Join(dir, settingsFile))
	if err != nil {
		return
	}
	p := &process{cli: name, dir: dir, argv: os.Args[1:]}
	check(json.Unmarshal(data, &p.settings))
	os.Exit(p.run())
}

// check ends the process on an error of the stand-in itself.
func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "stand-in:", err)
		os.Exit(70)
	}
}

// object is a JSON object.
type object = map[string]any

// process is one process of a stand-in.
type process struct {
	cli      string
	dir      string
	settings settings
	argv     []string
	session  string
	apiCalls int // of this process

	out sync.Mutex

	// stop gets a value for each interruption of a turn; it is nil if turns cannot be
	// interrupted.
	stop    chan struct{}
	stopped atomic.Bool // the turn was interrupted
}

// printer prints what an agent does, in the format of its CLI.
type printer interface {
	text(text string)
	delta(text string)
	// tools calls tools in one message and prints their results. It returns false if that ends
	// the turn.
	tools(calls ...toolCall) bool
	subagent()
}

type toolCall struct {
	name   string
	args   string // JSON
	output string
	failed bool
	denied bool
}

// bash is a call of a shell that outputs what echo would.
func bash(command string) toolCall {
	args := fmt.Sprintf(`{"command":%q,"description":"a command"}`, command)
	return toolCall{name: "Bash", args: args, output: strings.TrimPrefix(command, "echo ")}
}

// ending is how a turn ends.
type ending struct {
	kind     string // "" for success, "aborted", or the failing step
	code     int    // exit code; -1 for the usual one
	extra    int    // results before the last one
	noResult bool
}

func (p *process) run() int {
	p.journal("start", Entry{Text: strings.Join(p.argv, " ")})
	if len(p.argv) == 1 && (p.argv[0] == "--version" || p.argv[0] == "-v") {
		format := map[string]string{"claude": "%s (Claude Code)\n", "codex": "codex-cli %s\n"}[p.cli]
		if format == "" {
			format = "%s\n"
		}
		fmt.Printf(format, p.settings.Version)
		return 0
	}
	if p.cli == "claude" {
		return p.claude()
	}
	return p.oneShot()
}

// steps runs the steps of an instruction.
func (p *process) steps(out printer, instruction string, turn int) ending {
	_, script, _ := strings.Cut(instruction, "SCENARIO:")
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

// step runs one step and reports whether it ends the turn.
func (p *process) step(out printer, name string, args []string) (e ending, ends bool) {
	if _, fails := failures[name]; fails {
		if name != "tooold" && name != "usage" && name != "notloggedin" {
			p.apiCall()
		}
		return ending{kind: name, code: -1}, true
	}
	ok := true
	switch name {
	case "gate":
		ok = p.wait(strings.Join(args, "-"))
	case "children":
		p.startChildren()
	case "hang":
		p.journal("hang", Entry{})
		for p.pause(time.Hour) {
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
		fmt.Fprint(os.Stderr, strings.Repeat("noise on standard error, and more of it\n", num(args, 0, 256)<<10/40))
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
		return out.tools(toolCall{name: "Bash", args: `{"command":"exit 3"}`, output: "Exit code 3", failed: true})
	case "denied":
		c := bash("rm -rf build")
		c.denied, c.failed = true, true
		c.output = "Claude requested permissions to use Bash, but you haven't granted it yet."
		return out.tools(c)
	case "tool":
		tool, input, _ := strings.Cut(rest, " ")
		if input == "" {
			input = "{}"
		}
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
	var whole strings.Builder
	for i := range parts {
		part := fmt.Sprintf("part %d. ", i+1)
		whole.WriteString(part)
		out.delta(part)
		if !p.pause(interval) {
			return false
		}
	}
	out.text(whole.String())
	return true
}

// startChildren starts two processes that stay and hold standard output: one in the process
// group, one in its own, like a shell.
func (p *process) startChildren() {
	for _, own := range []bool{false, true} {
		cmd := exec.Command(filepath.Join(p.dir, childName))
		cmd.Stdout = os.Stdout
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: own}
		check(cmd.Start())
		children.Lock()
		children.pids = append(children.pids, cmd.Process.Pid)
		children.Unlock()
		p.journal("child", Entry{Text: fmt.Sprint(cmd.Process.Pid)})
	}
}

// children are the processes that the CLIs kill on SIGTERM.
var children struct {
	sync.Mutex
	pids []int
}

// onSignals makes SIGTERM kill the children, call exit and end the process without a result.
// SIGINT calls interrupt.
func onSignals(interrupt, exit func()) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for s := range c {
			if s == syscall.SIGINT {
				interrupt()
				continue
			}
			children.Lock()
			for _, pid := range children.pids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			exit()
			os.Exit(143)
		}
	}()
}

// secrets have the shapes of secrets but are not valid.
const secrets = "The key is sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789 and AKIAQ7XJ4K2M5N8P3R6T; " +
	"Authorization: Bearer abcDEF123456ghiJKL789012 for https://bob:hunter2secret@example.com/x"

// flags parses --name=value and --name; words holds the other arguments.
func (p *process) flags() (values map[string]string, words []string) {
	values = map[string]string{}
	for _, arg := range p.argv {
		name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case !strings.HasPrefix(arg, "-") || arg == "-":
			words = append(words, arg)
		case hasValue:
			values[name] = value
		default:
			values[name] = "true"
		}
	}
	return values, words
}

// journal records an action.
func (p *process) journal(what string, e Entry) {
	e.What, e.PID = what, os.Getpid()
	if e.Session == "" {
		e.Session = p.session
	}
	appendLine(filepath.Join(p.dir, journalFile), e)
}

func toJSON(v any) string {
	text, err := json.Marshal(v)
	check(err)
	return string(text)
}

// appendLine appends a JSON line to a file, in one write.
func appendLine(path string, v any) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	check(err)
	_, err = f.WriteString(toJSON(v) + "\n")
	check(err)
	check(f.Close())
}

// emit writes the events of a format.
func (p *process) emit(name string, values object) {
	values["session"] = p.session
	var out bytes.Buffer
	check(streams.ExecuteTemplate(&out, p.cli+"/"+name, values))
	p.write(out.Bytes())
}

// print writes an event.
func (p *process) print(event any) { p.write([]byte(toJSON(event) + "\n")) }

// write writes to standard output and, like the CLIs, exits if the reader is gone.
func (p *process) write(b []byte) {
	p.out.Lock()
	defer p.out.Unlock()
	if _, err := os.Stdout.Write(b); err != nil {
		os.Exit(1)
	}
}

// apiCall records a call of the model API.
func (p *process) apiCall() {
	p.apiCalls++
	p.journal("api_call", Entry{})
}

// wait waits for a gate. It returns false if the turn is interrupted.
func (p *process) wait(gate string) bool {
	p.journal("gate", Entry{Text: gate})
	for {
		if _, err := os.Stat(filepath.Join(p.dir, gatesDir, gate)); err == nil {
			return true
		}
		if !p.pause(2 * time.Millisecond) {
			return false
		}
	}
}

// pause sleeps. It returns false if the turn is interrupted.
func (p *process) pause(d time.Duration) bool {
	select {
	case <-p.stop:
		return false
	case <-time.After(d):
		return !p.stopped.Load()
	}
}

// fail prints a message to standard error and returns the exit code.
func fail(code int, format string, args ...any) int {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	return code
}

// newUUID returns a random UUID.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// now returns the time in the format of the CLIs.
func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

// num returns a number of a step, or a default.
func num(args []string, at, otherwise int) int {
	if at < len(args) {
		if n, err := strconv.Atoi(args[at]); err == nil {
			return n
		}
	}
	return otherwise
}

// stdin returns all of standard input.
func stdin() string {
	data, _ := io.ReadAll(os.Stdin)
	return string(data)
}
