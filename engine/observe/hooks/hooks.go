// Package hooks puts acescope's hook into the settings of Claude Code, and takes it out
// again. It edits the text of the file: what is there stays as it is, to the byte, in its
// order. It does no I/O and imports nothing of the project.
package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// Name is the program whose hooks these are, wherever it lies.
const Name = "acescope-hook"

// timeoutSeconds is after how long an agent gives the hook up. It takes milliseconds; and
// without a time-out of its own, the hook of a session's end is cut off soon.
const timeoutSeconds = 5

// Events lists the hooks that are installed.
func Events() []string {
	return []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest",
		"SubagentStart", "SubagentStop", "Stop", "StopFailure", "PreCompact", "Notification", "SessionEnd"}
}

// Command is the line that runs the hook at a path. Whatever becomes of the program, the
// line says nothing and succeeds.
func Command(path string) string {
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "' 2>/dev/null || :"
}

// ErrNotPlain means that the settings are no plain JSON object, and are left alone.
var ErrNotPlain = errors.New("not plain JSON")

// Check tells whether settings can be edited; the error says why not, and where.
func Check(settings []byte) error {
	if len(bytes.TrimSpace(settings)) == 0 {
		return nil
	}
	var any json.RawMessage
	var syntax *json.SyntaxError
	if err := json.Unmarshal(settings, &any); errors.As(err, &syntax) {
		line := 1 + bytes.Count(settings[:max(min(int(syntax.Offset)-1, len(settings)), 0)], []byte{'\n'})
		return fmt.Errorf("%w (line %d: %w); comments cannot be kept, so nothing was changed", ErrNotPlain, line, err)
	}
	root := gjson.ParseBytes(settings)
	if !root.IsObject() {
		return fmt.Errorf("%w: it is no object, so nothing was changed", ErrNotPlain)
	}
	seen := map[string]bool{}
	var err error
	root.ForEach(func(key, _ gjson.Result) bool {
		if seen[key.String()] {
			err = fmt.Errorf("%w: it has %q twice, so nothing was changed", ErrNotPlain, key.String())
		}
		seen[key.String()] = true
		return err == nil
	})
	if hooks := root.Get("hooks"); err == nil && hooks.Exists() && !hooks.IsObject() {
		return fmt.Errorf("%w: its hooks are no object, so nothing was changed", ErrNotPlain)
	} else if err == nil {
		hooks.ForEach(func(event, groups gjson.Result) bool {
			if !groups.IsArray() {
				err = fmt.Errorf("%w: hooks.%s is no list, so nothing was changed", ErrNotPlain, event.String())
			}
			return err == nil
		})
	}
	return err
}

// Install gives the settings with the hook in them, at each of its events once. Settings
// that have it so already come back as they are.
func Install(settings []byte, path string) ([]byte, error) {
	if err := Check(settings); err != nil {
		return nil, err
	}
	if has(settings, Command(path)) {
		return settings, nil
	}
	settings, err := Uninstall(settings) // one that lies elsewhere
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(settings)) == 0 {
		settings = []byte("{}\n")
	}
	command, err := plain(Command(path))
	if err != nil {
		return nil, err
	}
	for _, event := range Events() {
		settings = add(settings, event, fmt.Sprintf(`{"hooks": [{"type": "command", "command": %s, "timeout": %d}]}`, command, timeoutSeconds))
	}
	return settings, nil
}

// plain is a text as JSON, with <, > and & as they are.
func plain(text string) (string, error) {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(text)
	return strings.TrimSpace(out.String()), err
}

// has tells whether each event has the command, and nothing else is ours.
func has(settings []byte, command string) bool {
	at := Installed(settings)
	for _, event := range Events() {
		if at[event] != command {
			return false
		}
	}
	return len(at) == len(Events())
}

// Installed is the command of ours at each event that has one.
func Installed(settings []byte) map[string]string {
	found := map[string]string{}
	if !gjson.ValidBytes(settings) {
		return found
	}
	each(settings, func(event string, _, _ gjson.Result, hook gjson.Result, _ int) bool {
		found[event] = hook.Get("command").String()
		return true
	})
	return found
}

func ours(hook gjson.Result) bool { return strings.Contains(hook.Get("command").String(), Name) }

// each calls fn for every hook of ours: of which event, in which list of groups, group, and
// at which place in it.
func each(settings []byte, fn func(event string, groups, group, hook gjson.Result, at int) bool) {
	more := true
	gjson.GetBytes(settings, "hooks").ForEach(func(event, groups gjson.Result) bool {
		groups.ForEach(func(_, group gjson.Result) bool {
			for i, hook := range group.Get("hooks").Array() {
				if more && ours(hook) {
					more = fn(event.String(), groups, group, hook, i)
				}
			}
			return more
		})
		return more
	})
}

// Uninstall gives the settings without any hook of ours, and without the lists that would
// be left empty.
func Uninstall(settings []byte) ([]byte, error) {
	if err := Check(settings); err != nil {
		return nil, err
	}
	for {
		next := removeOne(settings)
		if next == nil {
			return settings, nil
		}
		settings = next
	}
}

// removeOne takes one hook of ours out; nil where there is none.
func removeOne(settings []byte) (next []byte) {
	each(settings, func(event string, groups, group, _ gjson.Result, at int) bool {
		hooks := group.Get("hooks")
		switch {
		case len(hooks.Array()) > 1:
			next = without(settings, element(hooks, at))
		case len(groups.Array()) > 1:
			next = without(settings, span{group.Index, group.Index + len(group.Raw)})
		case len(gjson.GetBytes(settings, "hooks").Map()) > 1:
			next = without(settings, member(gjson.GetBytes(settings, "hooks"), event))
		default:
			next = without(settings, member(gjson.ParseBytes(settings), "hooks"))
		}
		return false
	})
	return next
}
