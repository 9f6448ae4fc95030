package console

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"acescope/tui"
)

// known answers what the fields of the form can be.
type known struct{ LaunchActions }

func (known) Choices(_ context.Context, field string) []string {
	return map[string][]string{"dataset": {"experiment:e"}, "model": {"claude", "gpt"},
		"model.anthropic": {"claude"}}[field]
}

// TestLaunchCompletion checks that fields offer what fits the other fields.
func TestLaunchCompletion(t *testing.T) {
	l := launch{Launcher: &Launcher{Context: t.Context(), Actions: known{}}, seen: []string{"gpt", "mine"}}
	for provider, want := range map[string][]string{
		"": {"claude", "gpt", "mine"}, "anthropic": {"claude", "mine"},
	} {
		if got := l.models("provider")("", tui.Values{"provider": provider}); !slices.Equal(got, want) {
			t.Errorf("models of %q: %q", provider, got)
		}
	}
	dir := t.TempDir() + string(filepath.Separator)
	for _, name := range []string{"train.jsonl", "notes.md"} {
		if err := os.WriteFile(dir+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir+"more", 0o700); err != nil {
		t.Fatal(err)
	}
	want := []string{"experiment:e", dir + "more" + string(filepath.Separator), dir + "train.jsonl"}
	if got := l.datasets(dir, nil); !slices.Equal(got, want) {
		t.Errorf("data sets: %q, want %q", got, want)
	}
}
