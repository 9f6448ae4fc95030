package flows

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/flow/library"
)

type CopyLine struct {
	Name  string   `json:"name"`
	Files []string `json:"files"`
}

func copyCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "copy FLOW [DIR]",
		Short: "Copy the files of a flow, to change them",
		Long: "Copy the files of a flow to " + library.ProjectDir +
			" of the current directory, or to DIR. There it takes\n" +
			"precedence over a flow of acescope with the same name. Existing files are not replaced.",
		Example: "acescope flow copy ace-loop && $EDITOR .acescope/flows/ace-loop/curator.yaml",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			e, err := Find(a, args[0])
			if err != nil {
				return err
			}
			dir := filepath.FromSlash(library.ProjectDir)
			if len(args) == 2 {
				dir = args[1]
			}
			return copyFlow(a, e, dir)
		},
	}
}

func copyFlow(a *cli.App, e library.Entry, dir string) error {
	line := CopyLine{Name: e.Name, Files: []string{}}
	for _, name := range e.Source.Names() {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s exists; name another directory, or remove it", path)
		}
		if err != nil {
			return err
		}
		_, err = f.WriteString(e.Source.Files[name])
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		line.Files = append(line.Files, path)
	}
	return cli.Report(a, line, "copied %s", strings.Join(line.Files, ", "))
}
