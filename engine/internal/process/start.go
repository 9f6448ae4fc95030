package process

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Reason is the reason why a program could not be started.
type Reason string

// Reasons.
const (
	NotFound      Reason = "not_found"
	NotExecutable Reason = "not_executable"
	BadDir        Reason = "bad_dir"   // the working directory
	BadSpec       Reason = "bad_spec"  // no program, or a NUL byte in an argument
	ContextDone   Reason = "not_asked" // the context had already ended
	Other         Reason = "other"     // such as too many processes
)

// StartError reports why a program could not be started.
type StartError struct {
	Reason Reason
	Name   string // the program, or for BadDir the directory
	Err    error
}

func (e *StartError) Error() string {
	switch e.Reason {
	case NotFound:
		return fmt.Sprintf("%s: program not found", e.Name)
	case NotExecutable:
		return fmt.Sprintf("%s: cannot be executed: %v", e.Name, e.Err)
	case BadDir:
		return fmt.Sprintf("%s: invalid working directory: %v", e.Name, e.Err)
	case ContextDone:
		return fmt.Sprintf("%s: not started: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("%s: cannot be started: %v", e.Name, e.Err)
}

func (e *StartError) Unwrap() error { return e.Err }

// IsStartError reports whether the error is a [StartError] with that reason.
func IsStartError(err error, reason Reason) bool {
	s, ok := errors.AsType[*StartError](err)
	return ok && s.Reason == reason
}

// locate checks the spec and finds the program.
func locate(spec Spec) (string, error) {
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return "", &StartError{BadSpec, "process", errors.New("no program is given")}
	}
	for _, s := range slices.Concat([]string{spec.Dir}, spec.Argv, spec.Env) {
		if strings.ContainsRune(s, 0) {
			return "", &StartError{BadSpec, spec.Argv[0],
				errors.New("a NUL byte in the arguments, environment or directory")}
		}
	}
	if spec.Input != nil && spec.Pipe {
		return "", &StartError{BadSpec, spec.Argv[0], errors.New("the input is either bytes or a pipe")}
	}
	if spec.Dir != "" {
		if err := checkDir(spec.Dir); err != nil {
			return "", &StartError{BadDir, spec.Dir, cause(err)}
		}
	}
	return LookPath(spec.Argv[0], spec.Dir, spec.Env)
}

// LookPath finds a program: a name with a slash relative to dir (or to this process's directory
// if dir is ""), any other name in the PATH of the environment. Relative directories in PATH are
// ignored. Errors are of type [*StartError].
func LookPath(program, dir string, env []string) (string, error) {
	if filepath.Base(program) != program {
		path := program
		if dir != "" && !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		found, err := executable(path)
		if err != nil {
			return "", lookError(program, err)
		}
		if found, err = filepath.Abs(found); err != nil {
			return "", &StartError{Other, program, err}
		}
		return found, nil
	}
	var failure error = fs.ErrNotExist
	for _, d := range filepath.SplitList(lookupEnv(env, "PATH")) {
		if !filepath.IsAbs(d) {
			continue
		}
		found, err := executable(filepath.Join(d, program))
		if err == nil {
			return found, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && errors.Is(failure, fs.ErrNotExist) {
			failure = err
		}
	}
	return "", lookError(program, failure)
}

func lookError(program string, err error) *StartError {
	if errors.Is(err, fs.ErrNotExist) {
		return &StartError{NotFound, program, err}
	}
	return &StartError{NotExecutable, program, cause(err)}
}

// startError classifies an error of the operating system.
func startError(spec Spec, path string, err error) error {
	program := spec.Argv[0]
	switch {
	case spec.Dir != "" && checkDir(spec.Dir) != nil:
		return &StartError{BadDir, spec.Dir, cause(err)}
	case errors.Is(err, fs.ErrNotExist):
		if _, statErr := os.Stat(path); statErr == nil {
			return &StartError{NotExecutable, program,
				errors.New("the interpreter in its first line does not exist")}
		}
		return &StartError{NotFound, program, cause(err)}
	case errors.Is(err, fs.ErrPermission), isNotProgram(err):
		return &StartError{NotExecutable, program, cause(err)}
	}
	return &StartError{Other, program, cause(err)}
}

// cause returns the error without the path, which the StartError has.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

func checkDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory")
	}
	return err
}

func name(argv []string) string {
	if len(argv) == 0 {
		return "process"
	}
	return argv[0]
}

// Environ builds the environment of a program: this process's variables whose names match (a
// name that ends with * is a prefix), without those in unset, and the additions, as NAME=value.
// Each name occurs once; the result is sorted.
func Environ(names, unset, additions []string) []string {
	return environ(os.Environ(), names, unset, additions)
}

func environ(all, names, unset, additions []string) []string {
	vars := map[string]string{}
	for _, v := range all {
		if name, _, ok := strings.Cut(v, "="); ok && name != "" && matchesAny(names, name) &&
			!slices.Contains(unset, name) {
			vars[name] = v
		}
	}
	for _, v := range additions {
		if name, _, ok := strings.Cut(v, "="); ok && name != "" {
			vars[name] = v
		}
	}
	return slices.Sorted(maps.Values(vars))
}

func matchesAny(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		if prefix, ok := strings.CutSuffix(n, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		return n == name
	})
}

// lookupEnv returns the value of a variable, or "". The last occurrence wins.
func lookupEnv(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}
