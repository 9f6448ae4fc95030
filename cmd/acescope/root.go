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
		}
		cmd.AddCommand(g.commands...)
		cmd.SetCompletionCommandGroupID(g.title)
	}
	cli.TypeUsageErrors(cmd, meant)
	cli.CheckHelp(cmd, meant)
	cli.SetHelp(a, cmd)
	return cmd
}

// completing returns the root command for a shell that asks for completions. Every other start does without
// them: they take longer than the rest of the command line.
func completing(a *cli.App) *cobra.Command {
	cmd := root(a)
	cli.SetCompletions(cmd, completions(a), flagKinds)
	return cmd
}

// meant maps the names that other programs use, NAME or "GROUP NAME", to the commands of acescope.
var meant = map[string]string{
	"ls": "list", "ps": "list", "runs": "list", "tasks": "list",
	"describe": "show RUN", "get": "show RUN", "inspect": "show RUN", "operations": "show RUN --operations",
	"follow": "tail RUN", "watch": "tail RUN",
	"await": "wait RUN", "join": "wait RUN",
	"stop": "cancel RUN", "kill": "cancel RUN", "terminate": "cancel RUN --force --reason TEXT",
	"exp": "experiment list", "experiments": "experiment list",
	"bullets": "playbook show", "skillbook": "playbook show",
	"playbooks": "playbook branches", "playbook list": "playbook branches",
	"prompt": "phase-prompt list", "instructions": "phase-prompt list",
	"check": "doctor", "status": "doctor", "health": "doctor", "verify": "replay verify",
	"server": "serve", "start": "serve", "worker": "serve",
	"agents": "agent list", "sessions": "session list", "runners": "runner list", "flows": "flow list",
	"agent runs": "list --type blueprint", "agent status": "show RUN", "agent result": "show RUN --result",
	"agent stop": "cancel RUN",
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
			runs.ShowCommand(a, agents.ShowResult),
			runs.TailCommand(a),
			runs.WaitCommand(a),
			runs.ReviewCommand(a),
			runs.LogsCommand(a),
			runs.CancelCommand(a),
			runs.SignalCommand(a),
			runs.QueryCommand(a),
			admin.WebCommand(a),
			admin.OpenCommand(a),
		}}, {"Why a run did what it did", []*cobra.Command{
			learning.TriageCommand(a),
			history.TimelineCommand(a),
			runs.PromptsCommand(a),
			runs.AskCommand(a),
			history.ReplayCommand(a),
			history.ForkCommand(a, flows.Fork),
			runs.ResetCommand(a),
			history.DiffCommand(a),
			history.LineageCommand(a),
			history.AdapterCommand(a),
		}}, {"What was learned, and what it cost", []*cobra.Command{
			learning.ExperimentCommand(a),
			runs.EvalCommand(a),
			learning.GateCommand(a),
			learning.PlaybookCommand(a),
			learning.PhasePromptCommand(a),
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
			admin.DoctorCommand(a),
			admin.ConfigCommand(a),
			admin.SchemaCommand(a),
			admin.VersionCommand(a),
		}},
	}
}
