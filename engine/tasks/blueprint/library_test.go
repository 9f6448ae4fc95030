package blueprint

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"acescope/engine/tasks/run"
)

func simple(name string) files {
	return files{AgentFile: `{"name": "` + name + `", "description": "in ` + name + `"}`}
}

// TestLibrary checks the order, the precedence and the errors of a library.
func TestLibrary(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	put(t, a, "zeta", simple("zeta"))
	put(t, a, "both", simple("both"))
	put(t, a, "broken", files{AgentFile: `{`})
	put(t, b, "both", files{AgentFile: `{"name": "both", "description": "later"}`})
	put(t, b, "alpha", simple("alpha"))
	put(t, b, "broken", simple("broken"))
	put(t, b, "no-blueprint", files{"readme": "x"})
	put(t, b, ".hidden", simple(".hidden"))
	put(t, b, "bad name", simple("bad name"))
	if err := os.WriteFile(filepath.Join(b, "README.md"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := Library{Dirs: []string{filepath.Join(a, "missing"), a, b, a}}
	all, err := l.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range all {
		got = append(got, d.Name+"|"+filepath.Base(filepath.Dir(d.Path))+"|"+d.Error)
		if d.Tags == nil {
			t.Errorf("%s: tags are null", d.Name)
		}
	}
	an, bn := filepath.Base(a), filepath.Base(b)
	want := []string{"alpha|" + bn + "|", "bad name|" + bn +
		`|agent.json:1:10: $.name: "bad name" is not a valid name`, "both|" + an + "|", "both|" + bn +
		"|shadowed by " + filepath.Join(a, "both"),
		"broken|" + an + "|agent.json:1:1: is not JSON: unexpected end", "broken|" + bn + "|shadowed by",
		"zeta|" + an + "|"}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) || strings.HasSuffix(want[i], "|") && got[i] != want[i] {
			t.Errorf("%s\n wants %s", got[i], want[i])
		}
	}
	if one, err := l.Load("both"); err != nil || one.Description != "in both" ||
		one.Dir != filepath.Join(a, "both") {
		t.Errorf("%+v, %v", one, err)
	}
	// The first is used, even if it is broken.
	var p *Problems
	if _, err := l.Load("broken"); !errors.As(err, &p) ||
		!strings.HasPrefix(err.Error(), "blueprint broken cannot be used: agent.json:1:1: ") {
		t.Errorf("%v", err)
	}
	if _, err := l.Load("alhpa"); !errors.Is(err, run.ErrNoBlueprint) ||
		!strings.HasSuffix(err.Error(), "did you mean alpha?") {
		t.Errorf("%v", err)
	}
	if _, err := l.Load("no-blueprint"); !errors.Is(err, run.ErrNoBlueprint) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.List(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestNames checks that no name leads out of the library.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "outside", simple("outside"))
	library := filepath.Join(dir, "library")
	put(t, library, "inside", simple("inside"))
	l := Library{Dirs: []string{library}}
	for _, name := range []string{"", ".", "..", "../outside", "inside/../../outside", "/etc", "inside/",
		"./inside", "a\x00b", "inside\x00", "a b", "-x", "..x", "a..b", "x\n", strings.Repeat("x", 101),
		"ünder"} {
		if _, err := l.Load(name); !errors.Is(err, run.ErrBadRequest) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := l.Load("inside"); err != nil {
		t.Error(err)
	}
}

// TestLinks checks that links within the library are followed, and others are refused.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	outside := put(t, dir, "away", simple("away"))
	library := filepath.Join(dir, "library")
	inside := put(t, library, "linked", files{AgentFile: `{"name": "linked", "description": "d"}`,
		"prompts.md": "P\n"})
	link := func(to, at string) {
		if err := os.Symlink(to, at); err != nil {
			t.Skip("no symbolic links: ", err)
		}
	}
	l := Library{Dirs: []string{library}}
	link("prompts.md", filepath.Join(inside, PromptFile))
	link("linked/prompts.md", filepath.Join(library, "a-file"))
	if b, err := l.Load("linked"); err != nil || b.SystemPrompt != "P\n" {
		t.Errorf("%+v, %v", b, err)
	}
	link(outside, filepath.Join(library, "away"))
	link("../away", filepath.Join(library, "away2"))
	link("/nowhere", filepath.Join(library, "gone"))
	for _, name := range []string{"away", "away2", "gone"} {
		if _, err := l.Load(name); err == nil ||
			!strings.Contains(err.Error(), "is a broken link, or a link out of its directory") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all, err := l.List(context.Background()); err != nil || len(all) != 4 {
		t.Errorf("%v, %v", all, err)
	}
	stolen := put(t, library, "stolen", simple("stolen"))
	link(filepath.Join(outside, AgentFile), filepath.Join(stolen, PromptFile))
	if _, err := l.Load("stolen"); err == nil ||
		!strings.Contains(err.Error(),
			"agent.system-prompt.md: is a broken link, or a link out of the blueprint's directory") {
		t.Errorf("%v", err)
	}
}

// runs runs the script of a new blueprint with parameters by its strategy.
func runs(t *testing.T, b Blueprint, want string) {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell here")
	}
	const params = `{"greeting":"hello","times":1}`
	cmd := exec.Command(sh, filepath.Join(b.Dir, CommandFile))
	switch b.Strategy {
	case run.StdinJSON:
		cmd.Stdin = strings.NewReader(params)
	case run.Args:
		cmd.Args = append(cmd.Args, "--greeting=hello", "--times=1")
	case run.ArgsSpaced:
		cmd.Args = append(cmd.Args, "--greeting", "hello", "--times", "1")
	case run.Env:
		cmd.Env = append(os.Environ(), run.EnvName("greeting")+"=hello", run.EnvName("times")+"=1")
	case run.File:
		file := filepath.Join(t.TempDir(), "p.json")
		if err := os.WriteFile(file, []byte(params), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd.Args = append(cmd.Args, file)
	}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("%s writes %s, %v", b.Name, out, err)
	}
}

