package cli

import (
	"github.com/spf13/pflag"

	"acescope/engine/tasks/run"
)

// ProgramFlags adds the flags with which a process with workers for a cluster lets the cluster's workflows
// start programs on this machine. Without these flags, it starts no programs.
func ProgramFlags(a *App, fs *pflag.FlagSet) {
	fs.StringVar(&a.Runner, "runner", "",
		"on a cluster, start a runner of this name: it executes the cluster's programs in the current directory")
	fs.BoolVar(&a.HostAgents, "host-agents", false,
		"on a cluster, let its workflows start agents on this machine: sessions, their tools, and calls of agents")
}

// checkPrograms rejects the flags if no cluster is named: on a data directory, the local runner and agents
// need no flags.
func checkPrograms(a *App) error {
	switch {
	case a.Cluster() == nil && (a.Runner != "" || a.HostAgents):
		return UsageError("--runner and --host-agents need a cluster; a data directory has its local runner, " +
			"and agents start there")
	case a.Runner != "" && !run.ValidName(a.Runner):
		return UsageError("--runner %q: use letters, digits, dots, dashes and underscores", a.Runner)
	}
	return nil
}
