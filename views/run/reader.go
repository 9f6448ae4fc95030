package run

import (
	runspkg "acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// RunReader shows lines that a cursor moves through. Some name a run that enter opens.
type RunReader struct {
	lines         []string // two cells narrower than the reader
	runs          map[int]runspkg.Run
	cursor, top   int
	width, height int
}

func (r *RunReader) SetSize(width, height int) {
	r.width, r.height = width, height
	r.Scroll(0)
}

func (r *RunReader) Page() int { return max(r.height, 1) }

// Set replaces the lines and scrolls to the top if reset is true. runs are the runs of lines, by index.
func (r *RunReader) Set(lines []string, runs map[int]runspkg.Run, reset bool) {
	r.lines, r.runs = lines, runs
	if reset {
		r.cursor, r.top = 0, 0
	}
	r.Scroll(0)
}

func (r *RunReader) Scroll(by int) {
	r.cursor = widget.Clamp(r.cursor+by, 0, max(len(r.lines)-1, 0))
	r.top = widget.Clamp(r.top, r.cursor-r.Page()+1, r.cursor)
	r.top = widget.Clamp(r.top, 0, max(len(r.lines)-r.Page(), 0))
}

// Selected returns the run of the line under the cursor.
func (r *RunReader) Selected() (runspkg.Run, bool) {
	run, ok := r.runs[r.cursor]
	return run, ok
}

func (r *RunReader) Draw(s theme.Styles, focused bool) []string {
	out := make([]string, 0, r.height)
	for i := r.top; i < min(r.top+r.Page(), len(r.lines)); i++ {
		mark := "  "
		if i == r.cursor && focused {
			mark = s.Title.Paint(s.Glyphs.Pointer) + " "
		}
		out = append(out, text.Fit(mark+r.lines[i], r.width, ""))
	}
	return widget.Fill(out, r.width, r.height)
}

// Position returns the position of the cursor, or "" if all lines are visible.
func (r *RunReader) Position() string {
	if len(r.lines) <= r.Page() {
		return ""
	}
	return text.Count(int64(r.cursor+1)) + "/" + text.Count(int64(len(r.lines)))
}
