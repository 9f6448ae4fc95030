package host

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/kballard/go-shellquote"

	"acescope/engine/internal/process"
)

// Bounds of the served tools, in bytes.
const (
	maxRead    = 256 << 10
	maxWrite   = 4 << 20
	maxPath    = 4096
	maxArgv    = 64 << 10
	outputKept = 128 << 10 // bytes of the beginning, and as many of the end, of a command's output
)

// Time limits of a command.
const (
	commandTimeout    = 10 * time.Minute
	commandTimeoutMax = time.Hour
)

// decodeArgs decodes a tool's arguments, which its schema has checked.
func decodeArgs(raw json.RawMessage, args any) error {
	if err := json.Unmarshal(raw, args); err != nil {
		return fmt.Errorf("malformed arguments: %w", err)
	}
	return nil
}

// openRoot opens the working directory for a path below it. The root rejects paths that lead out of
// it, also through links.
func openRoot(dir, name string) (*os.Root, error) {
	if name == "" || len(name) > maxPath {
		return nil, fmt.Errorf("path: use 1 to %d bytes", maxPath)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fileError(".", err)
	}
	return root, nil
}

// fileError returns an error with the path as the agent wrote it, which may differ from the path
// in the error.
func fileError(name string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	} else if l, ok := errors.AsType[*os.LinkError](err); ok {
		err = l.Err
	}
	if strings.Contains(err.Error(), "escapes") {
		return fmt.Errorf("%q is outside of the working directory", name)
	}
	return fmt.Errorf("%q: %w", name, err)
}

func readFile(_ context.Context, dir string, raw json.RawMessage) (string, error) {
	var args struct {
		Path   string `json:"path"`
		Offset int64  `json:"offset"`
		Limit  int64  `json:"limit"`
	}
	if err := decodeArgs(raw, &args); err != nil {
		return "", err
	}
	root, err := openRoot(dir, args.Path)
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, err := root.OpenFile(args.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // does not wait for a pipe
	if err != nil {
		return "", fileError(args.Path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	limit := int64(maxRead)
	if args.Limit > 0 {
		limit = min(limit, args.Limit)
	}
	var data []byte
	if err == nil {
		data, err = io.ReadAll(io.NewSectionReader(f, args.Offset, limit))
	}
	if err != nil {
		return "", fileError(args.Path, err)
	}
	text := strings.ToValidUTF8(string(data), "�")
	if end := args.Offset + int64(len(data)); end < info.Size() {
		text += fmt.Sprintf("\n[%d of %d bytes omitted: continue with offset %d]", info.Size()-end,
			info.Size(), end)
	}
	return text, nil
}

var errNotRegular = errors.New("not a regular file")

func writeFile(_ context.Context, dir string, raw json.RawMessage) (string, error) {
	var args struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	if err := decodeArgs(raw, &args); err != nil {
		return "", err
	}
	if len(args.Content) > maxWrite {
		return "", fmt.Errorf("the content has %d bytes; at most %d can be written", len(args.Content),
			maxWrite)
	}
	root, err := openRoot(dir, args.Path)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := replaceFile(root, path.Clean(filepath.ToSlash(args.Path)), []byte(args.Content)); err != nil {
		return "", fileError(args.Path, err)
	}
	return fmt.Sprintf("wrote %d bytes to %s", len(args.Content), args.Path), nil
}

// replaceFile writes a temporary file and renames it.
func replaceFile(root *os.Root, name string, content []byte) error {
	mode := fs.FileMode(0o644)
	info, err := root.Lstat(name)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return errNotRegular
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	dir := path.Dir(name)
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tmp := path.Join(dir, ".acescope-"+rand.Text())
	f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = root.Rename(tmp, name)
	}
	if err != nil {
		_ = root.Remove(tmp)
	}
	return err
}

// commandEnv are the variables that commands inherit: paths and locale, no keys.
var commandEnv = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TEMP", "TMP", "LANG", "LC_*",
	"TZ", "TERM",
	"GOPATH", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME",
	"VIRTUAL_ENV", "NVM_DIR",
	"SystemRoot", "APPDATA", "LOCALAPPDATA", "USERPROFILE", "PATHEXT", "COMSPEC"}

type commandArgs struct {
	Command string   `json:"command"`
	Argv    []string `json:"argv"`
	Timeout int64    `json:"timeout_seconds"`
}

// commandArgv returns the program of a call of run_command and its arguments.
func commandArgv(raw json.RawMessage) ([]string, error) {
	var args commandArgs
	if err := decodeArgs(raw, &args); err != nil {
		return nil, err
	}
	switch {
	case len(raw) > maxArgv:
		return nil, fmt.Errorf("the command is longer than %d bytes", maxArgv)
	case (args.Command == "") == (len(args.Argv) == 0):
		return nil, errors.New("use either command or argv")
	case args.Command == "":
		return args.Argv, nil
	}
	argv, err := shellquote.Split(args.Command)
	if err != nil {
		return nil, fmt.Errorf("malformed quoting in the command: %w", err)
	}
	if len(argv) == 0 {
		return nil, errors.New("the command is empty")
	}
	return argv, nil
}

func runCommand(ctx context.Context, dir string, raw json.RawMessage) (string, error) {
	argv, err := commandArgv(raw)
	if err != nil {
		return "", err
	}
	var args commandArgs
	if err := decodeArgs(raw, &args); err != nil {
		return "", err
	}
	timeout := commandTimeout
	if args.Timeout > 0 {
		timeout = min(time.Duration(args.Timeout)*time.Second, commandTimeoutMax)
	}
	out := process.NewTail(outputKept, outputKept)
	exit := process.Run(ctx, process.Spec{
		Argv: argv, Dir: dir, Env: process.Environ(commandEnv, nil, nil), Stdout: out, Stderr: out,
		Timeout: timeout, DieWithParent: true,
	})
	text := strings.ToValidUTF8(out.String(), "�")
	switch {
	case exit.Err != nil:
		return "", exit.Err
	case exit.Class == process.TimedOut:
		return "", fmt.Errorf("%s\n[stopped after the time limit of %s]", text, timeout)
	case exit.Signal != "":
		return "", fmt.Errorf("%s\n[ended by signal %q]", text, exit.Signal)
	case exit.Code != 0:
		return "", fmt.Errorf("%s\n[exit code %d]", text, exit.Code)
	}
	if exit.Cut {
		text += "\n[a child process is still running; its output is no longer read]"
	}
	return text, nil
}
