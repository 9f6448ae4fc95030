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

// detach starts a run and leaves its execution to a background process.
func detach(a *cli.App, ctx context.Context, prompt string, f runFlags) error {
	return HandOver(a, ctx, func() error {
		e, err := a.Open(ctx, false)
		if err != nil {
			return err
		}
		return runOn(a, ctx, e, prompt, f)
	})
}

// HandOver calls start, and leaves the execution of the runs that it starts to a process that serves the data
// directory until it is idle. It starts such a process unless one exists. On a cluster it only calls start.
func HandOver(a *cli.App, ctx context.Context, start func() error) error {
	if a.Cluster() != nil {
		return start()
	}
	dir, err := a.DataDir()
	if err == nil {
		err = findOrSpawn(a, ctx, dir)
	}
	if err != nil {
		return err
	}
	defer endUnused(a)
	err = start()
	a.Close()
	if err != nil || !a.Begun || server.Staying(dir) != 0 {
		return err
	}
	return spawn(a, ctx, dir) // the background process became idle and ended before it saw the run
}

func findOrSpawn(a *cli.App, ctx context.Context, dir string) error {
	if a.Background = server.Staying(dir); a.Background != 0 && len(a.AgentDirs) == 0 &&
		len(a.CodecHeaders) == 0 {
		return nil
	}
	return spawn(a, ctx, dir) // an existing process lacks the blueprints and headers that this command names
}

// endUnused stops the background process if no run was started for it. Other runs that it has taken
// over continue in another process.
func endUnused(a *cli.App) {
	if !a.Begun && a.Spawned != nil {
		_ = a.Spawned.Signal(os.Interrupt)
	}
}

// spawn starts the background process and waits until it serves.
func spawn(a *cli.App, ctx context.Context, dir string) error {
	if err := a.MayExecute(ctx, dir); err != nil {
		return err
	}
	dir, err := server.OpenDir(dir, cli.BuildVersion())
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	path := filepath.Join(dir, "logs", "detached.log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("data directory %s: %w", dir, err)
	}
	defer log.Close()
	cmd := exec.Command(self, "serve", "--until-idle", idleAfter, "--trust-data-dir", "--data-dir", dir)
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
	// This process must not connect first: it would become the host, and give the server up immediately.
	for end := time.Now().Add(hostTimeout); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if server.Staying(dir) != 0 {
			return nil
		}
	}
	endUnused(a)
	return fmt.Errorf("the background process does not serve the data directory; see %s", path)
}
