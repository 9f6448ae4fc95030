package theme

import (
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Links are where hyperlinks lead (OSC 8). The zero value draws no links.
type Links struct {
	On bool // the terminal shows hyperlinks
	// Run returns the address of a run in the Temporal Web UI, "" if it is not known. It does no I/O.
	Run func(workflowID, runID string) string
	// Editor is the address that opens a file, with {path} in place of the escaped path; "" for file://.
	Editor string
}

// maxLink is the longest address in bytes that terminals accept.
const maxLink = 2000

// schemes are the URL schemes of links, in addition to that of the editor.
var schemes = []string{"http", "https", "file"}

// LinkedRun returns the ink of a text that leads to a run in the Temporal Web UI.
func (s Styles) LinkedRun(i Ink, workflowID, runID string) Ink {
	if !s.Links.On || s.Links.Run == nil {
		return i
	}
	return s.linked(i, s.Links.Run(workflowID, runID))
}

// LinkedFile returns the ink of a text that opens a file or directory of this machine by its absolute path.
func (s Styles) LinkedFile(i Ink, path string) Ink {
	if !s.Links.On || !filepath.IsAbs(path) {
		return i
	}
	file := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	if s.Links.Editor == "" {
		return s.linked(i, file.String())
	}
	return s.linked(i, strings.ReplaceAll(s.Links.Editor, "{path}", file.EscapedPath()))
}

// linked returns the ink with an address, or unchanged if a terminal must not get the address.
func (s Styles) linked(i Ink, address string) Ink {
	u, err := url.Parse(address)
	if err != nil || address == "" || len(address) > maxLink {
		return i
	}
	editor, _, _ := strings.Cut(s.Links.Editor, ":")
	if !slices.Contains(schemes, u.Scheme) && u.Scheme != editor {
		return i
	}
	for _, r := range address {
		if r <= ' ' || r >= 0x7f {
			return i
		}
	}
	i.link = address
	return i
}

var errEditor = errors.New("give an address with {path}, such as vscode://file{path}")

// CheckEditor returns why an address of an editor cannot be used.
func CheckEditor(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(strings.ReplaceAll(address, "{path}", "/x"))
	switch {
	case err != nil:
		return err
	case u.Scheme == "" || !strings.Contains(address, "{path}"):
		return errEditor
	}
	return nil
}

// HasLinks reports whether the terminal is known to show hyperlinks. A multiplexer may drop or garble them.
func HasLinks(getenv func(string) string) bool {
	if getenv("TMUX") != "" || getenv("STY") != "" || getenv("TERM") == "dumb" {
		return false
	}
	for _, name := range []string{"KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "WEZTERM_PANE",
		"DOMTERM"} {
		if getenv(name) != "" {
			return true
		}
	}
	if vte, _ := strconv.Atoi(getenv("VTE_VERSION")); vte >= 5002 { // earlier versions crash
		return true
	}
	if slices.Contains([]string{"iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio"},
		getenv("TERM_PROGRAM")) {
		return true
	}
	term := getenv("TERM")
	return strings.HasPrefix(term, "foot") ||
		slices.Contains([]string{"xterm-kitty", "xterm-ghostty", "alacritty",
			"contour"}, term)
}
