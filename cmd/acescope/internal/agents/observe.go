package agents

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/history"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine/agents/observe"
	"acescope/engine/agents/observe/hooks"
	"acescope/engine/agents/observe/spool"
)

// HooksLine is what was done to an agent's settings.
type HooksLine struct {
	Type    string   `json:"type"` // observe_install, observe_uninstall
	Path    string   `json:"path"`
	Hook    string   `json:"hook,omitempty"` // the program, of an installation
	Events  []string `json:"events"`         // that have the hook now
	Changed bool     `json:"changed"`
	DryRun  bool     `json:"dry_run"`
	Backup  string   `json:"backup,omitempty"` // of the settings as they were
	Diff    []string `json:"diff"`             // lines taken out begin with -, lines put in with +
}

// hooksAsk is what an installation or its undoing is asked for.
type hooksAsk struct {
	user    bool
	project string
	hook    string
	dryRun  bool
}

func observeInstall(a *cli.App) *cobra.Command {
	var ask hooksAsk
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Add acescope's hook to Claude Code's settings",
		Long: "Adds one line for each hook to Claude Code's settings: the user's (the default) or a project's. All that is there\n" +
			"stays as it is, and the file as it was is kept beside it. Settings that are no plain JSON are left alone.",
		Example: "acescope observe install --dry-run\nacescope observe install --project .",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return install(a, ask) },
	}
	settingsFlags(cmd, &ask)
	cmd.Flags().StringVar(&ask.hook, "hook", "", "the program (default: acescope-hook beside acescope, or in $PATH)")
	return cmd
}

func observeUninstall(a *cli.App) *cobra.Command {
	var ask hooksAsk
	cmd := &cobra.Command{
		Use:     "uninstall",
		Short:   "Take acescope's hook out of Claude Code's settings",
		Example: "acescope observe uninstall --project .",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return uninstall(a, ask) },
	}
	settingsFlags(cmd, &ask)
	return cmd
}

func settingsFlags(cmd *cobra.Command, ask *hooksAsk) {
	f := cmd.Flags()
	f.BoolVar(&ask.user, "user", false, "the user's settings: $CLAUDE_CONFIG_DIR, or ~/.claude (the default)")
	f.StringVar(&ask.project, "project", "", "the settings of the project in this directory")
	f.BoolVar(&ask.dryRun, "dry-run", false, "show what would change and change nothing")
	cmd.MarkFlagsMutuallyExclusive("user", "project")
}

// path is the file of the settings.
func (ask hooksAsk) path() (string, error) {
	if ask.project != "" {
		if info, err := os.Stat(ask.project); err != nil || !info.IsDir() {
			return "", cli.UsageError("--project %s: there is no such directory", ask.project)
		}
		return filepath.Abs(filepath.Join(ask.project, ".claude", "settings.json"))
	}
	dir := os.Getenv("CLAUDE_CONFIG_DIR")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".claude")
	}
	return filepath.Join(dir, "settings.json"), nil
}

func install(a *cli.App, ask hooksAsk) error {
	hook, err := hookPath(ask.hook)
	if err != nil {
		return err
	}
	return edit(a, ask, HooksLine{Type: "observe_install", Hook: hook}, func(s []byte) ([]byte, error) { return hooks.Install(s, hook) })
}

func uninstall(a *cli.App, ask hooksAsk) error {
	return edit(a, ask, HooksLine{Type: "observe_uninstall"}, hooks.Uninstall)
}

// hookPath finds the program that the hooks run.
func hookPath(asked string) (string, error) {
	if asked != "" {
		info, err := os.Stat(asked)
		if err != nil || info.IsDir() || !strings.Contains(filepath.Base(asked), hooks.Name) {
			return "", cli.UsageError("--hook %s: there is no program %s", asked, hooks.Name)
		}
		return filepath.Abs(asked)
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), hooks.Name)
		if info, err := os.Stat(beside); err == nil && !info.IsDir() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(hooks.Name)
	if err != nil {
		return "", fmt.Errorf("there is no %s beside acescope or in $PATH: build it (make build), or name it with --hook", hooks.Name)
	}
	return filepath.Abs(path)
}

