package admin

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/sources/runs"
	"acescope/tui"
)

type configLine struct {
	Paths     cli.Paths          `json:"paths" jsonschema:"paths"`
	Settings  []cli.SettingLine  `json:"settings" jsonschema:"settings"`
	Filters   []runs.SavedFilter `json:"filters" jsonschema:"saved filters"`
	Warnings  []string           `json:"warnings" jsonschema:"what is wrong with the configuration"`
	Providers []cli.ProviderLine `json:"providers" jsonschema:"providers"`
	Graders   []cli.GraderLine   `json:"graders" jsonschema:"programs that grade answers"`
	Replayers []cli.ReplayerLine `json:"replayers" jsonschema:"programs that verify histories of other workers"`
}

type themeLine struct {
	Name   string `json:"name"`
	Base   string `json:"base,omitempty" jsonschema:"theme that it extends"`
	Source string `json:"source"`
	Active bool   `json:"active" jsonschema:"whether it is used"`
}

// keyLine is an action of the console with its keys.
type keyLine struct {
	Group       string   `json:"group"`
	Action      string   `json:"action" jsonschema:"action"`
	Keys        []string `json:"keys" jsonschema:"keys, maybe none"`
	Description string   `json:"description" jsonschema:"meaning"`
	Mutates     bool     `json:"mutates,omitempty"`
}

func ConfigCommand(a *cli.App) *cobra.Command {
	cmd := a.ConsoleFlags(&cobra.Command{
		Use:   "config",
		Short: "Show the effective settings, their sources, and the paths of the configuration and data",
		Example: "acescope config\nacescope config --json | jq -r '.paths.config'\nacescope config themes\n" +
			"acescope config keys",
		RunE: func(cmd *cobra.Command, _ []string) error { return config(a, cmd.Context()) },
	})
	markdown := false
	keys := a.ConsoleFlags(&cobra.Command{
		Use:   "keys",
		Short: "List the actions of the console with their keys",
		RunE:  func(cmd *cobra.Command, _ []string) error { return configKeys(a, cmd.Context(), markdown) },
	})
	keys.Flags().BoolVar(&markdown, "markdown", false, "write the page docs/reference/keys.md")
	cmd.AddCommand(keys, a.ConsoleFlags(&cobra.Command{
		Use:   "themes",
		Short: "List the themes and their files",
		RunE:  func(*cobra.Command, []string) error { return configThemes(a) },
	}))
	return cmd
}

func config(a *cli.App, ctx context.Context) error {
	if _, err := dryConsole(a, ctx); err != nil {
		return err
	}
	paths, err := a.Paths()
	if err != nil {
		return err
	}
	c := configLine{
		Paths: paths, Settings: a.SettingLines(), Providers: a.ProviderLines(ctx), Graders: a.GraderLines(),
		Replayers: a.ReplayerLines(),
		Filters:   append([]runs.SavedFilter{}, a.Settings.File.Filters...),
		Warnings:  append([]string{}, a.Settings.Warnings...),
	}
	return cli.Show(a, c, func() error { return printConfig(a, c) })
}

func printConfig(a *cli.App, c configLine) error {
	w := cli.NewTable(a.Out)
	w.Wrap = true
	fmt.Fprintln(w, "PATHS")
	for _, p := range [][2]string{
		{"config", c.Paths.Config}, {"themes", c.Paths.Themes}, {"state", c.Paths.State},
		{"data", c.Paths.Data}, {"logs", c.Paths.Logs},
	} {
		note := ""
		if _, err := os.Stat(p[1]); err != nil {
			note = "does not exist"
		}
		w.Row("  "+p[0], p[1], note)
	}
	fmt.Fprintln(w, "\nSETTINGS")
	for _, s := range c.Settings {
		w.Row("  "+s.Name, cmp.Or(s.Value, "-"), s.Source, s.Description)
	}
	fmt.Fprintln(w, "\nPROVIDERS")
	for _, p := range c.Providers {
		w.Row("  "+p.Name, p.Text)
	}
	if len(c.Graders) > 0 {
		fmt.Fprintln(w, "\nGRADERS")
	}
	for _, g := range c.Graders {
		w.Row("  "+g.Name, strings.Join(g.Command, " "), "at most "+g.Timeout, g.Text)
	}
	if len(c.Replayers) > 0 {
		fmt.Fprintln(w, "\nREPLAYERS")
	}
	for _, r := range c.Replayers {
		w.Row("  "+r.For, strings.Join(r.Command, " "), "at most "+r.Timeout, r.Text)
	}
	if len(c.Filters) > 0 {
		fmt.Fprintln(w, "\nFILTERS")
	}
	for _, f := range c.Filters {
		mark := ""
		if f.Default {
			mark = "default"
		}
		w.Row("  "+f.Name, f.Query, mark)
	}
	if len(c.Warnings) > 0 {
		fmt.Fprintln(w, "\nWARNINGS")
	}
	for _, text := range c.Warnings {
		w.Row("  " + text)
	}
	return w.Flush()
}

// printWarnings writes the warnings of the settings to standard error.
func printWarnings(a *cli.App) {
	for _, text := range a.Settings.Warnings {
		cli.Warn(a, "%s", text)
	}
}

func configThemes(a *cli.App) error {
	set := loadThemes(a)
	printWarnings(a)
	var rows []themeLine
	for _, name := range set.Names() {
		t, _ := set.Get(name)
		rows = append(rows, themeLine{name, t.Base, set.Source(name), name == a.Settings.Theme})
	}
	return cli.WriteRows(a, slices.Values(rows), "", func(t themeLine) []any {
		name, base := "  "+t.Name, ""
		if t.Active {
			name = "* " + t.Name
		}
		if t.Base != "" {
			base = "on " + t.Base
		}
		return []any{name, t.Source, base}
	})
}

func configKeys(a *cli.App, ctx context.Context, markdown bool) error {
	m, err := dryConsole(a, ctx)
	if err != nil {
		return err
	}
	groups := m.Keys()
	if markdown {
		_, err := fmt.Fprint(a.Out, tui.KeysPage(groups))
		return err
	}
	printWarnings(a)
	lines := func(yield func(keyLine) bool) {
		for _, g := range groups {
			for _, b := range g.Bindings {
				if !yield(keyLine{g.Name, b.Action, append([]string{}, b.Keys...), b.Help, b.Mutates}) {
					return
				}
			}
		}
	}
	return cli.WriteRows(a, lines, "WHERE\tACTION\tKEYS\tDESCRIPTION", func(l keyLine) []any {
		return []any{l.Group, l.Action, strings.Join(l.Keys, " "), l.Description}
	})
}
