// Package model defines the provider of the ACE phases. Its sub-packages are the providers.
//
// Activities call a provider concurrently. A provider must be safe for concurrent use, honor
// its context, and keep no state between calls that a retry on another machine would miss.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
)

// ErrPermanent marks an error that no retry can fix.
var ErrPermanent = errors.New("permanent")

// Provider serves the four phases that need judgment.
type Provider interface {
	// Name is the value of --provider.
	Name() string
	// About describes the provider in a sentence, for the console and acescope doctor.
	About() string
	// DefaultModel is the model name to record if the user names none.
	DefaultModel() string
	Generate(ctx context.Context, in ace.GeneratorInput, book *playbook.Playbook) (ace.GeneratorResult, error)
	// Skills carries out the plan with real tools. Each call goes through the toolbox.
	Skills(ctx context.Context, in ace.SkillsInput, book *playbook.Playbook,
		tools Toolbox) (ace.SkillSessionResult, error)
	Reflect(ctx context.Context, in ace.ReflectorInput, book *playbook.Playbook) (ace.ReflectorResult, error)
	Curate(ctx context.Context, in ace.CuratorInput, book *playbook.Playbook) (ace.CuratorResult, error)
}

// ErrDenied is the error of a [Toolbox] for a call that a permission rule denied.
var ErrDenied = errors.New("tool call denied")

// Toolbox runs tool calls and records the name, arguments, outcome and latency of each. The
// toolbox, not the provider, sets the invocations of the skills session.
type Toolbox interface {
	// Call records the call, runs fn if the tool is allowed, and returns its result and error
	// unchanged. It returns ErrDenied if the tool is not allowed.
	Call(ctx context.Context, name string, args any, fn func(context.Context) (any, error)) (any, error)
}

// Streamer is a [Provider] that can stream the text of its model.
type Streamer interface {
	// Live returns the same provider, which passes the text of its answers to the function.
	Live(to func(text string)) Provider
}

// Answerer is a [Provider] that answers any question, without a task or a playbook.
type Answerer interface {
	Answer(ctx context.Context, q Question) (Reply, error)
}

// Prompted is a [Provider] whose phases follow the prompt of their task, [ace.TaskContext.PhasePrompt].
type Prompted interface {
	// TakesPrompt returns an error in one line that says why this provider does not follow it, or nil.
	TakesPrompt() error
}

// CheckPrompt returns an error in one line if a provider does not follow the prompt of a phase.
func CheckPrompt(p Provider) error {
	if x, ok := p.(Prompted); ok {
		return x.TakesPrompt()
	}
	return Errorf(BadRequest, "%s asks no model, so it has no phase prompt", p.Name())
}

// Sender is a [Provider] that can send a recorded request again. The model of the request is never "".
type Sender interface {
	Send(ctx context.Context, r ace.ModelRequest) (ace.ModelResponse, error)
}

// Judge is a [Provider] whose model can decide whether an answer means the same as its label.
type Judge interface {
	// Judge reads the prompt, the answer and the label of the input, which has one. It also returns the usage
	// with an error.
	Judge(ctx context.Context, in ace.ReflectorInput) (Judgment, ace.Usage, error)
}

// Judgment is the verdict of a [Judge] and its reason, which is text of any length from the model, or "".
type Judgment struct {
	Correct bool
	Reason  string
}

// Embedder is a [Provider] with vectors of texts, whose cosine says how similar two texts are.
type Embedder interface {
	// EmbeddingModel returns the model of the configuration or "". It returns false if the server has no
	// embeddings.
	EmbeddingModel() (name string, ok bool)
	// Embed asks the model of the context for the vectors of the texts, of length 1 and in their order. It
	// also returns the usage with an error.
	Embed(ctx context.Context, at ace.TaskContext, texts []string) ([][]float64, *ace.Usage, error)
}

// Sampler is a [Provider] that passes on the parameters of [ace.Sampling] that its API has.
type Sampler interface {
	// Sampling reports which parameters the API has.
	Sampling() (temperature, seed bool)
}

// Question is a prompt. Accept, unless it is nil, says why an answer is not acceptable; the model is asked
// once more.
type Question struct {
	Model, System, Prompt string
	Accept                func(text string) error
}

// Reply is the answer to a question, with the usage of all requests.
type Reply struct {
	Text, Model string
	Usage       *ace.Usage
}

// Checker is a [Provider] that may lack something, such as a key.
type Checker interface {
	// Ready returns an error that says what is missing, or nil.
	Ready() error
}

