//go:build unix

package main

import (
	"os"
	"os/exec"
	"testing"

	"acescope/engine/agents/agentcli/agentclitest"
)

// TestSessionConsole uses a session with a stub of an agent in a console that hosts the server: it starts the
// session, follows its output, allows a tool call from another screen and stops the session.
func TestSessionConsole(t *testing.T) {
	t.Parallel()
	agent := agentclitest.New(t, "claude")
	work := t.TempDir()
	cmd := exec.Command("acescope", "--data-dir", t.TempDir())
	cmd.Env = []string{"PATH=" + agent.Dir() + string(os.PathListSeparator) + os.Getenv("PATH"),
		"CLAUDE_CONFIG_DIR=" + agent.ConfigDir()}
	term := inTerminal(t, t.TempDir(), 80, 24, cmd)
	term.await("no runs yet", "embedded")
	term.press("0")
	term.await("no agent sessions", "+ starts one")
	term.press(":session start dir=" + work + " name=till hello" + keyEnter)
	term.await("idle", "till")
	term.press(keyEnter)
	term.await("reply 1 to: hello", "turn 1 completed", "live query")
	term.press("iSCENARIO: tool Bash {\"command\":\"ls\"}; gate here; slow 3 50; say finished" + keyEnter)
	term.await("1 call waits for approval: Bash")
	term.press("1")
	term.await("1 approval pending: H")
	term.press("0w")
	term.await("Allow Bash?", "command: ls")
	term.press("y")
	term.await("allowed Bash", "working")
	agent.Open("here")
	term.press(keyEnter)
	term.await("part 1. part 2. part 3.", "finished", "turn 2 completed")
	term.press("x")
	term.await("Stop this session?")
	term.press("y")
	term.await("ended")
	term.press("q")
	term.quits()
}
