package console

import (
	"encoding/json"
	"regexp"
	"strings"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/tui"
)

// RunCopies returns the forms in which a run can be copied.
func RunCopies(r runs.Run) []tui.Copy {
	if r.WorkflowID == "" {
		return nil
	}
	return []tui.Copy{
		{Key: "i", What: "workflow ID", Text: r.WorkflowID},
		{Key: "r", What: "run ID", Text: r.RunID},
		JSONCopy(r),
		CommandCopy("show", strings.TrimPrefix(r.WorkflowID, ace.TaskIDPrefix)),
	}
}

// SelectedCopies returns the forms in which the selected run can be copied, with its answer if it is read.
func (n *Navigation) SelectedCopies() []tui.Copy {
	list := RunCopies(n.Selected.Run)
	if d := n.Detail(); d != nil {
		list = append(list, tui.Copy{Key: "a", What: "answer", Text: d.Phase.Answer})
	}
	return list
}

// JSONCopy returns the copy of a value as JSON.
func JSONCopy(value any) tui.Copy {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return tui.Copy{}
	}
	return tui.Copy{Key: "j", What: "JSON", Text: string(raw)}
}

// CommandCopy returns the command line of acescope with these arguments, quoted for a shell.
func CommandCopy(words ...string) tui.Copy {
	line := "acescope"
	for _, w := range words {
		if !plainWord.MatchString(w) {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		line += " " + w
	}
	return tui.Copy{Key: "c", What: "command", Text: line}
}

// plainWord matches words that a shell takes as they are.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9._/@:=+-]+$`)
