// Package llm turns any language model that completes conversations into a provider of the
// ACE phases: it fills in the prompts, parses the answers, runs the tool loop and reports errors.
// A [Completer] talks to the server. [Written] parses the results that programs write.
//
// Order: the tool calls of one turn run concurrently, those of the next turn after them.
// Bounds: [MaxTurns] turns and [maxCalls] calls per turn of a session, [maxAnswer] bytes per
// answer, one repair request per answer, waits of at most [maxWait]; longer waits are left to
// the activity's retry.
// Loss: rejected operations are returned with their reasons, and the parse report of a result says
// how the answer was parsed.
package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/price"
	"acescope/engine/internal/sleep"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
	"acescope/engine/learning/prompts"
)

// DefaultMaxTokens is the default length limit of an answer.
const DefaultMaxTokens = 8192

// Options configure a provider.
type Options struct {
	// Name is the value of --provider, About a sentence that describes the provider.
	Name, About string
	// Model is the default model, Embeddings the default model of embeddings.
	Model      string
	Embeddings string
	MaxTokens  int64 // of an answer; 0: DefaultMaxTokens
	// PerMinute bounds the number of requests in a minute, of this process; 0: no bound.
	PerMinute int
	// Seeds reports whether the API accepts a seed.
	Seeds bool
	// Prices of models; nil if unknown.
	Prices *price.Prices
	// Dir is the only directory that the tool read_file may read. "" disables the tool.
	Dir string
	// Missing, if not nil, is the error of every phase, such as a missing key.
	Missing error
	// IdleTimeout is the time without data after which a request fails; 0: DefaultIdleTimeout.
	IdleTimeout time.Duration
}

// New returns a provider. The completer may be nil if Options.Missing is set.
func New(c Completer, o Options) model.Provider {
	o.MaxTokens = cmp.Or(o.MaxTokens, DefaultMaxTokens)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, DefaultIdleTimeout)
	return &provider{completer: c, o: o, limit: newLimiter(o.PerMinute)}
}

type provider struct {
	completer Completer
	o         Options
	live      func(text string)
	limit     *limiter
}

func (p *provider) Name() string { return p.o.Name }

func (p *provider) About() string { return p.o.About }

func (p *provider) DefaultModel() string { return p.o.Model }

// Sampling implements [model.Sampler].
func (p *provider) Sampling() (temperature, seed bool) { return true, p.o.Seeds }

func (p *provider) Ready() error { return p.o.Missing }

func (p *provider) Live(to func(text string)) model.Provider {
	q := *p
	q.live = to
	return &q
}

// step is the execution of one phase and its usage so far.
type step struct {
	*provider
	model  string
	shared *Step
	prompt ace.PhasePrompt // "" outside of the phases
	usage  ace.Usage
	notes  []string // for the parse report
}

func (p *provider) begin(ctx context.Context, t ace.TaskContext, tools model.Toolbox) (*step, error) {
	if p.o.Missing != nil {
		return nil, p.o.Missing
	}
	s := &step{provider: p, model: cmp.Or(t.Model, p.o.Model),
		shared: &Step{Task: t, Caller: model.CallerOf(ctx, t), Tools: tools}}
	if s.model == "" {
		return nil, model.Errorf(model.NoModel,
			"%s: no model; set --model, or model in [providers.%s] of the configuration",
			p.o.Name, p.o.Name)
	}
	return s, ctx.Err()
}

// beginPhase begins a phase and returns the system prompt of its requests.
func (p *provider) beginPhase(ctx context.Context, phase ace.Phase, t ace.TaskContext,
	book *playbook.Playbook,
	tools model.Toolbox) (*step, []Block, error) {
	s, err := p.begin(ctx, t, tools)
	if err != nil {
		return nil, nil, err
	}
	instructions := prompts.DefaultTemplate()[phase]
	s.prompt = prompts.Default(phase).PhasePrompt
	if t.PhasePrompt != nil {
		s.prompt = *t.PhasePrompt
		if instructions, err = prompts.Parse(phase, s.prompt.Text); err != nil {
			return nil, nil, model.Errorf(model.BadRequest, "%s prompt %s: %v", phase, &s.prompt, err)
		}
	}
	s.prompt.Text = "" // the request has it
	return s, system(phase, instructions, book), nil
}

