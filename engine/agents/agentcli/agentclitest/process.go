//go:build unix

package agentclitest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/template"
	"time"

	"github.com/google/uuid"
)

//go:embed streams.tmpl
var streamsText string

// streams are the formats of events, named CLI/EVENT.
var streams = template.Must(template.New("").Funcs(template.FuncMap{
	"json":   toJSON,
	"uuid":   func() string { return strconv.Quote(uuid.NewString()) },
	"now":    func() string { return strconv.Quote(now()) },
	"millis": func() int64 { return time.Now().UnixMilli() },
	"mul":    func(a, b int) int { return a * b },
	"exit":   func(code int) string { exitCode = code; return "" },
	"stderr": func(code int, text string) string {
		exitCode = code
		fmt.Fprintln(os.Stderr, text)
		return ""
	},
}).Parse(streamsText))

// exitCode is the exit code that the last event has set.
var exitCode int

// childName is the name of the stand-in's own children.
const childName = "stand-in-child"

// environment is that of the test program before tests change it.
var environment = os.Environ()

// program builds the program of the stand-ins next to that of the test, which would start many times slower
// where it links the Temporal server.
var program = sync.OnceValues(func() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(self), "stand-in")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", path,
		"acescope/engine/agents/agentcli/agentclitest/standin")
	build.Env = environment
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the stand-in: %w\n%s", err, out)
	}
	return path, nil
})

// Main is the main function of the program.
func Main() {
	name := filepath.Base(os.Args[0])
	if name == childName {
		waitForEnd(filepath.Dir(os.Args[0]))
	}
	path, err := exec.LookPath(os.Args[0])
	check(err)
	dir, err := filepath.Abs(filepath.Dir(path))
	check(err)
	data, err := os.ReadFile(filepath.Join(dir, settingsFile))
	check(err)
	p := &process{cli: name, dir: dir, flags: map[string]string{}, signals: make(chan os.Signal, 4)}
	check(json.Unmarshal(data, &p.settings))
	os.Exit(p.run())
}

// waitForEnd ends the process when the test that started the stand-in has removed its directory.
func waitForEnd(dir string) {
	for {
		if _, err := os.Stat(filepath.Join(dir, settingsFile)); err != nil {
			os.Exit(0)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// check ends the process on an error of the stand-in itself.
func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "stand-in:", err)
		os.Exit(70)
	}
}

type object = map[string]any

// process is one process of a stand-in. It handles signals and input while it waits.
type process struct {
	cli      string
	dir      string
	settings settings
	flags    map[string]string // --name=value and --name
	words    []string          // other arguments
	session  string
	apiCalls int // of this process
	children []int

	signals     chan os.Signal
	onInterrupt func()      // handles SIGINT
	onExit      func()      // is called before SIGTERM ends the process
	input       chan []byte // the lines of standard input, nil if they are not read
	onInput     func(line []byte, open bool)
	interrupted bool // the turn was interrupted
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

func (p *process) run() int {
	p.journal("start", Entry{Text: strings.Join(os.Args[1:], " ")})
	for _, arg := range os.Args[1:] {
		name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case !strings.HasPrefix(arg, "-") || arg == "-":
			p.words = append(p.words, arg)
		case hasValue:
			p.flags[name] = value
		default:
			p.flags[name] = "true"
		}
	}
	switch {
	case p.flags["version"] != "":
		fmt.Println(map[string]string{"codex": "codex-cli "}[p.cli] + p.settings.Version)
		return 0
	case p.cli == "claude":
		return p.claude()
	}
	return p.oneShot()
}

// handle handles a signal or a line of input, for which it waits up to d. It returns false if
// neither comes.
func (p *process) handle(d time.Duration) bool {
	select {
	case <-time.After(d):
		return false
	case line, open := <-p.input:
		p.onInput(line, open)
	case s := <-p.signals:
		if s == syscall.SIGINT {
			p.onInterrupt()
			break
		}
		for _, pid := range p.children {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		p.onExit()
		os.Exit(143)
	}
	return true
}

// wait handles signals and input for d. It returns false if the turn was interrupted.
func (p *process) wait(d time.Duration) bool {
	for until := time.Now().Add(d); !p.interrupted && p.handle(time.Until(until)); {
	}
	return !p.interrupted
}

// waitFor waits for a gate. It returns false if the turn was interrupted.
func (p *process) waitFor(gate string) bool {
	p.journal("gate", Entry{Text: gate})
	for p.wait(2 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(p.dir, gatesDir, gate)); err == nil {
			return true
		}
	}
	return false
}

// startChildren starts two processes that stay and hold standard output: one in the process
// group, one in its own, like a shell. The CLIs kill them on SIGTERM.
func (p *process) startChildren() {
	for _, own := range []bool{false, true} {
		cmd := exec.Command(filepath.Join(p.dir, childName))
		cmd.Stdout = os.Stdout
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: own}
		check(cmd.Start())
		p.children = append(p.children, cmd.Process.Pid)
		p.journal("child", Entry{Text: fmt.Sprint(cmd.Process.Pid)})
	}
}

// handleSignals makes SIGTERM call exit and end the process without a result, and SIGINT call
// interrupt, while the process waits.
func (p *process) handleSignals(interrupt, exit func()) {
	p.onInterrupt, p.onExit = interrupt, exit
	signal.Notify(p.signals, syscall.SIGTERM, syscall.SIGINT)
}

func (p *process) journal(what string, e Entry) {
	e.What, e.PID, e.Session = what, os.Getpid(), p.session
	appendLine(filepath.Join(p.dir, journalFile), e)
}

func (p *process) apiCall() {
	p.apiCalls++
	p.journal("api_call", Entry{})
}

// emit writes the events of a format.
func (p *process) emit(name string, values object) {
	values["session"] = p.session
	var out bytes.Buffer
	check(streams.ExecuteTemplate(&out, p.cli+"/"+name, values))
	p.write(out.Bytes())
}

// write writes to standard output and, like the CLIs, exits if the reader is gone.
func (p *process) write(b []byte) {
	if _, err := os.Stdout.Write(b); err != nil {
		os.Exit(1)
	}
}

// fail prints a message to standard error and returns the exit code.
func fail(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	return 1
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

// now returns the time in the format of the CLIs.
func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }
