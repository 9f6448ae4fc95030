package agentcall

import (
	"context"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/agents/session"
	"acescope/engine/store/artifact"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// place is a runner and a stand-in.
type place struct {
	*Runner
	*agentclitest.Agent
	t   *testing.T
	cli agentcli.CLI
	dir string // working directory of the agent
}

func newPlace(t *testing.T, cli agentcli.CLI) *place {
	t.Helper()
	a := agentclitest.New(t, string(cli))
	data := t.TempDir()
	store, err := artifact.Open(filepath.Join(data, "artifacts"))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &place{New(Options{DataDir: data, Artifacts: store,
		Agents: map[agentcli.CLI]Agent{cli: {Command: a.Binary()}}}), a, t, cli, dir}
}

// call makes a call of the instruction.
func (p *place) call(instruction string, attempt int32) Call {
	return Call{ID: session.UUID(p.t.Name()), CLI: p.cli, Call: agentcli.Call{Instruction: instruction,
		WorkingDir: p.dir},
		Log: artifact.LogName{WorkflowID: "wf/1", RunID: "run", Activity: "execute_agent_cli", Seq: 5,
			Attempt: attempt}}
}

func (p *place) run(c Call) *Result { return p.Run(context.Background(), c) }

// log reads the log of a result.
func (p *place) log(e *Result) (Log, []byte) {
	p.t.Helper()
	if e.Log == nil || e.LogPath == "" {
		p.t.Fatalf("no log: %+v", e)
	}
	data, err := p.o.Artifacts.Get(p.t.Context(), *e.Log, 1<<30)
	if err != nil {
		p.t.Fatal(err)
	}
	l, err := readLogFile(p.LogPath(e.LogPath))
	if err != nil {
		p.t.Fatal(err)
	}
	return l, data
}