// TakesPrompt implements [model.Prompted].
func (p *provider) TakesPrompt() error { return nil }

func (s *step) request(system []Block, text string) Request {
	most := cmp.Or(s.shared.Task.AnswerTokens, s.o.MaxTokens)
	return Request{Model: s.model, System: system, MaxTokens: most,
		Messages: []Message{{Role: User, Text: text}}, Step: s.shared, Sampling: s.shared.Task.Sampling}
}

// usageOf returns the tokens and the cost of an answer.
func (s *step) usageOf(r Response) ace.Usage {
	if r.Usage != nil {
		return *r.Usage
	}
	t := r.Tokens
	u := ace.Usage{InputTokens: t.Input + t.CacheWrite5m + t.CacheWrite1h, OutputTokens: t.Output,
		CacheReadTokens: t.CacheRead}
	known := false
	if s.o.Prices != nil {
		u.CostUSD, known = s.o.Prices.Cost(r.Model, t, time.Now())
		if !known {
			u.CostUSD, known = s.o.Prices.Cost(s.model, t, time.Now())
		}
	}
	u.Unpriced = !known && t != (price.Tokens{})
	return u
}

func (s *step) used() *ace.Usage { return new(s.usage) }

// Bounds of requests.
const (
	// DefaultIdleTimeout is the default of Options.IdleTimeout. It allows for loading a model and for
	// thinking.
	DefaultIdleTimeout = 5 * time.Minute
	maxTries           = 3               // attempts of one request, if the waits are short
	maxWait            = 5 * time.Second // between attempts; a longer wait fails the phase
	maxBegin           = 120             // bytes of an answer that an error quotes
	maxEcho            = 16 << 10        // bytes of an invalid answer in a repair request
	maxNote            = 1000            // bytes of the note of a parse report
)

// complete makes a request. It repeats the request after an error that a short wait can fix.
func (s *step) complete(ctx context.Context, r Request) (Response, error) {
	if !s.o.Seeds {
		r.Seed = nil
	}
	r.AnswerTokens = 0 // it is in MaxTokens
	for try := 1; ; try++ {
		if why := s.shared.Task.Budget.Spent(s.usage); why != "" {
			return Response{}, model.Errorf(model.BudgetSpent, "%s", why)
		}
		if err := s.limit.wait(ctx, s.o.Name); err != nil {
			return Response{}, err
		}
		begun := time.Now()
		resp, err := s.once(ctx, r)
		s.limit.pause(err, time.Now())
		if err == nil {
			resp.Usage = new(s.usageOf(resp))
			s.usage = s.usage.Add(*resp.Usage)
		}
		s.record(ctx, r, resp, err, begun)
		if err == nil {
			return resp, s.refused(resp)
		}
		if ctx.Err() != nil {
			return Response{}, ctx.Err()
		}
		wait, ok := retryDelay(err, try)
		if !ok {
			return Response{}, err
		}
		if err := sleep.For(ctx, wait); err != nil {
			return Response{}, err
		}
	}
}

// retryDelay returns the wait before the next attempt, or false if the error should be
// returned.
func retryDelay(err error, try int) (time.Duration, bool) {
	e, ok := errors.AsType[*model.Error](err)
	if !ok || try >= maxTries {
		return 0, false
	}
	switch e.Kind {
	case model.Network, model.ServerError, model.Overloaded:
	case model.RateLimited:
		if e.RetryAfter == 0 {
			return 0, false // an early retry would extend the limit
		}
	default:
		return 0, false
	}
	wait := e.RetryAfter
	if wait == 0 {
		wait = time.Duration(try) * 250 * time.Millisecond
		wait += time.Duration(rand.Int64N(int64(wait)))
	}
	return wait, wait <= maxWait
}

// errIdle cancels a request whose server sends no data.
var errIdle = errors.New("idle")

