package llm

import (
	"cmp"
	"context"
	"time"

	"acescope/engine/ace"
	"acescope/engine/model"
	"acescope/engine/playbook"
	"acescope/engine/price"
)

// DefaultMaxTokens is how long an answer may be, in tokens, where nothing else is said.
const DefaultMaxTokens = 8192

// Options say how a provider is made of a completer.
type Options struct {
	// Name is what --provider takes, About a sentence for people.
	Name, About string
	// Model is the one that is asked where a run names none.
	Model     string
	MaxTokens int64 // of an answer; 0: DefaultMaxTokens
	// Prices says what models cost; nil knows no price.
	Prices *price.Prices
	// Dir is the only directory that the tool read_file reads in; "" leaves it out.
	Dir string
	// Missing, where it is not nil, is what every step fails with: there is no key.
	Missing error
	// Silence is how long a server may say nothing; 0: DefaultSilence.
	Silence time.Duration
}

// New makes a provider of a completer. The completer may be nil where something is missing.
func New(c Completer, o Options) model.Provider {
	o.MaxTokens = cmp.Or(o.MaxTokens, DefaultMaxTokens)
	o.Silence = cmp.Or(o.Silence, DefaultSilence)
	return &provider{completer: c, o: o}
}

type provider struct {
	completer Completer
	o         Options
	live      func(text string)
}

// Name implements [model.Provider].
func (p *provider) Name() string { return p.o.Name }

// About implements [model.Provider].
func (p *provider) About() string { return p.o.About }

// DefaultModel implements [model.Provider].
func (p *provider) DefaultModel() string { return p.o.Model }

// Ready implements [model.Checker].
func (p *provider) Ready() error { return p.o.Missing }

// Live implements [model.Streamer].
func (p *provider) Live(to func(text string)) model.Provider {
	q := *p
	q.live = to
	return &q
}

// step is one step that is being served, with what it used so far.
type step struct {
	*provider
	model string
	usage ace.Usage
	odd   []string // for the verdict
}

func (p *provider) begin(ctx context.Context, t ace.TaskContext) (*step, error) {
	if p.o.Missing != nil {
		return nil, p.o.Missing
	}
	s := &step{provider: p, model: cmp.Or(t.Model, p.o.Model)}
	if s.model == "" {
		return nil, model.Errorf(model.NoModel, "%s: no model is named: give --model, or model in [providers.%s] of the configuration", p.o.Name, p.o.Name)
	}
	return s, ctx.Err()
}

func (s *step) request(role string, book *playbook.Playbook, text string) Request {
	return Request{Model: s.model, System: system(role, book), Messages: []Message{{Role: User, Text: text}}, MaxTokens: s.o.MaxTokens}
}

// pay adds what an answer cost.
func (s *step) pay(r Response) {
	t := r.Tokens
	u := ace.Usage{InputTokens: t.Input + t.CacheWrite5m + t.CacheWrite1h, OutputTokens: t.Output, CacheReadTokens: t.CacheRead}
	usd, known := 0.0, false
	if s.o.Prices != nil {
		if usd, known = s.o.Prices.Of(r.Model, t, time.Now()); !known {
			usd, known = s.o.Prices.Of(s.model, t, time.Now())
		}
	}
	u.CostUSD, u.Unpriced = usd, !known && t != (price.Tokens{})
	s.usage = s.usage.Add(u)
}

func (s *step) used() *ace.Usage {
	u := s.usage
	return &u
}
