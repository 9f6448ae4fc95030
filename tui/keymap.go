package tui

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"acescope/theme"
	"acescope/tui/text"
)

// quitKey works everywhere, dialogs included, and cannot be mapped to another action.
const quitKey = "ctrl+c"

// keymap decides which binding a key runs: first those of the focused view, then the global
// ones.
type keymap struct {
	global   []Binding
	mapped   map[string][]string // keys by action, in place of the binding's own
	readOnly bool                // bindings that mutate are disabled
	glyphs   theme.Glyphs
}

// KeyGroup is the bindings that work in the same place.
type KeyGroup struct {
	Name     string // of the view, or "Everywhere"
	Bindings []Binding
}

// keysOf returns the keys of a binding after mapping.
func (k *keymap) keysOf(b Binding) []string {
	if keys, ok := k.mapped[b.Action]; ok {
		return keys
	}
	return b.Keys
}

// keysFor returns the keys of a global action.
func (k *keymap) keysFor(action string) []string {
	for _, b := range k.global {
		if b.Action == action {
			return k.keysOf(b)
		}
	}
	return nil
}

// firstKey returns the display name of an action's first key, or "".
func (k *keymap) firstKey(action string) string {
	if keys := k.keysFor(action); len(keys) > 0 {
		return k.name(keys[0])
	}
	return ""
}

// name returns a key as users write it.
func (k *keymap) name(key string) string {
	switch key {
	case "enter":
		return k.glyphs.Enter
	case "pgdown":
		return "pgdn"
	}
	return strings.Replace(key, "ctrl+", "^", 1)
}

func (k *keymap) withKeys(list []Binding) []Binding {
	out := slices.Clone(list)
	for i := range out {
		out[i].Keys = k.keysOf(out[i])
	}
	return out
}

// allowed returns the list without the bindings that read-only mode disables.
func (k *keymap) allowed(list []Binding) []Binding {
	if !k.readOnly {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(b Binding) bool { return b.Mutates })
}

// everywhere lists the global bindings with the keys that the view's own bindings do not use. A
// binding without such a key is left out.
func (k *keymap) everywhere(own []Binding) []Binding {
	taken := map[string]bool{}
	for _, b := range own {
		for _, key := range k.keysOf(b) {
			taken[key] = true
		}
	}
	isTaken := func(key string) bool { return taken[key] }
	out := make([]Binding, 0, len(k.global))
	for _, b := range k.global {
		keys := k.keysOf(b)
		if b.Keys = keys; slices.ContainsFunc(keys, isTaken) {
			b.Keys = slices.DeleteFunc(slices.Clone(keys), isTaken)
		}
		if len(b.Keys) > 0 || len(keys) == 0 {
			out = append(out, b)
		}
	}
	return out
}

// bindings lists a view's own bindings and the global ones, in order of precedence.
func (k *keymap) bindings(own []Binding) []Binding {
	return slices.Concat(k.withKeys(own), k.everywhere(own))
}

// active is [keymap.bindings] without those that read-only mode disables.
func (k *keymap) active(own []Binding) []Binding { return k.allowed(k.bindings(own)) }

// groups lists every enabled action: the global ones, then those of each view.
func (k *keymap) groups(views []View) []KeyGroup {
	all := []KeyGroup{{"Everywhere", k.allowed(k.withKeys(k.global))}}
	for _, v := range views {
		if b := k.allowed(k.withKeys(v.Bindings())); len(b) > 0 {
			all = append(all, KeyGroup{v.Name(), b})
		}
	}
	return all
}

// KeyMistake is an invalid line of a key map.
type KeyMistake struct {
	Action string
	Why    string
}

func (e KeyMistake) Error() string { return "keys: " + e.Action + ": " + e.Why }

// set replaces the keys of actions and returns the lines that it left out.
func (k *keymap) set(keys map[string][]string, views []View) []KeyMistake {
	k.mapped = maps.Clone(keys)
	lists := k.lists(views)
	mistakes := k.dropInvalid(lists)
	isMapped := func(c KeyMistake) bool { _, mapped := k.mapped[c.Action]; return mapped }
	for {
		clashes := k.clashes(lists)
		i := slices.IndexFunc(clashes, isMapped)
		if i < 0 {
			break
		}
		mistakes = append(mistakes, clashes[i])
		delete(k.mapped, clashes[i].Action)
	}
	slices.SortFunc(mistakes, func(a, b KeyMistake) int { return cmp.Compare(a.Action, b.Action) })
	return mistakes
}

