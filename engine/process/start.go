package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Reason is why a program could not be started.
type Reason string

// Reasons.
const (
	NotFound      Reason = "not_found"      // there is no such program
	NotExecutable Reason = "not_executable" // it is there, but cannot be run
	BadDir        Reason = "bad_dir"        // the directory to run it in
	BadSpec       Reason = "bad_spec"       // no program is named, or there is a NUL in an argument
	NotAsked      Reason = "not_asked"      // the context was done before
	Other         Reason = "other"          // such as too many processes
)

// StartError says in a line why a program could not be started.
type StartError struct {
	Reason Reason
	Name   string // the program, or for BadDir the directory
	Err    error
}

func (e *StartError) Error() string {
	switch e.Reason {
	case NotFound:
		return fmt.Sprintf("%s: there is no such program", e.Name)
	case NotExecutable:
		return fmt.Sprintf("%s: it cannot be run: %v", e.Name, e.Err)
	case BadDir:
		return fmt.Sprintf("%s: no directory to run in: %v", e.Name, e.Err)
	case NotAsked:
		return fmt.Sprintf("%s: not started: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("%s: cannot be started: %v", e.Name, e.Err)
}

func (e *StartError) Unwrap() error { return e.Err }

// locate finds the program and looks at what can be known to be wrong.
func locate(spec Spec) (string, error) {
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return "", &StartError{BadSpec, "process", errors.New("no program is named")}
	}
	for _, s := range append(append([]string{spec.Dir}, spec.Argv...), spec.Env...) {
		if strings.ContainsRune(s, 0) {
			return "", &StartError{BadSpec, name(spec.Argv), errors.New("there is a NUL in an argument, the environment or the directory")}
		}
	}
	if spec.Input != nil && spec.Pipe {
		return "", &StartError{BadSpec, name(spec.Argv), errors.New("its input is either bytes or a pipe")}
	}
	if spec.Dir != "" {
		if err := isDir(spec.Dir); err != nil {
			return "", &StartError{BadDir, spec.Dir, plain(err)}
		}
	}
	return Look(spec.Argv[0], spec.Dir, spec.Env)
}

// Look finds a program: a name with a slash from the directory (or, where that is "", from
// this process's), another in the PATH of the environment. Directories of the PATH that
// are not absolute are left out. An error is of type [*StartError].
func Look(program, dir string, env []string) (string, error) {
	if filepath.Base(program) != program {
		path := program
		if dir != "" && !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		found, err := runnable(path)
		if err != nil {
			return "", lookError(program, err)
		}
		if found, err = filepath.Abs(found); err != nil {
			return "", &StartError{Other, program, err}
		}
		return found, nil
	}
	var seen error = fs.ErrNotExist
	for _, d := range filepath.SplitList(value(env, "PATH")) {
		if !filepath.IsAbs(d) {
			continue
		}
		found, err := runnable(filepath.Join(d, program))
		if err == nil {
			return found, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && errors.Is(seen, fs.ErrNotExist) {
			seen = err
		}
	}
	return "", lookError(program, seen)
}

func lookError(program string, err error) *StartError {
	if errors.Is(err, fs.ErrNotExist) {
		return &StartError{NotFound, program, err}
	}
	return &StartError{NotExecutable, program, plain(err)}
}

// startError sorts an error of the operating system.
func startError(spec Spec, path string, err error) error {
	switch {
	case spec.Dir != "" && isDir(spec.Dir) != nil:
		return &StartError{BadDir, spec.Dir, plain(err)}
	case errors.Is(err, fs.ErrNotExist):
		if _, there := os.Stat(path); there == nil {
			return &StartError{NotExecutable, spec.Argv[0], errors.New("the interpreter in its first line is not there")}
		}
		return &StartError{NotFound, spec.Argv[0], plain(err)}
	case errors.Is(err, fs.ErrPermission), notProgram(err):
		return &StartError{NotExecutable, spec.Argv[0], plain(err)}
	}
	return &StartError{Other, spec.Argv[0], plain(err)}
}

// plain is the cause without the path, which is told already.
func plain(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

func isDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = errors.New("it is no directory")
	}
	return err
}

func name(argv []string) string {
	if len(argv) == 0 {
		return "process"
	}
	return argv[0]
}
