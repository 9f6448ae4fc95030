package cli

import (
	"os"
	"path/filepath"
	"strings"
)

// Paths is where things lie.
type Paths struct {
	Config string `json:"config"`
	Themes string `json:"themes"`
	State  string `json:"state"`
	Data   string `json:"data"`
	Logs   string `json:"logs"`
}

// xdg is the folder of a kind for this program: that of the environment, else the usual
// one below the home directory.
func xdg(env string, usual ...string) (string, error) {
	if base := os.Getenv(env); filepath.IsAbs(base) {
		return filepath.Join(base, "acescope"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", UsageError("no home directory: %v; give --data-dir, and set XDG_CONFIG_HOME and XDG_STATE_HOME", err)
	}
	return filepath.Join(append(append([]string{home}, usual...), "acescope")...), nil
}

func ConfigDir() (string, error) { return xdg("XDG_CONFIG_HOME", ".config") }

func StatePath() (string, error) {
	dir, err := xdg("XDG_STATE_HOME", ".local", "state")
	return filepath.Join(dir, "state.json"), err
}

// dir is the data directory in force.
func (a *App) DataDir() (string, error) {
	if rest, ok := strings.CutPrefix(a.Settings.DataDir, "~/"); ok && a.Settings.rank("data_dir") == fileRank {
		home, err := os.UserHomeDir()
		return filepath.Join(home, rest), err
	}
	if a.Settings.DataDir != "" {
		return filepath.Abs(a.Settings.DataDir)
	}
	return xdg("XDG_DATA_HOME", ".local", "share")
}

func (a *App) Paths() (Paths, error) {
	config, err := ConfigDir()
	if err != nil {
		return Paths{}, err
	}
	state, err := StatePath()
	if err != nil {
		return Paths{}, err
	}
	data, err := a.DataDir()
	return Paths{Config: filepath.Join(config, "config.toml"), Themes: filepath.Join(config, "themes"), State: state, Data: data,
		Logs: filepath.Join(data, "logs")}, err
}
