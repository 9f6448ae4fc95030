package executor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"acescope/engine/process"
	"acescope/engine/run"
)

// launch is a program that is ready to run. close removes its files.
type launch struct {
	argv  []string
	dir   string
	env   []string
	stdin []byte
	tmp   string // a directory that only this user may enter, "" for none
}

func (l *launch) close() {
	if l.tmp != "" {
		_ = os.RemoveAll(l.tmp)
	}
}

// badParameters are those that cannot be given to the program.
type badParameters struct{ error }

func (e *badParameters) Unwrap() error { return e.error }

// prepare makes a job's program ready. With an error nothing is left behind.
func (e *Executor) prepare(j Job) (*launch, error) {
	g, err := give(j.Blueprint.Strategy, j.Parameters)
	if err != nil {
		return nil, &badParameters{err}
	}
	l := &launch{stdin: g.stdin}
	if err := e.fill(l, j, g); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (e *Executor) fill(l *launch, j Job, g given) (err error) {
	if l.env, err = environ(j, g.env); err != nil {
		return err
	}
	if l.dir, err = workingDir(j); err != nil {
		return err
	}
	path := ""
	if g.file != nil {
		if path, err = e.keep(l, "parameters.json", g.file); err != nil {
			return err
		}
	}
	return e.command(l, j.Blueprint, g.args, path)
}

// command makes the argument vector. A shell's text gets parameters as "$@", and never as a
// part of itself.
func (e *Executor) command(l *launch, b run.Blueprint, args []string, file string) error {
	named := false // the file stands where the command wants it
	switch {
	case b.Shell:
		l.argv = []string{"/bin/sh", "-c", b.Command, "sh"}
	case b.Script != "":
		path, err := e.keep(l, "agent.command.sh", []byte(b.Script))
		if err != nil {
			return err
		}
		l.argv = append(interpreter(b.Script), path)
	case len(b.Argv) == 0:
		return errors.New("the blueprint has no command")
	default:
		named = file != "" && strings.Contains(strings.Join(b.Argv, "\x00"), placeFile)
		places := []string{placeDir, b.Dir}
		if file != "" {
			places = append(places, placeFile, file)
		}
		replace := strings.NewReplacer(places...)
		for _, a := range b.Argv {
			l.argv = append(l.argv, replace.Replace(a))
		}
	}
	l.argv = append(l.argv, args...)
	if file != "" && !named {
		l.argv = append(l.argv, file)
	}
	return nil
}

// interpreter is what runs a script: the program of its first line, with what stands after
// it as one argument, or else the shell. That is what the system would do; doing it here, the
// file need not be executable, which not every temporary directory allows.
func interpreter(script string) []string {
	first, _, _ := strings.Cut(script, "\n")
	rest, ok := strings.CutPrefix(first, "#!")
	if rest = strings.TrimSpace(rest); !ok || rest == "" {
		return []string{"/bin/sh"}
	}
	program, arg, _ := strings.Cut(strings.ReplaceAll(rest, "\t", " "), " ")
	if arg = strings.TrimSpace(arg); arg != "" {
		return []string{program, arg}
	}
	return []string{program}
}

// keep writes a file of the launch's own, which only this user may read.
func (e *Executor) keep(l *launch, name string, content []byte) (string, error) {
	if l.tmp == "" {
		dir, err := os.MkdirTemp(e.o.TempDir, "acescope-run-*") // 0700
		if err != nil {
			return "", fmt.Errorf("a directory for the run's files: %w", err)
		}
		l.tmp = dir
	}
	path := filepath.Join(l.tmp, name)
	mode := os.FileMode(0o600)
	if strings.HasSuffix(name, ".sh") {
		mode = 0o700
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		return "", fmt.Errorf("a file of the run: %w", err)
	}
	return path, nil
}

// workingDir is where a job's program runs.
func workingDir(j Job) (string, error) {
	dir := strings.ReplaceAll(j.Blueprint.WorkingDir, placeDir, j.Blueprint.Dir)
	switch {
	case dir == "":
		return j.ProjectDir, nil
	case strings.ContainsRune(dir, 0):
		return "", errors.New("working_dir: there is a NUL in it")
	case filepath.IsAbs(dir) || j.ProjectDir == "":
		return dir, nil
	}
	return filepath.Join(j.ProjectDir, dir), nil
}

// startTrouble says why a program was not started, and what to do where that is known.
func startTrouble(b run.Blueprint, err error) string {
	if tooLong(err) {
		strategy := b.Strategy
		if strategy == "" {
			strategy = run.StdinJSON
		}
		return fmt.Sprintf("the parameters are too long for the strategy %s: use stdin_json or file", strategy)
	}
	var start *process.StartError
	if errors.As(err, &start) && b.Script != "" && start.Reason == process.NotFound {
		return fmt.Sprintf("%s: the interpreter in the first line of agent.command.sh is not there", start.Name)
	}
	return err.Error()
}
