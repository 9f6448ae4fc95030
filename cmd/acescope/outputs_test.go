package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// terminalUsers are the files that may use the terminal otherwise than by [cli.Output]: main makes the
// outputs, an editor is a program of the user's, standard output of the tool server has its protocol, and the
// console draws with Bubble Tea.
var terminalUsers = map[string][]string{
	"cmd/acescope/main.go":                   {"os.Stdout", "os.Stderr"},
	"cmd/acescope/internal/cli/editor.go":    {"os.Stdout", "os.Stderr"},
	"cmd/acescope/internal/agents/mcp.go":    {"os.Stdout", "os.Stderr"},
	"cmd/acescope/internal/admin/console.go": {"tea.NewProgram"},
	"engine/internal/memory/pages_linux.go":  {"unix.Stdout"},      // looks whether it is a terminal
	"tui/copy.go":                            {"tea.SetClipboard"}, // encodes the text
	"tui/model.go":                           {"tea.ExecProcess"},
}

// terminalUses are the ways to write to the terminal, besides names of standard functions that print.
var terminalUses = []string{"os.Stdout", "os.Stderr", "os.NewFile", "syscall.Stdout", "syscall.Stderr",
	"unix.Stdout", "unix.Stderr", "fmt.Print", "fmt.Printf", "fmt.Println", "tea.NewProgram", "tea.Printf",
	"tea.Println", "tea.Raw", "tea.SetClipboard", "tea.SetPrimaryClipboard", "tea.Exec", "tea.ExecProcess",
	"ansi.Execute", ".print", ".println"}

// TestOnlyOutputsWrite checks that the program writes to the terminal by [cli.Output] and the console only.
func TestOnlyOutputsWrite(t *testing.T) {
	t.Parallel()
	found := map[string][]string{}
	root := filepath.Join("..", "..")
	for _, dir := range []string{"cmd/acescope", "engine", "sources", "theme", "tui", "views"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || strings.HasSuffix(d.Name(), "test")):
				return filepath.SkipDir
			case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			name, err := filepath.Rel(root, path)
			if err == nil {
				found[filepath.ToSlash(name)], err = usesOf(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, uses := range found {
		for _, use := range uses {
			if !slices.Contains(terminalUsers[name], use) {
				t.Errorf("%s uses %s; write to cli.App.Out or cli.App.Err", name, use)
			}
		}
	}
	for name, uses := range terminalUsers {
		for _, use := range uses {
			if !slices.Contains(found[name], use) {
				t.Errorf("%s does not use %s", name, use)
			}
		}
	}
}

// usesOf returns the terminal uses of a file.
func usesOf(path string) (uses []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	add := func(use string) {
		if slices.Contains(terminalUses, use) {
			uses = append(uses, use)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok {
				add(of.Name + "." + n.Sel.Name)
			}
		case *ast.CallExpr:
			if name, ok := n.Fun.(*ast.Ident); ok {
				add("." + name.Name)
			}
		}
		return true
	})
	return uses, nil
}
