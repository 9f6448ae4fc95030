package host

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/session"
)

// servedTool is a tool that sessions offer to their agents. It is confined to a directory.
type servedTool struct {
	name, about string
	schema      json.RawMessage
	// run gives the tool's answer; failed tells that it is a failure of the tool's own.
	run func(ctx context.Context, h *Host, dir string, args json.RawMessage) (text string, failed bool)
}

var served = []servedTool{
	{"read_file", "Reads a text file below the working directory. Long files come in parts: use offset.", json.RawMessage(`{"type":"object",
		"properties":{"path":{"type":"string","description":"relative to the working directory"},
		"offset":{"type":"integer","minimum":0,"description":"the first byte to read"},
		"limit":{"type":"integer","minimum":1,"description":"how many bytes at most"}},"required":["path"],"additionalProperties":false}`), readFile},
	{"write_file", "Writes a whole file below the working directory, in one piece or not at all. Directories are made.", json.RawMessage(`{"type":"object",
		"properties":{"path":{"type":"string","description":"relative to the working directory"},
		"content":{"type":"string"}},"required":["path","content"],"additionalProperties":false}`), writeFile},
	{"run_command", "Runs a program in the working directory, without a shell: no pipes, no redirections, no variables.", json.RawMessage(`{"type":"object",
		"properties":{"command":{"type":"string","description":"the program and its arguments, quoted as for a shell"},
		"argv":{"type":"array","items":{"type":"string"},"description":"the same as a list, instead of command"},
		"timeout_seconds":{"type":"integer","minimum":1,"maximum":3600}},"additionalProperties":false}`), runCommand},
}

// ServedTools are the names of the tools that sessions can offer.
func ServedTools() (names []string) {
	for _, t := range served {
		names = append(names, t.name)
	}
	return names
}

// calls are the calls of served tools whose agents wait, by id. The arguments are as the
// agent gave them, the answer as the tool did: what goes through the history has no secrets.
type calls struct {
	mu   sync.Mutex
	list map[string]*call
}

type call struct {
	args   json.RawMessage
	taken  bool // it is made, or was
	text   string
	failed bool
	ran    bool
}

func (c *calls) put(id string, args json.RawMessage) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.list[id] != nil {
		return false
	}
	c.list[id] = &call{args: args}
	return true
}

// take gives a call to the one who makes it, once.
func (c *calls) take(id string) (json.RawMessage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.list[id]
	if t == nil || t.taken {
		return nil, false
	}
	t.taken = true
	return t.args, true
}

func (c *calls) ran(id, text string, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.list[id]; t != nil {
		t.text, t.failed, t.ran = text, failed, true
	}
}

// end forgets a call, and is what it came to.
func (c *calls) end(id string) (text string, failed, ran bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.list[id]
	delete(c.list, id)
	if t == nil {
		return "", false, false
	}
	return t.text, t.failed, t.ran
}

// serve answers an agent's call of a served tool: the session decides, and makes the call by
// an activity.
func (a *agent) serve(ctx context.Context, id, tool string, args json.RawMessage) (string, bool, error) {
	a.mu.Lock()
	r := a.run
	a.mu.Unlock()
	if r == nil {
		return "the turn has ended", true, nil
	}
	if id == "" {
		id = r.callID()
	}
	if !a.h.calls.put(id, args) {
		return "this call is being made already", true, nil
	}
	answer, err := a.h.ask(ctx, r, session.ToolRequest{ID: id, Name: tool, Args: args, Served: true})
	text, failed, ran := a.h.calls.end(id)
	switch {
	case err != nil:
		return "the session cannot be asked: " + err.Error(), true, nil
	case ran:
		return text, failed, nil
	case answer.Action != session.Allow:
		return denial(answer), true, nil
	case answer.Result != nil:
		return answer.Result.Text, answer.Result.Error, nil
	case answer.Failed != nil:
		return answer.Failed.Message, true, nil
	}
	return "the call has no result", true, nil
}

// runTool makes a call of a served tool, where the agent that wants it still waits: where it
// does not, nobody would get the answer, and the agent asks anew.
func (h *Host) runTool(ctx context.Context, in session.ToolCall) (session.ToolResult, error) {
	h.at("tool")
	beating, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		tick := time.NewTicker(beatEvery)
		defer tick.Stop()
		for {
			select {
			case <-beating.Done():
				return
			case <-tick.C:
				activity.RecordHeartbeat(beating)
			}
		}
	}()
	return h.makeCall(ctx, in)
}

func (h *Host) makeCall(ctx context.Context, in session.ToolCall) (session.ToolResult, error) {
	args, ok := h.calls.take(in.ID)
	if !ok {
		return session.ToolResult{}, refused(TypeCallLost, "the agent that made this call no longer waits for it")
	}
	began := time.Now()
	for _, t := range served {
		if t.name != in.Name {
			continue
		}
		text, failed := t.run(ctx, h, in.WorkingDir, args)
		if ctx.Err() != nil {
			return session.ToolResult{}, temporal.NewCanceledError()
		}
		h.calls.ran(in.ID, text, failed)
		h.at("tool_ran")
		h.log.Info("a tool was run", "session", in.SessionID, "tool", in.Name, "call", in.ID, "failed", failed, "took", time.Since(began))
		return h.toolResult(ctx, text, failed)
	}
	return session.ToolResult{}, refused(TypeRefused, "tool %q is none that sessions serve", in.Name)
}

// toolResult is an answer as the history has it: without secrets, and long ones elsewhere.
func (h *Host) toolResult(ctx context.Context, text string, failed bool) (session.ToolResult, error) {
	text = h.redact.String(text)
	r := session.ToolResult{Text: ace.Cut(text, 8*ace.PreviewBytes), Error: failed}
	if r.Text == text {
		return r, nil
	}
	ref, err := h.o.Artifacts.PutBytes(ctx, []byte(text), "text/plain; charset=utf-8")
	if err != nil {
		return r, fmt.Errorf("keep the answer of the tool: %w", err)
	}
	r.Ref = &ref
	return r, nil
}

// closeSession ends the agent's process, wherever it was started.
func (h *Host) closeSession(ctx context.Context, in session.CloseInput) error {
	h.at("close")
	s := h.slot(in.SessionID)
	s.in.Lock()
	defer s.in.Unlock()
	s.mu.Lock()
	a := s.agent
	s.mu.Unlock()
	if a != nil {
		a.close()
		s.drop(a)
	}
	lock, err := h.lockSession(ctx, in.SessionID)
	if err != nil {
		return err
	}
	h.log.Info("the session is closed", "session", in.SessionID)
	h.mu.Lock()
	delete(h.slots, in.SessionID)
	h.mu.Unlock()
	h.at("closed")
	lock.Release()
	return nil
}
