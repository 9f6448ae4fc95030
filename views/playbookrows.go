package views

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// bulletOrder is how bullets are sorted.
type bulletOrder int

const (
	byBook bulletOrder = iota
	byHelpful
	byHarmful
	byNewest
	bySection
	orders
)

func (o bulletOrder) String() string {
	return [...]string{"as in the book", "most helpful first", "most harmful first", "newest first", "by section"}[o]
}

// shelfRows is the bullets of a version in an order, and the rows of a difference; they
// are made again when what they are of changes.
type shelfRows struct {
	of    *sources.BookAt
	order bulletOrder
	list  []int // of its bullets
	byID  map[string]int

	pair  *sources.BookPair
	diffs []diffRow
}

// diffRow is one bullet of a difference.
type diffRow struct {
	kind   string // added, removed, changed
	bullet sources.Bullet
	change *sources.BulletChange
}

func (r *shelfRows) set(at *sources.BookAt, order bulletOrder) {
	if r.of == at && r.order == order && r.byID != nil {
		return
	}
	r.of, r.order = at, order
	r.list, r.byID = nil, map[string]int{}
	if at == nil {
		return
	}
	for i := range at.Bullets {
		r.list = append(r.list, i)
		r.byID[at.Bullets[i].Bullet.ID] = i
	}
	b := at.Bullets
	slices.SortStableFunc(r.list, func(i, j int) int {
		switch order {
		case byHelpful:
			return cmp.Compare(b[j].Bullet.Helpful, b[i].Bullet.Helpful)
		case byHarmful:
			return cmp.Or(cmp.Compare(b[j].Bullet.Harmful, b[i].Bullet.Harmful), cmp.Compare(b[i].Bullet.Helpful, b[j].Bullet.Helpful))
		case byNewest:
			return written(&b[j]).Compare(written(&b[i]))
		case bySection:
			return cmp.Compare(b[i].Bullet.Section, b[j].Bullet.Section)
		}
		return 0
	})
}

// written is when a bullet was added; zero where it came with the start.
func written(l *sources.BulletLife) time.Time {
	if l.Added == nil {
		return time.Time{}
	}
	return l.Added.At
}

func (r *shelfRows) setPair(p *sources.BookPair) {
	if r.pair == p {
		return
	}
	r.pair, r.diffs = p, nil
	if p == nil || p.Diff == nil {
		return
	}
	for _, b := range p.Diff.Removed {
		r.diffs = append(r.diffs, diffRow{"removed", b, nil})
	}
	for i := range p.Diff.Changed {
		r.diffs = append(r.diffs, diffRow{"changed", p.Diff.Changed[i].After, &p.Diff.Changed[i]})
	}
	for _, b := range p.Diff.Added {
		r.diffs = append(r.diffs, diffRow{"added", b, nil})
	}
	// What says more comes first: counters alone come last.
	slices.SortStableFunc(r.diffs, func(a, b diffRow) int { return a.weight() - b.weight() })
}

func (d diffRow) weight() int {
	if d.change != nil && !d.change.Content && !d.change.Moved {
		return 1
	}
	return 0
}

// bookTables are the tables of the modes.
func bookTables(g theme.Glyphs) [4]*table {
	return [4]*table{
		bulletMode: newTable(heading{title: "BULLET", width: 12}, heading{title: g.Added, width: 4, right: true}, heading{title: g.Removed, width: 3, right: true},
			heading{title: "TREND", width: 8, drop: 2}, heading{title: "AGE", width: 5, right: true, drop: 3}, heading{title: "SECTION", width: 14, drop: 4},
			heading{title: "SAYS", minimum: 32}),
		versionMode: newTable(heading{title: " ", width: 1}, heading{title: "VERSION", width: 7, right: true}, heading{title: "AGE", width: 5, right: true, drop: 2},
			heading{title: "TASK", minimum: 12}, heading{title: g.Delta, width: 9}, heading{title: "BULLETS", width: 7, right: true, drop: 1},
			heading{title: "WHY", minimum: 20, drop: 3}),
		diffMode: newTable(heading{title: " ", width: 1}, heading{title: "BULLET", width: 12}, heading{title: "WHAT", width: 22, drop: 1},
			heading{title: "SAYS", minimum: 20}),
		healthMode: newTable(heading{title: "HOW BAD", width: 8}, heading{title: "KIND", width: 19, drop: 1}, heading{title: "BULLETS", width: 7, right: true, drop: 2},
			heading{title: "FINDING", minimum: 20}),
	}
}

// trendWidth is the room for a bullet's counters over time.
const trendWidth = 8

// trend is helpful minus harmful over the versions since a bullet was added.
func trend(l *sources.BulletLife, seq, width int, g theme.Glyphs) string {
	helpful, harmful := l.Counts.Sample(seq, width)
	for i := range helpful {
		helpful[i] -= harmful[i]
	}
	return spark(helpful, width, g)
}

