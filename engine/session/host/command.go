package host

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/kballard/go-shellquote"

	"acescope/engine/process"
)

// Bounds of a command that an agent has run: how long it may take, and how much of what it
// prints is kept, in bytes, of its begin and its end.
const (
	commandWithin = 10 * time.Minute
	commandMax    = time.Hour
	outputKept    = 128 << 10
	maxArgv       = 64 << 10
)

// commandEnv are the variables that commands see: where things are, and how to speak. Keys
// are not among them.
var commandEnv = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TEMP", "TMP", "LANG", "LC_*", "TZ", "TERM",
	"GOPATH", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "VIRTUAL_ENV", "NVM_DIR",
	"SystemRoot", "APPDATA", "LOCALAPPDATA", "USERPROFILE", "PATHEXT", "COMSPEC"}

func runCommand(ctx context.Context, _ *Host, dir string, raw json.RawMessage) (string, bool) {
	var args struct {
		Command string   `json:"command"`
		Argv    []string `json:"argv"`
		Timeout int64    `json:"timeout_seconds"`
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return refuse("the arguments are not understood: %v", err)
	}
	argv := args.Argv
	switch {
	case len(raw) > maxArgv:
		return refuse("the command is longer than %d bytes", maxArgv)
	case (args.Command == "") == (len(args.Argv) == 0):
		return refuse("either command or argv is needed")
	case args.Command != "":
		var err error
		if argv, err = shellquote.Split(args.Command); err != nil {
			return refuse("the command is not quoted well: %v", err)
		}
	}
	within := commandWithin
	if args.Timeout > 0 {
		within = min(time.Duration(args.Timeout)*time.Second, commandMax)
	}
	out := process.NewTail(outputKept, outputKept)
	exit := process.Run(ctx, process.Spec{Argv: argv, Dir: dir, Env: process.Environ(commandEnv, nil, nil), Stdout: out, Stderr: out,
		Timeout: within, DieWithParent: true})
	text := strings.ToValidUTF8(out.String(), "�")
	switch {
	case exit.Err != nil:
		return refuse("%v", exit.Err)
	case exit.Class == process.TimedOut:
		return refuse("%s\n[it took longer than %s and was ended]", text, within)
	case exit.Signal != "":
		return refuse("%s\n[it was ended by signal %q]", text, exit.Signal)
	case exit.Code != 0:
		return refuse("%s\n[exit code %d]", text, exit.Code)
	}
	if exit.Cut {
		text += "\n[a child of it still runs, and is no longer waited for]"
	}
	return text, false
}
