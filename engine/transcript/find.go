package transcript

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ConfigDir is the configuration directory of a Claude Code that is started with the
// environment, "" where it is not known.
func ConfigDir(environ []string) string {
	dir := ""
	for _, v := range environ {
		if name, value, _ := strings.Cut(v, "="); name == "CLAUDE_CONFIG_DIR" {
			dir = value
		}
	}
	if dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".claude")
}

// Find is where the transcript of a session lies below a configuration directory, "" where
// there is none. A session's id is unique, so it is looked for under every project: how a
// project's name is made of a directory has changed more than once. The id must be one that
// is no path, see [agentcli.ValidSessionID].
func Find(configDir, session string) (string, error) {
	projects := filepath.Join(configDir, "projects")
	dirs, err := os.ReadDir(projects)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, d := range dirs {
		path := filepath.Join(projects, d.Name(), session+Ext)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", nil
}
