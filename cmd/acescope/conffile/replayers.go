package conffile

import (
	"errors"
	"strings"
	"time"
)

// Replayer is a program that replays histories of other workers. The patterns say which; * stands for any
// characters, and an empty one matches all.
type Replayer struct {
	SDK          string        `toml:"sdk"` // such as temporal-python
	TaskQueue    string        `toml:"task_queue"`
	WorkflowType string        `toml:"workflow_type"`
	Command      []string      `toml:"command"` // the program and its arguments
	Timeout      string        `toml:"timeout"`
	After        time.Duration `toml:"-"` // the timeout
}

// maxReplayerTimeout bounds the timeout of a replayer.
const maxReplayerTimeout = time.Hour

// readReplayers reads the tables [[replayers]].
func (p *parser) readReplayers(value any) {
	const keys = "sdk, task_queue or workflow_type, and command"
	p.readList("replayers", keys, value, func(at string, e any) error {
		r := Replayer{Timeout: "2m"}
		if err := p.decode(at, e, &r); err != nil {
			return err
		}
		var err error
		r.After, err = time.ParseDuration(r.Timeout)
		switch {
		case len(r.Command) == 0 || strings.TrimSpace(r.Command[0]) == "":
			return errors.New(`needs a command such as ["python3", "replay.py", "shop.workflows"]`)
		case r.SDK == "" && r.TaskQueue == "" && r.WorkflowType == "":
			return errors.New("needs an sdk, a task_queue or a workflow_type; " +
				`sdk = "*" matches every history that names its SDK`)
		case err != nil || r.After <= 0 || r.After > maxReplayerTimeout:
			return errors.New(`timeout must be a duration up to 1h, such as "2m"`)
		}
		p.Replayers = append(p.Replayers, r)
		return nil
	})
}