func bulletCells(l *sources.BulletLife, seq int, now time.Time, s theme.Styles) []cell {
	b := l.Bullet
	age := s.Glyphs.Dash
	if l.Added != nil {
		age = text.Span(now.Sub(l.Added.At))
	}
	harm := s.Muted
	if b.Harmful > 0 && b.Harmful >= b.Helpful {
		harm = s.Error
	}
	return []cell{{text.Safe(b.ID, " "), s.Accent}, {strconv.Itoa(b.Helpful), unless(b.Helpful == 0, s.Muted, s.Added)}, {strconv.Itoa(b.Harmful), harm},
		{trend(l, seq, trendWidth, s.Glyphs), s.Muted}, {age, s.Muted}, {text.Safe(b.Section, " "), s.Muted}, {oneLine(b.Content), s.Text}}
}

// oneLine is the beginning of a text as safe text on one line.
func oneLine(t string) string {
	const enough = 600
	if len(t) > enough {
		t = t[:enough]
	}
	return strings.Join(strings.Fields(text.Safe(t, " ")), " ")
}

func (s *shelf) versionCells(seq int, now time.Time, st theme.Styles) []cell {
	g := st.Glyphs
	mark := cell{" ", st.Text}
	if s.marked(s.books.Branch.Name, seq) {
		mark = cell{g.Running, st.Accent}
	}
	number := cell{"v" + strconv.Itoa(seq), st.Accent}
	if seq == 0 {
		return []cell{mark, number, {"", st.Muted}, {"the start", st.Muted}, {g.Dash, st.Muted}, {"", st.Muted}, {"what the branch began with", st.Muted}}
	}
	i := seq - s.books.From
	if i < 0 || i >= len(s.books.Versions) {
		return []cell{mark, number, {}, {"reading" + g.Ellipsis, st.Muted}, {}, {}, {}}
	}
	v := s.books.Versions[i]
	return []cell{mark, number, {text.Span(now.Sub(v.At)), st.Muted}, {orDash(taskIn(v), g), st.Text}, {versionDelta(v, g), unless(v.Hash == v.Parent, st.Muted, st.Text)},
		{text.Count(int64(v.Bullets)), st.Text}, {oneLine(v.Rationale), st.Muted}}
}

// taskIn is a version's task without the name of its branch, which all of them begin with.
func taskIn(v sources.BookVersion) string {
	return strings.TrimPrefix(v.TaskID, v.Branch+"-")
}

// versionDelta is what a version changed: "+2 ~1 −1", tags where it only counted.
func versionDelta(v sources.BookVersion, g theme.Glyphs) string {
	var parts []string
	for _, p := range []struct {
		glyph string
		n     int
	}{{g.Added, v.Added}, {g.Updated, v.Updated}, {g.Removed, v.Removed}} {
		if p.n > 0 {
			parts = append(parts, p.glyph+strconv.Itoa(p.n))
		}
	}
	if len(parts) == 0 && v.Tagged > 0 {
		parts = append(parts, g.Tagged+strconv.Itoa(v.Tagged))
	}
	if len(parts) == 0 {
		return g.Dash
	}
	return strings.Join(parts, " ")
}

func diffCells(d diffRow, s theme.Styles) []cell {
	glyph, ink := diffMark(d, s)
	return []cell{{glyph, ink}, {text.Safe(d.bullet.ID, " "), ink}, {whatChanged(d), s.Muted}, {oneLine(d.bullet.Content), unless(d.weight() == 0, ink, s.Muted)}}
}

func diffMark(d diffRow, s theme.Styles) (string, theme.Ink) {
	switch {
	case d.kind == "added":
		return s.Glyphs.Added, s.Added
	case d.kind == "removed":
		return s.Glyphs.Removed, s.Removed
	case d.weight() > 0:
		return s.Glyphs.Tagged, s.Tagged
	}
	return s.Glyphs.Updated, s.Updated
}

// whatChanged says what of a bullet changed, in a few words.
func whatChanged(d diffRow) string {
	c := d.change
	if c == nil {
		return d.kind
	}
	var parts []string
	if c.Content {
		parts = append(parts, "text")
	}
	if c.Moved {
		parts = append(parts, "section")
	}
	if c.From != "" {
		parts = append(parts, "id")
	}
	for _, n := range []struct {
		name string
		by   int
	}{{"helpful", c.After.Helpful - c.Before.Helpful}, {"harmful", c.After.Harmful - c.Before.Harmful}, {"neutral", c.After.Neutral - c.Before.Neutral}} {
		if n.by != 0 {
			parts = append(parts, n.name+" "+signedCount(n.by))
		}
	}
	return strings.Join(parts, " ")
}

// signedCount is a number with its sign.
func signedCount(n int) string {
	if n > 0 {
		return "+" + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}

func findingCells(f sources.BookFinding, s theme.Styles) []cell {
	glyph, ink := findingMark(f, s)
	bullets := s.Glyphs.Dash
	if n := len(f.BulletIDs) + f.More; n > 0 {
		bullets = text.Count(int64(n))
	}
	return []cell{{glyph + " " + string(f.Severity), ink}, {string(f.Kind), s.Text}, {bullets, s.Muted}, {oneLine(f.Text), s.Text}}
}

func findingMark(f sources.BookFinding, s theme.Styles) (string, theme.Ink) {
	switch f.Severity {
	case sources.FindingBad:
		return s.Glyphs.Failed, s.Error
	case sources.FindingDoubt:
		return s.Glyphs.Unknown, s.Warning
	}
	return s.Glyphs.Dot, s.Muted
}
