package run

import (
	"cmp"

	"acescope/engine/runner"
	"acescope/engine/session"
)

// Message is what the agent is given of a run.
func (s *State) Message() session.Message {
	in := s.Input
	return session.Message{ID: in.RunID, Text: in.Prompt, Ref: in.PromptRef, From: cmp.Or(in.By, "run "+in.RunID), ReplyTo: WorkflowID(in.RunID)}
}

// Session is the agent session that a run begins, on the machine of its runner.
func (s *State) Session() session.Input {
	in, c := s.Input, s.Claim
	first := s.Message()
	talk := session.Input{SessionID: in.SessionID, Name: in.AgentName, Agent: runner.Agent(in.Demands.ExecutorType),
		WorkingDir: cmp.Or(in.ProjectDir, c.Capabilities.ProjectDir), First: &first}
	if talk.Agent == "claude" { // the only one whose own id can be chosen
		talk.AgentSessionID = session.UUID("agent", in.SessionID)
	}
	if c.SessionQueue != "" {
		talk.Host = &session.Host{Name: c.Capabilities.Hostname, Queue: c.SessionQueue}
	}
	if b := in.Blueprint; b != nil {
		talk.Model, talk.SystemPrompt, talk.PermissionMode = b.Model, b.SystemPrompt, b.PermissionMode
		talk.AllowedTools, talk.MCPServers = b.AllowedTools, b.MCPServers
	}
	return talk
}

// Asks is what the dispatcher is told when the run wants a runner: that the claim before is
// done with, and the request, but for the run id of its workflow and the time until which it
// waits.
func (s *State) Asks() runner.Notices {
	in, r := s.Input, s.request()
	var all runner.Notices
	for i, m := range s.Moves {
		r.Avoid = append(r.Avoid, m.Queue)
		if i == len(s.Moves)-1 {
			all = append(all, runner.Notice{Kind: runner.Release, Run: in.RunID, Claim: m.Claim})
		}
	}
	return append(all, runner.Notice{Kind: runner.Enqueue, Run: in.RunID, Request: r})
}

func (s *State) request() *runner.Request {
	in := s.Input
	r := &runner.Request{RunID: in.RunID, Demands: in.Demands, Name: in.Name(), Try: s.Try}
	if in.Mode == AsyncCallback {
		r.Parent = in.ParentSessionID
	}
	return r
}

// Holds is what a dispatcher is told that does not know of the claim in force, but for the run
// id of the workflow.
func (s *State) Holds() runner.Notice {
	return runner.Notice{Kind: runner.Holds, Run: s.Input.RunID, Request: s.request(), Held: s.Claim}
}

// Leaves is what the dispatcher is told when the run has ended, nothing where it was not
// asked or has given up by itself.
func (s *State) Leaves() runner.Notices {
	switch {
	case s.Input.Queue != "":
		return nil
	case s.Claim != nil:
		return runner.Notices{{Kind: runner.Release, Run: s.Input.RunID, Claim: s.Claim.Number}}
	case s.Status == Stopped:
		return runner.Notices{{Kind: runner.Withdraw, Run: s.Input.RunID}}
	}
	return nil
}
