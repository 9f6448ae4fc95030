package cli

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"acescope/theme"
	"acescope/tui/text"
)

// Table aligns columns that are separated by tabs. The caller flushes it. A line without a tab ends the lines
// that share columns. On a terminal, cells are cut so that no line wraps, and the words of columns such as
// STATUS are colored.
type Table struct {
	bytes.Buffer
	to     io.Writer
	width  int // of the terminal; 0 for another output, which is neither cut nor colored
	styles theme.Styles
	widths []int    // of the columns so far
	words  []bool   // columns that contain words, not only numbers, below the header
	titles []string // of the columns, if the first line is a header

	Wrap bool // on a terminal, the last column wraps below itself instead of being cut
}

func NewTable(w io.Writer) *Table {
	t := &Table{to: w}
	if width, _, ok := Terminal(w); ok {
		t.styles, t.width = theme.FromEnv(true, os.Getenv), width
	}
	return t
}

// Row adds a line with cells, whose text may be untrusted.
func (t *Table) Row(cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			t.WriteByte('\t')
		}
		t.WriteString(SafeText(fmt.Sprint(cell)))
	}
	t.WriteByte('\n')
}

// Flush aligns and writes the lines since the last call.
func (t *Table) Flush() error {
	if t.Len() == 0 {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(t.String(), "\n"), "\n")
	t.Reset()
	for len(lines) > 0 {
		n := slices.IndexFunc(lines, func(l string) bool { return !strings.Contains(l, "\t") })
		switch {
		case n < 0:
			n = len(lines)
		case n == 0:
			fmt.Fprintln(t, text.Safe(lines[0], " "))
			t.widths, t.words, t.titles = nil, nil, nil
			lines = lines[1:]
			continue
		}
		t.align(lines[:n])
		lines = lines[n:]
	}
	out := t.to
	if t.width > 0 {
		out = painted(out)
	}
	_, err := t.WriteTo(out)
	return err
}

const (
	gap       = 2 // cells between columns
	minColumn = 5 // no column is made narrower than this number of cells
)

// align writes lines with the same columns.
func (t *Table) align(lines []string) {
	var rows [][]string
	for _, line := range lines {
		cells := strings.Split(line, "\t")
		for i, cell := range cells {
			cells[i] = text.Safe(cell, " ")
			if i == len(t.widths) {
				t.widths = append(t.widths, 0)
				t.words = append(t.words, false)
			}
			t.words[i] = t.words[i] || len(rows)+len(t.titles) > 0 && strings.ContainsFunc(cells[i], isWord)
			t.widths[i] = max(t.widths[i], text.Width(cells[i]))
		}
		rows = append(rows, cells)
	}
	if t.titles == nil {
		t.titles = rows[0]
	}
	widths := t.narrowed()
	for _, cells := range rows {
		last := len(cells) - 1
		rest := []string{cells[last]}
		if t.Wrap && t.width > 0 {
			rest = text.Wrap(cells[last], widths[last])
		}
		for _, part := range rest {
			cells[last] = part
			t.line(cells, widths)
			cells = make([]string, last+1)
		}
	}
}

func (t *Table) line(cells []string, widths []int) {
	var line strings.Builder
	for i, cell := range cells {
		shown := t.cut(cell, widths[i])
		pad := widths[i] - text.Width(shown) + gap
		switch {
		case i >= len(t.titles):
		case cell == t.titles[i]:
			shown = text.Cut(cell, widths[i], t.styles.Glyphs.Ellipsis)
		case t.judges(i):
			shown = t.ink(cell).Paint(shown)
		}
		line.WriteString(shown + text.Spaces(pad))
	}
	all := strings.TrimRight(line.String(), " ")
	if t.width > 0 {
		all = ansi.Truncate(all, t.width, "")
	}
	fmt.Fprintln(t, all)
}

// narrowed returns the widths with which a line fits on the terminal. It narrows the widest column first. It
// narrows the first column, which names the row, only if it is twice as wide as the others. It never narrows
// a status, a verdict or a number.
func (t *Table) narrowed() []int {
	widths := slices.Clone(t.widths)
	total := gap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; t.width > 0 && total > t.width; total-- {
		widest, most := 0, max(widths[0]/2, minColumn)
		for i, w := range widths[1:] {
			if w > most && t.words[i+1] && !t.judges(i+1) {
				widest, most = i+1, w
			}
		}
		if widths[widest] <= minColumn {
			break
		}
		widths[widest]--
	}
	return widths
}

// cut returns a cell in at most width cells: the beginning of a sentence, or both ends of a name.
func (t *Table) cut(cell string, width int) string {
	if t.width == 0 {
		return cell
	}
	if strings.Count(strings.TrimSpace(cell), " ") > 1 {
		return text.Cut(cell, width, t.styles.Glyphs.Ellipsis)
	}
	return text.Middle(cell, width, t.styles.Glyphs.Ellipsis)
}

func isWord(r rune) bool { return r == ' ' || unicode.IsLetter(r) }

// judges reports whether a column on a terminal has statuses or verdicts.
func (t *Table) judges(column int) bool {
	return t.width > 0 && column < len(t.titles) &&
		slices.Contains([]string{"STATUS", "STATE", "VERDICT", "RESULT"}, t.titles[column])
}

// ink returns the ink of a status or a verdict, which may follow its glyph.
func (t *Table) ink(cell string) theme.Ink {
	s := t.styles
	switch word := strings.TrimLeftFunc(cell, func(r rune) bool { return !unicode.IsLetter(r) }); word {
	case "correct", "wrong":
		return s.Verdict(word).Ink
	case "ok", "passed", "online":
		return s.Success
	case "WARNING", "stale", "waiting", "approval":
		return s.Warning
	case "ERROR", "error", "not met":
		return s.Error
	default:
		return s.Status(strings.ReplaceAll(word, " ", "_")).Ink
	}
}

// Mapped returns the rows of values, for [WriteRows].
func Mapped[V, R any](values []V, row func(V) R) iter.Seq[R] {
	return func(yield func(R) bool) {
		for _, v := range values {
			if !yield(row(v)) {
				return
			}
		}
	}
}

// WriteRows writes rows as JSON lines with --json, otherwise as a table with a header of column names
// separated by tabs. cells returns the columns of a row; their text may be untrusted. An empty table has no
// header. The first JSON line and every hundredth row flush the buffer, for a reader of a long list.
func WriteRows[T any](a *App, rows iter.Seq[T], header string, cells func(T) []any) error {
	out, table := NewLines(a), NewTable(a.Out)
	write := func(row T) { out.Put(row) }
	flush := out.Flush
	if !a.JSON {
		flush = table.Flush
		write = func(row T) {
			if header != "" {
				fmt.Fprintln(table, header)
				header = ""
			}
			table.Row(cells(row)...)
		}
	}
	count := 0
	for row := range rows {
		write(row)
		if count++; count%100 == 0 || a.JSON && count == 1 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}
