package agents

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/history"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine/ace"
	"acescope/engine/agents/observe"
	"acescope/engine/agents/observe/hooks"
	"acescope/engine/agents/observe/spool"
	"acescope/engine/agents/transcript"
)

// ObserveCommand holds the commands on hooks, and commands under the names of the design documents.
func ObserveCommand(a *cli.App) *cobra.Command {
	temporal := cli.Group(&cobra.Command{Use: "temporal", Short: "Observe runs on Temporal"},
		withTaskFlag("tail", runs.TailCommand(a), "acescope tail TASK"),
		withTaskFlag("replay", history.VerifyCommand(a, "replay"), "acescope replay verify TASK"))
	return cli.Group(&cobra.Command{
		Use:   "observe",
		Short: "Observe agents and runs outside acescope",
		Long: `Claude Code reports its actions through hooks, which install adds to its settings. The hooks write
to a spool on this machine. An acescope process with workers (serve, run, the console) forwards the
records to one run per session (docs/guides/observe.md).`,
	}, observeInstallCommand(a), observeUninstallCommand(a), observeStatusCommand(a), temporal)
}

// withTaskFlag renames a command, which then takes its task as a flag.
func withTaskFlag(name string, cmd *cobra.Command, same string) *cobra.Command {
	var task string
	cmd.Use, cmd.Short, cmd.Example = name+" --task-id TASK", "The same as "+same, ""
	cmd.Args = cobra.NoArgs
	cmd.Flags().StringVar(&task, "task-id", "", "task")
	_ = cmd.MarkFlagRequired("task-id")
	do := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return do(cmd, []string{task}) }
	return cmd
}

// HooksLine is a change to an agent's settings.
type HooksLine struct {
	Path    string   `json:"path" jsonschema:"settings file of the agent"`
	Hook    string   `json:"hook,omitempty" jsonschema:"hook program"`
	Events  []string `json:"events"` // that have the hook now
	Changed bool     `json:"changed" jsonschema:"whether the file changed"`
	DryRun  bool     `json:"dry_run" jsonschema:"whether nothing was written"`
	Backup  string   `json:"backup,omitempty"` // of the previous settings
	Diff    []string `json:"diff"`             // removed lines start with -, added lines with +
}

// settingsFlags choose the settings of an agent.
type settingsFlags struct {
	user    bool
	project string
	dryRun  bool
}

func (f *settingsFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&f.user, "user", false, "the user's settings: $CLAUDE_CONFIG_DIR, or ~/.claude (the default)")
	fs.StringVar(&f.project, "project", "",
		"your own settings of the project in this directory (.claude/settings.local.json)")
	fs.BoolVar(&f.dryRun, "dry-run", false, "show the changes without making them")
	cmd.MarkFlagsMutuallyExclusive("user", "project")
}

// paths returns the files of the settings. The hook is installed in the first one: the settings of a project
// that are committed are no place for a path on this machine, but may hold a hook.
func (f settingsFlags) paths() ([]string, error) {
	if f.project != "" {
		dir, err := existingDir("--project", f.project)
		dir = filepath.Join(dir, ".claude")
		return []string{filepath.Join(dir, "settings.local.json"), filepath.Join(dir, "settings.json")}, err
	}
	root := transcript.ConfigDir(os.Environ())
	if root == "" {
		return nil, errors.New("no home directory; set $CLAUDE_CONFIG_DIR")
	}
	return []string{filepath.Join(root, "settings.json")}, nil
}

func observeInstallCommand(a *cli.App) *cobra.Command {
	var f settingsFlags
	var program string
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Add acescope's hook to Claude Code's settings",
		Long: `Adds one line for each hook to Claude Code's settings: the user's (the default) or a project's. The
other settings are kept, and the previous file is saved beside the new one. Settings that are not
plain JSON are not changed.`,
		Example: "acescope observe install --dry-run\nacescope observe install --project .",
		RunE: func(*cobra.Command, []string) error {
			hook, err := hookProgram(program)
			if err != nil {
				return err
			}
			paths, err := f.paths()
			if err != nil {
				return err
			}
			line := HooksLine{Hook: hook, Path: paths[0], DryRun: f.dryRun}
			return editSettings(a, line, func(s []byte) ([]byte, error) { return hooks.Install(s, hook) })
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&program, "hook", "",
		"the hook program (default: acescope-hook beside acescope, or in $PATH)")
	return cmd
}

