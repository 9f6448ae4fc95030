package theme

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func TestLinks(t *testing.T) {
	page := "https://ui.example.com/namespaces/default/workflows/a%2Fb/r"
	s := New(true, false)
	s.Links = Links{On: true, Run: func(string, string) string { return page }}
	if got := s.LinkedRun(s.Text, "a/b", "r").Paint("a/b"); !strings.HasPrefix(got, "\x1b]8;;"+page+"\a") ||
		ansi.StringWidth(got) != 3 || !strings.HasSuffix(got, "\x1b]8;;\a") {
		t.Errorf("got %q", got)
	}
	if got := s.LinkedFile(s.Text, "/tmp/a b\x1b.log").Paint("x"); !strings.Contains(got,
		"file:///tmp/a%20b%1B.log\a") {
		t.Errorf("got %q", got)
	}
	s.Links.Editor = "vscode://file{path}"
	if got := s.LinkedFile(s.Text, "/tmp/a b.log").Paint("x"); !strings.Contains(got,
		"vscode://file/tmp/a%20b.log\a") {
		t.Errorf("got %q", got)
	}
	for _, address := range []string{"", "javascript:alert(1)", "https://x/\a\x1b[2J", "https://x/" +
		strings.Repeat("y", maxLink),
		"https://x/ü", "://"} {
		s.Links.Run = func(string, string) string { return address }
		if got := s.LinkedRun(s.Text, "a", "r").Paint("a"); strings.Contains(got, "\x1b]8") {
			t.Errorf("%q is linked: %q", address, got)
		}
	}
	s.Links.On = false
	if got := s.LinkedFile(s.Text, "/tmp/x").Paint("x"); strings.Contains(got, "\x1b]8") {
		t.Errorf("linked though it is off: %q", got)
	}
}

func TestHasLinks(t *testing.T) {
	for env, want := range map[string]bool{
		"TERM=xterm-256color": false, "TERM=xterm-kitty": true, "VTE_VERSION=6003": true,
		"VTE_VERSION=4600":    false,
		"TERM_PROGRAM=vscode": true, "TERM_PROGRAM=Apple_Terminal": false, "WT_SESSION=1": true,
		"TERM_PROGRAM=iTerm.app TMUX=/tmp/1": false, "WT_SESSION=1 TERM=dumb": false,
	} {
		values := map[string]string{}
		for _, pair := range strings.Fields(env) {
			name, value, _ := strings.Cut(pair, "=")
			values[name] = value
		}
		if got := HasLinks(func(name string) string { return values[name] }); got != want {
			t.Errorf("%s: %v", env, got)
		}
	}
}

func TestCheckEditor(t *testing.T) {
	for address, want := range map[string]bool{"": true, "vscode://file{path}": true,
		"idea://open?file={path}": true,
		"vscode://file":           false, "{path}": false, "code {path}": false} {
		if got := CheckEditor(address) == nil; got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
}
