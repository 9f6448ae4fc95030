// Package cli holds what the commands share: settings, connecting, tables, JSON lines, confirmations,
// progress, shell completion and exit codes.
package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/semver"
	"gopkg.in/natefinch/lumberjack.v2"

	"acescope/cmd/acescope/conffile"
	"acescope/engine"
	"acescope/engine/agents/observe/spool"
	"acescope/engine/agents/price"
	"acescope/engine/learning/model"
	"acescope/engine/tasks/blueprint"
	"acescope/engine/temporal/server"
	"acescope/engine/trace/adapter"
	"acescope/sources/cluster"
)

// App is the state that the commands of one process share.
type App struct {
	Out, Err io.Writer
	Note     func(text string) // shows a note about the data directory; nil writes it to Err
	Settings Settings
	APIKey   string
	JSON     bool
	Port     int

	// Runner and HostAgents let the workflows of a cluster start programs on this machine; see ProgramFlags.
	Runner     string
	HostAgents bool
	// Fail ends the command because the embedded server of this process is lost; main sets it.
	Fail context.CancelCauseFunc

	Background int              // ID of the process that executes detached runs
	Spawned    *os.Process      // the same process, if this command started it
	Begun      bool             // this command has started a run
	Meter      *cluster.Meter   // counts calls to the server; nil before Connect
	providers  []model.Provider // see Providers
	opened     []func()         // close the engines
	reader     *engine.Engine   // see OpenReadOnly

	AgentDirs []string // directories of blueprints given by flags; see Library

	CodecHeaders []string // NAME=VALUE
	Codecs       codecs
}

// Quiet returns an App with the same settings that writes to w what a command would write to standard error,
// and drops its output. Flags that it parses do not change a.
func (a *App) Quiet(w io.Writer) *App {
	return &App{Out: io.Discard, Err: w, Settings: a.Settings, APIKey: a.APIKey, Port: a.Port, Meter: a.Meter,
		providers: a.providers}
}

// PreRun checks the flags of a command and loads the settings.
func (a *App) PreRun(cmd *cobra.Command, args []string) error {
	if err := checkFlags(cmd); err != nil {
		return err
	}
	return a.Load(cmd, args)
}

// Load resolves the settings. It writes the first warning to standard error, unless the command shows all of
// them.
func (a *App) Load(cmd *cobra.Command, _ []string) error {
	var file conffile.File
	var warnings []string
	if dir, err := ConfigDir(); err == nil {
		file, warnings = conffile.Read(filepath.Join(dir, "config.toml"), a.Settings.isSetting)
	}
	adapter.Use(file.Adapters, func() *price.Prices { return Prices(file) })
	if err := a.Settings.resolve(os.Getenv, file, warnings); err != nil {
		return err
	}
	if n := len(a.Settings.Warnings); n > 0 && cmd.Annotations[showsWarnings] == "" {
		more := ""
		if n > 1 {
			more = fmt.Sprintf(` (and %d more; run "acescope config")`, n-1)
		}
		fmt.Fprintln(a.Err, "acescope: "+SafeText(a.Settings.Warnings[0])+more)
	}
	return nil
}

// Cluster returns the cluster that flags, the environment or the configuration name, nil for the embedded
// server. Values of the environment are left out: the library that connects reads them itself.
func (a *App) Cluster() *engine.Remote {
	if !a.Settings.wantsCluster() {
		return nil
	}
	value := func(name, value string) string {
		if a.Settings.Sources[name].level == fromEnv {
			return ""
		}
		return value
	}
	return &engine.Remote{
		Address: value("address", a.Settings.Address), Namespace: value("namespace", a.Settings.Namespace),
		Profile: value("profile", a.Settings.Profile), APIKey: a.APIKey,
	}
}

// closeTimeout bounds how long closing the engine may take.
const closeTimeout = 5 * time.Second

// Open connects for a command that changes something. With serve this process executes runs, and becomes the
// host when the host dies.
func (a *App) Open(ctx context.Context, serve bool) (*engine.Engine, error) {
	return a.Connect(ctx, engine.Options{Worker: serve, Takeover: serve})
}

// OpenReadOnly connects for a command that only reads, once.
func (a *App) OpenReadOnly(ctx context.Context) (_ *engine.Engine, err error) {
	if a.reader == nil {
		a.reader, err = a.Connect(ctx, engine.Options{LookOnly: true})
	}
	return a.reader, err
}

// OpenFollowing connects for a command that reads until it is interrupted. On a data directory it may become
// the last process, so it can take over and execute the runs. It never executes runs of a cluster, whose
// artifacts and playbooks are on another machine.
func (a *App) OpenFollowing(ctx context.Context) (*engine.Engine, error) {
	local := a.Cluster() == nil
	e, err := a.Connect(ctx, engine.Options{Worker: local, Takeover: local, LookOnly: true})
	if err == nil && e.Withheld() != nil && e.Mode() == engine.Embedded {
		Warn(a, "no worker runs: %s", OneLine(e.Withheld()))
	}
	return e, err
}

