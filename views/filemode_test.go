package views

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/sources/cluster"
	"acescope/sources/experiments"
	"acescope/sources/playbooks"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/views/console"
)

// onFile returns a console on histories from a file, without a server.
func onFile(t *testing.T, snap *snapshot, styles theme.Styles, width, height int) *screen {
	t.Helper()
	snap.Connection = cluster.Connection{State: cluster.ConnReady, Mode: cluster.ModeFile,
		Address: "bug\x1b[31m.json", Since: noon}
	st := newStore(snap)
	refuse := func(what string, of runs.ID) string {
		return "a file is not changed: acescope " + what + " " + of.WorkflowID
	}
	return newScreenOf(t, st, console.Options{Controls: st, Refuse: refuse, Location: time.UTC}, styles,
		width, height)
}

func TestFileScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		for look, styles := range map[string]theme.Styles{"dark": theme.New(true, false),
			"nocolor": theme.New(true, true)} {
			t.Run(fmt.Sprintf("%dx%d-%s", size[0], size[1], look), func(t *testing.T) {
				golden.RequireEqual(t, onFile(t, full(6), styles, size[0], size[1]).drawn())
			})
		}
	}
}

// Keys and commands that would change a run say at once what to do instead.
func TestFileRefuses(t *testing.T) {
	for name, keys := range map[string][]string{
		"cancel":    {"x"},
		"fork":      {"f"},
		"reset":     append(append([]string{":"}, letters("reset at=3 why")...), "enter"),
		"terminate": append(append([]string{":"}, letters("terminate why")...), "enter"),
		"signal":    append(append([]string{":"}, letters("signal s")...), "enter"),
	} {
		snap := full(6)
		sc := onFile(t, snap, theme.New(true, true), 120, 30)
		heard := len(sc.store.heard())
		sc.press(keys...)
		if want := "a file is not changed: acescope " + name + " " +
			snap.Runs.Rows[0].WorkflowID; !strings.Contains(sc.plain(), want) {
			t.Errorf("%v: %q is missing:\n%s", keys, want, sc.plain())
		}
		if said := sc.store.heard()[heard:]; len(said) > 0 {
			t.Errorf("%v: %v", keys, said)
		}
	}
}

// Messages of empty screens apply to files.
func TestFileEmpty(t *testing.T) {
	snap := ready()
	snap.Experiments = &experiments.Experiments{Loaded: noon}
	snap.Books = &playbooks.Playbooks{Missing: "no task in the files changed a playbook"}
	sc := onFile(t, snap, theme.New(true, true), 80, 24)
	for key, want := range map[string]string{"1": "reading the history",
		"4": "no task in the files changed a playbook",
		"5": "the files contain no history of an experiment",
		"8": "none, because a history file is read without a server"} {
		sc.press(key)
		if !strings.Contains(sc.plain(), want) || strings.Contains(sc.plain(), "acescope run") {
			t.Errorf("%s: %q is missing:\n%s", key, want, sc.plain())
		}
	}
}
