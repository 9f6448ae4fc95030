package runs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/learning/model"
)

// addProtocol adds the flags that say how models are asked and what that may cost.
func (f *runFlags) addProtocol(fs *pflag.FlagSet) {
	fs.Float64Var(&f.MaxCostUSD, "max-cost", 0,
		"stop before the request after which this many US dollars are spent")
	fs.Int64Var(&f.MaxTokens, "max-tokens", 0,
		"stop before the request after which this many tokens are used")
	fs.BoolVar(&f.NoSkills, "no-skills", false, "leave out the skills phase: the generator's answer counts")
	fs.StringVar(&f.temperature, "temperature", "",
		"temperature of the models, from 0 to 2 (default: the server's)")
}

func (f *runFlags) checkProtocol() error {
	switch {
	case !(f.MaxCostUSD >= 0 && f.MaxCostUSD <= 1e6):
		return cli.UsageError("--max-cost %g: must be from 0 to 1,000,000 US dollars", f.MaxCostUSD)
	case f.temperature != "" && f.temperatureOf() == nil:
		return cli.UsageError("--temperature %q: must be from 0 to 2", f.temperature)
	case f.MaxTokens < 0:
		return cli.UsageError("--max-tokens %d: must not be negative", f.MaxTokens)
	}
	return nil
}

// checkPrice returns a usage error if --max-cost limits a model whose price is not known here. Workers of a
// cluster may know it.
func (f *runFlags) checkPrice(a *cli.App) error {
	if f.MaxCostUSD == 0 || a.Cluster() != nil {
		return nil
	}
	known := a.Providers()
	for _, phase := range ace.PromptedPhases() {
		provider, _ := f.providerOf(phase)
		name := cmp.Or(f.Models[string(phase)], f.modelName(known))
		served := slices.ContainsFunc(known, func(p model.Provider) bool { return p.Name() == provider })
		if served && provider != ace.Builtin && cli.Prices(a.Settings.File).ForModel(name) == nil {
			return cli.UsageError(
				"--max-cost: the price of the model %q is not known: add it as [[prices]] to "+
					"config.toml, or use --max-tokens", name)
		}
	}
	return nil
}

// temperatureOf returns the temperature, nil if it is not given or invalid.
func (f *runFlags) temperatureOf() *float64 {
	if v, err := strconv.ParseFloat(f.temperature, 64); err == nil && v >= 0 && v <= 2 {
		return &v
	}
	return nil
}

// protocol returns the settings of a task or an experiment.
func (f runFlags) protocol() ace.Protocol {
	p := f.Protocol
	p.Temperature = f.temperatureOf()
	p.Deduplicate = f.near.setting()
	p.Review = f.review.setting()
	if f.modelSeed {
		p.Seed = new(int64(f.seed))
	}
	return p
}

func (f *runFlags) parseModels() error {
	for _, s := range f.models {
		phase, name, ok := strings.Cut(s, "=")
		isPhase := ok && slices.Contains(ace.PromptedPhases(), ace.Phase(phase))
		switch {
		case isPhase && name == "":
			return cli.UsageError("--model %q: use PHASE=MODEL", s)
		case isPhase && f.Models[phase] != "":
			return cli.UsageError("--model %s: set more than once", phase)
		case isPhase && f.Models == nil:
			f.Models = map[string]string{phase: name}
		case isPhase:
			f.Models[phase] = name
		case f.Model != "":
			return cli.UsageError("--model: set more than once; use PHASE=MODEL for the model of one phase")
		default:
			f.Model = s
		}
	}
	return nil
}

// hasModel reports whether the flags name the model of every phase of a provider.
func (f runFlags) hasModel(provider string) bool {
	return f.Model != "" || !slices.ContainsFunc(ace.PromptedPhases(), func(phase ace.Phase) bool {
		name, _ := f.providerOf(phase)
		return name == provider && f.Models[string(phase)] == ""
	})
}

// checkSampling says which providers take no temperature or seed. It is an error if all of them take none.
func (f *runFlags) checkSampling(a *cli.App) error {
	var takes, lacks [2][]string
	known := a.Providers()
	for _, phase := range ace.PromptedPhases() {
		name, _ := f.providerOf(phase)
		var has [2]bool
		for _, p := range known {
			if s, ok := p.(model.Sampler); ok && p.Name() == name {
				has[0], has[1] = s.Sampling()
			}
		}
		for i := range has {
			list := &lacks[i]
			if has[i] {
				list = &takes[i]
			}
			if !slices.Contains(*list, name) {
				*list = append(*list, name)
			}
		}
	}
	f.modelSeed = f.seed != 0 && len(takes[1]) > 0
	switch {
	case f.temperature != "" && len(takes[0]) == 0 && f.Preset != "":
		f.temperature = ""
	case f.temperature != "" && len(takes[0]) == 0:
		return cli.UsageError("--temperature: %s has no such parameter", strings.Join(lacks[0], ", "))
	case f.seed != 0 && len(takes[1]) == 0 && !f.shuffle:
		return cli.UsageError("--seed needs --shuffle, or a model with a seed: the API of %s takes no seed",
			strings.Join(lacks[1], ", "))
	}
	if f.temperature != "" && len(lacks[0]) > 0 {
		cli.Warn(a, "--temperature is not sent to %s, which has no such parameter",
			strings.Join(lacks[0], ", "))
	}
	if f.modelSeed && len(lacks[1]) > 0 {
		cli.Warn(a, "--seed is not sent to %s, whose API has no seed", strings.Join(lacks[1], ", "))
	}
	return nil
}
