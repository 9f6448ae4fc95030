package agentcli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// recordings are streams of the real CLIs, where this machine has them.
const recordings = "/work/shared/data/agent-streams"

func TestZ(t *testing.T) {
	for _, cli := range CLIs() {
		fs, _ := filepath.Glob(filepath.Join(recordings, string(cli), "*.jsonl"))
		for _, f := range fs {
			fmt.Println("==", f)
			r, _ := os.Open(f)
			var j Judge
			NewReader(r, cli).All(func(e Event) error {
				fmt.Printf("%d.%d %s %s s=%.8s m=%s %q", e.Line, e.Part, e.Kind, e.Name, e.SessionID, e.Model, e.Text)
				if e.Tool != nil {
					fmt.Printf(" tool %+v %s %s", *e.Tool, e.Tool.Args, e.Tool.Result)
				}
				if e.Usage != nil {
					fmt.Printf(" usage %+v", *e.Usage)
				}
				fmt.Println()
				j.Add(e)
				return nil
			})
			fmt.Printf("%+v\n", j.Outcome(Exit{}, ""))
		}
	}
}
