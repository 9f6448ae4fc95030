package llm

import (
	"context"
	"encoding/json"

	"acescope/engine/price"
)

// Completer talks to a server of models. It is safe for concurrent use, and gives up at
// once when its context ends. Its errors are of type [*model.Error].
type Completer interface {
	// Complete asks for the next message. onDelta is called with every piece of text as it
	// comes, and with "" for whatever else shows that the server is alive.
	Complete(ctx context.Context, r Request, onDelta func(text string)) (Response, error)
}

// Request is a conversation and what may be said next.
type Request struct {
	Model     string
	System    []Block
	Messages  []Message
	Tools     []Tool
	MaxTokens int64 // of the answer
}

// Block is a part of the system prompt. Cache marks the end of what stays the same from
// request to request, for servers that are told so.
type Block struct {
	Text  string
	Cache bool
}

// Role is who says something.
type Role string

// Roles. What tools gave is said by the user.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one turn: of the user a text or the results of calls, of the assistant a text
// and calls. Native is the assistant's message as its own server wants it back; nil for
// one made of the others.
type Message struct {
	Role    Role
	Text    string
	Calls   []Call
	Results []CallResult
	Native  any
}

// Tool is what the model may call. Schema is the JSON schema of its arguments.
type Tool struct {
	Name, About string
	Schema      map[string]any
}

// Call is a tool call. Args may be any text, though it should be a JSON object.
type Call struct {
	ID, Name string
	Args     json.RawMessage
}

// CallResult is what the model is told of its call.
type CallResult struct {
	ID     string
	Text   string
	Failed bool
}

// Stop is why an answer ended.
type Stop string

// Reasons to stop.
const (
	StopEnd    Stop = "end"
	StopCalls  Stop = "calls"
	StopLength Stop = "length" // of what was allowed
	StopRefuse Stop = "refused"
)

// Response is what the model said. Model and ID are as the server names them.
type Response struct {
	Text   string
	Calls  []Call
	Stop   Stop
	Tokens price.Tokens
	Model  string
	ID     string
	Native any
}
