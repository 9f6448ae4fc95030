package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// starts matches calls that start a program.
var starts = regexp.MustCompile(
	`\b(exec\.Command(Context)?\(|exec\.Cmd\{|os\.StartProcess\(|syscall\.(Exec|ForkExec)\(|` +
		`process\.(Start|Run)\()`)

// TestProgramsAreListed checks that docs/reference/programs.md names exactly the files that start programs.
func TestProgramsAreListed(t *testing.T) {
	t.Parallel()
	const root, page = "../..", "docs/reference/programs.md"
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+\\.go)`").FindAllStringSubmatch(string(text), -1) {
		listed[m[1]] = true
	}
	found := map[string]bool{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if starts.Match(source) {
			rel, _ := filepath.Rel(root, path)
			found[filepath.ToSlash(rel)] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	got, want := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(listed))
	if len(got) == 0 || !slices.Equal(got, want) {
		t.Errorf("files that start programs:\n%s\n%s names:\n%s", strings.Join(got, "\n"), page,
			strings.Join(want, "\n"))
	}
}
