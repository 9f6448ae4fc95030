// Package cli holds what commands share: settings, connecting, tables, JSON lines, confirmations, progress,
// shell completion and exit codes.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/conffile"
	"acescope/engine"
	"acescope/engine/agents/observe/spool"
	"acescope/engine/learning/model"
	"acescope/engine/tasks/blueprint"
	"acescope/sources/cluster"
	"acescope/theme"
)

// App is what the commands share.
type App struct {
	Out, Err io.Writer
	Settings Settings
	APIKey   string
	JSON     bool
	Port     int

	Background int              // process that --detach started
	Spawned    *os.Process      // the same
	Begun      bool             // a run was started for it
	Meter      *cluster.Meter   // of the calls to the server, once connected
	served     []model.Provider // see providers

	AgentDirs []string // of blueprints, as flags name them; see library

	CodecHeaders []string // NAME=VALUE
	Codecs       codecs
}

// Load works out the settings that are in force, and says in a line what is wrong with the
// configuration; the commands that show it whole do so themselves.
func (a *App) Load(cmd *cobra.Command, _ []string) error {
	dir, err := ConfigDir()
	if err != nil {
		return nil // there is no home, and so no file
	}
	file, wrong := conffile.Read(filepath.Join(dir, "config.toml"), isSetting)
	a.Settings, err = resolve(cmd.Flags(), os.Getenv, file, wrong)
	if n := len(a.Settings.Warnings); err == nil && n > 0 && cmd.Annotations[showsWarnings] == "" {
		more := ""
		if n > 1 {
			more = fmt.Sprintf(" (and %d more: acescope config)", n-1)
		}
		fmt.Fprintln(a.Err, "acescope: "+SafeText(a.Settings.Warnings[0])+more)
	}
	return err
}

// showsWarnings marks commands that show warnings in their own way.
const showsWarnings = "shows-warnings"

// ConsoleFlags are for the commands that open the console, or show how it would be.
func ConsoleFlags(cmd *cobra.Command) *cobra.Command {
	f := cmd.Flags()
	f.String("theme", theme.Auto, "colours of the console; acescope config themes lists them")
	f.Bool("mouse", false, "the console takes the mouse")
	f.Bool("read-only", false, "the console changes nothing")
	f.Duration("refresh", cluster.DefaultInterval, "how often the console reads the list of runs")
	f.Int("frame-rate", UsualFrameRate, "frames a second of the console, at most")
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[showsWarnings] = "yes"
	return cmd
}

// checkRemote refuses flags of a cluster that name none.
func (a *App) checkRemote() error {
	if a.Cluster() == nil && (a.Settings.rank("namespace") == flagRank || a.APIKey != "") {
		return UsageError("--namespace and --api-key are for a cluster: give --address or --profile too")
	}
	return nil
}

// Cluster is the remote cluster that flags, the environment or the configuration ask
// for, nil for the embedded server. A profile file alone does not switch: it must be
// named. What the environment says is read by the library that connects.
func (a *App) Cluster() *engine.Remote {
	if !a.Settings.wantsCluster() {
		return nil
	}
	said := func(name, value string) string {
		if a.Settings.rank(name) == envRank {
			return ""
		}
		return value
	}
	return &engine.Remote{Address: said("address", a.Settings.Address), Namespace: said("namespace", a.Settings.Namespace),
		Profile: said("profile", a.Settings.Profile), APIKey: a.APIKey}
}

// closeTimeout bounds how long a command takes to leave.
const closeTimeout = 5 * time.Second

// Open connects for a command that changes something. worker serves runs from this
// process, takeover hosts when the host dies.
func (a *App) Open(ctx context.Context, worker, takeover bool) (*engine.Engine, func(), error) {
	return a.Connect(ctx, engine.Options{Worker: worker, Takeover: takeover})
}

// look is open for a command that only reads.
func (a *App) OpenReadOnly(ctx context.Context) (*engine.Engine, func(), error) {
	return a.Connect(ctx, engine.Options{LookOnly: true})
}

// watch is look for a command that stays: where it may become the last process alive, it
// must be able to carry the runs on its data directory to their end. It never serves the
// runs of a cluster, whose artifacts and playbooks are not here: they would fail.
func (a *App) OpenFollowing(ctx context.Context) (*engine.Engine, func(), error) {
	here := a.Cluster() == nil
	return a.Connect(ctx, engine.Options{Worker: here, Takeover: here, LookOnly: true})
}

func (a *App) Connect(ctx context.Context, o engine.Options) (*engine.Engine, func(), error) {
	if err := a.checkRemote(); err != nil {
		return nil, nil, err
	}
	dir, err := a.DataDir()
	if err != nil {
		return nil, nil, err
	}
	log, closeLog, err := OpenLog(dir, o.Worker || !o.LookOnly || a.Cluster() == nil)
	if err != nil {
		return nil, nil, err
	}
	a.Meter = cluster.NewMeter()
	o.NoRunner = o.NoRunner || a.Settings.NoRunner
	o.DataDir, o.Version, o.Port, o.Remote = dir, BuildVersion(), a.Port, a.Cluster()
	o.Intercept, o.Logger, o.Providers, o.Agents = a.Meter.Intercept, log, a.Providers(), a.Agents()
	dirs, err := a.AgentsPath()
	if err != nil {
		closeLog()
		return nil, nil, err
	}
	o.Blueprints = Blueprints{blueprint.Library{Dirs: dirs}}
	if a.Settings.Observe == ObserveOn {
		o.Spool = spool.Dir(os.Getenv)
	}
	if o.Codec, err = a.codecConfig(); err != nil {
		closeLog()
		return nil, nil, err
	}
	e, err := engine.Open(ctx, o)
	if err != nil {
		closeLog()
		return nil, nil, err
	}
	a.Codecs.use(e.Codec)
	return e, func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			log.Warn("close", "error", err)
		}
		closeLog()
	}, nil
}
