package playbook

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"acescope/engine/learning/playbook"
	"acescope/sources/playbooks"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// bulletOrder is the order of bullets.
type bulletOrder int

const (
	byBook bulletOrder = iota
	ByHelpful
	byHarmful
	byNewest
	bySection
	Orders
)

func (o bulletOrder) String() string {
	return [...]string{"playbook order", "most helpful first", "most harmful first", "newest first", "by section"}[o]
}

// rowCache keeps the sorted bullets of a version and the rows of a difference.
type rowCache struct {
	of    *playbooks.VersionDetail
	order bulletOrder
	list  []int // indexes of the bullets
	byID  map[string]int

	pair  *playbooks.Pair
	diffs []diffRow
}

// diffRow is a bullet of a difference.
type diffRow struct {
	kind   string // added, removed, changed
	bullet playbook.Bullet
	change *playbook.Change
}

func (r *rowCache) set(at *playbooks.VersionDetail, order bulletOrder) {
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
		case ByHelpful:
			return cmp.Compare(b[j].Bullet.Helpful, b[i].Bullet.Helpful)
		case byHarmful:
			return cmp.Or(cmp.Compare(b[j].Bullet.Harmful, b[i].Bullet.Harmful), cmp.Compare(b[i].Bullet.Helpful, b[j].Bullet.Helpful))
		case byNewest:
			return addedAt(&b[j]).Compare(addedAt(&b[i]))
		case bySection:
			return cmp.Compare(b[i].Bullet.Section, b[j].Bullet.Section)
		}
		return 0
	})
}

// addedAt returns the time when a bullet was added, zero for the first version.
func addedAt(l *playbook.BulletHistory) time.Time {
	if l.Added == nil {
		return time.Time{}
	}
	return l.Added.At
}

func (r *rowCache) setPair(p *playbooks.Pair) {
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
	// Rows that changed only counters come last.
	slices.SortStableFunc(r.diffs, func(a, b diffRow) int { return a.weight() - b.weight() })
}

func (d diffRow) weight() int {
	if d.change != nil && !d.change.Content && !d.change.Moved {
		return 1
	}
	return 0
}

// newTables returns the tables by mode.
func newTables(g theme.Glyphs) [4]*widget.Table {
	return [4]*widget.Table{
		bulletMode: widget.NewTable(widget.Heading{Title: "BULLET", Width: 12}, widget.Heading{Title: g.Added, Width: 4, Right: true}, widget.Heading{Title: g.Removed, Width: 3, Right: true},
			widget.Heading{Title: "TREND", Width: 8, Drop: 2}, widget.Heading{Title: "AGE", Width: 5, Right: true, Drop: 3}, widget.Heading{Title: "SECTION", Width: 14, Drop: 4},
			widget.Heading{Title: "TEXT", Minimum: 32}),
		versionMode: widget.NewTable(widget.Heading{Title: " ", Width: 1}, widget.Heading{Title: "VERSION", Width: 7, Right: true}, widget.Heading{Title: "AGE", Width: 5, Right: true, Drop: 2},
			widget.Heading{Title: "TASK", Minimum: 12}, widget.Heading{Title: g.Delta, Width: 9}, widget.Heading{Title: "BULLETS", Width: 7, Right: true, Drop: 1},
			widget.Heading{Title: "WHY", Minimum: 20, Drop: 3}),
		diffMode: widget.NewTable(widget.Heading{Title: " ", Width: 1}, widget.Heading{Title: "BULLET", Width: 12}, widget.Heading{Title: "CHANGE", Width: 22, Drop: 1},
			widget.Heading{Title: "TEXT", Minimum: 20}),
		HealthMode: widget.NewTable(widget.Heading{Title: "SEVERITY", Width: 8}, widget.Heading{Title: "KIND", Width: 19, Drop: 1}, widget.Heading{Title: "BULLETS", Width: 7, Right: true, Drop: 2},
			widget.Heading{Title: "FINDING", Minimum: 20}),
	}
}

// trendWidth is the width of a bullet's trend.
const trendWidth = 8

// trend plots helpful minus harmful over the versions since a bullet was added.
func trend(l *playbook.BulletHistory, seq, width int, g theme.Glyphs) string {
	helpful, harmful := l.Counts.Sample(seq, width)
	for i := range helpful {
		helpful[i] -= harmful[i]
	}
	return widget.Spark(helpful, width, g)
}

