package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"acescope/cmd/acescope/conffile"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/price"
	"acescope/engine/learning/grade"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/llm"
	"acescope/engine/tasks/run"
	"acescope/sources/cluster"
)

// Providers returns the step providers of the environment and the configuration.
func (a *App) Providers() []model.Provider {
	if a.providers == nil {
		a.providers = engine.Providers(configured(a.Settings.File), Prices(a.Settings.File), os.Getenv)
	}
	return a.providers
}

func configured(f conffile.File) (list []engine.ProviderConfig) {
	for _, p := range f.Providers {
		list = append(list, engine.ProviderConfig(p))
	}
	return list
}

// graders returns the programs of the configuration that grade answers. They run in the directory of the
// configuration file.
func (a *App) graders() map[string]grade.Program {
	all := map[string]grade.Program{}
	for _, g := range a.Settings.File.Graders {
		p := grade.Program{Dir: filepath.Dir(a.Settings.File.Path), Timeout: g.After}
		for _, arg := range g.Command {
			p.Argv = append(p.Argv, Home(arg))
		}
		all[g.Name] = p
	}
	return all
}

// GraderLine is a program that grades answers in the output of acescope config.
type GraderLine struct {
	Name    string   `json:"name"`
	Command []string `json:"command" jsonschema:"program and its arguments"`
	Dir     string   `json:"dir" jsonschema:"directory in which it runs"`
	Timeout string   `json:"timeout" jsonschema:"most time for an answer"`
	OK      bool     `json:"ok" jsonschema:"whether this machine has the program and may execute it"`
	Text    string   `json:"text" jsonschema:"path of the program, or what it lacks"`
}

// GraderLines returns the programs of the configuration that grade answers, and where this machine has them.
func (a *App) GraderLines() []GraderLine {
	list, programs := []GraderLine{}, a.graders()
	for _, g := range a.Settings.File.Graders {
		p := programs[g.Name]
		l := GraderLine{Name: g.Name, Command: g.Command, Dir: p.Dir, Timeout: g.Timeout}
		path, err := p.Path()
		if l.OK, l.Text = err == nil, path; err != nil {
			l.Text = OneLine(err) + "; correct the command of [graders." + g.Name + "]"
		}
		list = append(list, l)
	}
	return list
}

// Prices returns the prices that come with acescope, overridden by those of the configuration.
func Prices(f conffile.File) *price.Prices {
	var own []price.Price
	for _, p := range f.Prices {
		own = append(own, price.Price{
			Models: []string{p.Model}, Input: p.Input, Output: p.Output, CacheRead: p.CacheRead,
			CacheWrite5m: p.CacheWrite5m, CacheWrite1h: p.CacheWrite1h,
		})
	}
	all, err := price.Shipped().With(own)
	if err != nil {
		panic(err) // conffile checks the prices
	}
	return all
}

// ProviderLine is a step provider in the output of acescope config. It names the source of the key, never the
// key.
type ProviderLine struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	BaseURL    string `json:"base_url,omitempty" jsonschema:"URL"`
	Model      string `json:"model"`
	APIKeyEnv  string `json:"api_key_env,omitempty" jsonschema:"variable with the key"`
	APIKeyFile string `json:"api_key_file,omitempty" jsonschema:"file with the key"`
	OK         bool   `json:"ok" jsonschema:"whether it can be used"`
	Text       string `json:"text" jsonschema:"what it is or what it lacks"`
}

// ProviderLines returns the step providers and the blueprints that can execute steps.
func (a *App) ProviderLines(ctx context.Context) []ProviderLine {
	servers := engine.Servers(configured(a.Settings.File), os.Getenv)
	var out []ProviderLine
	for _, p := range a.Providers() {
		c := checkProvider(a.Settings.File, p)
		l := ProviderLine{Name: c.Name, Kind: c.Name, Model: p.DefaultModel(), OK: c.State == cluster.OK,
			Text: c.Text}
		for _, s := range servers {
			if s.Name == l.Name {
				l.Kind, l.BaseURL, l.APIKeyEnv, l.APIKeyFile = s.Kind, llm.AddressOf(s.BaseURL), s.KeyEnv,
					s.KeyFile
			}
		}
		out = append(out, l)
	}
	for _, d := range a.StepBlueprints(ctx) {
		c := checkBlueprint(d)
		out = append(out, ProviderLine{
			Name: c.Name, Kind: "blueprint", Model: d.Name, OK: c.State == cluster.OK, Text: c.Text,
		})
	}
	return out
}

// ProviderChecks reports which step providers and blueprints can execute steps.
func ProviderChecks(ctx context.Context, a *App) []cluster.ToolCheck {
	var out []cluster.ToolCheck
	for _, p := range a.Providers() {
		out = append(out, checkProvider(a.Settings.File, p))
	}
	for _, d := range a.StepBlueprints(ctx) {
		out = append(out, checkBlueprint(d))
	}
	return out
}

// checkProvider describes a provider or says why it cannot be used, which matters if the configuration names
// it.
func checkProvider(f conffile.File, p model.Provider) cluster.ToolCheck {
	c := cluster.ToolCheck{Name: p.Name(), State: cluster.OK, Text: p.About()}
	checker, ok := p.(model.Checker)
	if !ok {
		return c
	}
	if err := checker.Ready(); err != nil {
		c.State, c.Text = cluster.Info, "cannot be used: "+strings.TrimPrefix(OneLine(err), p.Name()+": ")
		if configures(f, p.Name()) {
			c.State = cluster.Warning
		}
	}
	return c
}

// configures reports whether the configuration names a provider or agent.
func configures(f conffile.File, name string) bool {
	return slices.ContainsFunc(f.Providers, func(p conffile.Provider) bool { return p.Name == name }) ||
		slices.ContainsFunc(f.Agents, func(a conffile.Agent) bool { return a.Name == name })
}

// checkBlueprint describes a blueprint that can execute steps or says why it cannot be used.
func checkBlueprint(d run.BlueprintInfo) cluster.ToolCheck {
	c := cluster.ToolCheck{Name: ace.BlueprintProvider(d.Name), State: cluster.OK, Text: d.Description}
	if d.Error != "" {
		c.State, c.Text = cluster.Warning, "cannot be used: "+OneLine(errors.New(d.Error))
	}
	return c
}

// stepTag is the tag of the blueprints that are listed among the providers. A blueprint without it can still
// be named as a provider.
const stepTag = "ace-step"

// StepBlueprints returns the blueprints with the tag of step providers. It is empty if the library cannot be
// read.
func (a *App) StepBlueprints(ctx context.Context) []run.BlueprintInfo {
	l, err := a.Library()
	if err != nil {
		return nil
	}
	all, err := l.List(ctx)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(d run.BlueprintInfo) bool {
		return !slices.Contains(d.Tags, stepTag) || d.Type == run.Agent
	})
}
