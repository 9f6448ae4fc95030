package agentclitest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// settings are what a test sets, in a file beside the stand-in's names.
type settings struct {
	Version   string `json:"version"`
	OldCost   bool   `json:"old_cost"` // costs are counted per process
	ConfigDir string `json:"config_dir"`
	LoggedOut bool   `json:"logged_out"`
	Journal   string `json:"journal"`
	Gates     string `json:"gates"`
}

const settingsFile = "stand-in.json"

// Main is the stand-in, where this process was started as one; it does not return then.
// Elsewhere it does nothing.
func Main() {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if name == stayName {
		time.Sleep(time.Hour)
		os.Exit(0)
	}
	if !known(name) {
		return
	}
	dir, err := home()
	if err != nil {
		return
	}
	var s settings
	data, err := os.ReadFile(filepath.Join(dir, settingsFile))
	if err != nil {
		return
	}
	if err := json.Unmarshal(data, &s); err != nil {
		fmt.Fprintln(os.Stderr, "stand-in:", err)
		os.Exit(70)
	}
	os.Exit(run(name, dir, s, os.Args[1:]))
}

// home is the directory that the stand-in was started from.
func home() (string, error) {
	path := os.Args[0]
	if filepath.Base(path) == path {
		found, err := exec.LookPath(path)
		if err != nil {
			return "", err
		}
		path = found
	}
	return filepath.Abs(filepath.Dir(path))
}

func known(name string) bool {
	switch name {
	case "claude", "codex", "gemini", "opencode":
		return true
	}
	return false
}

// run is the program.
func run(name, dir string, s settings, argv []string) int {
	a := &agent{cli: name, dir: dir, set: s, argv: argv, out: os.Stdout}
	a.journal("start", Entry{Text: strings.Join(argv, " ")})
	if len(argv) == 1 && (argv[0] == "--version" || argv[0] == "-v") {
		return a.version()
	}
	switch name {
	case "claude":
		return a.claude()
	case "codex":
		return a.codex()
	case "gemini":
		return a.gemini()
	}
	return a.openCode()
}

// version says the version as each CLI does.
func (a *agent) version() int {
	switch a.cli {
	case "claude":
		fmt.Fprintf(a.out, "%s (Claude Code)\n", a.set.Version)
	case "codex":
		fmt.Fprintf(a.out, "codex-cli %s\n", a.set.Version)
	default:
		fmt.Fprintln(a.out, a.set.Version)
	}
	return 0
}
