// Command words reports banned words in comments, strings and identifiers of Go files. It exits 1 if it finds
// any.
//
//	go run ./docs/dev/words engine theme tui
//
// The words are those that CONTRIBUTING.md (Language) replaces. Test data is not read.
package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// banned are phrases, as case-insensitive regular expressions, with what to write instead.
var banned = []struct{ phrase, instead string }{
	{`\b(whoever|somebody|nobody|someone)\b`, "the noun: user, worker, caller"},
	{`\banew\b`, "again"},
	{`\bdearest\b`, "most expensive"},
	{`\bheirs?\b`, "successor"},
	{`\b(is|are|was|were|has) none\b|\bof none\b|\bwhere there is none\b`, "the noun, or the empty value"},
	{`\bunsealed\b|\bsealed\b`, "encoded payload"},
	{`\bgo(es|ne)? on (as|with)\b`, "continues as new; continues with"},
	{`\bhow manieth\b`, "number"},
	{`\b(cancelled|cancelling|colour|behaviour|labelled|unlabelled)\b`, "US spelling"},
	{`\btells whether\b`, "reports whether"},
	{`\bthere is no (home|way)\b`, "a sentence with the noun as subject"},
}

// allowed are texts that contain a banned phrase for a reason: names of the contract and of formats.
var allowed = []string{
	`"cancelled"`,             // status of a task run in document 001
	"skills cancelled c",      // the same, in a test
	"Someone",                 // a generated problem
	"operation was cancelled", // the message of an agent's CLI
	"notifications/cancelled", // method of MCP
}

func main() {
	patterns := make([]*regexp.Regexp, len(banned))
	for i, b := range banned {
		patterns[i] = regexp.MustCompile(`(?i)` + b.phrase)
	}
	found := 0
	for _, dir := range os.Args[1:] {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return filepath.SkipDir
			case d.IsDir() || filepath.Ext(path) != ".go":
				return nil
			}
			n, err := check(path, patterns)
			found += n
			return err
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, "words:", err)
			os.Exit(2)
		}
	}
	if found > 0 {
		fmt.Printf("%d banned words; see CONTRIBUTING.md, Language\n", found)
		os.Exit(1)
	}
}

// check prints the banned words in the comments and strings of a file and returns their number.
func check(path string, patterns []*regexp.Regexp) (found int, err error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	files := token.NewFileSet()
	file := files.AddFile(path, -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return found, nil
		}
		if tok != token.COMMENT && tok != token.STRING {
			continue
		}
		for i, p := range patterns {
			for _, at := range p.FindAllStringIndex(text, -1) {
				if slices.ContainsFunc(allowed, func(a string) bool { return strings.Contains(text, a) }) {
					continue
				}
				found++
				fmt.Printf("%s: %q: write %s\n", files.Position(pos+token.Pos(at[0])), text[at[0]:at[1]],
					banned[i].instead)
			}
		}
	}
}
