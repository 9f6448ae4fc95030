package views

import (
	"slices"
	"strings"
	"testing"
)

// meanings are the keys that several actions share because they mean the same in different words: a
// direction, the next part of what the pane lists, what lies below the row, or a search. All other keys have
// one action.
var meanings = map[string][]string{
	"enter": {"open", "detail", "curves", "filter", "answers", "bullet", "sessions", "read", "whole",
		"enter"},
	"left":  {"left", "fold", "earlier", "previous"},
	"right": {"right", "unfold", "later", "next"},
	"h":     {"left", "fold", "earlier", "previous"},
	"l":     {"right", "unfold", "later", "next"},
	"[": {"previous_section", "previous_branch", "metric_back", "previous_part", "previous_phase",
		"previous", "previous_entry"},
	"]":      {"next_section", "next_branch", "metric", "next_part", "next_phase", "next", "next_entry"},
	"/":      {"query", "search"},     // the query of the server, or the rows and texts of a pane
	"ctrl+s": {"save", "save_filter"}, // the events of a run as a file, or the filter of the list
}

// TestOneMeaningPerKey checks that a key does the same on all screens.
func TestOneMeaningPerKey(t *testing.T) {
	sc := newScreen(t, full(3), plainLook, 120, 40)
	names := map[string][]string{}
	for _, group := range sc.model.Keys() {
		for _, b := range group.Bindings {
			name := b.Action[strings.LastIndex(b.Action, ".")+1:]
			for _, key := range b.Keys {
				if !slices.Contains(names[key], name) {
					names[key] = append(names[key], name)
				}
			}
		}
	}
	for key, list := range names {
		known, shared := meanings[key]
		if !shared && len(list) > 1 {
			t.Errorf("%s has several meanings: %s", key, strings.Join(list, ", "))
		}
		for _, name := range list {
			if shared && !slices.Contains(known, name) {
				t.Errorf("%s also means %s", key, name)
			}
		}
	}
	for key, known := range meanings {
		for _, name := range known {
			if !slices.Contains(names[key], name) {
				t.Errorf("%s does not mean %s any more", key, name)
			}
		}
	}
}
