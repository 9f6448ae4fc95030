package sessions

import (
	"strconv"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
)

// MaxApprovals bounds the tool calls that are listed as waiting for a person; the others
// are counted.
const MaxApprovals = 100

// Approval is a tool call that waits for a person. Texts are untrusted.
type Approval struct {
	WorkflowID string
	ID         string // of the session
	Name       string
	Agent      string
	Dir        string
	Host       string
	Call       ToolRequest
}

// Approvals is the tool calls that wait for a person, those of the newest session first.
type Approvals struct {
	Rows []Approval
	More int // that are not in Rows
}

// Count is how many wait.
func (a *Approvals) Count() int {
	if a == nil {
		return 0
	}
	return len(a.Rows) + a.More
}

// ApprovalsOf lists what waits in a session.
func ApprovalsOf(workflowID string, s *TalkState) (list []Approval) {
	if s == nil {
		return nil
	}
	host := ""
	if s.Host != nil {
		host = s.Host.Name
	}
	for _, r := range s.Pending {
		list = append(list, Approval{WorkflowID: workflowID, ID: s.Input.SessionID, Name: s.Input.Name, Agent: s.Input.Agent, Dir: s.Input.WorkingDir, Host: host, Call: r})
	}
	return list
}

// ApprovalsEvery is how often is looked, on every screen, whether a tool call waits.
const ApprovalsEvery = 2 * time.Second

var WaitingQuery = SessionsQuery + ` AND ExecutionStatus = "Running" AND ` + ace.AttrPhase + " = " + strconv.Quote(string(session.Waiting))
