package engine_test

import (
	"context"
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

// Variables that make the test binary a worker of a data directory, and have it end itself
// with SIGKILL when it comes to a step of a session for the nth time (step:n).
const (
	workerDir  = "ACESCOPE_TEST_WORKER"
	workerKill = "ACESCOPE_TEST_KILL"
)

// workerLog is the log of such workers in the data directory.
const workerLog = "worker.log"

func TestMain(m *testing.M) {
	agentclitest.Main()
	loopMain()
	runnerMain()
	memberMain()
	mortalMain()
	if dir := os.Getenv(workerDir); dir != "" {
		serveAsChild(dir)
	}
	os.Exit(m.Run())
}

// serveAsChild runs a worker until its parent closes its input or kills it.
func serveAsChild(dir string) {
	step, nth, _ := strings.Cut(os.Getenv(workerKill), ":")
	at, _ := strconv.ParseInt(nth, 10, 64)
	var times atomic.Int64
	logs, err := os.OpenFile(filepath.Join(dir, workerLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	e, err := engine.Open(context.Background(), engine.Options{DataDir: dir, Version: "test", Worker: true, Takeover: true, Logger: slog.New(slog.NewTextHandler(logs, nil)), Sessions: host.Options{OnStep: func(s string) {
		if s == step && times.Add(1) == max(at, 1) {
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			select {}
		}
	}}})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println("serving")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := e.Close(context.Background()); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
