package main

import (
	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/admin"
	"acescope/cmd/acescope/internal/agents"
	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/history"
	"acescope/cmd/acescope/internal/learning"
	"acescope/cmd/acescope/internal/runs"
)

func root(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "acescope",
		Short: "The console for ACE learning runs on Temporal",
		Long: "acescope shows what learning agents do, why, and what they learn: ACE runs (Generator, Skills, Reflector, Curator)\n" +
			"as Temporal workflows, on a server of its own or on any cluster. Without a command it opens the console.",
		Version:       cli.BuildVersion(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(p0 *cobra.Command, p1 []string) error { return admin.Console(a, p0, p1) },

		PersistentPreRunE: a.Load,
	}
	cli.ConsoleFlags(cmd)
	f := cmd.PersistentFlags()
	f.String("data-dir", "", "where the embedded server, artifacts and playbooks lie (default $XDG_DATA_HOME/acescope)")
	f.String("address", "", "use the Temporal cluster at this host:port instead of the embedded server")
	f.String("namespace", "", "namespace on that cluster (default ace-dev)")
	f.String("profile", "", "profile of the temporal command's configuration to connect with")
	f.String("observe", cli.ObserveOn, "what becomes of what agents' hooks leave in the spool: on, spool (it stays there) or off")
	f.StringVar(&a.APIKey, "api-key", "", "API key for that cluster (better: $TEMPORAL_API_KEY)")
	f.String("codec-endpoint", "", "read and write payloads through the codec server at this URL")
	f.String("codec-auth", "", "header Authorization for the codec server (better: $TEMPORAL_CODEC_AUTH)")
	f.StringArrayVar(&a.CodecHeaders, "codec-header", nil, "further header for the codec server, as NAME=VALUE; can be given again")
	f.Bool("no-runner", false, "leave out the local runner, which executes runs of agents and programs where this process serves")
	f.BoolVar(&a.JSON, "json", false, "write JSON: one object, or one object a line")
	cmd.AddCommand(
		runs.RunCommand(a),
		runs.ListCommand(a),
		runs.ShowCommand(a),
		runs.TailCommand(a),
		runs.LogsCommand(a),
		history.TimelineCommand(a),
		history.OperationsCommand(a),
		runs.CancelCommand(a),
		runs.TerminateCommand(a),
		runs.SignalCommand(a),
		runs.ResetCommand(a),
		history.ForkCommand(a),
		history.LineageCommand(a),
		learning.ExperimentCommand(a),
		history.DiffCommand(a),
		agents.ObserveCommand(a),
		learning.PlaybookCommand(a),
		admin.ServeCommand(a),
		cli.ConsoleFlags(admin.DemoCommand(a)),
		admin.ProblemsCommand(a),
		admin.DoctorCommand(a),
		admin.SchemaCommand(a),
		learning.TriageCommand(a),
		admin.HealthCommand(a),
		admin.VersionCommand(a),
		admin.ConfigCommand(a),
		history.ReplayCommand(a),
		admin.OpenCommand(a),
		agents.SessionCommand(a),
		agents.RunnerCommand(a),
		agents.AgentCommand(a),
		agents.McpCommand(a),
	)
	cli.Explain(cmd)
	cli.ExplainPlainly(cmd)
	return cmd
}