// edit changes settings, or shows how they would change.
func edit(a *cli.App, ask hooksAsk, line HooksLine, change func([]byte) ([]byte, error)) error {
	path, err := ask.path()
	if err != nil {
		return err
	}
	// Settings that a link leads to are changed where they are.
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
	line.Path, line.DryRun, line.Changed = path, ask.dryRun, string(before) != string(after)
	line.Events, line.Diff = eventsWith(after), lineDiff(string(before), string(after))
	if line.Changed && !ask.dryRun {
		if line.Backup, err = replaceFile(path, before, after); err != nil {
			return err
		}
	}
	if a.JSON {
		return cli.NewLines(a.Out).Write(line)
	}
	sayEdit(a, line)
	return nil
}

func sayEdit(a *cli.App, line HooksLine) {
	if line.DryRun {
		for _, l := range line.Diff {
			fmt.Fprintln(a.Out, cli.SafeText(l))
		}
	}
	would := map[bool]string{true: "would be ", false: ""}[line.DryRun]
	switch {
	case !line.Changed && line.Hook != "":
		fmt.Fprintf(a.Out, "%s has the hook already\n", cli.SafeText(line.Path))
	case !line.Changed:
		fmt.Fprintf(a.Out, "%s has no hook of acescope's\n", cli.SafeText(line.Path))
	case line.Hook != "":
		fmt.Fprintf(a.Out, "%s: %shooked at %d events; sessions that start from now on are observed\n", cli.SafeText(line.Path), would, len(line.Events))
	default:
		fmt.Fprintf(a.Out, "%s: the hook %staken out\n", cli.SafeText(line.Path), would)
	}
}

// eventsWith lists the hooks that have our command, in the order in which we install them.
func eventsWith(settings []byte) []string {
	at := hooks.Installed(settings)
	events := []string{}
	for _, event := range hooks.Events() {
		if at[event] != "" {
			events = append(events, event)
		}
	}
	return events
}

// replaceFile writes the settings anew, in one step, and keeps them as they were.
func replaceFile(path string, before, after []byte) (backup string, err error) {
	mode := os.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
		backup = path + ".before-acescope"
		if err := os.WriteFile(backup, before, mode); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".settings-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(after)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	return backup, err
}

// lineDiff is the lines that differ between two texts that are alike in front and behind.
func lineDiff(before, after string) []string {
	diff := []string{}
	if before == after {
		return diff
	}
	old, now := strings.Split(before, "\n"), strings.Split(after, "\n")
	for len(old) > 0 && len(now) > 0 && old[0] == now[0] {
		old, now = old[1:], now[1:]
	}
	for len(old) > 0 && len(now) > 0 && old[len(old)-1] == now[len(now)-1] {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	for _, l := range old {
		diff = append(diff, "- "+l)
	}
	for _, l := range now {
		diff = append(diff, "+ "+l)
	}
	return diff
}

// ObserveLine is how observing stands.
type ObserveLine struct {
	Type          string          `json:"type"` // observe_status
	Observe       string          `json:"observe"`
	Spool         string          `json:"spool"`
	SpoolBytes    int64           `json:"spool_bytes"`
	Waiting       int64           `json:"waiting"`
	Dropped       int64           `json:"dropped"`
	Forwarded     int64           `json:"forwarded"`
	PassedOver    int64           `json:"passed_over"`
	LastForwarded *time.Time      `json:"last_forwarded,omitempty"`
	Forwarding    bool            `json:"forwarding"`
	Failure       string          `json:"failure,omitempty"`
	Settings      []hookedSetting `json:"settings"`
}

// hookedSetting is one file of settings.
type hookedSetting struct {
	Scope   string   `json:"scope"` // user, project
	Path    string   `json:"path"`
	Hook    string   `json:"hook,omitempty"` // the command line
	Events  []string `json:"events"`
	Missing []string `json:"missing"` // hooks that are not installed, where others are
}

func observeStatus(a *cli.App) *cobra.Command {
	var project string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show which hooks are installed, and what waits in the spool",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return observing(a, project) },
	}
	cmd.Flags().StringVar(&project, "project", ".", "the directory of a project, whose settings are looked at too")
	return cmd
}

