package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kballard/go-shellquote"
	"mvdan.cc/sh/v3/syntax"

	"acescope/engine/internal/plainjson"
)

// Call is a tool call as rules match it: with every name of the tool and with normalized arguments.
type Call struct {
	Names []string
	// Main is the main argument as the agent wrote it.
	Main string
	// Parts are what the call does, such as the commands of a shell line, each with its
	// equivalent spellings.
	Parts [][]string
	// Texts are further texts that a rule which denies or asks may match.
	Texts []string
	// Opaque reports that Parts may be incomplete.
	Opaque bool
}

// NormalizeArgs returns arguments as they are matched, recorded and executed: a JSON object
// without duplicate keys.
func NormalizeArgs(raw json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage("{}"), nil
	}
	var fields map[string]any
	if plainjson.Unmarshal(raw, &fields) != nil || fields == nil {
		return nil, errors.New("malformed arguments: use one JSON object")
	}
	return plainjson.Marshal(fields)
}

// NewCall describes a call with normalized arguments of a tool that the agent names. Relative
// paths are below dir.
func NewCall(dir, tool string, args json.RawMessage) Call {
	c := Call{Names: toolNames(tool)}
	var fields map[string]any
	if json.Unmarshal(args, &fields) != nil {
		c.Opaque = true
		return c
	}
	keys := mainArguments(fields)
	if len(keys) != 1 {
		c.Opaque, c.Texts = true, stringsOf(nil, fields)
		return c
	}
	c.Main, _ = fields[keys[0]].(string)
	c.Texts = []string{c.Main}
	switch strings.ToLower(keys[0]) {
	case "command":
		c.addShell()
	case "file_path", "path", "notebook_path":
		c.addPath(dir)
	default:
		c.Parts = [][]string{{c.Main}}
	}
	return c
}

// NewServedCall describes a call of a tool that the session serves. A program and its arguments,
// argv, is matched as the agent could have written it in command.
func NewServedCall(dir, tool string, args json.RawMessage, argv []string) Call {
	c := NewCall(dir, ToolPrefix+tool, args)
	if argv != nil {
		c.Parts, c.Opaque = [][]string{{shellquote.Join(argv...)}}, false
		c.Texts = append(c.Texts, strings.Join(argv, " "))
	}
	return c
}

// toolNames returns the name of a tool as shown, and how agents spell the tool of an MCP server:
// Claude Code and Codex mcp__server__tool, Gemini mcp_server_tool or server__tool, OpenCode
// server_tool. A tool of the session also has its bare name.
func toolNames(shown string) []string {
	names := []string{shown}
	rest, isMCP := strings.CutPrefix(shown, "mcp__")
	server, tool, ok := strings.Cut(rest, "__")
	if !isMCP || !ok {
		return names
	}
	names = append(names, "mcp_"+server+"_"+tool, server+"__"+tool, server+"_"+tool, server+"."+tool)
	if server == ToolServerName {
		names = append(names, tool)
	}
	return names
}

// mainArguments returns the keys with a main argument, in any case. A pattern is the main
// argument only without another one.
func mainArguments(fields map[string]any) (keys []string) {
	for _, names := range [][]string{{"command", "file_path", "path", "notebook_path", "url"}, {"pattern"}} {
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			text, _ := fields[key].(string)
			named := func(n string) bool { return strings.EqualFold(n, key) }
			if text != "" && slices.ContainsFunc(names, named) {
				keys = append(keys, key)
			}
		}
		if len(keys) > 0 {
			break
		}
	}
	return keys
}

// stringsOf appends all strings in a JSON value.
func stringsOf(to []string, v any) []string {
	switch v := v.(type) {
	case string:
		return append(to, v)
	case []any:
		for _, e := range v {
			to = stringsOf(to, e)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			to = stringsOf(to, v[key])
		}
	}
	return to
}

// addPath adds a path without "." and "..", as written and as an absolute path.
func (c *Call) addPath(dir string) {
	clean, absolute := filepath.Clean(c.Main), filepath.Clean(c.Main)
	if !filepath.IsAbs(absolute) {
		absolute = filepath.Join(dir, absolute)
	}
	c.Parts = [][]string{{clean, absolute}}
	if inside, err := filepath.Rel(dir, absolute); err == nil && filepath.IsLocal(inside) {
		c.Parts[0] = append(c.Parts[0], inside)
	}
}

// addShell adds each command of a shell line. The line is opaque if it cannot be parsed, or does
// more than run these commands, such as writing to a file.
func (c *Call) addShell() {
	file, err := syntax.NewParser().Parse(strings.NewReader(c.Main), "")
	if err != nil {
		c.Opaque = true
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			c.addCommand(n)
		case *syntax.Redirect:
			c.Opaque = c.Opaque || !isHarmless(n)
		case *syntax.BinaryCmd, *syntax.Block, *syntax.Subshell:
		case syntax.Command:
			c.Opaque = true
		}
		return true
	})
	c.Opaque = c.Opaque || len(c.Parts) == 0
}

// addCommand adds a command as written. Only rules that deny or ask match it without quotes too.
func (c *Call) addCommand(n *syntax.CallExpr) {
	var written strings.Builder
	if syntax.NewPrinter(syntax.SingleLine(true)).Print(&written, n) != nil {
		c.Opaque = true
		return
	}
	c.Parts = append(c.Parts, []string{written.String()})
	words := []string{}
	for _, w := range n.Args {
		words = append(words, plainWord(w.Parts))
	}
	c.Texts = append(c.Texts, strings.Join(words, " "))
}

// plainWord returns the text of a word without quotes, escapes and expansions.
func plainWord(parts []syntax.WordPart) (text string) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			text += escape.ReplaceAllString(p.Value, "$1")
		case *syntax.SglQuoted:
			text += p.Value
		case *syntax.DblQuoted:
			text += plainWord(p.Parts)
		}
	}
	return text
}

// escape matches a backslash and the character that it escapes.
var escape = regexp.MustCompile(`(?s)\\(.)`)

// descriptor matches the target of a redirection to an open file.
var descriptor = regexp.MustCompile(`^([0-9]+|-)$`)

// isHarmless reports whether a redirection opens no file.
func isHarmless(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.DplIn, syntax.DplOut:
		return descriptor.MatchString(r.Word.Lit())
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return true
	}
	return r.Word.Lit() == "/dev/null"
}

// recordedArgument returns the argument that the rules of [Input.policyDecision] match, or "".
func recordedArgument(args json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(args, &fields) != nil {
		return ""
	}
	for _, key := range []string{"command", "file_path", "path", "notebook_path", "url", "pattern"} {
		var text string
		if json.Unmarshal(fields[key], &text) == nil && text != "" {
			return text
		}
	}
	return ""
}
