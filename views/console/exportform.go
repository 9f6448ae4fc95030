package console

import (
	"context"
	"os"
	"path"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/learning/playbook"
	"acescope/tui"
)

const formField = "to"

// exportExtensions are the extensions of the proposed file names, by form; a skill is a folder.
var exportExtensions = map[string]string{"json": ".json", "skillbook": ".json", "ace": ".txt", "text": ".txt",
	"claude-md": ".md", "agents-md": ".md"}

// exportHints explain the forms of [playbook.ExportForms].
const exportHints = "json can be read again; skill, claude-md and agents-md are for coding agents"

// AskExport opens the form that writes a version of a playbook, as BRANCH@N, to a file.
func (a *Actor) AskExport(s tui.Shell, version string) tea.Cmd {
	branch, _, _ := strings.Cut(version, "@")
	proposed := func(v tui.Values) string { return path.Base(branch) + exportExtensions[v[formField]] }
	first := tui.Values{formField: playbook.ExportForms()[0]}
	return s.Fill(tui.Form{Title: "Export playbook " + version, Name: "export " + branch, Verb: "write the file",
		Fields: []tui.Field{
			{Name: fileField, Label: "File", Value: proposed(first), Follow: proposed,
				Complete: completeFiles, Hint: "for a skill, a folder"},
			{Name: formField, Label: "Form", Value: first[formField], Options: playbook.ExportForms(),
				Fixed: true, Hint: "left, right choose"},
		},
		Check: func(v tui.Values) tui.Report {
			file := strings.TrimSpace(v[fileField])
			r := tui.Report{Problems: map[string]string{}, Lines: []string{exportHints},
				Command: a.nav.Command("playbook", "export", version, file, "--to",
					v[formField])}
			if file == "" {
				r.Problems[fileField] = "name a file"
			} else if info, err := os.Stat(expandHome(file)); err == nil && !info.IsDir() {
				r.Lines = append(r.Lines, file+" exists and changes")
			}
			return r
		},
		Submit: func(ctx context.Context, v tui.Values) (func(tui.Shell) tea.Cmd, error) {
			lines, err := a.actions.ExportPlaybook(ctx, version, expandHome(strings.TrimSpace(v[fileField])),
				v[formField])
			return func(s tui.Shell) tea.Cmd {
				s.Note("wrote " + strings.Join(lines, "; "))
				return nil
			}, err
		}})
}
