package admin

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/conffile"
	"acescope/cmd/acescope/internal/cli"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/views/console"
)

// configLine is the configuration in force.
type configLine struct {
	Type     string            `json:"type"` // config
	Paths    cli.Paths         `json:"paths"`
	Settings []settingLine     `json:"settings"`
	Filters  []conffile.Filter `json:"filters"`
	Warnings []string          `json:"warnings"`

	Providers []cli.ProviderLine `json:"providers"`
}

// settingLine is a setting and who said it.
type settingLine struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
	About  string `json:"about"`
}

// themeLine is a theme that can be chosen.
type themeLine struct {
	Type    string `json:"type"` // theme
	Name    string `json:"name"`
	Base    string `json:"base,omitempty"`
	From    string `json:"from"`
	InForce bool   `json:"in_force"`
}

// keyLine is an action with its keys.
type keyLine struct {
	Type    string   `json:"type"` // key
	Where   string   `json:"where"`
	Action  string   `json:"action"`
	Keys    []string `json:"keys"`
	About   string   `json:"about"`
	Mutates bool     `json:"mutates,omitempty"`
}

func ConfigCommand(a *cli.App) *cobra.Command {
	cmd := cli.ConsoleFlags(&cobra.Command{
		Use:   "config",
		Short: "Show where configuration lies, what is in force and who said so",
		Example: "acescope config\nacescope config --json | jq -r '.paths.config'\nacescope config themes\n" +
			"acescope config keys",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return config(a, cmd.Context()) },
	})
	markdown := false
	keys := cli.ConsoleFlags(&cobra.Command{
		Use:   "keys",
		Short: "List every action of the console with its keys",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return configKeys(a, cmd, markdown) },
	})
	keys.Flags().BoolVar(&markdown, "markdown", false, "write the page docs/reference/keys.md")
	cmd.AddCommand(keys, cli.ConsoleFlags(&cobra.Command{
		Use:   "themes",
		Short: "List the themes and the files they come from",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return configThemes(a) },
	}))
	return cmd
}

// examine settles everything that is settled when the console opens, so that its
// warnings are known.
func examine(a *cli.App, cmd *cobra.Command) (*tui.Model, error) {
	return newModel(a, cmd.Context(), sources.NewFeeds(), console.Options{Actions: &Link{app: a}}, nil)
}

func config(a *cli.App, ctx context.Context) error {
	if _, err := examine(a, &cobra.Command{}); err != nil {
		return err
	}
	where, err := a.Paths()
	if err != nil {
		return err
	}
	c := configLine{Type: "config", Paths: where, Settings: settingLines(a, where), Filters: a.Settings.File.Filters, Warnings: a.Settings.Warnings}
	if c.Filters == nil {
		c.Filters = []conffile.Filter{}
	}
	if c.Warnings == nil {
		c.Warnings = []string{}
	}
	c.Providers = a.ProviderLines(ctx)
	if a.JSON {
		return cli.NewLines(a.Out).Write(c)
	}
	return printConfig(a, c)
}

func settingLines(a *cli.App, where cli.Paths) []settingLine {
	var out []settingLine
	for _, d := range cli.SettingDefs() {
		l := settingLine{d.Name, d.Get(&a.Settings), a.Settings.Origin[d.Name], d.Help}
		if d.Secret && l.Value != "" {
			l.Value = "(set)"
		}
		if d.Name == "data_dir" {
			l.Value = where.Data
		}
		out = append(out, l)
	}
	return out
}

func printConfig(a *cli.App, c configLine) error {
	w := tabwriter.NewWriter(a.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "PATHS")
	for _, p := range [][2]string{{"config", c.Paths.Config}, {"themes", c.Paths.Themes}, {"state", c.Paths.State}, {"data", c.Paths.Data}, {"logs", c.Paths.Logs}} {
		note := ""
		if _, err := os.Stat(p[1]); err != nil {
			note = "not there"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", p[0], cli.SafeText(p[1]), note)
	}
	fmt.Fprintln(w, "\nSETTINGS")
	for _, s := range c.Settings {
		value := cli.SafeText(s.Value)
		if value == "" {
			value = "-"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", s.Name, value, cli.SafeText(s.Origin), s.About)
	}
	fmt.Fprintln(w, "\nPROVIDERS")
	for _, p := range c.Providers {
		fmt.Fprintf(w, "  %s\t%s\n", cli.SafeText(p.Name), cli.SafeText(p.Text))
	}
	if len(c.Filters) > 0 {
		fmt.Fprintln(w, "\nFILTERS")
	}
	for _, f := range c.Filters {
		mark := ""
		if f.Default {
			mark = "default"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", cli.SafeText(f.Name), cli.SafeText(f.Query), mark)
	}
	if len(c.Warnings) > 0 {
		fmt.Fprintln(w, "\nWRONG")
	}
	for _, text := range c.Warnings {
		fmt.Fprintf(w, "  %s\n", cli.SafeText(text))
	}
	return w.Flush()
}

func configThemes(a *cli.App) error {
	set := themes(a)
	inForce := a.Settings.Theme
	if inForce == theme.Auto {
		inForce = ""
	}
	out := cli.NewLines(a.Out)
	w := tabwriter.NewWriter(a.Out, 0, 4, 2, ' ', 0)
	for _, name := range set.Names() {
		t, _ := set.Get(name)
		l := themeLine{"theme", name, t.Base, set.Source(name), name == inForce}
		if a.JSON {
			if err := out.Put(l); err != nil {
				return err
			}
			continue
		}
		mark := " "
		if l.InForce {
			mark = "*"
		}
		base := ""
		if l.Base != "" {
			base = "on " + l.Base
		}
		fmt.Fprintf(w, "%s %s\t%s\t%s\n", mark, name, cli.SafeText(l.From), cli.SafeText(base))
	}
	for _, text := range a.Settings.Warnings {
		fmt.Fprintln(a.Err, "acescope: "+cli.SafeText(text))
	}
	if a.JSON {
		return out.Flush()
	}
	return w.Flush()
}

func configKeys(a *cli.App, cmd *cobra.Command, markdown bool) error {
	m, err := examine(a, cmd)
	if err != nil {
		return err
	}
	groups := m.Keys()
	if markdown {
		_, err := fmt.Fprint(a.Out, tui.KeysPage(groups))
		return err
	}
	for _, text := range a.Settings.Warnings {
		fmt.Fprintln(a.Err, "acescope: "+cli.SafeText(text))
	}
	if a.JSON {
		return keysJSON(a, groups)
	}
	w := tabwriter.NewWriter(a.Out, 0, 4, 2, ' ', 0)
	for i, g := range groups {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, strings.ToUpper(g.Name))
		for _, b := range g.Bindings {
			fmt.Fprintf(w, "  %s\t%s\t%s\n", b.Action, strings.Join(b.Keys, " "), b.Help)
		}
	}
	return w.Flush()
}

func keysJSON(a *cli.App, groups []tui.KeyGroup) error {
	out := cli.NewLines(a.Out)
	for _, g := range groups {
		for _, b := range g.Bindings {
			if err := out.Put(keyLine{"key", g.Name, b.Action, append([]string{}, b.Keys...), b.Help, b.Mutates}); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}
