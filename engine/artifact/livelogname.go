package artifact

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"acescope/engine/ace"
)

// LogName says of what a live log is. It is known before the log begins, so that the
// console finds it.
type LogName struct {
	WorkflowID, RunID string
	Activity          string
	Seq               int   // tells the activities of a type and run apart
	Attempt           int32 // of the activity
}

// Path is the log's path below the data directory, with slashes:
// logs/runs/<workflow>/<run>/<activity>-<seq>-<attempt>.jsonl. Of what has no place in a
// file's name, [ace.FileName] makes something else.
func (n LogName) Path() string { return n.path(1) }

func (n LogName) path(number int) string {
	name := fmt.Sprintf("%s-%d-%d", ace.FileName(n.Activity), n.Seq, n.Attempt)
	if number > 1 {
		name += fmt.Sprintf(".%d", number)
	}
	return path.Join(ace.RunLogsDir(n.WorkflowID, n.RunID), name+".jsonl")
}

// Existing are the paths of the logs that there are of a name, in the order in which they
// were made.
func (l *Logs) Existing(n LogName) ([]string, error) {
	var list []string
	for i := 1; ; i++ {
		rel := n.path(i)
		_, err := os.Stat(l.Path(rel))
		if errors.Is(err, fs.ErrNotExist) {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		list = append(list, rel)
	}
}

// Escape makes of any text the name of one file. See [ace.FileName].
func Escape(text string) string { return ace.FileName(text) }