// TestNew checks that a new blueprint is valid, and never overwrites anything.
func TestNew(t *testing.T) {
	library := filepath.Join(t.TempDir(), "a", "agents")
	l := Library{Dirs: []string{library}}
	for _, c := range []struct {
		name     string
		of       run.BlueprintType
		strategy run.Strategy
	}{{"helper", run.Agent, ""}, {"stdin", run.Deterministic, ""}, {"args", run.Deterministic, run.Args},
		{"spaced", run.Deterministic, run.ArgsSpaced}, {"env", run.Deterministic, run.Env},
		{"file", run.Deterministic, run.File}} {
		dir, err := New(library, c.name, c.of, c.strategy)
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Load(c.name)
		if err != nil || b.Dir != dir || b.Type != c.of || len(b.Notes) != 0 {
			t.Errorf("%s: %+v, %v", c.name, b, err)
		}
		if c.of == run.Deterministic {
			if got, err := b.Check([]byte(`{}`)); err != nil ||
				string(got) != `{"greeting":"hello","times":1}` {
				t.Errorf("%s: %s, %v", c.name, got, err)
			}
			runs(t, b, map[run.Strategy]string{run.StdinJSON: `{"greeting":"hello","times":1}`,
				run.Args: "--greeting=hello\n--times=1", run.Env: "hello\n1",
				run.ArgsSpaced: "--greeting\nhello\n--times\n1",
				run.File:       `{"greeting":"hello","times":1}`}[b.Strategy])
		}
		if _, err := New(library, c.name, c.of, c.strategy); !errors.Is(err, ErrExists) {
			t.Errorf("%s again: %v", c.name, err)
		}
	}
	for _, c := range []struct {
		name     string
		of       run.BlueprintType
		strategy run.Strategy
	}{{"../x", run.Agent, ""}, {"x", "other", ""}, {"x", run.Agent, run.Args},
		{"x", run.Deterministic, "other"}} {
		if _, err := New(library, c.name, c.of, c.strategy); !errors.Is(err, run.ErrBadRequest) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	entries, err := os.ReadDir(library)
	if err != nil || len(entries) != 6 {
		t.Errorf("%v, %v", entries, err)
	}
}