// addSettings adds the settings to o.
func (a *App) addSettings(o *engine.Options) error {
	o.Remote = a.Cluster()
	switch {
	case o.Remote == nil && (a.Settings.Sources["namespace"].level == fromFlag || a.APIKey != ""):
		return UsageError("--namespace and --api-key need a cluster; add --address or --profile")
	case o.Remote == nil && a.Settings.Store != "":
		return UsageError("--store needs a cluster; add --address or --profile")
	}
	if err := checkPrograms(a); err != nil {
		return err
	}
	dirs, err := a.AgentsPath()
	if err != nil {
		return err
	}
	if o.Codec, err = a.codecConfig(); err != nil {
		return err
	}
	o.Version, o.Port, o.Store, o.TaskQueue = BuildVersion(), a.Port, a.Settings.Store, a.Settings.TaskQueue
	o.Runner, o.HostAgents, o.NoRunner = a.Runner, a.HostAgents, o.NoRunner || a.Settings.NoRunner
	o.NoCallRecords, o.ReadOnly = !a.Settings.RecordCalls, a.Settings.ReadOnly
	o.Key, o.Trust = userKey, a.Settings.TrustDataDir
	o.Providers, o.Agents, o.Graders = a.Providers(), a.Agents(), a.graders()
	o.Blueprints = Blueprints{blueprint.Library{Dirs: dirs}}
	if a.Settings.Observe == ObserveOn {
		o.Spool, o.Prices = spool.Dir(os.Getenv), Prices(a.Settings.File)
	}
	o.DataDir, err = a.DataDir()
	return err
}

// Connect opens the engine with the settings added to o. [App.Close] closes it.
func (a *App) Connect(ctx context.Context, o engine.Options) (*engine.Engine, error) {
	if err := a.addSettings(&o); err != nil {
		return nil, err
	}
	if o.Worker && !o.LookOnly && o.Remote == nil {
		if err := a.MayExecute(ctx, o.DataDir); err != nil {
			return nil, err
		}
		o.Trust = true
	}
	recorded := server.RecordedVersion(o.DataDir)
	log, closeLog, err := OpenLog(o.DataDir, o.Worker || !o.LookOnly || o.Remote == nil)
	if err != nil {
		return nil, err
	}
	a.Meter = cluster.NewMeter()
	o.Logger, o.Intercept = log, cluster.DecodeLists(a.Meter.Intercept)
	e, err := engine.Open(ctx, o)
	if err != nil {
		closeLog()
		return nil, err
	}
	a.Codecs.use(e.Codec)
	if note := versionNote(o.DataDir, recorded, o.Version); note != "" && e.Mode() == engine.Embedded {
		show := a.Note
		if show == nil {
			show = func(text string) { fmt.Fprintln(a.Err, "acescope: "+SafeText(text)) }
		}
		show(note)
	}
	stopWatching := watchServer(e, a.Err, a.Fail)
	a.opened = append(a.opened, func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		stopWatching()
		if err := e.Close(ctx); err != nil {
			log.Warn("close", "error", err)
		}
		closeLog()
	})
	return e, nil
}

// Close closes the engines that the command has opened, the last one first.
func (a *App) Close() {
	for _, closeEngine := range slices.Backward(a.opened) {
		closeEngine()
	}
	a.opened, a.reader = nil, nil
}

// HostError means that this process cannot continue, because its embedded server, data directory or store was
// lost.
type HostError struct{ error }

func (e *HostError) Unwrap() error { return e.error }

// watchServer prints the server's warning about the clock, and ends the command when the server is lost or
// its store has changed. A command that does not end by itself is ended, because its process may keep the
// data directory locked.
func watchServer(e *engine.Engine, out io.Writer, fail context.CancelCauseFunc) (stop func()) {
	var lost <-chan struct{}
	n := e.Node()
	if n != nil {
		lost = n.Failed()
		if warning := n.Endpoint().Clock.Warning(); warning != "" {
			fmt.Fprintln(out, "acescope: warning: "+warning)
		}
	}
	closed, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		err := &HostError{}
		select {
		case <-closed:
			return
		case <-lost:
			err.error = n.Err()
		case err.error = <-engine.StoreChanged(e):
		}
		fail(err)
		select {
		case <-closed:
		case <-time.After(2 * closeTimeout):
			fmt.Fprintln(out, "acescope: "+OneLine(err))
			os.Exit(ExitCode(err))
		}
	}()
	return func() {
		close(closed)
		<-ended
	}
}

// OpenLog opens acescope's own log file, which rotates at 10 MB. If keep is false, nothing is logged.
func OpenLog(dir string, keep bool) (*slog.Logger, func(), error) {
	if !keep {
		return slog.New(slog.DiscardHandler), func() {}, nil
	}
	dir, err := server.OpenDir(dir, BuildVersion())
	if err != nil {
		return nil, nil, err
	}
	out := &lumberjack.Logger{Filename: filepath.Join(dir, "logs", "acescope.log"), MaxSize: 10,
		MaxBackups: 3}
	log := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelInfo})).With("pid",
		os.Getpid())
	return log, func() { _ = out.Close() }, nil
}

// version is set by the Makefile.
var version = ""

// BuildVersion returns the version of this program. A build without the Makefile has the version of the Go
// module.
func BuildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "0.1.0-dev"
}

// versionNote says that another version of acescope used a data directory before, or returns "".
func versionNote(dir, before, now string) string {
	if before == "" || before == now {
		return ""
	}
	was, is := "v"+strings.TrimPrefix(before, "v"), "v"+strings.TrimPrefix(now, "v")
	switch order := semver.Compare(was, is); {
	case !semver.IsValid(was) || !semver.IsValid(is) || order == 0:
		return fmt.Sprintf("acescope %s used data directory %s before; this is acescope %s", before, dir, now)
	case order > 0:
		return fmt.Sprintf("the newer acescope %s used data directory %s before; "+
			"this is acescope %s, which may not know all of its data", before, dir, now)
	}
	return fmt.Sprintf("the older acescope %s used data directory %s before; "+
		"verify its open runs with this acescope %s: acescope replay verify --all", before, dir, now)
}
