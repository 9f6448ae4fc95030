package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// fake is a run.Service without a server. The method end ends a run.
type fake struct {
	mu       sync.Mutex
	asked    []run.Request // to start and to resume
	resumed  int
	stopped  []run.StopRequest
	filters  []run.Filter
	ended    map[string]chan run.Result // by run id
	states   map[string]run.State       // by run id and session id
	gaveUp   chan error                 // by Await
	listed   []run.Summary
	startErr error
}

func newFake() *fake {
	return &fake{ended: map[string]chan run.Result{}, states: map[string]run.State{},
		gaveUp: make(chan error, 16)}
}

const schemaOfCrawl = `{"type":"object","properties":{"url":{"type":"string"}},"required":["url"]}`

func (f *fake) Blueprints(context.Context) ([]run.BlueprintInfo, error) {
	return []run.BlueprintInfo{
		{Name: "crawl", Description: "Crawls a site.", Type: run.Deterministic,
			Tags: []string{"web", "internal"}, Schema: json.RawMessage(schemaOfCrawl), Path: "/a/crawl"},
		{Name: "writer", Description: "Writes.", Type: run.Agent,
			Requirements: &runner.Requirements{Tags: []string{"docker"}}, Path: "/a/writer"},
		{Name: "torn", Type: run.Agent, Path: "/a/torn", Error: "agent.json:3: it ends in the middle"},
	}, nil
}

func (f *fake) Start(_ context.Context, r run.Request) (run.Input, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.startErr != nil {
		return run.Input{}, f.startErr
	}
	switch {
	case r.AgentName != "crawl" && r.AgentName != "writer":
		return run.Input{}, run.ErrNoBlueprint.With(r.AgentName, "there are crawl and writer")
	case r.AgentName == "writer" && r.Prompt == "":
		return run.Input{}, fmt.Errorf("%w: agent writer needs a prompt", run.ErrBadRequest)
	case r.AgentName == "crawl" && r.Parameters == nil:
		return run.Input{}, fmt.Errorf("%w: crawl needs parameters, {} where it needs none",
			run.ErrBadRequest)
	}
	f.asked = append(f.asked, r)
	in := run.Input{RunID: fmt.Sprintf("r-%d", len(f.asked)),
		SessionID: fmt.Sprintf("ses_%012d", len(f.asked)), Type: run.StartSession, AgentName: r.AgentName,
		Prompt: r.Prompt, Parameters: r.Parameters, Mode: r.Mode, ParentSessionID: r.ParentSessionID,
		By: r.By}
	if r.AgentName == "crawl" {
		in.Type, in.TaskName = run.ExecuteTask, r.AgentName
	}
	return f.begin(in), nil
}

func (f *fake) begin(in run.Input) run.Input {
	f.ended[in.RunID] = make(chan run.Result, 1)
	s := run.State{Input: in, Status: run.Running}
	f.states[in.RunID], f.states[in.SessionID] = s, s
	return in
}

func (f *fake) Resume(_ context.Context, r run.Request) (run.Input, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.states[r.SessionID]
	if !ok || r.SessionID != s.Input.SessionID {
		return run.Input{}, run.ErrNotFound.Of(r.SessionID)
	}
	f.asked = append(f.asked, r)
	f.resumed++
	return f.begin(run.Input{RunID: fmt.Sprintf("r-%d", len(f.asked)), SessionID: r.SessionID,
		Type: run.ResumeSession, AgentName: s.Input.AgentName, Mode: r.Mode}), nil
}

func (f *fake) State(_ context.Context, id string) (run.State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.states[id]
	if !ok {
		return s, run.ErrNotFound.Of(id)
	}
	return s, nil
}

func (f *fake) Await(ctx context.Context, id string) (run.Result, error) {
	f.mu.Lock()
	ended := f.ended[id]
	f.mu.Unlock()
	select {
	case r := <-ended:
		return r, nil
	case <-ctx.Done():
		f.gaveUp <- ctx.Err()
		return run.Result{}, ctx.Err()
	}
}

// end ends a run that was started.
func (f *fake) end(id string, r run.Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.states[id]
	r.RunID, r.SessionID = s.Input.RunID, s.Input.SessionID
	s.Status, s.Result = r.Status, &r
	f.states[id], f.states[s.Input.SessionID] = s, s
	f.ended[id] <- r
}

func (f *fake) Stop(_ context.Context, id string, r run.StopRequest) (run.State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.states[id]
	if !ok {
		return s, run.ErrNotFound.Of(id)
	}
	if s.Status.Over() {
		return s, fmt.Errorf("run %s: %w: %s", s.Input.RunID, run.ErrOver, s.Status)
	}
	f.stopped = append(f.stopped, r)
	s.Status = run.Stopping
	f.states[id] = s
	return s, nil
}

func (f *fake) List(_ context.Context, q run.Filter) ([]run.Summary, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filters = append(f.filters, q)
	return f.listed[:min(len(f.listed), q.Limit)], nil
}

// last returns the newest request.
func (f *fake) last() run.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[len(f.asked)-1]
}

// begun waits until n runs were requested.
func (f *fake) begun(n int) error {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		f.mu.Lock()
		got := len(f.asked)
		f.mu.Unlock()
		if got >= n {
			return nil
		}
	}
	return errors.New("no run was requested")
}
