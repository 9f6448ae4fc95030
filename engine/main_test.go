package engine_test

import (
	"os"
	"testing"

	"acescope/engine/agentcli/agentclitest"
)

func TestMain(m *testing.M) {
	agentclitest.Main()
	loopMain()
	os.Exit(m.Run())
}
