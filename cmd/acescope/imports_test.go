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

// layers are the import rules: a package may import packages of its own prefix and of the listed prefixes.
// The longest matching prefix applies. The rows of engine are in import order.
var layers = []struct {
	prefix string
	may    []string
}{
	{"cmd/acescope-hook", []string{"engine/agents/observe/spool"}},
	{"cmd", []string{"engine", "sources", "tui", "views", "theme"}},
	// of the engine, packages with values that feeds publish
	{"views", []string{"tui", "theme", "sources", "engine/ace", "engine/agents/session",
		"engine/agents/transcript", "engine/flow", "engine/learning/ablation", "engine/learning/playbook",
		"engine/kind", "engine/learning/prompts", "engine/learning/stats", "engine/stepper",
		"engine/tasks/run",
		"engine/tasks/runner", "engine/temporal/compare", "engine/temporal/replay"}},
	// texts of accuracies
	{"tui/widget", []string{"tui", "theme", "engine/ace", "engine/learning/stats"}},
	// texts of counts
	{"tui", []string{"tui", "theme", "engine/ace"}},
	{"theme", nil},
	{"sources", []string{"engine/ace", "engine/store/durable", "engine/temporal", "engine/kind",
		"engine/stepper", "engine/trace", "engine/learning/playbook",
		"engine/learning/ablation", "engine/learning/prompts", "engine/learning/stats",
		"engine/agents", "engine/tasks", "engine/flow"}},

	{"engine/ace", nil},
	{"engine/internal", nil},
	{"engine/store", []string{"engine/ace", "engine/internal"}},
	{"engine/temporal", []string{"engine/ace", "engine/internal", "engine/store"}},
	{"engine/agents", []string{"engine/ace", "engine/internal", "engine/store", "engine/temporal"}},
	{"engine/tasks", []string{"engine/ace", "engine/internal", "engine/store", "engine/temporal",
		"engine/agents"}},
	{"engine/flow", []string{"engine/ace", "engine/internal", "engine/temporal", "engine/tasks"}},
	{"engine/trace", []string{"engine/ace", "engine/temporal", "engine/agents/price"}},
	{"engine/kind", []string{"engine/ace", "engine/temporal", "engine/agents", "engine/tasks", "engine/flow",
		"engine/learning/playbook", "engine/trace"}},
	{"engine/stepper", []string{"engine/ace", "engine/internal", "engine/kind", "engine/temporal"}},
	{"engine/learning", []string{"engine/ace", "engine/internal", "engine/store", "engine/temporal",
		"engine/agents", "engine/tasks"}},
	{"engine/workflows", []string{"engine/ace", "engine/temporal", "engine/agents", "engine/tasks",
		"engine/flow"}},
	{"engine", []string{"engine"}},
}

// TestImports checks the direction of imports by directory prefix.
func TestImports(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		own, may := layerOf(p.rel())
		for _, to := range p.Imports {
			rel, ours := strings.CutPrefix(to, "acescope/")
			target, _ := layerOf(rel)
			allowed := target == own || slices.ContainsFunc(may, func(m string) bool {
				return m == target || under(rel, m)
			})
			if ours && !allowed {
				t.Errorf("%s must not import %s", p.ImportPath, to)
			}
		}
		if own == "engine/ace" && slices.ContainsFunc(p.Imports, outsideStandardLibrary) {
			t.Errorf("%s must import the standard library only", p.ImportPath)
		}
	}
}

func outsideStandardLibrary(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return strings.Contains(first, ".")
}

func under(path, prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }

func layerOf(rel string) (prefix string, may []string) {
	for _, l := range layers {
		if under(rel, l.prefix) && len(l.prefix) > len(prefix) {
			prefix, may = l.prefix, l.may
		}
	}
	return prefix, may
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
