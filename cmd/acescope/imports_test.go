package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// arrows says, for each room of the house, which rooms it may import. A room is the
// longest entry that begins the package's path.
var arrows = map[string][]string{
	"cmd":                 {"cmd", "tui", "views", "sources", "sources/*", "engine", "engine/*", "theme"},
	"views":               {"views", "tui", "sources", "sources/logfile", "engine/ace", "theme"},
	"tui":                 {"tui", "sources", "theme"},
	"theme":               {},
	"sources":             {"engine/ace", "engine/session", "engine/run", "engine/runner", "engine/history", "engine/playbook", "engine/compare", "engine/replay", "engine/codec", "sources/logfile", "sources/transcripts", "engine/transcript", "engine/agentcli", "engine/price"},
	"sources/logfile":     {},
	"sources/transcripts": {"engine/ace", "engine/agentcli", "engine/transcript", "engine/price"},
	// What tests and benchmarks run on: made-up histories and lists, and clients for them.
	"sources/historytest": {"engine/ace"},
	"sources/runstest":    {"engine/ace", "sources/historytest"},
	// Histories from files, in the place of a server.
	"sources/filed": {"engine/ace", "engine/history", "engine/historyfile", "engine/playbook"},

	"engine/ace":             {},
	"engine/session":         {"engine/ace", "engine/redact"},
	"engine/runner":          {"engine/ace"},
	"engine/run":             {"engine/ace", "engine/runner", "engine/session"},
	"engine/blueprint":       {"engine/ace", "engine/run", "engine/runner", "engine/session", "engine/redact"},
	"engine/executor":        {"engine/ace", "engine/run", "engine/runner", "engine/blueprint", "engine/process", "engine/redact", "engine/artifact"},
	"engine/runner/host":     {"engine/ace", "engine/run", "engine/runner", "engine/executor", "engine/process", "engine/process/filelock", "engine/redact", "engine/artifact"},
	"engine/mcp":             {"engine/ace", "engine/run", "engine/runner"},
	"engine/model/command":   {"engine/ace", "engine/model", "engine/model/llm", "engine/playbook", "engine/run"},
	"engine/session/host":    {"engine/ace", "engine/session", "engine/agentcli", "engine/process", "engine/process/filelock", "engine/redact", "engine/artifact", "engine/transcript", "engine/price"},
	"engine/history":         {"engine/ace", "engine/session", "engine/run", "engine/runner"},
	"engine/transcript":      {"engine/ace", "engine/agentcli", "engine/transcript", "engine/price"},
	"engine/historyfile":     {},
	"engine/codec":           {"engine/history"},
	"engine/codec/codectest": {},
	"engine/replay":          {"engine/ace", "engine/session", "engine/run", "engine/runner", "engine/history"},
	"engine/compare":         {"engine/ace", "engine/history"},
	"engine/operation":       {"engine/ace", "engine/history", "engine/operation"},
	"engine/fork":            {"engine/ace", "engine/history"},
	"engine/artifact":        {"engine/ace"},
	"engine/playbook":        {"engine/ace"},
	"engine/dataset":         {"engine/ace", "engine/artifact"},
	"engine/problems":        {},
	"engine/model":           {"engine/ace", "engine/playbook"},
	"engine/model/builtin":   {"engine/ace", "engine/playbook", "engine/model", "engine/model/builtin", "engine/model/builtin/calc"},
	"engine/price":           {},
	// The arithmetic of the built-in provider is a tool of the others.
	"engine/model/builtin/calc": {},
	"engine/model/llm":          {"engine/ace", "engine/playbook", "engine/model", "engine/price", "engine/redact", "engine/model/builtin/calc"},
	"engine/model/llm/llmtest":  {},
	"engine/model/anthropic":    {"engine/model", "engine/model/llm", "engine/price"},
	"engine/model/openai":       {"engine/model", "engine/model/llm", "engine/price"},
	"engine/flow":               {"engine/ace", "engine/session", "engine/run", "engine/runner", "engine/history"},
	"engine/activity":           {"engine/ace", "engine/agentcli", "engine/agentrun", "engine/session", "engine/run", "engine/runner", "engine/flow", "engine/model", "engine/playbook", "engine/artifact", "engine/dataset", "engine/observe/batch", "engine/redact"},
	"engine/observe":            {"engine/ace", "engine/flow", "engine/history", "engine/observe", "engine/observe/batch", "engine/observe/spool"},
	"engine/observe/batch":      {"engine/ace"},
	"engine/observe/spool":      {},
	"cmd/acescope-hook":         {"engine/observe/spool"},
	"engine/server":             {"engine/ace"},
	"engine/process":            {},
	"engine/redact":             {},
	"engine/process/filelock":   {},
	"engine/agentrun":           {"engine/ace", "engine/agentcli", "engine/process", "engine/process/filelock", "engine/redact", "engine/artifact", "engine/transcript", "engine/session", "engine/price"},
	"engine/model/agent":        {"engine/ace", "engine/agentcli", "engine/agentrun", "engine/artifact", "engine/playbook", "engine/model", "engine/model/llm", "engine/price", "engine/session"},
	"engine/agentcli":           {"engine/ace"},
	// A stand-in for the agent CLIs, for tests.
	"engine/agentcli/agentclitest": {},
	"engine":                       {"engine", "engine/*"},
}

// TestArrows holds the arrows between the rooms one way.
func TestArrows(t *testing.T) {
	checked := 0
	for _, p := range packages(t) {
		room := roomOf(p.rel())
		allowed, ok := arrows[room]
		if !ok {
			t.Errorf("%s stands in no room of the house", p.ImportPath)
			continue
		}
		checked++
		for _, to := range p.Imports {
			rel, ours := strings.CutPrefix(to, "acescope/")
			if ours && roomOf(rel) != "" && !mayImport(allowed, rel) {
				t.Errorf("%s must not import %s", p.ImportPath, to)
			}
		}
	}
	if checked < len(arrows)-2 {
		t.Errorf("only %d packages were looked at", checked)
	}
}

// TestAceNeedsNothing holds that the contract is plain Go.
func TestAceNeedsNothing(t *testing.T) {
	for _, p := range packages(t) {
		if p.rel() != "engine/ace" {
			continue
		}
		for _, to := range p.Imports {
			if first, _, _ := strings.Cut(to, "/"); strings.Contains(first, ".") {
				t.Errorf("engine/ace imports %s", to)
			}
		}
		return
	}
	t.Fatal("engine/ace was not found")
}

func mayImport(allowed []string, rel string) bool {
	return slices.ContainsFunc(allowed, func(a string) bool {
		if base, all := strings.CutSuffix(a, "/*"); all {
			return strings.HasPrefix(rel, base+"/")
		}
		return roomOf(rel) == a
	})
}

func roomOf(rel string) string {
	best := ""
	for room := range arrows {
		if (rel == room || strings.HasPrefix(rel, room+"/")) && len(room) > len(best) {
			best = room
		}
	}
	return best
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func (p pkg) rel() string { return strings.TrimPrefix(p.ImportPath, "acescope/") }

func packages(t *testing.T) (all []pkg) {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "acescope/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
