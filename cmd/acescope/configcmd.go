package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/conffile"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/views"
)

// configLine is the configuration in force.
type configLine struct {
	Type     string            `json:"type"` // config
	Paths    paths             `json:"paths"`
	Settings []settingLine     `json:"settings"`
	Filters  []conffile.Filter `json:"filters"`
	Warnings []string          `json:"warnings"`

	Providers []providerLine `json:"providers"`
}

// providerLine is who can serve steps. Keys are named, never shown.
type providerLine struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	BaseURL    string `json:"base_url,omitempty"`
	Model      string `json:"model"`
	APIKeyEnv  string `json:"api_key_env,omitempty"`
	APIKeyFile string `json:"api_key_file,omitempty"`
	OK         bool   `json:"ok"`
	Text       string `json:"text"`
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

func (a *app) configCommand() *cobra.Command {
	cmd := consoleFlags(&cobra.Command{
		Use:   "config",
		Short: "Show where configuration lies, what is in force and who said so",
		Example: "acescope config\nacescope config --json | jq -r '.paths.config'\nacescope config themes\n" +
			"acescope config keys",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.config(cmd.Context()) },
	})
	markdown := false
	keys := consoleFlags(&cobra.Command{
		Use:   "keys",
		Short: "List every action of the console with its keys",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.configKeys(cmd, markdown) },
	})
	keys.Flags().BoolVar(&markdown, "markdown", false, "write the page docs/keys.md")
	cmd.AddCommand(keys, consoleFlags(&cobra.Command{
		Use:   "themes",
		Short: "List the themes and the files they come from",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return a.configThemes() },
	}))
	return cmd
}

// examine settles everything that is settled when the console opens, so that its
// warnings are known.
func (a *app) examine(cmd *cobra.Command) (*tui.Model, error) {
	return a.newModel(cmd.Context(), sources.NewStore(), views.Options{Actions: &link{app: a}}, nil)
}

func (a *app) config(ctx context.Context) error {
	if _, err := a.examine(&cobra.Command{}); err != nil {
		return err
	}
	where, err := a.paths()
	if err != nil {
		return err
	}
	c := configLine{Type: "config", Paths: where, Settings: a.settingLines(where), Filters: a.set.file.Filters, Warnings: a.set.warnings}
	if c.Filters == nil {
		c.Filters = []conffile.Filter{}
	}
	if c.Warnings == nil {
		c.Warnings = []string{}
	}
	c.Providers = a.providerLines(ctx)
	if a.json {
		return newLines(a.out).write(c)
	}
	return a.printConfig(c)
}

func (a *app) settingLines(where paths) []settingLine {
	var out []settingLine
	for _, d := range settingDefs() {
		l := settingLine{d.name, d.get(&a.set), a.set.origin[d.name], d.help}
		if d.secret && l.Value != "" {
			l.Value = "(set)"
		}
		if d.name == "data_dir" {
			l.Value = where.Data
		}
		out = append(out, l)
	}
	return out
}

func (a *app) printConfig(c configLine) error {
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "PATHS")
	for _, p := range [][2]string{{"config", c.Paths.Config}, {"themes", c.Paths.Themes}, {"state", c.Paths.State}, {"data", c.Paths.Data}, {"logs", c.Paths.Logs}} {
		note := ""
		if _, err := os.Stat(p[1]); err != nil {
			note = "not there"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", p[0], safe(p[1]), note)
	}
	fmt.Fprintln(w, "\nSETTINGS")
	for _, s := range c.Settings {
		value := safe(s.Value)
		if value == "" {
			value = "-"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", s.Name, value, safe(s.Origin), s.About)
	}
	fmt.Fprintln(w, "\nPROVIDERS")
	for _, p := range c.Providers {
		fmt.Fprintf(w, "  %s\t%s\n", safe(p.Name), safe(p.Text))
	}
	if len(c.Filters) > 0 {
		fmt.Fprintln(w, "\nFILTERS")
	}
	for _, f := range c.Filters {
		mark := ""
		if f.Default {
			mark = "default"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", safe(f.Name), safe(f.Query), mark)
	}
	if len(c.Warnings) > 0 {
		fmt.Fprintln(w, "\nWRONG")
	}
	for _, text := range c.Warnings {
		fmt.Fprintf(w, "  %s\n", safe(text))
	}
	return w.Flush()
}

func (a *app) configThemes() error {
	set := a.themes()
	inForce := a.set.Theme
	if inForce == theme.Auto {
		inForce = ""
	}
	out := newLines(a.out)
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	for _, name := range set.Names() {
		t, _ := set.Get(name)
		l := themeLine{"theme", name, t.Base, set.From(name), name == inForce}
		if a.json {
			if err := out.put(l); err != nil {
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
		fmt.Fprintf(w, "%s %s\t%s\t%s\n", mark, name, safe(l.From), safe(base))
	}
	for _, text := range a.set.warnings {
		fmt.Fprintln(a.err, "acescope: "+safe(text))
	}
	if a.json {
		return out.flush()
	}
	return w.Flush()
}

func (a *app) configKeys(cmd *cobra.Command, markdown bool) error {
	m, err := a.examine(cmd)
	if err != nil {
		return err
	}
	groups := m.Keys()
	if markdown {
		_, err := fmt.Fprint(a.out, tui.KeysPage(groups))
		return err
	}
	for _, text := range a.set.warnings {
		fmt.Fprintln(a.err, "acescope: "+safe(text))
	}
	if a.json {
		return a.keysJSON(groups)
	}
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
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

func (a *app) keysJSON(groups []tui.KeyGroup) error {
	out := newLines(a.out)
	for _, g := range groups {
		for _, b := range g.Bindings {
			if err := out.put(keyLine{"key", g.Name, b.Action, append([]string{}, b.Keys...), b.Help, b.Mutates}); err != nil {
				return err
			}
		}
	}
	return out.flush()
}
