package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/kballard/go-shellquote"

	"acescope/cmd/acescope/internal/cli"
)

var (
	// hint is a command in the text of a literal: "acescope show %s --calls".
	hint = regexp.MustCompile("[\"`](acescope [a-z][^\"`]*)[\"`]")
	// verb is a format or a placeholder.
	verb = regexp.MustCompile(`%(\[\d\])?[sdq]`)
)

// Every command that a message names exists with its flags. One with arguments, or that the message says to
// run, has as many arguments as the command takes.
func TestHints(t *testing.T) {
	found := 0
	for _, dir := range []string{"../../cmd/acescope", "../../sources", "../../views", "../../tui",
		"../../engine"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, text := range literals(t, path) {
				for _, at := range hint.FindAllStringSubmatchIndex(text, -1) {
					found++
					command := verb.ReplaceAllString(text[at[2]:at[3]], "1")
					if why := mistake(command, strings.HasSuffix(text[:at[0]], "run ")); why != "" {
						t.Errorf("%s: %q: %s", path, command, why)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 60 {
		t.Errorf("only %d commands found", found)
	}
}

// literals returns the strings of a file, with those joined that a + joins.
func literals(t *testing.T, path string) (all []string) {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var value func(ast.Expr) string
	value = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BasicLit:
			text, _ := strconv.Unquote(e.Value)
			return text
		case *ast.BinaryExpr:
			return value(e.X) + value(e.Y)
		}
		return "x"
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			all = append(all, value(n))
			return false
		case *ast.BasicLit:
			all = append(all, value(n))
		}
		return true
	})
	return all
}

// mistake returns why a command line is wrong, or "".
func mistake(line string, whole bool) string {
	words, err := shellquote.Split(line)
	if err != nil {
		return err.Error()
	}
	cmd, rest, err := root(&cli.App{}).Find(words[1:])
	if err != nil {
		return err.Error()
	}
	if cmd.Name() == "acescope" && words[1] != "help" {
		return "no such command"
	}
	err = cmd.ParseFlags(rest)
	if err != nil && !whole { // the text names a flag without its value
		err = cmd.ParseFlags(append(rest, "1"))
	}
	if err != nil {
		return err.Error()
	}
	args := cmd.Flags().Args()
	if cmd.HasSubCommands() && len(args) > 0 && cmd.Args == nil {
		return "no such command"
	}
	if !whole && len(args) == 0 || cmd.Args == nil {
		return ""
	}
	if err := cmd.Args(cmd, args); err != nil {
		return err.Error()
	}
	return ""
}
