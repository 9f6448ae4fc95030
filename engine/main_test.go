package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"acescope/engine"
	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/agents/session/host"
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

func TestMain(m *testing.M) {
	agentclitest.Main()
	name := os.Getenv(programEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := programs[name]([]byte(os.Getenv(configEnv))); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// workerConfig configures a worker that may kill itself when it comes to a step of a session for
// the nth time (step:n).
type workerConfig struct{ Dir, Kill string }

// workerProgram is a worker that runs until its parent closes its input or kills it.
func workerProgram(config []byte) error {
	var c workerConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	step, nth, _ := strings.Cut(c.Kill, ":")
	at, _ := strconv.ParseInt(nth, 10, 64)
	var times atomic.Int64
	logs, err := os.OpenFile(filepath.Join(c.Dir, workerLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	onStep := func(s string) {
		if s == step && times.Add(1) == max(at, 1) {
			killSelf()
		}
	}
	e, err := engine.Open(context.Background(), engine.Options{DataDir: c.Dir, Version: "test", Worker: true, Takeover: true,
		Logger: slog.New(slog.NewTextHandler(logs, nil)), Sessions: host.Options{OnStep: onStep}})
	if err != nil {
		return err
	}
	fmt.Println("serving")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return e.Close(context.Background())
}
