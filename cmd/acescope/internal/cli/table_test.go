package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"acescope/theme"
)

// tableOf writes two rows to a terminal of this width, 0 for another output.
func tableOf(t *testing.T, width int, wrap bool) string {
	t.Helper()
	var out bytes.Buffer
	w := NewTable(&out)
	w.width, w.Wrap, w.styles = width, wrap, theme.New(true, false)
	fmt.Fprintln(w, "Runs\n\nTASK\tSTATUS\tVERDICT\tEXPERIMENT\tREASON")
	fmt.Fprintln(w, "finance-1-e1-0042\tcompleted\twrong\tnightly-20261124-131500\tthe formula \x1b[31mof the margin is not known")
	fmt.Fprintln(w, "finance-1-e1-0043\ttimed out\t\tnightly-20261124-131500\t日本語の理由")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTable(t *testing.T) {
	plain := tableOf(t, 0, false)
	want := "Runs\n\n" +
		"TASK               STATUS     VERDICT  EXPERIMENT               REASON\n" +
		"finance-1-e1-0042  completed  wrong    nightly-20261124-131500  the formula of the margin is not known\n" +
		"finance-1-e1-0043  timed out           nightly-20261124-131500  日本語の理由\n"
	if plain != want {
		t.Errorf("another output gets\n%s\nwant\n%s", plain, want)
	}
	if got := ansi.Strip(tableOf(t, 200, false)); got != want {
		t.Errorf("a wide terminal gets\n%s", got)
	}
	for width := 30; width < 120; width++ {
		for line := range strings.Lines(tableOf(t, width, false)) {
			if w := ansi.StringWidth(strings.TrimSuffix(line, "\n")); w > width {
				t.Errorf("a line of %d cells on a terminal of %d: %q", w, width, line)
			}
		}
	}
	narrow := tableOf(t, 80, false)
	for _, part := range []string{"finance-1-e1-0042  ", "nightly", "…", "\x1b["} {
		if !strings.Contains(narrow, part) {
			t.Errorf("no %q in\n%s", part, narrow)
		}
	}
	styles := theme.New(true, false)
	for _, cell := range []string{styles.Wrong.Paint("wrong"), styles.Timeout.Paint("timed out")} {
		if !strings.Contains(narrow, cell) {
			t.Errorf("no %q in %q", cell, narrow)
		}
	}
	if strings.Contains(ansi.Strip(narrow), "\x1b") || strings.Contains(narrow, "\x1b[31mof") {
		t.Errorf("an escape of a cell reaches the terminal: %q", narrow)
	}
	wrapped := ansi.Strip(tableOf(t, 80, true))
	if !strings.Contains(wrapped, "known") || strings.Contains(wrapped, "known…") {
		t.Errorf("the last column is cut:\n%s", wrapped)
	}
}

// TestTableParts checks that later parts of a table keep the columns of the first one.
func TestTableParts(t *testing.T) {
	var out bytes.Buffer
	w := NewTable(&out)
	fmt.Fprintln(w, "NAME\tVALUE\nlong-name\t1")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(w, "a\t2")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := "NAME       VALUE\nlong-name  1\na          2\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
