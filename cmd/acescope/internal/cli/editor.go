package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
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

// browserTime is how long a browser's command may take to report that it failed.
const browserTime = 2 * time.Second

// OpenBrowser opens a URL in the user's browser. It reports false if there is no browser on this machine: the
// caller then shows the URL to the user.
func OpenBrowser(url string) bool {
	command := browserCommand(os.Getenv, url)
	if len(command) == 0 {
		return false
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.SysProcAttr = OwnSession() // ctrl+c here does not end the browser
	if cmd.Start() != nil {
		return false
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the browser, if this process started it
	select {
	case err := <-ended:
		return err == nil
	case <-time.After(browserTime):
		return true
	}
}

// browserCommand returns the command that opens a URL, empty without a browser. $BROWSER comes first, as for
// other programs: a list of commands, in which %s stands for the URL. A browser on the other end of an SSH
// connection cannot be started.
func browserCommand(getenv func(string) string, url string) []string {
	for _, choice := range filepath.SplitList(getenv("BROWSER")) {
		if words := strings.Fields(choice); len(words) > 0 {
			if !strings.Contains(choice, "%s") {
				return append(words, url)
			}
			for i := range words {
				words[i] = strings.ReplaceAll(words[i], "%s", url)
			}
			return words
		}
	}
	remote := cmp.Or(getenv("SSH_CONNECTION"), getenv("SSH_TTY")) != ""
	display := cmp.Or(getenv("DISPLAY"), getenv("WAYLAND_DISPLAY"), getenv("WSL_DISTRO_NAME")) != ""
	switch {
	case remote:
		return nil
	case runtime.GOOS == "darwin":
		return []string{"open", url}
	case runtime.GOOS == "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler", url}
	case !display:
		return nil
	}
	return []string{"xdg-open", url}
}
