package theme

// Styles is a theme ready to draw with: inks and glyphs by meaning.
type Styles struct {
	Theme  string // its name
	Glyphs Glyphs

	Text   Ink
	Muted  Ink
	Accent Ink
	Strong Ink // headings

	Border Ink
	Focus  Ink // the border of the focused pane
	Title  Ink // the title of the focused pane

	Selected Ink // the selected row of the focused pane
	Cursor   Ink // the selected row of a pane without focus

	Bar       Ink // header
	BarStrong Ink
	BarMuted  Ink

	Key  Ink // a key in a hint
	Hint Ink // what it does

	Running   Ink
	Success   Ink
	Wrong     Ink
	Failed    Ink
	Cancelled Ink
	Timeout   Ink
	Retrying  Ink

	Added   Ink
	Updated Ink
	Removed Ink
	Tagged  Ink

	Warning Ink
	Error   Ink
	Alert   Ink // a whole line that must be seen

	Curves [6]Ink // of a plot; see [Styles.Series]
}

// Styles works a theme's colours out for drawing.
func (t Theme) Styles(g Glyphs) Styles {
	c := t.Colors
	ink := func(fg Color, a Attr) Ink { return NewInk(fg.code, "", a) }
	muted := Attr(0)
	if c.Muted.code == "" {
		muted = Faint
	}
	selected, cursor := NewInk(c.SelectFG.code, c.SelectBG.code, Bold), NewInk(c.Text.code, "", Bold|Underline)
	if c.SelectBG.code == "" {
		selected = NewInk("", "", Reverse)
	}
	bar := NewInk(c.BarFG.code, c.BarBG.code, 0)
	alert := NewInk(c.Error.code, "", Bold|Reverse)
	return Styles{
		Theme: t.Name, Glyphs: g,
		Text: ink(c.Text, 0), Muted: ink(c.Muted, muted), Accent: ink(c.Accent, 0), Strong: ink(c.Text, Bold),
		Border: ink(c.Border, 0), Focus: ink(c.Focus, 0), Title: ink(c.Focus, Bold),
		Selected: selected, Cursor: cursor,
		Bar: bar, BarStrong: ink(c.Accent, Bold).Over(bar), BarMuted: ink(c.Muted, muted).Over(bar),
		Key: ink(c.Accent, Bold), Hint: ink(c.Muted, muted),
		Running: ink(c.Running, 0), Success: ink(c.Success, 0), Wrong: ink(c.Wrong, 0), Failed: ink(c.Failed, Bold),
		Cancelled: ink(c.Cancelled, 0), Timeout: ink(c.Timeout, 0), Retrying: ink(c.Retrying, Bold),
		Added: ink(c.Added, 0), Updated: ink(c.Updated, 0), Removed: ink(c.Removed, 0), Tagged: ink(c.Tagged, 0),
		Warning: ink(c.Warning, Bold), Error: ink(c.Error, Bold), Alert: alert,
		Curves: [...]Ink{ink(c.Series1, 0), ink(c.Series2, 0), ink(c.Series3, 0), ink(c.Series4, 0), ink(c.Series5, 0), ink(c.Series6, 0)},
	}
}

// Mark is how a status looks: a glyph and a word, in an ink.
type Mark struct {
	Glyph string
	Word  string
	Ink   Ink
}

// Status is the mark of an exit status as the ExitStatus search attribute holds it.
// An unknown status keeps its word.
func (s Styles) Status(word string) Mark {
	g := s.Glyphs
	switch word {
	case "running":
		return Mark{g.Running, word, s.Running}
	case "success":
		return Mark{g.Success, word, s.Success}
	case "wrong":
		return Mark{g.Wrong, word, s.Wrong}
	case "failed":
		return Mark{g.Failed, word, s.Failed}
	case "cancelled":
		return Mark{g.Cancelled, word, s.Cancelled}
	case "timeout":
		return Mark{g.Timeout, word, s.Timeout}
	case "continued":
		return Mark{g.Continued, word, s.Muted}
	}
	return Mark{g.Unknown, word, s.Muted}
}

// Series is the ink of a plot's curve by its number from 0; after the sixth they come
// again, so that a curve needs a mark of its own besides.
func (s Styles) Series(i int) Ink { return s.Curves[i%len(s.Curves)] }

// Retry is the mark of a run whose activity is being tried again.
func (s Styles) Retry() Mark { return Mark{s.Glyphs.Retry, "retrying", s.Retrying} }

// Statuses lists the exit statuses in the order in which screens show them.
func Statuses() []string {
	return []string{"running", "success", "wrong", "failed", "cancelled", "timeout"}
}
