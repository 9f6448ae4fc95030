package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"acescope/engine/blueprint"
)

// agentDirsFlag lets a command say where blueprints are.
func (a *app) agentDirsFlag(f *pflag.FlagSet) {
	f.StringArrayVar(&a.agentDirs, "agents-dir", nil, "a directory of blueprints, in place of the usual ones; can be given again, and the first counts")
}

// library is where blueprints are looked for: in the directories that flags name, else those
// of the environment or the configuration, else the usual ones. Directories that a flag names
// must be there.
func (a *app) library() (blueprint.Library, error) {
	dirs, err := a.agentsPath()
	if err != nil {
		return blueprint.Library{}, err
	}
	for _, dir := range a.agentDirs {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return blueprint.Library{}, usage("--agents-dir %s: there is no such directory", dir)
		}
	}
	return blueprint.Library{Dirs: dirs}, nil
}

// agentsPath is the search path, whether its directories are there or not.
func (a *app) agentsPath() ([]string, error) {
	dirs := a.agentDirs
	if len(dirs) == 0 {
		for _, dir := range filepath.SplitList(a.set.AgentsDirs) {
			if dir != "" {
				dirs = append(dirs, home(dir))
			}
		}
	}
	if len(dirs) == 0 {
		dirs = []string{"agents", filepath.Join(".acescope", "agents")}
		if config, err := configDir(); err == nil {
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

// completeBlueprints completes the first argument with the names of blueprints.
func (a *app) completeBlueprints(cmd *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	if len(given) > 0 || a.load(cmd, given) != nil {
		return nil, none
	}
	l, err := a.library()
	if err != nil {
		return nil, none
	}
	entries, err := l.Entries(cmd.Context())
	if err != nil {
		return nil, none
	}
	var names []string
	for _, e := range entries {
		if e.Shadowed == "" && strings.HasPrefix(e.Name, begun) && e.Name == safe(e.Name) {
			names = append(names, e.Name+"\t"+safe(e.Description))
		}
	}
	return names, none
}
