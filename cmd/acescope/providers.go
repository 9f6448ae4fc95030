package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/model"
	"acescope/engine/model/llm"
	"acescope/engine/price"
	"acescope/engine/run"
)

// providers is who can serve steps here, by the environment and the configuration.
func (a *app) providers() []model.Provider {
	if a.served == nil {
		a.served = engine.Providers(a.configured(), a.prices(), os.Getenv)
	}
	return a.served
}

// configured is what the configuration says of servers of models.
func (a *app) configured() (own []engine.ProviderConfig) {
	for _, p := range a.set.file.Providers {
		own = append(own, engine.ProviderConfig{Name: p.Name, Kind: p.Kind, BaseURL: p.BaseURL, Model: p.Model,
			KeyEnv: p.APIKeyEnv, KeyFile: p.APIKeyFile, Dir: p.WorkingDir, Tokens: p.MaxTokens})
	}
	return own
}

func (a *app) providerLines(ctx context.Context) []providerLine {
	servers := engine.Servers(a.configured(), os.Getenv)
	var out []providerLine
	for _, p := range a.providers() {
		l := providerLine{Name: p.Name(), Kind: p.Name(), Model: p.DefaultModel(), OK: true, Text: aboutProvider(p)}
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
	for _, d := range a.stepBlueprints(ctx) {
		out = append(out, providerLine{Name: ace.BlueprintProvider(d.Name), Kind: "blueprint", Model: d.Name, OK: d.Error == "", Text: aboutBlueprint(d)})
	}
	return out
}

// aboutBlueprint says what a blueprint that serves steps is, or what is wrong with it.
func aboutBlueprint(d run.Described) string {
	if d.Error != "" {
		return "cannot be used: " + oneLine(errors.New(d.Error))
	}
	return d.Description
}

// prices is what models cost: the list that comes with the program, and the user's own
// prices in place of those of the same models.
func (a *app) prices() *price.Prices {
	var own []price.Price
	for _, p := range a.set.file.Prices {
		own = append(own, price.Price{Models: []string{p.Model}, Input: p.Input, Output: p.Output, CacheRead: p.CacheRead,
			CacheWrite5m: p.CacheWrite5m, CacheWrite1h: p.CacheWrite1h})
	}
	list, err := price.Shipped().With(own)
	if err != nil {
		fmt.Fprintln(a.err, "acescope: "+oneLine(err)+"; only the list prices count")
		return price.Shipped()
	}
	return list
}

// aboutProvider says what a provider is, or what it lacks.
func aboutProvider(p model.Provider) string {
	if c, ok := p.(model.Checker); ok && c.Ready() != nil {
		return "cannot be used: " + strings.TrimPrefix(oneLine(c.Ready()), p.Name()+": ")
	}
	return p.About()
}
