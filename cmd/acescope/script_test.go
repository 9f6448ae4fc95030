package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/store/bucket"
)

// stormAgeEnv is the variable with the age of objects that programs of a storm may delete.
const stormAgeEnv = "ACESCOPE_STORM_AGE"

// testsPerProcessor sets the default of -parallel. The tests mostly wait: for a server to start, for a killed
// process to be missed. With 4, a worker did not answer doctor within its 5 seconds on a loaded machine.
const testsPerProcessor = 3

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(testsPerProcessor*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	testscript.Main(tests{m}, map[string]func(){"acescope": program})
}

// tests are the tests, which trust the data directories that they share between homes. Scripts have an
// environment of their own.
type tests struct{ *testing.M }

func (t tests) Run() int {
	state, err := os.MkdirTemp("", "acescope-state-")
	if err == nil {
		err = errors.Join(os.Setenv("XDG_STATE_HOME", state), os.Setenv("ACESCOPE_TRUST_DATA_DIR", "true"))
	}
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(state)
	return t.M.Run()
}

// program is the program acescope of the tests, or a worker that may be killed.
func program() {
	if config := os.Getenv(flowWorkerEnv); config != "" {
		if err := new(flowWorker).run(config); err != nil {
			fmt.Fprintln(os.Stderr, "flow worker:", err)
			os.Exit(1)
		}
		return
	}
	noteProgram()
	if age, err := time.ParseDuration(os.Getenv(stormAgeEnv)); err == nil {
		bucket.MinAge = age
	}
	os.Exit(execute())
}

var scriptCommands = map[string]func(*testscript.TestScript, bool, []string){
	"barereplay":  barereplay,
	"cluster":     newCluster,
	"codecserver": codecServer,
	"conforms":    conforms,
	"endpid":      endPID,
	"eventually":  eventually,
	"exits":       exits,
	"field":       field,
	"freeport":    freePort,
	"hook":        callHook,
	"lines":       lineCount,
	"mcptool":     mcpTool,
	"modelserver": modelServer,
	"playagent":   playAgent,
	"s3":          s3Store,
	"sameusage":   sameUsage,
	"save":        save,
	"task":        taskOf,
	"up":          up,
}

// TestScripts runs the scripts in testdata/script. Each has its own data directory. Most start a host in the
// background that the other commands attach to.
func TestScripts(t *testing.T) {
	t.Parallel()
	agent := agentclitest.New(t, "claude")
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_DATA_HOME", e.WorkDir+"/data")
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("TERM", "dumb")
			e.Setenv("PATH", agent.Dir()+string(os.PathListSeparator)+e.Getenv("PATH"))
			if filepath.Base(e.WorkDir) == "script-agent" {
				a := agentclitest.New(t, "claude")
				e.Setenv("PATH", a.Dir()+string(filepath.ListSeparator)+e.Getenv("PATH"))
				e.Setenv("CLAUDE_CONFIG_DIR", a.ConfigDir())
			}
			if name := filepath.Base(e.WorkDir); name == "script-flowbuild" || name == "script-sessionusage" {
				for _, cli := range []string{"codex", "gemini", "opencode"} {
					other := agentclitest.New(t, cli)
					e.Setenv("PATH", other.Dir()+string(filepath.ListSeparator)+e.Getenv("PATH"))
				}
			}
			histories, err := filepath.Abs("../../engine/workflows/testdata")
			e.Setenv("HISTORIES", histories)
			recorded, transcriptsErr := filepath.Abs("../../engine/agents/transcript/testdata")
			e.Setenv("TRANSCRIPTS", recorded)
			return errors.Join(err, transcriptsErr)
		},
		Cmds: scriptCommands,
	})
}