func observeUninstallCommand(a *cli.App) *cobra.Command {
	var f settingsFlags
	cmd := &cobra.Command{
		Use:     "uninstall",
		Short:   "Remove acescope's hook from Claude Code's settings",
		Example: "acescope observe uninstall --project .",
		RunE: func(*cobra.Command, []string) error {
			paths, err := f.paths()
			if err != nil {
				return err
			}
			for i, path := range paths {
				if i > 0 && len(readHookSettings("", path).Events) == 0 {
					continue
				}
				line := HooksLine{Path: path, DryRun: f.dryRun}
				if err := editSettings(a, line, hooks.Uninstall); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.add(cmd)
	return cmd
}

// hookProgram returns the path of the program that hooks execute.
func hookProgram(path string) (string, error) {
	if path != "" {
		if !runs.IsFile(path) {
			return "", cli.UsageError("--hook %s: file not found", path)
		}
		if !strings.Contains(filepath.Base(path), hooks.Name) {
			return "", cli.UsageError("--hook %s: the file name must contain %q", path, hooks.Name)
		}
		return filepath.Abs(path)
	}
	if self, err := os.Executable(); err == nil {
		if beside := filepath.Join(filepath.Dir(self), hooks.Name); runs.IsFile(beside) {
			return beside, nil
		}
	}
	path, err := exec.LookPath(hooks.Name)
	if err != nil {
		return "", fmt.Errorf(
			"%s is neither beside acescope nor in $PATH: build it (make build), or name it with --hook",
			hooks.Name)
	}
	return filepath.Abs(path)
}

// editSettings changes settings, or shows the changes.
func editSettings(a *cli.App, line HooksLine, change func([]byte) ([]byte, error)) error {
	path := line.Path
	// If the file is a link, its target is changed.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	after, err := change(before)
	if err != nil {
		return fmt.Errorf("%s is %w", path, err)
	}
	line.Path, line.Changed = path, string(before) != string(after)
	line.Events, _, _ = installedHooks(after)
	line.Diff = diffLines(string(before), string(after))
	if line.Changed && !line.DryRun {
		if line.Backup, err = replaceSettings(path, before, after); err != nil {
			return err
		}
	}
	if !a.JSON && line.DryRun {
		for _, l := range line.Diff {
			fmt.Fprintln(a.Out, cli.SafeText(l))
		}
	}
	return cli.Report(a, line, "%s: %s", path, line.text())
}

func (l HooksLine) text() string {
	would := map[bool]string{true: "would be ", false: ""}[l.DryRun]
	switch {
	case !l.Changed && l.Hook != "":
		return "the hook is already installed"
	case !l.Changed:
		return "the hook is not installed"
	case l.Hook != "":
		return fmt.Sprintf("the hook %sinstalled for %s; new sessions are observed", would,
			ace.Count(len(l.Events), "event"))
	}
	return "the hook " + would + "removed"
}

// installedHooks returns the events that have acescope's hook, those that lack it, and the hook's command
// line.
func installedHooks(settings []byte) (events, missing []string, command string) {
	installed := hooks.Installed(settings)
	events, missing = []string{}, []string{}
	for _, event := range hooks.Events() {
		if installed[event] == "" {
			missing = append(missing, event)
			continue
		}
		events = append(events, event)
		command = cmp.Or(command, installed[event])
	}
	return events, missing, command
}

// replaceSettings replaces a file atomically and returns the name of a copy of the previous one. The copy
// holds the settings before the hook was installed, and is removed with the hook if they are the same again.
// Settings without a copy that become empty were created by an installation and are removed.
func replaceSettings(path string, before, after []byte) (backup string, err error) {
	uninstall := len(hooks.Installed(after)) == 0
	backup = path + ".before-acescope"
	original, err := os.ReadFile(backup)
	switch {
	case uninstall && errors.Is(err, os.ErrNotExist) && string(bytes.TrimSpace(after)) == "{}":
		return "", os.Remove(path)
	case uninstall && err == nil && bytes.Equal(original, after):
		defer os.Remove(backup)
	}
	info, err := os.Stat(path)
	if err != nil || len(hooks.Installed(before)) > 0 {
		backup = ""
	} else if err := os.WriteFile(backup, before, info.Mode().Perm()); err != nil {
		return "", err
	}
	return backup, cli.UpdateFile(path, after)
}

// diffLines returns the removed lines with - and the added lines with + before them.
func diffLines(before, after string) []string {
	diff := []string{}
	add := func(mark, text string) {
		for line := range strings.Lines(text) {
			diff = append(diff, mark+strings.TrimSuffix(line, "\n"))
		}
	}
	for _, e := range udiff.Lines(before, after) {
		add("- ", before[e.Start:e.End])
		add("+ ", e.New)
	}
	return diff
}

type ObserveLine struct {
	Observe string `json:"observe"`
	Spool   string `json:"spool" jsonschema:"directory of the spool"`
	observe.Status
	Settings []hookSettings `json:"settings" jsonschema:"settings files with hooks"`
}

// hookSettings is a settings file with or without acescope's hook.
type hookSettings struct {
	Scope   string   `json:"scope"` // user, project
	Path    string   `json:"path"`
	Hook    string   `json:"hook,omitempty" jsonschema:"hook command"`
	Events  []string `json:"events" jsonschema:"installed hooks"`
	Missing []string `json:"missing"` // events without the hook, if others have it
}

func observeStatusCommand(a *cli.App) *cobra.Command {
	project := "."
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the installed hooks and the state of the spool",
		RunE: func(*cobra.Command, []string) error {
			dir := spool.Dir(os.Getenv)
			if dir == "" {
				return fmt.Errorf("no directory for the spool: set $HOME or $%s to an absolute path",
					spool.Env)
			}
			status, err := observe.ReadStatus(dir)
			if err != nil {
				return err
			}
			line := ObserveLine{Observe: a.Settings.Observe, Spool: dir, Status: status,
				Settings: []hookSettings{}}
			scopes := []settingsFlags{{user: true}, {project: project}}
			for _, f := range scopes {
				paths, _ := f.paths() // a missing directory has no settings
				for _, path := range paths {
					if h := readHookSettings(f.scope(), path); h.Path != "" {
						line.Settings = append(line.Settings, h)
					}
				}
			}
			return cli.Show(a, line, func() error { return line.details().print(a.Out) })
		},
	}
	cmd.Flags().StringVar(&project, "project", project, "directory of a project whose settings are shown too")
	return cmd
}

func (f settingsFlags) scope() string {
	if f.project != "" {
		return "project"
	}
	return "user"
}

// readHookSettings returns the hooks in a settings file. The path is "" if the file cannot be read.
func readHookSettings(scope, path string) (h hookSettings) {
	data, err := os.ReadFile(path)
	if err != nil {
		return h
	}
	h.Scope, h.Path = scope, path
	if h.Events, h.Missing, h.Hook = installedHooks(data); len(h.Events) == 0 {
		h.Missing = []string{}
	}
	return h
}

func (l ObserveLine) details() (d details) {
	d.add("observe", "%s", l.Observe)
	for _, s := range l.Settings {
		hook := "no hook"
		if len(s.Events) > 0 {
			hook = "hook for " + ace.Count(len(s.Events), "event") + ": " + s.Hook
		}
		if len(s.Missing) > 0 {
			hook += "; missing for " + strings.Join(s.Missing, ", ") + " (install again)"
		}
		d.add(s.Scope, "%s: %s", s.Path, hook)
	}
	if len(l.Settings) == 0 {
		d.add("hooks", `not installed; run "acescope observe install"`)
	}
	d.add("spool", "%s: %s, %d waiting, %d dropped", l.Spool, ace.Count(l.Bytes, "byte"),
		l.Waiting, l.Dropped)
	last := "none yet"
	if !l.At.IsZero() {
		last = "last at " + formatTime(l.At)
	}
	serving := "no process is serving"
	if l.Forwarding {
		serving = "a process is serving"
	}
	d.add("forwarded", "%d, %s; %d ignored; %s", l.Forwarded, last, l.Ignored, serving)
	d.add("failure", "%s", l.Failure)
	if l.Quarantined > 0 {
		d.add("quarantine", "%s: %s; %s", ace.Count(l.Quarantined, "event"), l.Reason, l.Advice())
	}
	return d
}
