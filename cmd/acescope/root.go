package main

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
	"acescope/engine/blueprint"
	"acescope/engine/model"
	"acescope/engine/observe/spool"
	"acescope/engine/redact"
	"acescope/sources"
	"acescope/theme"
)

// app is what the commands share.
type app struct {
	out, err io.Writer
	set      settings
	apiKey   string
	json     bool
	port     int

	background int              // process that --detach started
	spawned    *os.Process      // the same
	begun      bool             // a run was started for it
	meter      *sources.Meter   // of the calls to the server, once connected
	served     []model.Provider // see providers

	agentDirs []string // of blueprints, as flags name them; see library

	codecHeaders []string // NAME=VALUE
	codecs       codecs
}

func (a *app) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "acescope",
		Short: "The console for ACE learning runs on Temporal",
		Long: "acescope shows what learning agents do, why, and what they learn: ACE runs (Generator, Skills, Reflector, Curator)\n" +
			"as Temporal workflows, on a server of its own or on any cluster. Without a command it opens the console.",
		Version:       buildVersion(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          a.console,

		PersistentPreRunE: a.load,
	}
	consoleFlags(cmd)
	f := cmd.PersistentFlags()
	f.String("data-dir", "", "where the embedded server, artifacts and playbooks lie (default $XDG_DATA_HOME/acescope)")
	f.String("address", "", "use the Temporal cluster at this host:port instead of the embedded server")
	f.String("namespace", "", "namespace on that cluster (default ace-dev)")
	f.String("profile", "", "profile of the temporal command's configuration to connect with")
	f.String("observe", observeOn, "what becomes of what agents' hooks leave in the spool: on, spool (it stays there) or off")
	f.StringVar(&a.apiKey, "api-key", "", "API key for that cluster (better: $TEMPORAL_API_KEY)")
	f.String("codec-endpoint", "", "read and write payloads through the codec server at this URL")
	f.String("codec-auth", "", "header Authorization for the codec server (better: $TEMPORAL_CODEC_AUTH)")
	f.StringArrayVar(&a.codecHeaders, "codec-header", nil, "further header for the codec server, as NAME=VALUE; can be given again")
	f.Bool("no-runner", false, "leave out the local runner, which executes runs of agents and programs where this process serves")
	f.BoolVar(&a.json, "json", false, "write JSON: one object, or one object a line")
	cmd.AddCommand(
		a.runCommand(),
		a.listCommand(),
		a.showCommand(),
		a.tailCommand(),
		a.logsCommand(),
		a.timelineCommand(),
		a.operationsCommand(),
		a.cancelCommand(),
		a.terminateCommand(),
		a.signalCommand(),
		a.resetCommand(),
		a.forkCommand(),
		a.lineageCommand(),
		a.experimentCommand(),
		a.diffCommand(),
		a.observeCommand(),
		a.playbookCommand(),
		a.serveCommand(),
		consoleFlags(a.demoCommand()),
		a.problemsCommand(),
		a.doctorCommand(),
		a.schemaCommand(),
		a.triageCommand(),
		a.healthCommand(),
		a.versionCommand(),
		a.configCommand(),
		a.replayCommand(),
		a.openCommand(),
		a.sessionCommand(),
		a.runnerCommand(),
		a.agentCommand(),
		a.mcpCommand(),
	)
	explain(cmd)
	explainPlainly(cmd)
	return cmd
}

// load works out the settings that are in force, and says in a line what is wrong with the
// configuration; the commands that show it whole do so themselves.
func (a *app) load(cmd *cobra.Command, _ []string) error {
	dir, err := configDir()
	if err != nil {
		return nil // there is no home, and so no file
	}
	file, wrong := conffile.Read(filepath.Join(dir, "config.toml"), isSetting)
	a.set, err = resolve(cmd.Flags(), os.Getenv, file, wrong)
	if n := len(a.set.warnings); err == nil && n > 0 && cmd.Annotations[showsWarnings] == "" {
		more := ""
		if n > 1 {
			more = fmt.Sprintf(" (and %d more: acescope config)", n-1)
		}
		fmt.Fprintln(a.err, "acescope: "+safe(a.set.warnings[0])+more)
	}
	return err
}

