package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"acescope/engine/tasks/blueprint"
	"acescope/engine/tasks/run"
)

// AgentDirsFlag lets a command say where blueprints are.
func (a *App) AgentDirsFlag(f *pflag.FlagSet) {
	f.StringArrayVar(&a.AgentDirs, "agents-dir", nil, "a directory of blueprints, in place of the usual ones; can be given again, and the first counts")
}

// Library is where blueprints are looked for: in the directories that flags name, else those
// of the environment or the configuration, else the usual ones. Directories that a flag names
// must be there.
func (a *App) Library() (blueprint.Library, error) {
	dirs, err := a.AgentsPath()
	if err != nil {
		return blueprint.Library{}, err
	}
	for _, dir := range a.AgentDirs {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return blueprint.Library{}, UsageError("--agents-dir %s: there is no such directory", dir)
		}
	}
	return blueprint.Library{Dirs: dirs}, nil
}

// AgentsPath is the search path, whether its directories are there or not.
func (a *App) AgentsPath() ([]string, error) {
	dirs := a.AgentDirs
	if len(dirs) == 0 {
		for _, dir := range filepath.SplitList(a.Settings.AgentsDirs) {
			if dir != "" {
				dirs = append(dirs, Home(dir))
			}
		}
	}
	if len(dirs) == 0 {
		dirs = []string{"agents", filepath.Join(".acescope", "agents")}
		if config, err := ConfigDir(); err == nil {
			dirs = append(dirs, filepath.Join(config, "agents"))
		}
	}
	var out []string
	for _, dir := range dirs {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		out = append(out, abs)
	}
	return out, nil
}

// CompleteBlueprints completes the first argument with the names of blueprints.
func (a *App) CompleteBlueprints(cmd *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	if len(given) > 0 || a.Load(cmd, given) != nil {
		return nil, none
	}
	l, err := a.Library()
	if err != nil {
		return nil, none
	}
	entries, err := l.Entries(cmd.Context())
	if err != nil {
		return nil, none
	}
	var names []string
	for _, e := range entries {
		if e.Shadowed == "" && strings.HasPrefix(e.Name, begun) && e.Name == SafeText(e.Name) {
			names = append(names, e.Name+"\t"+SafeText(e.Description))
		}
	}
	return names, none
}

// Blueprints gives runs the blueprints of a library.
type Blueprints struct{ blueprint.Library }

// Load implements [engine.Blueprints].
func (b Blueprints) Load(name string) (run.Blueprint, func(json.RawMessage) (json.RawMessage, error), error) {
	loaded, err := b.Library.Load(name)
	if err != nil || loaded.Parameters == nil {
		return loaded.Blueprint, nil, err
	}
	return loaded.Blueprint, loaded.Parameters.Check, nil
}
