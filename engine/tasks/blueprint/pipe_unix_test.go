//go:build unix

package blueprint

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestIrregularFiles checks that reading a pipe or a directory fails without blocking.
func TestIrregularFiles(t *testing.T) {
	library := t.TempDir()
	dir := put(t, library, "pipe", simple("pipe"))
	if err := syscall.Mkfifo(filepath.Join(dir, PromptFile), 0o600); err != nil {
		t.Skip("no named pipes: ", err)
	}
	if _, err := Read(dir); err == nil ||
		!strings.Contains(err.Error(), "agent.system-prompt.md: is not a regular file") {
		t.Errorf("%v", err)
	}
	dir = put(t, library, "directory", simple("directory"))
	if err := os.Mkdir(filepath.Join(dir, ServersFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil ||
		!strings.Contains(err.Error(), "agent.mcp.json: is not a regular file") {
		t.Errorf("%v", err)
	}
	if _, err := Read(filepath.Join(library, "missing")); err == nil ||
		!strings.Contains(err.Error(), "does not exist") {
		t.Errorf("%v", err)
	}
	if _, err := (Library{Dirs: []string{filepath.Join(dir,
		AgentFile)}}).List(context.Background()); err == nil {
		t.Error("a file is a library")
	}
}
