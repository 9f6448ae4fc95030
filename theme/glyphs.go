package theme

// Glyphs are the special characters of the screen by meaning. Each is one cell wide,
// except that [ASCII] may use two for an arrow.
type Glyphs struct {
	Running   string
	Success   string
	Wrong     string
	Failed    string
	Cancelled string
	Timeout   string
	Continued string
	Retry     string
	Unknown   string
	Pending   string

	Added   string
	Updated string
	Removed string
	Tagged  string
	Refused string

	Delta    string
	Dash     string
	Ellipsis string
	Newline  string
	Arrow    string
	Pointer  string
	Refresh  string
	Paused   string
	Enter    string
	Dot      string
	Full     string // a bar's filled and empty part
	Empty    string
	Shade    string // of a bar, neither full nor empty
	Point    string // something without length
	Levels   string // of a curve, lowest first
	Micro    string // of a microsecond
	Link     string // between two steps of a strip, done and not yet
	LinkTodo string
	Forked   string // a run that was forked from another
	Branch   string // of a tree: one of several, the last one, and the line past others
	Corner   string
	Trunk    string

	Plain Frame
	Heavy Frame // of the focused pane
}

// Frame is the characters of a box.
type Frame struct {
	TopLeft, Top, TopRight          string
	Side                            string
	BottomLeft, Bottom, BottomRight string
}

// Unicode is the usual set.
func Unicode() Glyphs {
	return Glyphs{
		Running: "●", Success: "✓", Wrong: "✗", Failed: "‼", Cancelled: "⊘", Timeout: "◷", Continued: "⇢",
		Retry: "↻", Unknown: "?", Pending: "○",
		Added: "+", Updated: "~", Removed: "−", Tagged: "#", Refused: "✗",
		Delta: "Δ", Dash: "–", Ellipsis: "…", Newline: "⏎", Arrow: "→", Pointer: "▸",
		Refresh: "⟳", Paused: "‖", Enter: "↵", Dot: "·", Full: "█", Empty: "░", Shade: "▒", Point: "◆", Levels: "▁▂▃▄▅▆▇█", Micro: "µ",
		Link: "━", LinkTodo: "─", Forked: "↳", Branch: "├", Corner: "└", Trunk: "│",
		Plain: Frame{"┌", "─", "┐", "│", "└", "─", "┘"},
		Heavy: Frame{"┏", "━", "┓", "┃", "┗", "━", "┛"},
	}
}

// ASCII is the set for terminals whose locale is not UTF-8.
func ASCII() Glyphs {
	return Glyphs{
		Running: "*", Success: "v", Wrong: "x", Failed: "!", Cancelled: "-", Timeout: "T", Continued: "c",
		Retry: "@", Unknown: "?", Pending: "o",
		Added: "+", Updated: "~", Removed: "-", Tagged: "#", Refused: "x",
		Delta: "D", Dash: "-", Ellipsis: "~", Newline: " ", Arrow: "->", Pointer: ">",
		Refresh: "@", Paused: "=", Enter: "enter", Dot: "|", Full: "#", Empty: ".", Shade: "%", Point: "^", Levels: "_.-=*#", Micro: "u",
		Link: "=", LinkTodo: "-", Forked: "Y", Branch: "|", Corner: "`", Trunk: "|",
		Plain: Frame{"+", "-", "+", "|", "+", "-", "+"},
		Heavy: Frame{"#", "=", "#", "#", "#", "=", "#"},
	}
}
