package executor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"acescope/engine/internal/process"
	"acescope/engine/tasks/run"
)

// NewExternal returns the executor at a path. Its type is the name of its directory.
func NewExternal(path string) (External, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return External{}, err
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return External{}, fmt.Errorf("executor %s: the program does not exist", path)
	case err != nil:
		return External{}, fmt.Errorf("executor %s: %s", path, withoutPath(err))
	case info.IsDir():
		return External{}, fmt.Errorf("executor %s: it is a directory; name the program in it", path)
	}
	x := External{Type: filepath.Base(filepath.Dir(abs)), Path: abs}
	if !run.ValidName(x.Type) {
		return x, fmt.Errorf("executor %s: its directory name %q is not a valid executor type", path, x.Type)
	}
	return x, nil
}

// launch is a program that is ready to run. close removes its files.
type launch struct {
	argv  []string
	dir   string
	env   []string
	stdin []byte
	tmp   string // a private directory, or ""
}

func (l *launch) close() {
	if l.tmp != "" {
		_ = os.RemoveAll(l.tmp)
	}
}

// prepare makes a job's program ready to run.
func (e *Executor) prepare(j Job, p passed) (l *launch, err error) {
	l = &launch{stdin: p.stdin}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.env, err = environ(j, p.env); err != nil {
		return l, err
	}
	if l.dir, err = workingDir(j); err != nil {
		return l, err
	}
	path := ""
	if p.file != nil {
		if path, err = e.writeFile(l, "parameters.json", p.file, 0o600); err != nil {
			return l, err
		}
	}
	return l, e.setArgv(l, j.Blueprint, p.args, path)
}

// setArgv sets the argument vector. A shell gets parameters as "$@", never as part of its
// text.
func (e *Executor) setArgv(l *launch, b run.Blueprint, args []string, file string) error {
	switch {
	case b.Shell:
		l.argv = []string{"/bin/sh", "-c", b.Command, "sh"}
	case b.Script != "":
		path, err := e.writeFile(l, "agent.command.sh", []byte(b.Script), 0o700)
		if err != nil {
			return err
		}
		l.argv = append(interpreter(b.Script), path)
	case len(b.Argv) == 0:
		return errors.New("the blueprint has no command")
	default:
		replaced := []string{run.DirPlaceholder, b.Dir}
		if file != "" {
			replaced = append(replaced, run.FilePlaceholder, file)
		}
		replacer := strings.NewReplacer(replaced...)
		for _, a := range b.Argv {
			l.argv = append(l.argv, replacer.Replace(a))
		}
		if strings.Contains(strings.Join(b.Argv, "\x00"), run.FilePlaceholder) {
			file = "" // it is in the command, so it is not the last argument
		}
	}
	l.argv = append(l.argv, args...)
	if file != "" {
		l.argv = append(l.argv, file)
	}
	return nil
}

// interpreter returns the interpreter in the first line of a script with its argument, or the
// shell. The system would do the same, but only for an executable file, which some temporary
// directories do not allow.
func interpreter(script string) []string {
	first, _, _ := strings.Cut(script, "\n")
	rest, ok := strings.CutPrefix(first, "#!")
	rest = strings.TrimSpace(rest)
	if !ok || rest == "" {
		return []string{"/bin/sh"}
	}
	program, arg, _ := strings.Cut(strings.ReplaceAll(rest, "\t", " "), " ")
	if arg = strings.TrimSpace(arg); arg != "" {
		return []string{program, arg}
	}
	return []string{program}
}

// writeFile writes a private file of the launch and returns its path.
func (e *Executor) writeFile(l *launch, name string, content []byte, mode os.FileMode) (string, error) {
	if l.tmp == "" {
		dir, err := os.MkdirTemp(e.o.TempDir, "acescope-run-*") // 0700
		if err != nil {
			return "", fmt.Errorf("create a directory for the run's files: %w", err)
		}
		l.tmp = dir
	}
	path := filepath.Join(l.tmp, name)
	if err := os.WriteFile(path, content, mode); err != nil {
		return "", fmt.Errorf("write a file of the run: %w", err)
	}
	return path, nil
}

// workingDir returns the directory in which a job's program runs.
func workingDir(j Job) (string, error) {
	dir := strings.ReplaceAll(j.Blueprint.WorkingDir, run.DirPlaceholder, j.Blueprint.Dir)
	switch {
	case dir == "":
		return j.ProjectDir, nil
	case strings.ContainsRune(dir, 0):
		return "", errors.New("working_dir: contains a NUL")
	case filepath.IsAbs(dir) || j.ProjectDir == "":
		return dir, nil
	}
	return filepath.Join(j.ProjectDir, dir), nil
}

// startError describes why a program could not be started, and if possible what to do.
func startError(b run.Blueprint, err error) string {
	if errors.Is(err, syscall.E2BIG) || runtime.GOOS == "windows" && errors.Is(err, fs.ErrInvalid) {
		return fmt.Sprintf("the parameters are too long for the strategy %s: use stdin_json or file",
			cmp.Or(b.Strategy, run.StdinJSON))
	}
	start, ok := errors.AsType[*process.StartError](err)
	if ok && b.Script != "" && start.Reason == process.NotFound {
		return fmt.Sprintf("%s: the interpreter in the first line of agent.command.sh does not exist",
			start.Name)
	}
	return err.Error()
}

// Variables that every program inherits.
var (
	inherited        = []string{"PATH", "HOME", "LANG", "LC_*", "TZ", "TMPDIR", "USER"}
	inheritedWindows = []string{"SystemRoot", "PATHEXT", "COMSPEC", "USERPROFILE", "TEMP", "TMP"}
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// environ returns the environment of a job's program.
func environ(j Job, parameters []string) ([]string, error) {
	allowed := slices.Clone(inherited)
	if runtime.GOOS == "windows" {
		allowed = append(allowed, inheritedWindows...)
	}
	for _, name := range j.Blueprint.Env {
		if !variableName.MatchString(name) { // "*" would match many variables
			return nil, fmt.Errorf("env of the blueprint: %q is not a valid variable name", short(name))
		}
		allowed = append(allowed, name)
	}
	own := []string{"ACESCOPE_RUN_ID=" + j.RunID, "ACESCOPE_SESSION_ID=" + j.SessionID,
		"ACESCOPE_PROJECT_DIR=" + j.ProjectDir}
	if j.Blueprint.Dir != "" {
		own = append(own, "ACESCOPE_BLUEPRINT_DIR="+j.Blueprint.Dir)
	}
	var unset []string // variables of the runner that look like parameters
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, run.EnvPrefix) {
			unset = append(unset, name)
		}
	}
	return process.Environ(allowed, unset, append(own, parameters...)), nil
}
