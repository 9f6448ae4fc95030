package main

import (
	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/admin"
	"acescope/cmd/acescope/internal/agents"
	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/flows"
	"acescope/cmd/acescope/internal/history"
	"acescope/cmd/acescope/internal/learning"
	"acescope/cmd/acescope/internal/runs"
)

func root(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "acescope",
		Short: "The console for ACE learning runs on Temporal",
		Long: "acescope shows ACE runs (generator, skills, reflector, curator), which are Temporal workflows: what they\n" +
			"do, why, and what they learn. It uses an embedded server or any cluster. Without a command it opens the\n" +
			"console.",
		Version:       cli.BuildVersion(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return admin.Console(a, cmd.Context()) },

		PersistentPreRunE: a.PreRun,
	}
	a.ConsoleFlags(cmd)
	f := cmd.PersistentFlags()
	a.SettingFlags(f)
	f.StringVar(&a.APIKey, "api-key", "", "API key of the cluster (better: $TEMPORAL_API_KEY)")
	f.StringArrayVar(&a.CodecHeaders, "codec-header", nil,
		"further header for the codec server, as NAME=VALUE; repeat the flag for more")
	f.BoolVar(&a.JSON, "json", false, "write JSON: one object per line")
	cmd.AddCommand(
		runs.RunCommand(a),
		runs.EvalCommand(a),
		runs.ListCommand(a),
		runs.DatasetCommand(a),
		runs.ShowCommand(a),
		runs.PromptsCommand(a),
		runs.AskCommand(a),
		runs.TailCommand(a),
		runs.LogsCommand(a),
		history.TimelineCommand(a),
		history.OperationsCommand(a),
		runs.CancelCommand(a),
		runs.TerminateCommand(a),
		runs.SignalCommand(a),
		runs.ResetCommand(a),
		history.ForkCommand(a, flows.Fork),
		history.LineageCommand(a),
		learning.ExperimentCommand(a),
		flows.FlowCommand(a),
		history.DiffCommand(a),
		agents.ObserveCommand(a),
		learning.PlaybookCommand(a),
		learning.ImportCommand(a),
		admin.ServeCommand(a),
		admin.StoreCommand(a),
		admin.WebCommand(a),
		a.ConsoleFlags(admin.DemoCommand(a)),
		admin.ProblemsCommand(a),
		admin.DoctorCommand(a),
		admin.SetupCommand(a),
		admin.SchemaCommand(a),
		learning.TriageCommand(a),
		admin.HealthCommand(a),
		admin.VersionCommand(a),
		admin.ConfigCommand(a),
		history.ReplayCommand(a),
		admin.OpenCommand(a),
		agents.SessionCommand(a),
		agents.CostCommand(a),
		agents.RunnerCommand(a),
		agents.AgentCommand(a),
		agents.McpCommand(a),
	)
	cli.TypeUsageErrors(cmd)
	cli.SetHelp(cmd)
	return cmd
}
