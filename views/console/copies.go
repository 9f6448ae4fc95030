package console

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/kballard/go-shellquote"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/tui"
)

// RunCopies returns the forms in which a run can be copied.
func (n *Navigation) RunCopies(r runs.Run) []tui.Copy {
	if r.WorkflowID == "" {
		return nil
	}
	return []tui.Copy{
		{Key: "i", What: "workflow ID", Text: r.WorkflowID},
		{Key: "r", What: "run ID", Text: r.RunID},
		JSONCopy(r),
		n.CommandCopy("show", strings.TrimPrefix(r.WorkflowID, ace.TaskIDPrefix)),
	}
}

// SelectedCopies returns the forms in which the selected run can be copied, with its answer if it is read.
func (n *Navigation) SelectedCopies() []tui.Copy {
	list := n.RunCopies(n.Selected.Run)
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

// CommandCopy returns the copy of a command, see [Navigation.Command].
func (n *Navigation) CommandCopy(words ...string) tui.Copy {
	return tui.Copy{Key: "c", What: "command", Text: n.Command(words...)}
}

// Command returns the command line of acescope with these arguments, quoted for a shell. It uses the same
// data as the console.
func (n *Navigation) Command(words ...string) string {
	return shellquote.Join(slices.Concat([]string{"acescope"}, n.flags, words)...)
}