// showsWarnings marks commands that show warnings in their own way.
const showsWarnings = "shows-warnings"

// consoleFlags are for the commands that open the console, or show how it would be.
func consoleFlags(cmd *cobra.Command) *cobra.Command {
	f := cmd.Flags()
	f.String("theme", theme.Auto, "colours of the console; acescope config themes lists them")
	f.Bool("mouse", false, "the console takes the mouse")
	f.Bool("read-only", false, "the console changes nothing")
	f.Duration("refresh", sources.DefaultInterval, "how often the console reads the list of runs")
	f.Int("frame-rate", usualFrameRate, "frames a second of the console, at most")
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[showsWarnings] = "yes"
	return cmd
}

// checkRemote refuses flags of a cluster that name none.
func (a *app) checkRemote() error {
	if a.cluster() == nil && (a.set.rank("namespace") == flagRank || a.apiKey != "") {
		return usage("--namespace and --api-key are for a cluster: give --address or --profile too")
	}
	return nil
}

// cluster is the remote cluster that flags, the environment or the configuration ask
// for, nil for the embedded server. A profile file alone does not switch: it must be
// named. What the environment says is read by the library that connects.
func (a *app) cluster() *engine.Remote {
	if !a.set.wantsCluster() {
		return nil
	}
	said := func(name, value string) string {
		if a.set.rank(name) == envRank {
			return ""
		}
		return value
	}
	return &engine.Remote{Address: said("address", a.set.Address), Namespace: said("namespace", a.set.Namespace),
		Profile: said("profile", a.set.Profile), APIKey: a.apiKey}
}

// closeTimeout bounds how long a command takes to leave.
const closeTimeout = 5 * time.Second

// open connects for a command that changes something. worker serves runs from this
// process, takeover hosts when the host dies.
func (a *app) open(ctx context.Context, worker, takeover bool) (*engine.Engine, func(), error) {
	return a.connect(ctx, engine.Options{Worker: worker, Takeover: takeover})
}

// look is open for a command that only reads.
func (a *app) look(ctx context.Context) (*engine.Engine, func(), error) {
	return a.connect(ctx, engine.Options{LookOnly: true})
}

// watch is look for a command that stays: where it may become the last process alive, it
// must be able to carry the runs on its data directory to their end. It never serves the
// runs of a cluster, whose artifacts and playbooks are not here: they would fail.
func (a *app) watch(ctx context.Context) (*engine.Engine, func(), error) {
	here := a.cluster() == nil
	return a.connect(ctx, engine.Options{Worker: here, Takeover: here, LookOnly: true})
}

func (a *app) connect(ctx context.Context, o engine.Options) (*engine.Engine, func(), error) {
	if err := a.checkRemote(); err != nil {
		return nil, nil, err
	}
	dir, err := a.dir()
	if err != nil {
		return nil, nil, err
	}
	o.Redact = redact.New(redact.Environ(os.Environ())...).Bytes
	log, closeLog, err := openLog(dir, o.Worker || !o.LookOnly || a.cluster() == nil)
	if err != nil {
		return nil, nil, err
	}
	a.meter = sources.NewMeter()
	o.NoRunner = o.NoRunner || a.set.NoRunner
	o.DataDir, o.Version, o.Port, o.Remote = dir, buildVersion(), a.port, a.cluster()
	o.Intercept, o.Logger, o.Providers, o.Agents = a.meter.Intercept, log, a.providers(), a.agents()
	dirs, err := a.agentsPath()
	if err != nil {
		closeLog()
		return nil, nil, err
	}
	o.Blueprints = blueprints{blueprint.Library{Dirs: dirs}}
	if a.set.Observe == observeOn {
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
	a.codecs.use(e.Codec)
	return e, func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			log.Warn("close", "error", err)
		}
		closeLog()
	}, nil
}
