package admin_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestGoSnippet compiles the Go code of the contract page.
func TestGoSnippet(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command is missing")
	}
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/reference/contract.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != 1 {
		t.Fatalf("%d blocks of Go code", len(blocks))
	}
	source := fmt.Sprintf(`package snippet

import (
	"context"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

func run(workflow.Context, map[string]any) (map[string]any, error)       { return nil, nil }
func generate(context.Context, map[string]any) (map[string]any, error) { return nil, nil }

func Serve() error {
%s	return err
}
`, blocks[0][1])
	file := filepath.Join(t.TempDir(), "snippet.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root,
		"docs/snippet/snippet.go"): file}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".json", overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", file+".json", "./docs/snippet")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
