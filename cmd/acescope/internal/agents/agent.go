package agents

import (
	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
)

// AgentCommand is about blueprints, of agents and of deterministic programs, and their runs.
// The command lines of agents that are installed are doctor's.
func AgentCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Blueprints of agents and deterministic programs, and their runs",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return cli.UsageError("agent what? list, show, validate, new, start, resume, status, result, stop or runs")
		},
	}
	a.AgentDirsFlag(cmd.PersistentFlags())
	cmd.AddCommand(agentListCommand(a), agentShowCommand(a), agentValidateCommand(a), agentNewCommand(a),
		agentStartCommand(a), agentResumeCommand(a), agentStatusCommand(a), agentResultCommand(a), agentStopCommand(a), agentRunsCommand(a))
	return cmd
}
