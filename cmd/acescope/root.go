package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"acescope/engine"
)

// app is what the commands share.
type app struct {
	out, err io.Writer
	dataDir  string
	remote   engine.Remote
	json     bool
	port     int

	background int // process that --detach started
}

func (a *app) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "acescope",
		Short: "The console for ACE learning runs on Temporal",
		Long: "acescope shows what learning agents do, why, and what they learn: ACE runs (Generator, Skills, Reflector, Curator)\n" +
			"as Temporal workflows, on a server of its own or on any cluster. Without a command it opens the console.",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          a.console,
	}
	f := cmd.PersistentFlags()
	f.StringVar(&a.dataDir, "data-dir", "", "where the embedded server, artifacts and playbooks lie (default $XDG_DATA_HOME/acescope)")
	f.StringVar(&a.remote.Address, "address", "", "use the Temporal cluster at this host:port instead of the embedded server")
	f.StringVar(&a.remote.Namespace, "namespace", "", "namespace on that cluster (default ace-dev)")
	f.StringVar(&a.remote.Profile, "profile", "", "profile of the temporal command's configuration to connect with")
	f.StringVar(&a.remote.APIKey, "api-key", "", "API key for that cluster (better: $TEMPORAL_API_KEY)")
	f.BoolVar(&a.json, "json", false, "write JSON: one object, or one object a line")
	cmd.AddCommand(
		a.runCommand(),
		a.listCommand(),
		a.showCommand(),
		a.tailCommand(),
		a.timelineCommand(),
		a.cancelCommand(),
		a.observeCommand(),
		a.serveCommand(),
		a.demoCommand(),
		a.problemsCommand(),
		a.doctorCommand(),
		a.versionCommand(),
	)
	return cmd
}

// dir is the data directory in force.
func (a *app) dir() (string, error) {
	if a.dataDir != "" {
		return filepath.Abs(a.dataDir)
	}
	if base := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "acescope"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", usage("no home directory: %v; give --data-dir", err)
	}
	return filepath.Join(home, ".local", "share", "acescope"), nil
}

// checkRemote refuses flags of a cluster that name none.
func (a *app) checkRemote() error {
	if a.cluster() == nil && (a.remote.Namespace != "" || a.remote.APIKey != "") {
		return usage("--namespace and --api-key are for a cluster: give --address or --profile too")
	}
	return nil
}

// cluster is the remote cluster that flags or the environment ask for, nil for the
// embedded server. A profile file alone does not switch: it must be named.
func (a *app) cluster() *engine.Remote {
	named := a.remote.Address != "" || a.remote.Profile != ""
	fromEnv := os.Getenv("TEMPORAL_ADDRESS") != "" || os.Getenv("TEMPORAL_PROFILE") != ""
	if named || fromEnv && a.dataDir == "" {
		r := a.remote
		return &r
	}
	return nil
}

// closeTimeout bounds how long a command takes to leave.
const closeTimeout = 5 * time.Second

// open connects. worker serves runs from this process, takeover hosts when the host
// dies; commands that only look do neither.
func (a *app) open(ctx context.Context, worker, takeover bool) (*engine.Engine, func(), error) {
	if err := a.checkRemote(); err != nil {
		return nil, nil, err
	}
	dir, err := a.dir()
	if err != nil {
		return nil, nil, err
	}
	log, closeLog, err := openLog(dir)
	if err != nil {
		return nil, nil, err
	}
	e, err := engine.Open(ctx, engine.Options{DataDir: dir, Version: buildVersion(), Port: a.port, Remote: a.cluster(),
		Worker: worker, Takeover: takeover, Logger: log})
	if err != nil {
		closeLog()
		return nil, nil, err
	}
	return e, func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			log.Warn("close", "error", err)
		}
		closeLog()
	}, nil
}

// look is open for a command that only reads.
func (a *app) look(ctx context.Context) (*engine.Engine, func(), error) {
	return a.open(ctx, false, false)
}