func observing(a *cli.App, project string) error {
	dir := spool.Dir(os.Getenv)
	if dir == "" {
		return fmt.Errorf("there is no place for a spool: set $HOME or $%s to an absolute path", spool.Env)
	}
	s, err := observe.ReadStatus(dir)
	if err != nil {
		return err
	}
	line := ObserveLine{Type: "observe_status", Observe: a.Settings.Observe, Spool: dir, SpoolBytes: s.Bytes, Waiting: s.Waiting, Dropped: s.Dropped,
		Forwarded: s.Forwarded, PassedOver: s.Ignored, Forwarding: s.Forwarding, Failure: s.Failure, Settings: []hookedSetting{}}
	if !s.At.IsZero() {
		line.LastForwarded = &s.At
	}
	for scope, ask := range map[string]hooksAsk{"user": {}, "project": {project: project}} {
		if h, ok := settingOf(scope, ask); ok {
			line.Settings = append(line.Settings, h)
		}
	}
	slices.SortFunc(line.Settings, func(x, y hookedSetting) int { return -strings.Compare(x.Scope, y.Scope) })
	if a.JSON {
		return cli.NewLines(a.Out).Write(line)
	}
	sayObserving(a, line)
	return nil
}

// settingOf is what a file of settings has of ours; false where it cannot be read.
func settingOf(scope string, ask hooksAsk) (hookedSetting, bool) {
	path, err := ask.path()
	if err != nil {
		return hookedSetting{}, false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return hookedSetting{}, false
	}
	h := hookedSetting{Scope: scope, Path: path, Events: eventsWith(data), Missing: []string{}}
	at := hooks.Installed(data)
	for _, event := range hooks.Events() {
		if h.Hook == "" {
			h.Hook = at[event]
		}
		if len(at) > 0 && at[event] == "" {
			h.Missing = append(h.Missing, event)
		}
	}
	return h, true
}

func sayObserving(a *cli.App, l ObserveLine) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(a.Out, "%-10s %s\n", name, cli.SafeText(fmt.Sprintf(format, args...)))
	}
	row("observe", "%s", l.Observe)
	for _, s := range l.Settings {
		what := "no hook"
		if len(s.Events) > 0 {
			what = fmt.Sprintf("hooked at %d events: %s", len(s.Events), s.Hook)
		}
		if len(s.Missing) > 0 {
			what += "; not at " + strings.Join(s.Missing, ", ") + " (install again)"
		}
		row(s.Scope, "%s: %s", s.Path, what)
	}
	if len(l.Settings) == 0 {
		row("hooks", "none are installed: acescope observe install")
	}
	row("spool", "%s: %d bytes, %d waiting, %d dropped", l.Spool, l.SpoolBytes, l.Waiting, l.Dropped)
	last := "nothing yet"
	if l.LastForwarded != nil {
		last = "last at " + l.LastForwarded.Local().Format("2006-01-02 15:04:05")
	}
	by := "no process serves now"
	if l.Forwarding {
		by = "a process serves"
	}
	row("forwarded", "%d, %s; %d told nothing; %s", l.Forwarded, last, l.PassedOver, by)
	if l.Failure != "" {
		row("failure", "%s", l.Failure)
	}
}

// ObserveCommand holds the hooks' commands, and the names that the design documents use.
func ObserveCommand(a *cli.App) *cobra.Command {
	observe := &cobra.Command{Use: "observe", Short: "Observe agents and runs that happen elsewhere",
		Long: "Claude Code tells acescope what it does through hooks, which install adds to its settings. They leave it in a spool on\n" +
			"this machine, from which any acescope process that serves takes it to a run for each session (docs/guides/observe.md)."}
	temporal := &cobra.Command{Use: "temporal", Short: "Observe runs that Temporal holds"}
	var task string
	tail := &cobra.Command{
		Use:   "tail --task-id TASK",
		Short: "The same as acescope tail TASK",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runs.Tail(a, cmd.Context(), task) },
	}
	tail.Flags().StringVar(&task, "task-id", "", "task to follow")
	_ = tail.MarkFlagRequired("task-id")
	temporal.AddCommand(tail, observeReplay(a))
	observe.AddCommand(observeInstall(a), observeUninstall(a), observeStatus(a), temporal)
	return observe
}

// observeReplay is verify by the name that the design documents use.
func observeReplay(a *cli.App) *cobra.Command {
	cmd := history.VerifyCommand(a, "replay")
	cmd.Use, cmd.Short, cmd.Args = "replay --task-id TASK", "The same as acescope replay verify TASK", cobra.NoArgs
	var task string
	cmd.Flags().StringVar(&task, "task-id", "", "task to verify")
	_ = cmd.MarkFlagRequired("task-id")
	verify := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return verify(cmd, []string{task}) }
	return cmd
}
