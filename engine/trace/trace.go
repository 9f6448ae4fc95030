// Package trace is the record of what an agent did, whatever ran it: its requests to models, its calls of
// tools and its handoffs, in order. The words are those of OpenTelemetry's conventions for generative AI
// (https://opentelemetry.io/docs/specs/semconv/gen-ai/). Absent is not zero: what a source does not record
// is nil or "".
//
// The package imports the standard library only and starts no goroutine.
package trace

import (
	"cmp"
	"encoding/json"
	"time"
)

// Call is a request to a model, a call of a tool, or a handoff to another agent. Calls are never changed,
// only replaced.
type Call struct {
	N         int       `json:"n"` // number of the call in its run, from 1
	Operation Operation `json:"operation"`
	Framework string    `json:"framework,omitempty"`
	Agent     string    `json:"agent,omitempty"`
	Outcome   Outcome   `json:"outcome"`
	Error     string    `json:"error,omitempty"`

	// Of a request to a model. Answered is the model that the response names.
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
	Answered string `json:"response_model,omitempty"`
	// Alias is the worker's own name of the model, if the history does not name the model.
	Alias  string   `json:"model_alias,omitempty"`
	System string   `json:"system,omitempty"`
	Tools  []string `json:"tools,omitempty"` // offered
	// Asked are the messages since the previous answer, Answer is the answer.
	Asked  []Message `json:"asked,omitempty"`
	Answer *Message  `json:"answer,omitempty"`
	Finish string    `json:"finish_reason,omitempty"`
	Usage  *Usage    `json:"usage,omitempty"` // nil if it is not recorded
	// CostUSD is that of the usage, or follows from the prices of the model; nil if it is unknown.
	CostUSD  *float64 `json:"cost_usd,omitempty"`
	Streamed bool     `json:"streamed,omitempty"`

	// Of a call of a tool. Name is the agent that a handoff leads to.
	Name      string          `json:"name,omitempty"`
	ID        string          `json:"call_id,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Where     Place           `json:"where,omitempty"`
	Server    string          `json:"mcp_server,omitempty"`
	// Told reports whether the model was told of the failure, so that the run could go on.
	Told bool `json:"model_told,omitempty"`
	By   int  `json:"asked_by,omitempty"` // number of the request whose answer asked for the call

	// Event and End are the history events that schedule and end the call, 0 without such an event.
	Event int64 `json:"event_id,omitempty"`
	End   int64 `json:"end_event_id,omitempty"`
	// Began, Started and Over are zero if the history does not say them. Started is the start of the last
	// attempt.
	Began    time.Time `json:"began,omitzero"`
	Started  time.Time `json:"started,omitzero"`
	Over     time.Time `json:"over,omitzero"`
	Attempts int       `json:"attempts,omitempty"` // 0 before the first one ends or the last one starts
	// LastError is the failure of the attempt before the last one.
	LastError string `json:"last_error,omitempty"`
	// Wait is how long the server waited before the last attempt because a failure asked for it.
	Wait time.Duration `json:"wait_ns,omitempty"`
	// Problem says what of the call is not understood, or "".
	Problem string `json:"not_understood,omitempty"`
}

// Operation is what a call does.
type Operation string

// Operations.
const (
	Chat    Operation = "chat"
	Tool    Operation = "execute_tool"
	Handoff Operation = "handoff"
)

// Outcome is how a call ended.
type Outcome string

// Outcomes. The outcome of a call that only its request tells of is unknown.
const (
	Pending Outcome = "pending"
	OK      Outcome = "ok"
	Failed  Outcome = "failed"
	Unknown Outcome = "unknown"
)

// Place is where a tool ran.
type Place string

// Places.
const (
	InActivity      Place = "activity"
	InLocalActivity Place = "local activity"
	InWorkflow      Place = "workflow code"
	InChild         Place = "child workflow"
	InMCP           Place = "MCP server"
	InProvider      Place = "model provider"
)

// Message is a message of a conversation with a model.
type Message struct {
	Role      string     `json:"role"` // system, user, assistant or tool
	Text      string     `json:"text,omitempty"`
	Reasoning string     `json:"reasoning,omitempty"`
	Calls     []ToolCall `json:"tool_calls,omitempty"`
	Results   []Result   `json:"tool_results,omitempty"`
}

// ToolCall is a call of a tool that an answer asks for. The ID may be "".
type ToolCall struct {
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Provider reports whether the model's provider runs the tool.
	Provider bool `json:"provider_executed,omitempty"`
}

// Result is the result of a tool as a model is told.
type Result struct {
	ID      string          `json:"id,omitempty"`
	Name    string          `json:"name,omitempty"`
	Content json.RawMessage `json:"content,omitempty"`
	Failed  bool            `json:"failed,omitempty"`
}

// Usage is the number of tokens of a request. Input is without cached tokens, and Output includes
// reasoning. What a source does not record is nil.
type Usage struct {
	Input      int64  `json:"input_tokens"`
	CacheRead  *int64 `json:"cache_read_tokens,omitempty"`
	CacheWrite *int64 `json:"cache_write_tokens,omitempty"` // all of them
	// CacheWrite1h is the part of CacheWrite that is kept for an hour.
	CacheWrite1h *int64 `json:"cache_write_1h_tokens,omitempty"`
	Output       int64  `json:"output_tokens"`
	Reasoning    *int64 `json:"reasoning_tokens,omitempty"` // the part of Output
	// Cost is in US dollars, as the framework wrote it.
	Cost *float64 `json:"cost_usd,omitempty"`
}

// Tokens returns the number of all tokens.
func (u *Usage) Tokens() int64 {
	if u == nil {
		return 0
	}
	return u.Input + value(u.CacheRead) + value(u.CacheWrite) + u.Output
}

// WrittenCost returns the cost that the framework wrote, or nil.
func (u *Usage) WrittenCost() *float64 {
	if u == nil {
		return nil
	}
	return u.Cost
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// Sum is the sum of several requests to models that have ended. Failed ones count as Failed only. Unrecorded
// is the number of Requests whose usage no source records.
type Sum struct {
	Requests   int   `json:"requests"`
	Failed     int   `json:"failed_requests,omitempty"`
	Unrecorded int   `json:"requests_without_usage,omitempty"`
	Input      int64 `json:"input_tokens"`
	CacheRead  int64 `json:"cache_read_tokens"`
	CacheWrite int64 `json:"cache_write_tokens"`
	// CacheWrite1h is a part of CacheWrite, Reasoning one of Output.
	CacheWrite1h int64 `json:"cache_write_1h_tokens,omitempty"`
	Output       int64 `json:"output_tokens"`
	Reasoning    int64 `json:"reasoning_tokens"`
	// Cost is in US dollars, without that of the Unpriced requests, which is unknown. Written is the number
	// of requests whose cost the framework wrote; that of the others follows from the prices of models.
	Cost     float64 `json:"cost_usd,omitempty"`
	Unpriced int     `json:"requests_without_cost,omitempty"`
	Written  int     `json:"requests_with_written_cost,omitempty"`
}

// Add adds a request that has ended.
func (s *Sum) Add(c *Call) {
	u := c.Usage
	switch {
	case c.Outcome == Failed && u == nil:
		s.Failed++
		return
	case c.CostUSD == nil:
		s.Unpriced++
	default:
		s.Cost += *c.CostUSD
	}
	s.Requests++
	if u == nil {
		s.Unrecorded++
		return
	}
	s.Input += u.Input
	s.CacheRead += value(u.CacheRead)
	s.CacheWrite += value(u.CacheWrite)
	s.CacheWrite1h += value(u.CacheWrite1h)
	s.Output += u.Output
	s.Reasoning += value(u.Reasoning)
	if u.Cost != nil {
		s.Written++
	}
}

// Tokens returns the number of all recorded tokens.
func (s Sum) Tokens() int64 { return s.Input + s.CacheRead + s.CacheWrite + s.Output }

// Plus returns the sum of two sums.
func (s Sum) Plus(t Sum) Sum {
	return Sum{s.Requests + t.Requests, s.Failed + t.Failed, s.Unrecorded + t.Unrecorded, s.Input + t.Input,
		s.CacheRead + t.CacheRead, s.CacheWrite + t.CacheWrite, s.CacheWrite1h + t.CacheWrite1h,
		s.Output + t.Output, s.Reasoning + t.Reasoning, s.Cost + t.Cost, s.Unpriced + t.Unpriced,
		s.Written + t.Written}
}

// Trace is what the agents of a run did. Calls are the newest, in order; Dropped is the number of older ones.
type Trace struct {
	Summary
	Calls   []*Call `json:"calls"`
	Dropped int     `json:"calls_left_out,omitempty"`
}

// Summary is a trace without its calls. Framework, Agent and Model are the first ones that the calls name.
type Summary struct {
	Framework string `json:"framework,omitempty"`
	Agent     string `json:"agent,omitempty"`
	Model     string `json:"model,omitempty"`
	Sum       Sum    `json:"sum"`
	Parts     []Part `json:"by_agent_and_model,omitempty"`
	Tools     int    `json:"tool_calls"`
	OK        int    `json:"ok_tool_calls"`
	Failed    int    `json:"failed_tool_calls,omitempty"`
}

// Prompt returns the first message of a user to an agent, or "".
func (t *Trace) Prompt() string {
	for _, c := range t.Calls {
		for _, m := range c.Asked {
			if m.Role == "user" && m.Text != "" {
				return m.Text
			}
		}
	}
	return ""
}

// Empty reports whether nothing is known of any agent.
func (t *Trace) Empty() bool { return len(t.Calls) == 0 }

// Part is the sum of the requests of an agent to a model.
type Part struct {
	Framework string `json:"framework,omitempty"`
	Agent     string `json:"agent,omitempty"`
	Provider  string `json:"provider,omitempty"`
	Model     string `json:"model,omitempty"`
	Sum       Sum    `json:"sum"`
}

// ModelName returns the model of a request: the one asked for, the one that answered, or the worker's name
// of it.
func (c *Call) ModelName() string { return cmp.Or(c.Model, c.Answered, c.Alias) }
