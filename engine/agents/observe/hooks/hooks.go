// Package hooks installs acescope's hook in the settings of Claude Code and uninstalls it. It
// edits the text, so everything else in the settings stays byte for byte. It does no I/O and
// imports no package of the project.
package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Name is the name of the hook program, which identifies acescope's hooks in any directory.
const Name = "acescope-hook"

// timeoutSeconds is the time limit of the hook, which takes milliseconds. Without an explicit
// time limit an agent cuts the hook at the end of a session short.
const timeoutSeconds = 5

// Events returns the events with a hook.
func Events() []string {
	return []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure",
		"PermissionRequest",
		"SubagentStart", "SubagentStop", "Stop", "StopFailure", "PreCompact", "Notification", "SessionEnd"}
}

// Command returns the shell command that runs the hook at path. It prints nothing and succeeds
// even if the program is missing.
func Command(path string) string {
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "' 2>/dev/null || :"
}

// ErrNotPlain means that the settings are not a plain JSON object. They are not changed.
var ErrNotPlain = errors.New("not plain JSON")

// splitBOM returns the byte order mark, if any, and the rest.
func splitBOM(settings []byte) (bom, rest []byte) {
	const mark = "\ufeff"
	if rest, ok := bytes.CutPrefix(settings, []byte(mark)); ok {
		return []byte(mark), rest
	}
	return nil, settings
}

// Check returns why the settings cannot be edited, or nil.
func Check(settings []byte) error {
	_, settings = splitBOM(settings)
	if len(bytes.TrimSpace(settings)) == 0 {
		return nil
	}
	var value json.RawMessage
	err := json.Unmarshal(settings, &value)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		line := 1 + bytes.Count(settings[:max(min(int(syntax.Offset)-1, len(settings)), 0)], []byte{'\n'})
		return fmt.Errorf("%w (line %d: %w); comments are not supported; nothing was changed", ErrNotPlain,
			line, err)
	}
	root := gjson.ParseBytes(settings)
	if !root.IsObject() {
		return notPlain("the settings are not an object")
	}
	seen := map[string]bool{}
	for _, key := range root.Get("@keys").Array() {
		if seen[key.String()] {
			return notPlain("duplicate key %q", key.String())
		}
		seen[key.String()] = true
	}
	hooks := root.Get("hooks")
	if hooks.Exists() && !hooks.IsObject() {
		return notPlain("hooks is not an object")
	}
	err = nil
	hooks.ForEach(func(event, groups gjson.Result) bool {
		if !groups.IsArray() {
			err = notPlain("hooks.%s is not a list", event)
		}
		return err == nil
	})
	return err
}

func notPlain(format string, args ...any) error {
	return fmt.Errorf("%w: %s; nothing was changed", ErrNotPlain, fmt.Sprintf(format, args...))
}

// Install returns the settings with the hook once at each of its events. Settings that already
// have it are returned unchanged.
func Install(settings []byte, path string) ([]byte, error) {
	if isInstalled(settings, Command(path)) {
		return settings, Check(settings)
	}
	settings, err := Uninstall(settings) // a hook at another path
	if err != nil {
		return nil, err
	}
	bom, settings := splitBOM(settings)
	if len(bytes.TrimSpace(settings)) == 0 {
		settings = []byte("{}\n")
	}
	var command strings.Builder
	enc := json.NewEncoder(&command)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(Command(path)); err != nil {
		return nil, err
	}
	group := fmt.Sprintf(`{"hooks": [{"type": "command", "command": %s, "timeout": %d}]}`,
		strings.TrimSpace(command.String()), timeoutSeconds)
	for _, event := range Events() {
		settings = addGroup(settings, event, group)
	}
	return slices.Concat(bom, settings), nil
}

// isInstalled reports whether each of the [Events] has the command, and no other event has an acescope hook.
func isInstalled(settings []byte, command string) bool {
	installed := Installed(settings)
	for _, event := range Events() {
		if installed[event] != command {
			return false
		}
	}
	return len(installed) == len(Events())
}

// Installed returns the commands of acescope's hooks by event.
func Installed(settings []byte) map[string]string {
	found := map[string]string{}
	_, settings = splitBOM(settings)
	if !gjson.ValidBytes(settings) {
		return found
	}
	each(settings, func(h hook) bool {
		found[h.event] = h.command
		return true
	})
	return found
}

