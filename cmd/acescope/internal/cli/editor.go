package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Edit lets the user change a text in $VISUAL, $EDITOR or vi, in a file whose name ends with name. It returns
// the new text and the path of the file, which the caller removes.
func Edit(ctx context.Context, name, text string) (edited, path string, err error) {
	dir, err := os.MkdirTemp("", "acescope-")
	if err != nil {
		return "", "", err
	}
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", path, err
	}
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")
	command := append(strings.Fields(editor), path)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin = os.Stdin
	cmd.Stdout = os.Stdout
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", path, fmt.Errorf("editor %s: %w; set $EDITOR to another", editor, err)
	}
	data, err := os.ReadFile(path)
	return string(data), path, err
}
