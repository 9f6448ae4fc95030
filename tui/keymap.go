package tui

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// KeyMistake says what is wrong with one line of a key map.
type KeyMistake struct {
	Action string
	Why    string
}

func (e KeyMistake) Error() string { return "keys: " + e.Action + ": " + e.Why }

// SetKeys replaces the keys of actions by name; an empty list leaves an action without
// any. Lines that make no sense are left out and returned: an action that does not
// exist, a name that is no key, and keys that would lead to two actions of one view, or
// of those that work everywhere. A view's key may take the place of one that works
// everywhere.
func (m *Model) SetKeys(keys map[string][]string) []KeyMistake {
	m.keys = maps.Clone(keys)
	if m.keys == nil {
		m.keys = map[string][]string{}
	}
	mistakes := m.dropUnknown()
	for {
		clashes := m.clashes()
		var mine []KeyMistake
		for _, c := range clashes {
			if _, mapped := m.keys[c.Action]; mapped {
				mine = append(mine, c)
			}
		}
		if len(mine) == 0 {
			break
		}
		mistakes = append(mistakes, mine[0])
		delete(m.keys, mine[0].Action)
	}
	slices.SortFunc(mistakes, func(a, b KeyMistake) int { return cmp.Compare(a.Action, b.Action) })
	return mistakes
}

func (m *Model) dropUnknown() []KeyMistake {
	known := map[string]bool{}
	for _, list := range m.bindingLists() {
		for _, b := range list {
			known[b.Action] = true
		}
	}
	var mistakes []KeyMistake
	for action, list := range m.keys {
		why := ""
		if !known[action] {
			why = "there is no such action; acescope config keys lists them"
		}
		for _, k := range list {
			switch {
			case k == quitKey:
				why = quitKey + " always quits"
			case !validKey(k):
				why = fmt.Sprintf("%.20q is no key; write a, A, ctrl+d, f5, enter, space, pgdown", k)
			}
		}
		if why != "" {
			mistakes = append(mistakes, KeyMistake{action, why})
			delete(m.keys, action)
		}
	}
	return mistakes
}

// bindingLists is the bindings that must not share a key, list by list.
func (m *Model) bindingLists() [][]Binding {
	lists := [][]Binding{m.global}
	m.everyView(func(v View) { lists = append(lists, v.Bindings()) })
	return lists
}

// clashes lists the keys that lead to two actions; where one of the two was mapped it is
// the one that is named.
func (m *Model) clashes() []KeyMistake {
	var out []KeyMistake
	for _, list := range m.bindingLists() {
		taken := map[string]string{quitKey: "shell.quit"}
		for _, b := range list {
			for _, k := range m.keysOf(b) {
				other, dup := taken[k]
				if !dup || other == b.Action {
					taken[k] = b.Action
					continue
				}
				one, two := b.Action, other
				if _, mapped := m.keys[one]; !mapped {
					one, two = two, one
				}
				out = append(out, KeyMistake{one, fmt.Sprintf("%q is bound to both %s and %s", k, two, one)})
			}
		}
	}
	return out
}

// validKey tells whether a key can be typed at all.
func validKey(k string) bool {
	for _, mod := range []string{"ctrl+", "alt+", "shift+", "meta+", "hyper+", "super+"} {
		k = strings.TrimPrefix(k, mod)
	}
	if utf8.RuneCountInString(k) == 1 {
		return k != " " && utf8.ValidString(k)
	}
	var n int
	if _, err := fmt.Sscanf(k, "f%d", &n); err == nil {
		return n >= 1 && n <= 63 && k == fmt.Sprintf("f%d", n)
	}
	return slices.Contains([]string{"enter", "tab", "esc", "space", "backspace", "delete", "insert", "up", "down", "left", "right",
		"home", "end", "pgup", "pgdown"}, k)
}