// hook is a hook of acescope in the settings.
type hook struct {
	event, command string
	groups, group  gjson.Result // the list of groups of the event, and the group of the hook
	index          int          // in the group
}

// each calls fn for each hook of acescope until fn returns false.
func each(settings []byte, fn func(hook) bool) {
	more := true
	gjson.GetBytes(settings, "hooks").ForEach(func(event, groups gjson.Result) bool {
		groups.ForEach(func(_, group gjson.Result) bool {
			for i, h := range group.Get("hooks").Array() {
				command := h.Get("command").String()
				if more && strings.Contains(command, Name) {
					more = fn(hook{event.String(), command, groups, group, i})
				}
			}
			return more
		})
		return more
	})
}

// Uninstall returns the settings without acescope's hooks and without lists that would become empty.
func Uninstall(settings []byte) ([]byte, error) {
	if err := Check(settings); err != nil {
		return nil, err
	}
	bom, settings := splitBOM(settings)
	for {
		next := removeOne(settings)
		if next == nil {
			return slices.Concat(bom, settings), nil
		}
		settings = next
	}
}

// removeOne removes one hook of acescope. It returns nil if the settings have none.
func removeOne(settings []byte) (next []byte) {
	each(settings, func(h hook) bool {
		all := gjson.GetBytes(settings, "hooks")
		hooks := h.group.Get("hooks").Array()
		switch {
		case len(hooks) > 1:
			next = without(settings, spanOf(hooks[h.index]))
		case len(h.groups.Array()) > 1:
			next = without(settings, spanOf(h.group))
		case len(all.Map()) > 1:
			next = without(settings, member(all, h.event))
		default:
			next = without(settings, member(gjson.ParseBytes(settings), "hooks"))
		}
		return false
	})
	return next
}

// span is a range of a text.
type span struct{ from, to int }

func spanOf(v gjson.Result) span { return span{v.Index, v.Index + len(v.Raw)} }

const space = " \t\r\n"

// addGroup appends a group to the list of an event.
func addGroup(settings []byte, event, group string) []byte {
	root := gjson.ParseBytes(settings)
	hooks := root.Get("hooks")
	groups := hooks.Get(event)
	list := `"` + event + `": [` + newline(settings, 3) + group + newline(settings, 2) + `]`
	switch {
	case !hooks.Exists():
		from := len(settings) - len(bytes.TrimLeft(settings, space))
		whole := span{from, from + len(bytes.TrimSpace(settings))}
		return insert(settings, whole, `"hooks": {`+newline(settings, 2)+list+newline(settings, 1)+`}`, 1)
	case !groups.Exists():
		return insert(settings, spanOf(hooks), list, 2)
	}
	return insert(settings, spanOf(groups), group, 3)
}

// newline returns a line break and the indentation of a depth, in the style of the settings.
func newline(settings []byte, depth int) string {
	indent := "  "
	_, rest, ok := bytes.Cut(settings, []byte("\n"))
	if n := len(rest) - len(bytes.TrimLeft(rest, " \t")); ok && n > 0 && n < len(rest) {
		indent = string(rest[:n])
	}
	return "\n" + strings.Repeat(indent, depth)
}

// insert appends text to the elements of an object or list.
func insert(settings []byte, in span, text string, depth int) []byte {
	end := in.to - 1 // its closing bracket
	last := len(bytes.TrimRight(settings[:end], space))
	if last == in.from+1 { // it is empty
		lines := newline(settings, depth) + text + newline(settings, depth-1)
		return slices.Concat(settings[:last], []byte(lines), settings[end:])
	}
	return slices.Concat(settings[:last], []byte(","+newline(settings, depth)+text), settings[last:])
}

// member returns the range of an object's member, including its key.
func member(object gjson.Result, key string) (found span) {
	object.ForEach(func(k, v gjson.Result) bool {
		if k.String() == key {
			found = span{k.Index, v.Index + len(v.Raw)}
		}
		return found.to == 0
	})
	return found
}

// without removes a range and the comma that separates it.
func without(settings []byte, part span) []byte {
	before := bytes.TrimRight(settings[:part.from], space)
	after := bytes.TrimLeft(settings[part.to:], space)
	switch {
	case bytes.HasSuffix(before, []byte(",")):
		return slices.Concat(before[:len(before)-1], settings[part.to:])
	case bytes.HasPrefix(after, []byte(",")):
		return slices.Concat(settings[:part.from], bytes.TrimLeft(after[1:], space))
	}
	return slices.Concat(before, after)
}
