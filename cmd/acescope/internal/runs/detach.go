package runs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/temporal/server"
)

const (
	idleAfter   = "30s"            // how long the background process waits for more work
	hostTimeout = 20 * time.Second // bounds the start of the background process
)

// detach starts a run and leaves its execution to a background process, which hosts or joins the server
// and ends when it is idle.
func detach(a *cli.App, ctx context.Context, prompt string, f RunFlags) error {
	if a.Cluster() == nil {
		if err := Spawn(a); err != nil {
			return err
		}
		defer EndUnused(a)
	}
	e, done, err := a.Open(ctx, false, false)
	if err != nil {
		return err
	}
	defer done()
	return runOn(a, ctx, e, prompt, f)
}

// EndUnused stops the background process if no run was started for it. Other runs that it has taken
// over continue in another process.
func EndUnused(a *cli.App) {
	if !a.Begun && a.Spawned != nil {
		_ = a.Spawned.Signal(os.Interrupt)
	}
}

// Spawn starts the background process and waits until a process hosts the data directory.
func Spawn(a *cli.App) error {
	dir, err := a.DataDir()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	path := filepath.Join(dir, "logs", "detached.log")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("data directory %s: %w", dir, err)
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("data directory %s: %w", dir, err)
	}
	defer log.Close()
	cmd := exec.Command(self, "serve", "--until-idle", idleAfter, "--data-dir", dir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = cli.OwnSession()
	cmd.Env = a.CodecEnv()
	if len(a.AgentDirs) > 0 { // the process needs the blueprints that this command names
		dirs, err := a.AgentsPath()
		if err != nil {
			return err
		}
		cmd.Env = append(cmd.Env, "ACESCOPE_AGENTS_DIR="+strings.Join(dirs, string(filepath.ListSeparator)))
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a background process: %w", err)
	}
	a.Background, a.Spawned = cmd.Process.Pid, cmd.Process
	// This process must not come first: it would host, and hand over at once.
	for end := time.Now().Add(hostTimeout); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, ok := server.Lookup(dir); ok {
			return nil
		}
	}
	EndUnused(a)
	return fmt.Errorf("the background process does not host the data directory; see %s", path)
}
