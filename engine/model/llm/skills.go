package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"acescope/engine/ace"
	"acescope/engine/model"
	"acescope/engine/playbook"
)

// Bounds of a session.
const (
	// MaxTurns is how often the model is asked; in the last turn it has no tools.
	MaxTurns = 12
	// maxCalls is how many calls of one turn are made; the model is told of the others.
	maxCalls = 32
	// atOnce is how many of them run at a time.
	atOnce = 8
	// maxResult is how much of a result the model is given, in bytes.
	maxResult = 16 << 10
)

// Skills implements [model.Provider]: the loop of tools.
func (p *provider) Skills(ctx context.Context, in ace.SkillsInput, book *playbook.Playbook, tools model.Toolbox) (ace.SkillSessionResult, error) {
	s, err := p.begin(ctx, in.Task)
	if err != nil {
		return ace.SkillSessionResult{}, err
	}
	book = orEmpty(book)
	l := &loop{step: s, box: tools, kit: toolsFor(book, p.o.Dir)}
	l.r = s.request(skillsPrompt, book, skillsMessage(in))
	for _, t := range l.kit {
		if in.Task.SkillsConfig.Allows(t.Name) {
			l.r.Tools = append(l.r.Tools, t.Tool)
		}
	}
	resp, err := l.run(ctx)
	if err != nil {
		return ace.SkillSessionResult{Usage: s.used()}, err
	}
	var out finished
	v, err := s.readOrAsk(ctx, l.r, resp, out.take)
	if err != nil {
		return ace.SkillSessionResult{Usage: s.used()}, err
	}
	odd := fit(maxFinal, "final_answer", &out.answer)
	return ace.SkillSessionResult{Answer: out.answer, Usage: s.used(), Verdict: s.verdict(v, odd)}, nil
}

// loop is one session.
type loop struct {
	*step
	box model.Toolbox
	kit []tool
	r   Request
}

// run asks and calls until the model answers without a call.
func (l *loop) run(ctx context.Context) (Response, error) {
	for turn := 1; ; turn++ {
		if turn == MaxTurns {
			l.last()
		}
		resp, err := l.complete(ctx, l.r)
		if err != nil && len(l.r.Tools) > 0 && turn == 1 && takesNoTools(err) {
			l.odd = append(l.odd, "the model takes no tools: "+err.Error())
			l.r.Tools = nil
			resp, err = l.complete(ctx, l.r)
		}
		if err != nil {
			return resp, err
		}
		if len(resp.Calls) == 0 || turn >= MaxTurns {
			return resp, nil
		}
		results, err := l.calls(ctx, resp.Calls)
		if err != nil {
			return resp, err
		}
		l.r.Messages = append(l.r.Messages, Message{Role: Assistant, Text: resp.Text, Calls: resp.Calls, Native: resp.Native},
			Message{Role: User, Results: results})
	}
}

// last tells the model that it has to answer now.
func (l *loop) last() {
	l.odd = append(l.odd, fmt.Sprintf("it used all of its %d turns", MaxTurns))
	m := &l.r.Messages[len(l.r.Messages)-1]
	*m = withText(*m, "This was your last turn with tools: call none any more, and give your answer now.")
}

// takesNoTools tells whether a server refused a request for its tools.
func takesNoTools(err error) bool {
	return model.KindOf(err) == model.BadRequest && strings.Contains(strings.ToLower(err.Error()), "tool")
}

// calls makes the calls of one turn, some at a time. Its error is that of the context.
func (l *loop) calls(ctx context.Context, calls []Call) ([]CallResult, error) {
	results := make([]CallResult, len(calls))
	turn := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for i, c := range calls {
		if i >= maxCalls {
			results[i] = CallResult{c.ID, fmt.Sprintf("not made: at most %d calls a turn", maxCalls), true}
			continue
		}
		turn <- struct{}{}
		wait.Go(func() {
			defer func() { <-turn }()
			results[i] = l.call(ctx, c)
		})
	}
	wait.Wait()
	return results, ctx.Err()
}

// call makes one call; whatever goes wrong with it, the model is told.
func (l *loop) call(ctx context.Context, c Call) CallResult {
	args := c.Args
	if len(strings.TrimSpace(string(args))) == 0 {
		args = json.RawMessage("{}")
	}
	var recorded any = args
	if !json.Valid(args) {
		recorded = string(args)
	}
	result, err := l.box.Call(ctx, c.Name, recorded, func(ctx context.Context) (any, error) {
		i := slices.IndexFunc(l.kit, func(t tool) bool { return t.Name == c.Name })
		switch {
		case i < 0:
			return nil, fmt.Errorf("there is no tool %.60q", c.Name)
		case !json.Valid(args):
			return nil, errors.New("the arguments are no JSON")
		}
		return l.kit[i].run(ctx, args)
	})
	switch {
	case errors.Is(err, model.ErrDenied):
		return CallResult{c.ID, "denied: this tool may not be used here; go on without it", true}
	case err != nil:
		return CallResult{c.ID, clip("failed: "+err.Error(), maxResult), true}
	}
	data, err := json.Marshal(result)
	if err != nil {
		return CallResult{c.ID, "failed: the result cannot be written down: " + err.Error(), true}
	}
	return CallResult{ID: c.ID, Text: clip(string(data), maxResult)}
}
