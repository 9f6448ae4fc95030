package main

import (
	"os"
	"path/filepath"
	"strings"
)

// paths is where things lie.
type paths struct {
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
		return "", usage("no home directory: %v; give --data-dir, and set XDG_CONFIG_HOME and XDG_STATE_HOME", err)
	}
	return filepath.Join(append(append([]string{home}, usual...), "acescope")...), nil
}

func configDir() (string, error) { return xdg("XDG_CONFIG_HOME", ".config") }

func statePath() (string, error) {
	dir, err := xdg("XDG_STATE_HOME", ".local", "state")
	return filepath.Join(dir, "state.json"), err
}

// dir is the data directory in force.
func (a *app) dir() (string, error) {
	if rest, ok := strings.CutPrefix(a.set.DataDir, "~/"); ok && a.set.rank("data_dir") == fileRank {
		home, err := os.UserHomeDir()
		return filepath.Join(home, rest), err
	}
	if a.set.DataDir != "" {
		return filepath.Abs(a.set.DataDir)
	}
	return xdg("XDG_DATA_HOME", ".local", "share")
}

func (a *app) paths() (paths, error) {
	config, err := configDir()
	if err != nil {
		return paths{}, err
	}
	state, err := statePath()
	if err != nil {
		return paths{}, err
	}
	data, err := a.dir()
	return paths{Config: filepath.Join(config, "config.toml"), Themes: filepath.Join(config, "themes"), State: state, Data: data,
		Logs: filepath.Join(data, "logs")}, err
}
