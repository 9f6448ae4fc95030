package views

import (
	"flag"
	"os"
	"testing"

	"acescope/theme"
	"acescope/tui"
	"acescope/views/console"
)

// docs/keys.md is what the bindings say. Write it anew with: go test ./views -run KeysPage -update
func TestKeysPage(t *testing.T) {
	st := newStore(nil)
	screens, global := Screens(console.Options{Controls: st, Actions: st}, st.feeds())
	m, err := tui.New(tui.Options{Source: st, Screens: screens, Global: global, Styles: theme.New(true, true), CancelWork: func(int64) {}})
	if err != nil {
		t.Fatal(err)
	}
	const file = "../docs/keys.md"
	page := tui.KeysPage(m.Keys())
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(file); err != nil || string(kept) != page {
		t.Errorf("%s is not what the bindings say (%v); write it anew with: go test ./views -run KeysPage -update", file, err)
	}
}
