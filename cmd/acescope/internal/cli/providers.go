package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/price"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/llm"
	"acescope/engine/tasks/run"
)

// Providers is who can serve steps here, by the environment and the configuration.
func (a *App) Providers() []model.Provider {
	if a.served == nil {
		a.served = engine.Providers(a.configured(), a.prices(), os.Getenv)
	}
	return a.served
}

// configured is what the configuration says of servers of models.
func (a *App) configured() (own []engine.ProviderConfig) {
	for _, p := range a.Settings.File.Providers {
		own = append(own, engine.ProviderConfig{Name: p.Name, Kind: p.Kind, BaseURL: p.BaseURL, Model: p.Model,
			KeyEnv: p.APIKeyEnv, KeyFile: p.APIKeyFile, Dir: p.WorkingDir, Tokens: p.MaxTokens})
	}
	return own
}

func (a *App) ProviderLines(ctx context.Context) []ProviderLine {
	servers := engine.Servers(a.configured(), os.Getenv)
	var out []ProviderLine
	for _, p := range a.Providers() {
		l := ProviderLine{Name: p.Name(), Kind: p.Name(), Model: p.DefaultModel(), OK: true, Text: AboutProvider(p)}
		if c, ok := p.(model.Checker); ok {
			l.OK = c.Ready() == nil
		}
		for _, s := range servers {
			if s.Name == l.Name {
				l.Kind, l.BaseURL, l.APIKeyEnv, l.APIKeyFile = s.Kind, llm.AddressOf(s.BaseURL), s.KeyEnv, s.KeyFile
			}
		}
		out = append(out, l)
	}
	for _, d := range a.StepBlueprints(ctx) {
		out = append(out, ProviderLine{Name: ace.BlueprintProvider(d.Name), Kind: "blueprint", Model: d.Name, OK: d.Error == "", Text: AboutBlueprint(d)})
	}
	return out
}

// AboutBlueprint says what a blueprint that serves steps is, or what is wrong with it.
func AboutBlueprint(d run.BlueprintInfo) string {
	if d.Error != "" {
		return "cannot be used: " + OneLine(errors.New(d.Error))
	}
	return d.Description
}

// prices is what models cost: the list that comes with the program, and the user's own
// prices in place of those of the same models.
func (a *App) prices() *price.Prices {
	var own []price.Price
	for _, p := range a.Settings.File.Prices {
		own = append(own, price.Price{Models: []string{p.Model}, Input: p.Input, Output: p.Output, CacheRead: p.CacheRead,
			CacheWrite5m: p.CacheWrite5m, CacheWrite1h: p.CacheWrite1h})
	}
	list, err := price.Shipped().With(own)
	if err != nil {
		fmt.Fprintln(a.Err, "acescope: "+OneLine(err)+"; only the list prices count")
		return price.Shipped()
	}
	return list
}

// AboutProvider says what a provider is, or what it lacks.
func AboutProvider(p model.Provider) string {
	if c, ok := p.(model.Checker); ok && c.Ready() != nil {
		return "cannot be used: " + strings.TrimPrefix(OneLine(c.Ready()), p.Name()+": ")
	}
	return p.About()
}

// ProviderLine is who can serve steps. Keys are named, never shown.
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

// StepBlueprints are the blueprints that serve steps, to list them.
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

// stepTag is the tag of blueprints that serve steps: those are listed among the providers.
// Others serve steps too, where somebody names them.
const stepTag = "ace-step"
