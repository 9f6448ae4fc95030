package executor

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"acescope/engine/process"
)

// always are the variables that every program gets, where they are set: where things are,
// and how to speak.
var always = []string{"PATH", "HOME", "LANG", "LC_*", "TZ", "TMPDIR", "USER"}

// alwaysWindows are those without which nothing runs on Windows.
var alwaysWindows = []string{"SystemRoot", "PATHEXT", "COMSPEC", "USERPROFILE", "TEMP", "TMP"}

// Variables that say for whom a program runs.
const (
	envRun     = "ACESCOPE_RUN_ID"
	envSession = "ACESCOPE_SESSION_ID"
	envProject = "ACESCOPE_PROJECT_DIR"
	envDir     = "ACESCOPE_BLUEPRINT_DIR"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// environ is the whole environment of a job's program.
func environ(j Job, parameters []string) ([]string, error) {
	allowed := slices.Clone(always)
	if runtime.GOOS == "windows" {
		allowed = append(allowed, alwaysWindows...)
	}
	for _, name := range j.Blueprint.Env {
		// A name with a star would stand for many.
		if !variableName.MatchString(name) {
			return nil, fmt.Errorf("env of the blueprint: %q is no variable's name", clip(name))
		}
		allowed = append(allowed, name)
	}
	own := []string{envRun + "=" + j.RunID, envSession + "=" + j.SessionID, envProject + "=" + j.ProjectDir}
	if j.Blueprint.Dir != "" {
		own = append(own, envDir+"="+j.Blueprint.Dir)
	}
	// None of the runner's variables may look like a parameter or like one of these.
	var unset []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, variablePrefix) {
			unset = append(unset, name)
		}
	}
	return process.Environ(allowed, unset, append(own, parameters...)), nil
}
