package conffile

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestReplayers checks the tables [[replayers]]: a wrong one is named and left out.
func TestReplayers(t *testing.T) {
	f, warnings := Parse("c.toml", []byte(`
[[replayers]]
sdk = "temporal-python"
command = ["python3", "replay.py", "shop"]
[[replayers]]
task_queue = "bank"
workflow_type = "Pay*"
command = ["./replay"]
timeout = "30s"
[[replayers]]
command = ["./replay"]
[[replayers]]
sdk = "temporal-java"
[[replayers]]
sdk = "temporal-java"
command = "java Replay"
[[replayers]]
sdk = "temporal-java"
command = ["java"]
timeout = "2h"
`), func(string) bool { return false })
	if len(f.Replayers) != 2 || f.Replayers[0].After != 2*time.Minute || f.Replayers[1].After != 30*time.Second ||
		f.Replayers[1].TaskQueue != "bank" || f.Replayers[1].WorkflowType != "Pay*" ||
		!slices.Equal(f.Replayers[0].Command, []string{"python3", "replay.py", "shop"}) {
		t.Errorf("%+v", f.Replayers)
	}
	for i, want := range []string{"needs an sdk, a task_queue or a workflow_type", "needs a command",
		"command has the wrong type", "timeout must be a duration up to 1h"} {
		if len(warnings) != 4 || !strings.Contains(warnings[i], want) {
			t.Fatalf("%q", warnings)
		}
	}
}