// lists returns the lists of bindings within which keys must be unique.
func (k *keymap) lists(views []View) [][]Binding {
	lists := [][]Binding{k.global}
	for _, v := range views {
		lists = append(lists, v.Bindings())
	}
	return lists
}

// dropInvalid removes lines with an unknown action or key.
func (k *keymap) dropInvalid(lists [][]Binding) []KeyMistake {
	known := map[string]bool{}
	for _, b := range slices.Concat(lists...) {
		known[b.Action] = true
	}
	var mistakes []KeyMistake
	for action, keys := range k.mapped {
		why := ""
		if !known[action] {
			why = "unknown action; acescope config keys lists the actions"
		}
		for _, key := range keys {
			switch {
			case key == quitKey:
				why = quitKey + " always quits"
			case !validKey(key):
				why = fmt.Sprintf("%.20q is not a key; examples: a, A, ctrl+d, f5, enter, space, pgdown", key)
			}
		}
		if why != "" {
			mistakes = append(mistakes, KeyMistake{action, why})
			delete(k.mapped, action)
		}
	}
	return mistakes
}

// clashes lists the keys that run two actions. If one of the two is mapped, the mistake
// names that one.
func (k *keymap) clashes(lists [][]Binding) []KeyMistake {
	var out []KeyMistake
	for _, list := range lists {
		used := map[string]string{quitKey: "shell.quit"}
		for _, b := range list {
			for _, key := range k.keysOf(b) {
				other, dup := used[key]
				if !dup || other == b.Action {
					used[key] = b.Action
					continue
				}
				named := b.Action
				if _, mapped := k.mapped[named]; !mapped {
					named, other = other, named
				}
				out = append(out, KeyMistake{named, fmt.Sprintf("%q is bound to both %s and %s", key, other,
					named)})
			}
		}
	}
	return out
}

// validKey reports whether a key can be typed.
func validKey(key string) bool {
	for _, mod := range []string{"ctrl+", "alt+", "shift+", "meta+", "hyper+", "super+"} {
		key = strings.TrimPrefix(key, mod)
	}
	if utf8.RuneCountInString(key) == 1 {
		return key != " " && utf8.ValidString(key)
	}
	var n int
	if _, err := fmt.Sscanf(key, "f%d", &n); err == nil {
		return n >= 1 && n <= 63 && key == fmt.Sprintf("f%d", n)
	}
	return slices.Contains([]string{"enter", "tab", "esc", "space", "backspace", "delete", "insert", "up",
		"down",
		"left", "right", "home", "end", "pgup", "pgdown"}, key)
}

// namesOf returns the keys of a binding as users write them.
func (k *keymap) namesOf(b Binding) string {
	names := make([]string, len(b.Keys))
	for i, key := range b.Keys {
		names[i] = k.name(key)
	}
	return strings.Join(names, " ")
}

func widest(lines []string) int {
	w := 0
	for _, l := range lines {
		w = max(w, text.Width(l))
	}
	return w
}

// KeysPage returns the keys as a page of Markdown.
func KeysPage(groups []KeyGroup) string {
	var b strings.Builder
	b.WriteString("# Keys\n\n" +
		"`?` in the console shows the keys of the current pane. Every action can also be run as a command (`:runs.down`)\n" +
		"and mapped to other keys in the [configuration](config.md). Marked actions change something outside the console\n" +
		"and are disabled in read-only mode. A pane's key takes precedence over a key that works everywhere.\n\n" +
		"This page is generated by `make docs` (`acescope config keys --markdown`).\n")
	for _, g := range groups {
		b.WriteString("\n## " + g.Name + "\n\n| keys | action | |\n|---|---|---|\n")
		for _, k := range g.Bindings {
			keys := make([]string, len(k.Keys))
			for i := range keys {
				keys[i] = "`" + strings.ReplaceAll(k.Keys[i], "|", `\|`) + "`"
			}
			help := k.Help
			if k.Mutates {
				help += " **(changes something)**"
			}
			b.WriteString("| " + strings.Join(keys, " ") + " | `" + k.Action + "` | " + help + " |\n")
		}
	}
	return b.String()
}
