package llm

import (
	"context"
	"encoding/json"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/agents/price"
	"acescope/engine/learning/model"
)

// Completer talks to a model server. It must be safe for concurrent use and return as soon as
// its context is done. Its errors are of type [*model.Error].
type Completer interface {
	// Complete requests the next message. It calls onDelta with every piece of text, and with
	// "" for other data, so that the request does not count as idle.
	Complete(ctx context.Context, r Request, onDelta func(text string)) (Response, error)
}

// Embedder is a [Completer] whose server has embeddings. Embed returns the vectors of the messages of the
// request.
type Embedder interface {
	Embed(ctx context.Context, r Request) (Response, error)
}

// Request is a conversation and the options of its next message.
type Request struct {
	Model     string
	System    []Block
	Messages  []Message
	Tools     []Tool
	MaxTokens int64 // of the answer
	ace.Sampling
	Step *Step
	// Vectors asks an [Embedder] for the vectors of the messages.
	Vectors bool
}

// SystemText returns the whole system prompt.
func (r Request) SystemText() string {
	var parts []string
	for _, b := range r.System {
		parts = append(parts, b.Text)
	}
	return strings.Join(parts, "\n\n")
}

// Step is the phase that a request belongs to. All requests of one execution share it.
type Step struct {
	Task   ace.TaskContext
	Caller *model.Caller
	Tools  model.Toolbox // nil if the phase has no tools
	// Session is the conversation of a completer that keeps it outside of the requests.
	Session string
}

// Block is a part of the system prompt. Cache marks the end of the part that is equal in all
// requests, for servers with explicit caching.
type Block struct {
	Text  string
	Cache bool
}

// Role is the author of a message.
type Role string

// Roles. Tool results belong to the user.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one turn: of the user, a text or the results of calls; of the assistant, a text
// and calls. Native is the assistant's message in the server's own format, if it exists.
type Message struct {
	Role    Role
	Text    string
	Calls   []Call
	Results []CallResult
	Native  any
}

// Tool describes a tool. Schema is the JSON schema of its arguments.
type Tool struct {
	Name, About string
	Schema      map[string]any
}

// Call is a tool call. Args should be a JSON object but may be any text.
type Call struct {
	ID, Name string
	Args     json.RawMessage
}

// CallResult is the result of a call as the model sees it.
type CallResult struct {
	ID     string
	Text   string
	Failed bool
}

// Stop is the reason why an answer ended.
type Stop string

// Stop reasons.
const (
	StopEnd    Stop = "end"
	StopCalls  Stop = "calls"
	StopLength Stop = "length" // the token limit
	StopRefuse Stop = "refused"
)

// Response is the model's message. Model and ID are the server's names.
type Response struct {
	Text   string
	Calls  []Call
	Stop   Stop
	Tokens price.Tokens
	// Usage, if not nil, is the usage as the server states it. It replaces the price of Tokens.
	Usage *ace.Usage
	Model string
	ID    string
	// Native is the message for the next request, Raw as the server sent it; both are nil if there is no such
	// form.
	Native any
	Raw    any
	// Vectors are of the messages of the request, in their order.
	Vectors [][]float64
}
