package llm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/model"
)

// Bounds of asking.
const (
	// DefaultSilence is how long a server may say nothing before it is given up: models are
	// loaded, and think.
	DefaultSilence = 5 * time.Minute
	// maxTries is how often one request is made, while the waits between are short.
	maxTries = 3
	// maxWait is the longest wait between two tries; a longer one ends the step's attempt.
	maxWait = 5 * time.Second
	// maxBegin is how much of it an error shows, in bytes.
	maxBegin = 120
	// maxEcho is how much of an unreadable answer the model is shown again, in bytes.
	maxEcho = 16 << 10
)

// complete makes a request, again where that is soon worth it.
func (s *step) complete(ctx context.Context, r Request) (Response, error) {
	for try := 1; ; try++ {
		resp, err := s.once(ctx, r)
		if err == nil {
			s.pay(resp)
			return resp, s.refused(resp)
		}
		if ctx.Err() != nil {
			return Response{}, ctx.Err()
		}
		wait, worth := soon(err, try)
		if !worth {
			return Response{}, err
		}
		select {
		case <-ctx.Done():
			return Response{}, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// soon tells whether a request is to be made again at once, and after which wait.
func soon(err error, try int) (time.Duration, bool) {
	var e *model.Error
	if !errors.As(err, &e) || try >= maxTries {
		return 0, false
	}
	switch e.Kind {
	case model.Network, model.ServerError, model.Overloaded:
	case model.RateLimited:
		if e.RetryAfter == 0 {
			return 0, false // how long is not said, and trying again makes it longer
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

// errSilent ends a request whose server says nothing any more.
var errSilent = errors.New("silent")

func (s *step) once(ctx context.Context, r Request) (Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(s.o.Silence, func() { cancel(errSilent) })
	defer watch.Stop()
	resp, err := s.completer.Complete(ctx, r, func(text string) {
		watch.Reset(s.o.Silence)
		if s.live != nil && text != "" {
			s.live(text)
		}
	})
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return Response{}, model.Errorf(model.Network, "%s: the server said nothing for %s", s.o.Name, s.o.Silence)
	}
	return resp, err
}

// refused is the error of an answer that is a refusal.
func (s *step) refused(r Response) error {
	if r.Stop != StopRefuse {
		return nil
	}
	e := model.Errorf(model.Refused, "%s: the model refused to answer", s.o.Name)
	if t := oneLine(r.Text); t != "" {
		e.Message += ": " + clip(t, maxShown)
		if len(t) > maxShown {
			e.Raw = r.Text
		}
	}
	return e
}

// answer asks until the answer can be read: once more where it cannot, telling the model
// what was wrong.
func (s *step) answer(ctx context.Context, r Request, take func(found) error) (*ace.Verdict, error) {
	resp, err := s.complete(ctx, r)
	if err != nil {
		return nil, err
	}
	return s.readOrAsk(ctx, r, resp, take)
}

func (s *step) readOrAsk(ctx context.Context, r Request, resp Response, take func(found) error) (*ace.Verdict, error) {
	v := &ace.Verdict{Attempts: 1}
	accept := func(f found) error {
		err := take(f)
		if err == nil {
			v.Parse, v.Note = f.how, f.note
		}
		return err
	}
	why := read(resp.Text, accept)
	if why == nil {
		return v, nil
	}
	long := resp.Stop == StopLength
	if long {
		why = errors.Join(errors.New("it reached the most tokens that an answer may have"), why)
	}
	if echo := strings.TrimSpace(resp.Text); echo != "" {
		r.Messages = append(r.Messages[:len(r.Messages):len(r.Messages)], Message{Role: Assistant, Text: clip(echo, maxEcho)},
			Message{Role: User, Text: repairMessage(oneSentence(why), long)})
	} else {
		last := r.Messages[len(r.Messages)-1]
		r.Messages = append(r.Messages[:len(r.Messages)-1:len(r.Messages)-1], withText(last, repairMessage(oneSentence(why), long)))
	}
	r.Tools = nil
	v.Attempts = 2
	again, err := s.complete(ctx, r)
	if err != nil {
		return nil, err
	}
	first := oneSentence(why)
	if why = read(again.Text, accept); why == nil {
		v.Parse = ace.ParseAsked
		v.Note = "the first answer could not be read: " + first.Error()
		return v, nil
	}
	if again.Stop == StopLength {
		why = errors.Join(errors.New("it reached the most tokens that an answer may have"), why)
	}
	e := model.Errorf(model.BadAnswer, "%s: the model's answer could not be read, asked twice: %v", s.o.Name, oneSentence(why))
	if t := oneLine(again.Text); t != "" {
		e.Message += fmt.Sprintf("; it begins %q", clip(t, maxBegin))
		if len(t) > maxBegin {
			e.Raw = again.Text
		}
	}
	return nil, e
}

// withText is a message of the user with a text more.
func withText(m Message, text string) Message {
	if m.Text != "" {
		text = m.Text + "\n\n" + text
	}
	m.Text = text
	return m
}

// maxNote bounds what a verdict says, in bytes.
const maxNote = 1000

// verdict completes a verdict with what was odd about an answer that could be read.
func (s *step) verdict(v *ace.Verdict, odd []string) *ace.Verdict {
	return withOdd(v, append(s.odd, odd...))
}

func oneSentence(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), "\n", ", and "))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
