package agentcli_test

import (
	"os"
	"testing"

	"acescope/engine/agents/agentcli/agentclitest"
)

func TestMain(m *testing.M) {
	agentclitest.Main()
	os.Exit(m.Run())
}
