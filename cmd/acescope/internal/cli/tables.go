package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"

	"acescope/theme"
	"acescope/tui/text"
)

// Canvas is how wide the output is, and how it is drawn: in colours on a terminal alone.
func (a *App) Canvas() (width int, s theme.Styles, paint bool) {
	s = theme.FromEnv(true, os.Getenv)
	if f, ok := a.Out.(*os.File); ok && term.IsTerminal(f.Fd()) {
		if w, _, err := term.GetSize(f.Fd()); err == nil && w >= 40 {
			return min(w, 190), s, true
		}
	}
	return 80, s, false
}

func (a *App) Print(lines []string, paint bool) error {
	for _, l := range lines {
		if !paint {
			l = ansi.Strip(l)
		}
		if _, err := fmt.Fprintln(a.Out, strings.TrimRight(l, " ")); err != nil {
			return err
		}
	}
	return nil
}

func IsTerminal(f *os.File) bool { return term.IsTerminal(f.Fd()) }

// SafeWriter makes text that goes to a terminal harmless, line by line.
type SafeWriter struct{ W io.Writer }

func (s SafeWriter) Write(p []byte) (int, error) {
	lines := strings.Split(string(p), "\n")
	for i := range lines {
		lines[i] = text.Safe(lines[i], " ")
	}
	_, err := io.WriteString(s.W, strings.Join(lines, "\n"))
	return len(p), err
}

func TimeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Cut is the beginning of a payload.
func Cut(raw []byte, n int) string {
	if len(raw) <= n {
		return string(raw)
	}
	return strings.ToValidUTF8(string(raw[:n]), "") + "…"
}

func ShellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
