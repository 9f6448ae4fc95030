package views

import (
	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// runReader is lines that a cursor goes through; some of them name a run that enter opens.
type runReader struct {
	lines         []string // each two cells narrower than the room
	runs          map[int]sources.Run
	cursor, top   int
	width, height int
}

func (r *runReader) setSize(width, height int) {
	r.width, r.height = width, height
	r.scroll(0)
}

func (r *runReader) page() int { return max(r.height, 1) }

// set replaces the lines; anew begins at the top.
func (r *runReader) set(lines []string, runs map[int]sources.Run, anew bool) {
	r.lines, r.runs = lines, runs
	if anew {
		r.cursor, r.top = 0, 0
	}
	r.scroll(0)
}

func (r *runReader) scroll(by int) {
	r.cursor = clamp(r.cursor+by, 0, max(len(r.lines)-1, 0))
	r.top = clamp(r.top, r.cursor-r.page()+1, r.cursor)
	r.top = clamp(r.top, 0, max(len(r.lines)-r.page(), 0))
}

// selected is the run that the line under the cursor names.
func (r *runReader) selected() (sources.Run, bool) {
	run, ok := r.runs[r.cursor]
	return run, ok
}

func (r *runReader) draw(s theme.Styles, focused bool) []string {
	out := make([]string, 0, r.height)
	for i := r.top; i < min(r.top+r.page(), len(r.lines)); i++ {
		mark := "  "
		if i == r.cursor && focused {
			mark = s.Title.Paint(s.Glyphs.Pointer) + " "
		}
		out = append(out, text.Fit(mark+r.lines[i], r.width, ""))
	}
	return fill(out, r.width, r.height)
}

// position is where the cursor is, "" where all lines are visible.
func (r *runReader) position() string {
	if len(r.lines) <= r.page() {
		return ""
	}
	return text.Count(int64(r.cursor+1)) + "/" + text.Count(int64(len(r.lines)))
}
