package engine_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"acescope/engine"
	"acescope/engine/agents/session/host"
	"acescope/engine/store/bucket/buckettest"
	"acescope/engine/temporal/server"
)

// Variables that make the test binary one of the programs, with a configuration as JSON.
const (
	programEnv = "ACESCOPE_TEST_PROGRAM"
	configEnv  = "ACESCOPE_TEST_CONFIG"
)

// programs are the child processes of the tests.
var programs = map[string]func(config []byte) error{
	"worker":       workerProgram,
	"dying worker": dyingWorkerProgram,
	"member":       memberProgram,
	"runner":       runnerProgram,
	"loop":         loopProgram,
}

// workerLog is the log of worker processes in the data directory.
const workerLog = "worker.log"

// testsPerProcessor sets the default of -parallel. The tests mostly wait: for a killed process to be missed,
// for a retry, for a server to stop.
const testsPerProcessor = 4

// plantedKey is a secret in the environment of this process and its children that must not be stored.
const plantedKey = "planted-Zx81-very-secret-value"

func TestMain(m *testing.M) {
	name := os.Getenv(programEnv)
	if name == "" {
		os.Exit(runTests(m))
	}
	if err := programs[name]([]byte(os.Getenv(configEnv))); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runTests runs the tests with the environment that they share.
func runTests(m *testing.M) int {
	config, err := os.MkdirTemp("", "claude-config-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(config)
	env := buckettest.Credentials()
	env["CLAUDE_CONFIG_DIR"], env["ANTHROPIC_API_KEY"] = config, plantedKey
	// The python3 of pyenv is a script that starts 20 programs.
	if python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output(); err == nil {
		env["PATH"] = filepath.Dir(string(python)) + string(os.PathListSeparator) + os.Getenv("PATH")
	}
	for name, value := range env {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	if err := flag.Set("test.parallel", strconv.Itoa(testsPerProcessor*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	return m.Run()
}

// workerConfig configures a worker that may kill itself when it comes to a step of a session for
// the nth time (step:n).
type workerConfig struct {
	Dir, Kill string
	Store     string // of a cluster, whose address is in the environment; "" for the embedded server
}

// workerProgram is a worker that runs until its parent closes its input or kills it.
func workerProgram(config []byte) error {
	var c workerConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	step, nth, _ := strings.Cut(c.Kill, ":")
	at, _ := strconv.ParseInt(nth, 10, 64)
	var times atomic.Int64
	if _, err := server.OpenDir(c.Dir, "test"); err != nil {
		return err
	}
	logs, err := os.OpenFile(filepath.Join(c.Dir, workerLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	onStep := func(s string) {
		if s == step && times.Add(1) == max(at, 1) {
			killSelf()
		}
	}
	o := engine.Options{DataDir: c.Dir, Version: "test", Worker: true, Takeover: true,
		Logger: slog.New(slog.NewTextHandler(logs, nil)), Sessions: host.Options{OnStep: onStep}}
	if c.Store != "" {
		o.Takeover, o.Remote, o.Store = false, &engine.Remote{}, c.Store
	}
	e, err := engine.Open(context.Background(), o)
	if err != nil {
		return err
	}
	fmt.Println("serving")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return e.Close(context.Background())
}
