package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"acescope/engine/temporal/replayer"
)

// Replayers returns the programs of the configuration that replay histories of other workers. They run in the
// directory of the configuration file, with the environment of this process.
func (a *App) Replayers() (list []replayer.Replayer) {
	for _, c := range a.Settings.File.Replayers {
		r := replayer.Replayer{SDK: c.SDK, TaskQueue: c.TaskQueue, WorkflowType: c.WorkflowType,
			Dir: filepath.Dir(a.Settings.File.Path), Env: os.Environ(), Timeout: c.After}
		for _, arg := range c.Command {
			r.Argv = append(r.Argv, Home(arg))
		}
		list = append(list, r)
	}
	return list
}

// ReplayerLine is a replayer in the output of acescope config.
type ReplayerLine struct {
	For     string   `json:"for"` // its patterns, as in --replayer
	Command []string `json:"command"`
	Dir     string   `json:"dir"`
	Timeout string   `json:"timeout"`
	OK      bool     `json:"ok"`
	Text    string   `json:"text"`
}

// ReplayerLines returns the replayers of the configuration, and where this machine has them.
func (a *App) ReplayerLines() []ReplayerLine {
	list := []ReplayerLine{}
	for i, r := range a.Replayers() {
		l := ReplayerLine{Command: r.Argv, Dir: r.Dir, Timeout: a.Settings.File.Replayers[i].Timeout}
		for _, p := range [][2]string{{"sdk", r.SDK}, {"task_queue", r.TaskQueue},
			{"workflow_type", r.WorkflowType}} {
			if p[1] != "" {
				l.For = strings.TrimSpace(l.For + " " + p[0] + "=" + p[1])
			}
		}
		path, err := r.Path()
		if l.OK, l.Text = err == nil, path; err != nil {
			l.Text = OneLine(err) + "; correct the command of [[replayers]]"
		}
		list = append(list, l)
	}
	return list
}

// ParseReplayer parses the value of a flag: patterns as in the configuration, then the command, separated by
// blanks. A command with blanks in an argument is a JSON array. The command runs in the current directory.
func ParseReplayer(value string) (r replayer.Replayer, err error) {
	r.Env = os.Environ()
	fields := map[string]*string{"sdk": &r.SDK, "task_queue": &r.TaskQueue, "workflow_type": &r.WorkflowType}
	rest := strings.TrimSpace(value)
	for {
		word, after, _ := strings.Cut(rest, " ")
		name, pattern, _ := strings.Cut(word, "=")
		if fields[name] == nil || pattern == "" {
			break
		}
		*fields[name], rest = pattern, strings.TrimSpace(after)
	}
	r.Argv = strings.Fields(rest)
	if strings.HasPrefix(rest, "[") {
		r.Argv = nil
		if err := json.Unmarshal([]byte(rest), &r.Argv); err != nil {
			return r, UsageError("--replayer %q: the command is not a JSON array of strings", value)
		}
	}
	if len(r.Argv) == 0 || r.Argv[0] == "" {
		return r, UsageError("--replayer %q: needs a command, as in 'sdk=temporal-python python3 replay.py "+
			"shop.workflows'", value)
	}
	return r, nil
}
