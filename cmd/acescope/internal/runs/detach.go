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

// idleAfter is how long the background process of --detach waits for more work.
const idleAfter = "30s"

const hostWithin = 20 * time.Second

// detach starts a run and leaves it to a process in the background, which hosts or
// joins the server and ends when nothing is left to do.
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

// EndUnused ends the process in the background where no run was started for it. Whatever
// else it may have taken up is kept, as it is whenever a process ends.
func EndUnused(a *cli.App) {
	if !a.Begun && a.Spawned != nil {
		_ = a.Spawned.Signal(os.Interrupt)
	}
}

func Spawn(a *cli.App) error {
	dir, err := a.DataDir()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o700); err != nil {
		return fmt.Errorf("data directory %s: %w", dir, err)
	}
	out, err := os.OpenFile(filepath.Join(dir, "logs", "detached.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("data directory %s: %w", dir, err)
	}
	defer out.Close()
	cmd := exec.Command(self, "serve", "--until-idle", idleAfter, "--data-dir", dir)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = cli.OwnSession()
	cmd.Env = a.CodecEnv()
	if len(a.AgentDirs) > 0 { // it serves the steps that this command names
		dirs, err := a.AgentsPath()
		if err != nil {
			return err
		}
		cmd.Env = append(cmd.Env, "ACESCOPE_AGENTS_DIR="+strings.Join(dirs, string(filepath.ListSeparator)))
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a process in the background: %w", err)
	}
	a.Background, a.Spawned = cmd.Process.Pid, cmd.Process
	if err := waitForHost(dir); err != nil {
		EndUnused(a)
		return err
	}
	return nil
}

// waitForHost waits until somebody hosts, so that this process does not come first and
// hand over at once.
func waitForHost(dir string) error {
	for end := time.Now().Add(hostWithin); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, ok := server.Lookup(dir); ok {
			return nil
		}
	}
	return fmt.Errorf("the process in the background does not host; see %s", filepath.Join(dir, "logs", "detached.log"))
}
