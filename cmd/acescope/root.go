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
	for _, g := range groups(a) {
		cmd.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			c.SuggestFor = alike[c.Name()]
		}
		cmd.AddCommand(g.commands...)
		cmd.SetCompletionCommandGroupID(g.title)
	}
	cli.TypeUsageErrors(cmd)
	cli.SetHelp(cmd)
	return cmd
}

// alike are names that other programs have for commands.
var alike = map[string][]string{
	"list":       {"ls", "ps", "runs", "tasks"},
	"show":       {"describe", "get", "inspect"},
	"tail":       {"follow", "watch"},
	"wait":       {"await", "join"},
	"cancel":     {"stop", "kill", "terminate"},
	"experiment": {"exp", "experiments"},
	"playbook":   {"bullets", "skillbook"},
	"doctor":     {"check", "status"},
	"serve":      {"server", "start", "worker"},
}

// group is a part of the help.
type group struct {
	title    string
	commands []*cobra.Command
}

func groups(a *cli.App) []group {
	return []group{
		{"Runs", []*cobra.Command{
			runs.RunCommand(a),
			runs.ListCommand(a),
			runs.ShowCommand(a),
			runs.TailCommand(a),
			runs.WaitCommand(a),
			runs.LogsCommand(a),
			runs.CancelCommand(a),
			runs.SignalCommand(a),
			admin.WebCommand(a),
			admin.OpenCommand(a),
		}}, {"Why a run did what it did", []*cobra.Command{
			learning.TriageCommand(a),
			history.TimelineCommand(a),
			history.OperationsCommand(a),
			runs.PromptsCommand(a),
			runs.AskCommand(a),
			history.ReplayCommand(a),
			history.ForkCommand(a, flows.Fork),
			runs.ResetCommand(a),
			history.DiffCommand(a),
			history.LineageCommand(a),
		}}, {"What was learned, and what it cost", []*cobra.Command{
			learning.ExperimentCommand(a),
			runs.EvalCommand(a),
			learning.GateCommand(a),
			learning.PlaybookCommand(a),
			learning.ImportCommand(a),
			runs.DatasetCommand(a),
			admin.ProblemsCommand(a),
			agents.CostCommand(a),
		}}, {"Agents, programs and flows", []*cobra.Command{
			flows.FlowCommand(a),
			agents.AgentCommand(a),
			agents.RunnerCommand(a),
			agents.SessionCommand(a),
			agents.ObserveCommand(a),
			agents.McpCommand(a),
		}}, {"Installation and server", []*cobra.Command{
			a.ConsoleFlags(admin.DemoCommand(a)),
			admin.ServeCommand(a),
			admin.SetupCommand(a),
			admin.StoreCommand(a),
			admin.HealthCommand(a),
			admin.DoctorCommand(a),
			admin.ConfigCommand(a),
			admin.SchemaCommand(a),
			admin.VersionCommand(a),
		}},
	}
}