func bulletCells(l *playbook.BulletHistory, seq int, now time.Time, s theme.Styles) []widget.Cell {
	b := l.Bullet
	age := s.Glyphs.Dash
	if l.Added != nil {
		age = text.Span(now.Sub(l.Added.At))
	}
	harm := s.Muted
	if b.Harmful > 0 && b.Harmful >= b.Helpful {
		harm = s.Error
	}
	return []widget.Cell{{text.Safe(b.ID, " "), s.Accent}, {strconv.Itoa(b.Helpful), widget.Unless(b.Helpful == 0, s.Muted, s.Added)}, {strconv.Itoa(b.Harmful), harm},
		{trend(l, seq, trendWidth, s.Glyphs), s.Muted}, {age, s.Muted}, {text.Safe(b.Section, " "), s.Muted}, {oneLine(b.Content), s.Text}}
}

// oneLine returns the beginning of a text as safe text on one line.
func oneLine(t string) string {
	const enough = 600
	if len(t) > enough {
		t = t[:enough]
	}
	return strings.Join(strings.Fields(text.Safe(t, " ")), " ")
}

func (s *browser) versionCells(seq int, now time.Time, st theme.Styles) []widget.Cell {
	g := st.Glyphs
	mark := widget.Cell{" ", st.Text}
	if s.marked(s.books.Branch.Name, seq) {
		mark = widget.Cell{g.Running, st.Accent}
	}
	number := widget.Cell{"v" + strconv.Itoa(seq), st.Accent}
	if seq == 0 {
		return []widget.Cell{mark, number, {"", st.Muted}, {"first version", st.Muted}, {g.Dash, st.Muted}, {"", st.Muted}, {"the first version of the branch", st.Muted}}
	}
	i := seq - s.books.From
	if i < 0 || i >= len(s.books.Versions) {
		return []widget.Cell{mark, number, {}, {"reading" + g.Ellipsis, st.Muted}, {}, {}, {}}
	}
	v := s.books.Versions[i]
	return []widget.Cell{mark, number, {text.Span(now.Sub(v.At)), st.Muted}, {console.OrDash(taskIn(v), g), st.Text}, {versionDelta(v, g), widget.Unless(v.Hash == v.Parent, st.Muted, st.Text)},
		{text.Count(int64(v.Bullets)), st.Text}, {oneLine(v.Rationale), st.Muted}}
}

// taskIn returns a version's task ID without the branch prefix.
func taskIn(v playbook.Version) string {
	return strings.TrimPrefix(v.TaskID, v.Branch+"-")
}

// versionDelta shows what a version changed: "+2 ~1 −1", or its tags if it changed only counters.
func versionDelta(v playbook.Version, g theme.Glyphs) string {
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

func diffCells(d diffRow, s theme.Styles) []widget.Cell {
	glyph, ink := diffMark(d, s)
	return []widget.Cell{{glyph, ink}, {text.Safe(d.bullet.ID, " "), ink}, {whatChanged(d), s.Muted}, {oneLine(d.bullet.Content), widget.Unless(d.weight() == 0, ink, s.Muted)}}
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

// whatChanged lists the changed parts of a bullet.
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

// signedCount formats a number with its sign.
func signedCount(n int) string {
	if n > 0 {
		return "+" + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}

func findingCells(f playbook.Finding, s theme.Styles) []widget.Cell {
	glyph, ink := findingMark(f, s)
	bullets := s.Glyphs.Dash
	if n := len(f.BulletIDs) + f.More; n > 0 {
		bullets = text.Count(int64(n))
	}
	return []widget.Cell{{glyph + " " + string(f.Severity), ink}, {string(f.Kind), s.Text}, {bullets, s.Muted}, {oneLine(f.Text), s.Text}}
}

func findingMark(f playbook.Finding, s theme.Styles) (string, theme.Ink) {
	switch f.Severity {
	case playbook.SeverityError:
		return s.Glyphs.Failed, s.Error
	case playbook.SeverityWarning:
		return s.Glyphs.Unknown, s.Warning
	}
	return s.Glyphs.Dot, s.Muted
}