// ErrorKind classifies the failure of a request to a model.
type ErrorKind string

// Error kinds. The first six, [NoRunner] and [NoBlueprint] are worth a retry. After [Network]
// and [ServerError], the server may not have received the request.
const (
	RateLimited ErrorKind = "RateLimited"
	Overloaded  ErrorKind = "Overloaded"
	ServerError ErrorKind = "ServerError"
	Network     ErrorKind = "Network"
	NoKey       ErrorKind = "NoKey"   // on this worker; another worker may have a key
	NoAgent     ErrorKind = "NoAgent" // on this worker; another worker may have the agent's CLI
	Auth        ErrorKind = "Auth"
	NoModel     ErrorKind = "NoModel"
	BadRequest  ErrorKind = "BadRequest"
	TooLong     ErrorKind = "ContextTooLong"
	Refused     ErrorKind = "Refused"
	BadAnswer   ErrorKind = "BadAnswer" // the answer does not have the requested form
	// BudgetSpent means that a request was not sent, because the budget of the step is spent.
	BudgetSpent ErrorKind = ace.TypeBudget
	// Errors of a phase that a program serves: no runner was available or it died; this worker
	// does not find the blueprint, but another may; the program failed.
	NoRunner      ErrorKind = "NoRunner"
	NoBlueprint   ErrorKind = "NoBlueprint"
	ProgramFailed ErrorKind = "ProgramFailed"
	// Errors of a program that grades, both worth a retry: this worker does not have it, but another may; it
	// failed or printed no score.
	NoGrader     ErrorKind = "NoGrader"
	GraderFailed ErrorKind = "GraderFailed"
)

// Error says why a model gave no usable answer.
type Error struct {
	Kind ErrorKind
	// Message is one sentence for the user, without secrets.
	Message string
	// RetryAfter is the wait that the server requests, or 0.
	RetryAfter time.Duration
	// Raw is the model's text if it caused the error.
	Raw string
	Err error
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause, if known.
func (e *Error) Unwrap() error { return e.Err }

// Permanent reports whether no retry can fix the error.
func (e *Error) Permanent() bool {
	switch e.Kind {
	case RateLimited, Overloaded, ServerError, Network, NoKey, NoAgent, NoRunner, NoBlueprint,
		NoGrader, GraderFailed:
		return false
	}
	return true
}

// Is makes a permanent error match [ErrPermanent].
func (e *Error) Is(target error) bool { return target == ErrPermanent && e.Permanent() }

// Errorf returns an [Error] with a formatted message.
func Errorf(kind ErrorKind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// KindOf returns the kind of an [Error], or "" for any other error.
func KindOf(err error) ErrorKind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

// Caller identifies the caller of a provider: an attempt of an activity of a run. A provider
// that writes logs names them by it.
type Caller struct {
	WorkflowID, RunID    string
	Activity, ActivityID string
	Attempt              int32

	calls atomic.Int32
}

// Next returns the number of the provider's next call for this caller, from 0. A retry that
// makes the same calls gets the same numbers.
func (p *Caller) Next() int { return int(p.calls.Add(1) - 1) }

type callerKey struct{}

// WithCaller returns a context with the caller.
func WithCaller(ctx context.Context, p *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, p)
}

// CallerOf returns the caller in a context. Outside of an activity, it returns a new one of the
// task's run.
func CallerOf(ctx context.Context, at ace.TaskContext) *Caller {
	if p, ok := ctx.Value(callerKey{}).(*Caller); ok {
		return p
	}
	return &Caller{WorkflowID: at.WorkflowID, RunID: at.RunID, Activity: "step",
		ActivityID: time.Now().String(), Attempt: 1}
}

// CallRecorder is a [Toolbox] that also records calls made by others, such as an agent with its own
// tools. Payloads are JSON without secrets.
type CallRecorder interface {
	// Begun records the start of a call with the given ID.
	Begun(ctx context.Context, id, name string, args json.RawMessage)
	// Ended records the outcome of a call, and its start if Begun was not called.
	Ended(ctx context.Context, id string, end CallEnd)
}

// CallEnd is the outcome of a tool call.
type CallEnd struct {
	Result   json.RawMessage
	Accepted bool // false if a permission rule denied the call
	OK       bool
	Error    string
	Began    time.Time     // zero: the time of Begun
	Took     time.Duration // 0: unknown
}
