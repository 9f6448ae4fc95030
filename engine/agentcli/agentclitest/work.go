package agentclitest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// agent is the stand-in's process.
type agent struct {
	cli  string
	dir  string
	set  settings
	argv []string

	mu  sync.Mutex // of out
	out io.Writer

	session string
	calls   int // of the API, in this process

	// stop has a word for each interruption of the turn; nil where there is no such thing.
	stop    chan struct{}
	stopped atomic.Bool // the turn was interrupted
}

// flags are the values of --name=value and --name value, by name; plain is the rest.
func (a *agent) flags(withValue ...string) (values map[string]string, plain []string) {
	values = map[string]string{}
	takes := map[string]bool{}
	for _, f := range withValue {
		takes[f] = true
	}
	for i := 0; i < len(a.argv); i++ {
		arg := a.argv[i]
		name, value, ok := strings.Cut(arg, "=")
		switch {
		case arg == "--":
			return values, append(plain, a.argv[i+1:]...)
		case !strings.HasPrefix(arg, "-") || arg == "-":
			plain = append(plain, arg)
		case ok:
			values[strings.TrimLeft(name, "-")] = value
		case takes[strings.TrimLeft(name, "-")] && i+1 < len(a.argv):
			i++
			values[strings.TrimLeft(name, "-")] = a.argv[i]
		default:
			values[strings.TrimLeft(name, "-")] = "true"
		}
	}
	return values, plain
}

// journal writes down what is done, in one write.
func (a *agent) journal(what string, e Entry) {
	e.What, e.PID, e.At = what, os.Getpid(), time.Now().UTC()
	if e.Session == "" {
		e.Session = a.session
	}
	line, err := json.Marshal(e)
	if err == nil {
		err = appendLine(a.set.Journal, line)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stand-in:", err)
		os.Exit(70)
	}
}

func appendLine(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// print writes an event. When nobody reads any more, the process ends, as the CLIs do.
func (a *agent) print(event any) {
	line, err := json.Marshal(event)
	if err != nil {
		panic(err) // an event of our own making
	}
	a.write(append(line, '\n'))
}

func (a *agent) write(b []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.out.Write(b); err != nil {
		os.Exit(1)
	}
}

// apiCall is a call of the model's API.
func (a *agent) apiCall() {
	a.calls++
	a.journal("api_call", Entry{})
}

// wait waits at a gate. It is false when the turn is interrupted there.
func (a *agent) wait(gate string) bool {
	a.journal("gate", Entry{Text: gate})
	for {
		if _, err := os.Stat(filepath.Join(a.set.Gates, gate)); err == nil {
			return true
		}
		if !a.pause(2 * time.Millisecond) {
			return false
		}
	}
}

// pause lets time go by. It is false when the turn is interrupted meanwhile.
func (a *agent) pause(d time.Duration) bool {
	select {
	case <-a.stop:
		return false
	case <-time.After(d):
		return !a.stopped.Load()
	}
}

// newUUID is a random UUID.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// now is the time as the CLIs write it.
func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

// num is a step's number, or another where it says none.
func num(args []string, at, otherwise int) int {
	if at < len(args) {
		if n, err := strconv.Atoi(args[at]); err == nil {
			return n
		}
	}
	return otherwise
}

// stdin is all of standard input.
func stdin() string {
	data, _ := io.ReadAll(os.Stdin)
	return string(data)
}

type object = map[string]any
