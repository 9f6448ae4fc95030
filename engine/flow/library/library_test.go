package library

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"acescope/engine/flow"
)

func TestShipped(t *testing.T) {
	all, err := Library{}.List()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range all {
		if e.Err != nil {
			t.Errorf("%s:\n%v", e.Name, e.Err)
			continue
		}
		names = append(names, e.Name)
		if e.Flow.Description == "" || e.Place != Shipped {
			t.Errorf("%+v", e)
		}
		for _, in := range e.Flow.Inputs {
			if in.Description == "" {
				t.Errorf("%s: the input %s has no description", e.Name, in.Name)
			}
		}
	}
	if got := strings.Join(names, " "); got != "ace-loop code-review nightly-evaluation package-build" {
		t.Error(got)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"mine.yaml":      "flow: code-review\nsteps: [{wait: 1s}]\n",
		"bad.yaml":       "flow: bad\nsteps: []\n",
		"sub/inner.yaml": "flow: inner\nsteps: [{id: p, provider: x, prompt: {file: p.md}}]\n",
		"sub/p.md":       "Say ${{ run.dir }}",
		"outer.yaml":     "flow: outer\nsteps: [{id: s, flow: sub/inner.yaml}]\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := Library{Dirs: []string{dir}}
	if e, err := l.Find("code-review"); err != nil || e.Place != filepath.Join(dir, "mine.yaml") {
		t.Errorf("a user's flow does not take precedence: %+v, %v", e.Place, err)
	}
	e, err := l.Find("outer")
	if got := strings.Join(e.Source.Names(), " "); err != nil || got != "outer.yaml sub/inner.yaml sub/p.md" {
		t.Errorf("%s, %v", got, err)
	}
	var problems flow.Problems
	if _, err := l.Find("bad"); !errors.As(err, &problems) {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"code-reviw": "did you mean code-review?", "nothing": "flows are ", "./no.yaml": "the file does not exist",
	} {
		if _, err := l.Find(name); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSecrets: a file that holds a secret is refused at its place, because each run records it.
func TestSecrets(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.yaml")
	key := "sk-ant-api03-" + strings.Repeat("aB3dE5", 16)
	text := "flow: a\nsteps:\n  - {id: x, run: [curl], env: {KEY: " + key + "}}\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Library{}.Find(name)
	var problems flow.Problems
	if !errors.As(err, &problems) ||
		!strings.HasPrefix(err.Error(), "a.yaml:3:37: the text looks like a secret") {
		t.Errorf("%v", err)
	}
}
