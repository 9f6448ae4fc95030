package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"acescope/cmd/acescope/conffile"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/price"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/llm"
	"acescope/engine/tasks/run"
)

// Providers returns the step providers of the environment and the configuration.
func (a *App) Providers() []model.Provider {
	if a.providers == nil {
		a.providers = engine.Providers(configured(a.Settings.File), prices(a.Settings.File, a.Err), os.Getenv)
	}
	return a.providers
}

func configured(f conffile.File) (list []engine.ProviderConfig) {
	for _, p := range f.Providers {
		list = append(list, engine.ProviderConfig(p))
	}
	return list
}

// prices returns the prices that come with acescope, overridden by those of the configuration.
func prices(f conffile.File, warnings io.Writer) *price.Prices {
	var list []price.Price
	for _, p := range f.Prices {
		list = append(list, price.Price{
			Models: []string{p.Model}, Input: p.Input, Output: p.Output, CacheRead: p.CacheRead,
			CacheWrite5m: p.CacheWrite5m, CacheWrite1h: p.CacheWrite1h,
		})
	}
	all, err := price.Shipped().With(list)
	if err != nil {
		fmt.Fprintln(warnings, "acescope: "+OneLine(err)+"; ignoring the prices of the configuration")
		return price.Shipped()
	}
	return all
}

// ProviderLine is a step provider in the output of acescope config. It names the source of the key, never the key.
type ProviderLine struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	BaseURL    string `json:"base_url,omitempty"`
	Model      string `json:"model"`
	APIKeyEnv  string `json:"api_key_env,omitempty"`
	APIKeyFile string `json:"api_key_file,omitempty"`
	OK         bool   `json:"ok"`
	Text       string `json:"text"`
}

// ProviderLines returns the step providers and the blueprints that can execute steps.
func (a *App) ProviderLines(ctx context.Context) []ProviderLine {
	servers := engine.Servers(configured(a.Settings.File), os.Getenv)
	var out []ProviderLine
	for _, p := range a.Providers() {
		l := ProviderLine{
			Name: p.Name(), Kind: p.Name(), Model: p.DefaultModel(), OK: providerError(p) == nil, Text: AboutProvider(p),
		}
		for _, s := range servers {
			if s.Name == l.Name {
				l.Kind, l.BaseURL, l.APIKeyEnv, l.APIKeyFile = s.Kind, llm.AddressOf(s.BaseURL), s.KeyEnv, s.KeyFile
			}
		}
		out = append(out, l)
	}
	for _, d := range a.StepBlueprints(ctx) {
		out = append(out, ProviderLine{
			Name: ace.BlueprintProvider(d.Name), Kind: "blueprint", Model: d.Name, OK: d.Error == "", Text: AboutBlueprint(d),
		})
	}
	return out
}

// providerError returns why a provider cannot be used.
func providerError(p model.Provider) error {
	if c, ok := p.(model.Checker); ok {
		return c.Ready()
	}
	return nil
}

// AboutProvider describes a provider, or says why it cannot be used.
func AboutProvider(p model.Provider) string {
	if err := providerError(p); err != nil {
		return "cannot be used: " + strings.TrimPrefix(OneLine(err), p.Name()+": ")
	}
	return p.About()
}

// AboutBlueprint describes a blueprint that can execute steps, or says why it cannot be used.
func AboutBlueprint(d run.BlueprintInfo) string {
	if d.Error != "" {
		return "cannot be used: " + OneLine(errors.New(d.Error))
	}
	return d.Description
}

// stepTag is the tag of the blueprints that are listed among the providers. A blueprint without it can still be named
// as a provider.
const stepTag = "ace-step"

// StepBlueprints returns the blueprints with the tag of step providers. It is empty if the library cannot be read.
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
