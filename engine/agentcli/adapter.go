package agentcli

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Adapter knows how one CLI is called.
//
// Values never become flags: each stands in one argument with its flag (--model=x), or goes
// through standard input; ids of sessions must look like ids.
type Adapter interface {
	// CLI is which one.
	CLI() CLI
	// Features tells what of a call the CLI has a way for.
	Features() Features
	// Command is how a call is made. Errors are of type [*CallError].
	Command(Call) (Command, error)
	// VersionArgv asks for the version; the answer goes to [ParseVersion].
	VersionArgv(binary string) []string
	// Oldest is the oldest version that speaks the protocol known here.
	Oldest() Version
	// Inherit lists the names of environment variables that the CLI needs of its parent's;
	// one that ends with * stands for all that begin so.
	Inherit() []string
	// InstallHint says in a line how the CLI is got and logged in to.
	InstallHint() string
}

// For is the adapter of a CLI.
func For(cli CLI) (Adapter, error) {
	switch cli {
	case Claude:
		return claudeAdapter{}, nil
	case Codex:
		return codexAdapter{}, nil
	case Gemini:
		return geminiAdapter{}, nil
	case OpenCode:
		return openCodeAdapter{}, nil
	}
	return nil, fmt.Errorf("%.40q is no agent CLI that is known; known are %s", string(cli), known())
}

// CLIs lists the CLIs that are known.
func CLIs() []CLI { return []CLI{Claude, Codex, Gemini, OpenCode} }

func known() string {
	var names []string
	for _, c := range CLIs() {
		names = append(names, string(c))
	}
	return strings.Join(names, ", ")
}

// Version is a CLI's version.
type Version struct{ Major, Minor, Patch int }

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// Before tells whether v is older than w.
func (v Version) Before(w Version) bool {
	return slices.Compare([]int{v.Major, v.Minor, v.Patch}, []int{w.Major, w.Minor, w.Patch}) < 0
}

var versionShape = regexp.MustCompile(`(?:^|[^0-9.])(\d{1,6})\.(\d{1,6})\.(\d{1,6})`)

// ParseVersion finds the version in what a CLI says when it is asked for it.
func ParseVersion(output string) (Version, bool) {
	m := versionShape.FindStringSubmatch(output[:min(len(output), MaxText)])
	if m == nil {
		return Version{}, false
	}
	var n [3]int
	for i := range n {
		n[i], _ = strconv.Atoi(m[i+1]) // at most six digits
	}
	return Version{n[0], n[1], n[2]}, true
}

// binary is the program of a call.
func (c Call) binary(usual string) string {
	if c.Binary != "" {
		return c.Binary
	}
	return usual
}

// common are variables that every program needs: where things are, and how to speak.
var common = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TEMP", "TMP", "LANG", "LC_*", "TZ", "TERM",
	"XDG_*", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"SystemRoot", "APPDATA", "LOCALAPPDATA", "USERPROFILE", "PATHEXT", "COMSPEC",
}

func inherit(names ...string) []string { return append(slices.Clone(common), names...) }