func (s *step) once(ctx context.Context, r Request) (Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(s.o.IdleTimeout, func() { cancel(errIdle) })
	defer watch.Stop()
	resp, err := s.send(ctx, r, func(text string) {
		watch.Reset(s.o.IdleTimeout)
		if s.live != nil && text != "" {
			s.live(text)
		}
	})
	if err != nil && errors.Is(context.Cause(ctx), errIdle) {
		return Response{}, model.Errorf(model.Network, "%s: the server sent no data for %s", s.o.Name,
			s.o.IdleTimeout)
	}
	return resp, err
}

func (s *step) send(ctx context.Context, r Request, onDelta func(text string)) (Response, error) {
	if !r.Vectors {
		return s.completer.Complete(ctx, r, onDelta)
	}
	if e, ok := s.completer.(Embedder); ok {
		return e.Embed(ctx, r)
	}
	return Response{}, model.Errorf(model.BadRequest, "%s: the server has no embeddings", s.o.Name)
}

// refused returns an error if the answer is a refusal.
func (s *step) refused(r Response) error {
	if r.Stop != StopRefuse {
		return nil
	}
	e := model.Errorf(model.Refused, "%s: the model refused to answer", s.o.Name)
	if t := oneLine(r.Text); t != "" {
		e.Message += ": " + ace.Cut(t, maxShown)
		if len(t) > maxShown {
			e.Raw = r.Text
		}
	}
	return e
}

// answer makes a request and parses the answer. If the answer is invalid, it asks the model
// once more and says why.
func (s *step) answer(ctx context.Context, r Request, take func(found) error) (*ace.ParseReport, error) {
	resp, err := s.complete(ctx, r)
	if err != nil {
		return nil, err
	}
	return s.parse(ctx, r, resp, take)
}

func (s *step) parse(ctx context.Context, r Request, resp Response, take func(found) error) (*ace.ParseReport,
	error) {
	v := &ace.ParseReport{Attempts: 1}
	accept := func(f found) error {
		err := take(f)
		if err == nil {
			v.Parse, v.Note = f.how, f.note
		}
		return err
	}
	why := parseProblem(resp, accept)
	if why == nil {
		return v, nil
	}
	v.Attempts = 2
	again, err := s.complete(ctx, repairRequest(r, resp, why))
	if err != nil {
		return nil, err
	}
	first := why
	if why = parseProblem(again, accept); why == nil {
		v.Parse = ace.ParseAsked
		v.Note = "the first answer could not be parsed: " + first.Error()
		return v, nil
	}
	return nil, badAnswer(s.o.Name, again.Text, why)
}

// badAnswer returns the error of an answer that is not accepted, or nil if why is nil.
func badAnswer(provider, text string, why error) error {
	if why == nil {
		return nil
	}
	e := model.Errorf(model.BadAnswer, "%s: the model's answer could not be parsed after two requests: %v",
		provider, why)
	quote(e, text)
	return e
}

// parseProblem parses an answer and returns in one sentence why it is not accepted.
func parseProblem(resp Response, accept func(found) error) error {
	why := read(resp.Text, accept)
	if why != nil && resp.Stop == StopLength {
		why = fmt.Errorf("it reached the token limit of an answer, and %w", why)
	}
	return why
}

// repairRequest asks for a valid answer, without tools.
func repairRequest(r Request, resp Response, why error) Request {
	text := repairMessage(why, resp.Stop == StopLength)
	r.Messages = slices.Clone(r.Messages)
	if echo := strings.TrimSpace(resp.Text); echo != "" {
		r.Messages = append(r.Messages, Message{Role: Assistant, Text: ace.Cut(echo, maxEcho)},
			Message{Role: User, Text: text})
	} else {
		r.Messages[len(r.Messages)-1].addText(text)
	}
	r.Tools = nil
	return r
}

// quote adds the beginning of an answer to an error.
func quote(e *model.Error, answer string) {
	t := oneLine(answer)
	if t == "" {
		return
	}
	e.Message += fmt.Sprintf("; it begins with %q", ace.Cut(t, maxBegin))
	if len(t) > maxBegin {
		e.Raw = answer
	}
}

func (m *Message) addText(text string) {
	if m.Text != "" {
		m.Text += "\n\n"
	}
	m.Text += text
}

// report adds the notes on the step and on the answer to a parse report.
func (s *step) report(v *ace.ParseReport, notes []string) *ace.ParseReport {
	return withNotes(v, append(s.notes, notes...))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
