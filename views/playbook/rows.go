package playbook

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/sources/playbooks"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// bulletOrder is the order of bullets.
type bulletOrder int

const (
	byPlaybook bulletOrder = iota
	ByHelpful
	byHarmful
	byNewest
	bySection
	Orders
)

func (o bulletOrder) String() string {
	return [...]string{"playbook order", "most helpful first", "most harmful first", "newest first",
		"by section"}[o]
}

// row is a row of the list.
type row interface {
	key() string // identifies the row when the data changes
	cells(now time.Time, s theme.Styles) []widget.Cell
	// write writes everything that is known about the row, or nothing until it is read.
	write(w *detailWriter)
	source() *playbook.Source // merge that wrote the row, nil if it is unknown
	copied() (what, text string)
	words() []string // texts that a search looks in
	wrong() bool     // e stops at the row
}

type bulletRow struct {
	*playbook.BulletHistory
	seq int
}

func (r bulletRow) key() string              { return r.Bullet.ID }
func (r bulletRow) write(w *detailWriter)    { w.bullet(r.BulletHistory) }
func (r bulletRow) source() *playbook.Source { return r.Added }
func (r bulletRow) copied() (string, string) { return "bullet " + r.Bullet.ID, r.Bullet.Content }
func (r bulletRow) words() []string {
	return []string{r.Bullet.ID, r.Bullet.Section, r.Bullet.Content}
}
func (r bulletRow) wrong() bool {
	return r.Bullet.Harmful > 0 && r.Bullet.Harmful >= r.Bullet.Helpful
}

func (r bulletRow) Copies() []tui.Copy {
	return []tui.Copy{{Key: "i", What: "bullet ID", Text: r.Bullet.ID},
		{Key: "t", What: "text", Text: r.Bullet.Content},
		console.JSONCopy(r.Bullet)}
}

// bulletRows returns the bullets of a version in an order.
func bulletRows(at *playbooks.VersionDetail, order bulletOrder) (rows []row) {
	for i := range at.Bullets {
		rows = append(rows, bulletRow{&at.Bullets[i], at.Seq})
	}
	slices.SortStableFunc(rows, func(x, y row) int {
		a, b := x.(bulletRow), y.(bulletRow)
		switch order {
		case ByHelpful:
			return cmp.Compare(b.Bullet.Helpful, a.Bullet.Helpful)
		case byHarmful:
			return cmp.Or(cmp.Compare(b.Bullet.Harmful, a.Bullet.Harmful),
				cmp.Compare(a.Bullet.Helpful, b.Bullet.Helpful))
		case byNewest:
			return b.addedAt().Compare(a.addedAt())
		case bySection:
			return cmp.Compare(a.Bullet.Section, b.Bullet.Section)
		}
		return 0
	})
	return rows
}

// addedAt returns the time when a bullet was added, zero for the first version.
func (r bulletRow) addedAt() time.Time {
	if r.Added == nil {
		return time.Time{}
	}
	return r.Added.At
}

type versionRow struct {
	s   *browser
	seq int
}

// version returns the version if it is in the window that is read.
func (r versionRow) version() (v playbook.Version, ok bool) {
	if i := r.seq - r.s.data.From; i >= 0 && i < len(r.s.data.Versions) {
		return r.s.data.Versions[i], true
	}
	return v, false
}

// detail returns the whole version, or nil until it is read.
func (r versionRow) detail() *playbooks.VersionDetail {
	if at := r.s.chosen(); at != nil && at.Seq == r.seq {
		return at
	}
	return nil
}

func (r versionRow) key() string { return r.s.data.Branch.Name + " " + strconv.Itoa(r.seq) }

func (r versionRow) write(w *detailWriter) {
	if at := r.detail(); at != nil {
		w.version(at, r.source())
	}
}

func (r versionRow) source() *playbook.Source {
	at := r.detail()
	if at == nil || at.Seq == 0 || at.Branch != r.s.data.Branch.Name {
		return nil
	}
	v := at.Record
	return &playbook.Source{Branch: at.Branch, Seq: at.Seq, Hash: at.Hash, At: v.At, TaskID: v.TaskID,
		WorkflowID: v.WorkflowID, RunID: v.RunID}
}

func (r versionRow) copied() (what, text string) {
	if at := r.s.chosen(); at != nil {
		return "hash of v" + strconv.Itoa(at.Seq), at.Hash
	}
	return "", ""
}

func (r versionRow) Copies() []tui.Copy {
	name := r.s.data.Branch.Name + "@" + strconv.Itoa(r.seq)
	list := []tui.Copy{{Key: "i", What: "version", Text: name}, r.s.nav.CommandCopy("playbook", "show", name)}
	if v, ok := r.version(); ok {
		list = append(list, console.JSONCopy(v))
	}
	return list
}

func (r versionRow) words() []string {
	if v, ok := r.version(); ok {
		return []string{"v" + strconv.Itoa(r.seq), v.TaskID, v.Rationale, v.Hash}
	}
	return nil
}

func (r versionRow) wrong() bool {
	v, _ := r.version()
	return v.Removed > 0
}

type diffRow struct {
	kind   string // added, removed, changed
	bullet playbook.Bullet
	change *playbook.Change
}

func (r diffRow) key() string              { return r.bullet.ID }
func (r diffRow) write(w *detailWriter)    { w.difference(r) }
func (r diffRow) source() *playbook.Source { return nil }
func (r diffRow) copied() (string, string) { return "bullet " + r.bullet.ID, r.bullet.Content }
func (r diffRow) words() []string {
	return []string{r.bullet.ID, r.bullet.Section, r.bullet.Content}
}
func (r diffRow) wrong() bool { return r.kind == "removed" }

// onlyCounters reports whether only counters of the bullet changed.
func (r diffRow) onlyCounters() bool {
	return r.change != nil && !r.change.Content && !r.change.Moved && !r.change.Extra
}

// diffRows returns the bullets that differ. Bullets of which only counters differ come last.
func diffRows(d *playbook.Difference) (rows []row) {
	var counters []row
	for _, b := range d.Removed {
		rows = append(rows, diffRow{"removed", b, nil})
	}
	for i := range d.Changed {
		if r := (diffRow{"changed", d.Changed[i].After, &d.Changed[i]}); r.onlyCounters() {
			counters = append(counters, r)
		} else {
			rows = append(rows, r)
		}
	}
	for _, b := range d.Added {
		rows = append(rows, diffRow{"added", b, nil})
	}
	return append(rows, counters...)
}

type findingRow struct {
	s *browser
	*playbook.Finding
}

func (r findingRow) key() string              { return r.Text }
func (r findingRow) write(w *detailWriter)    { w.found(r.Finding) }
func (r findingRow) copied() (string, string) { return "finding", r.Text + " " + r.Advice }
func (r findingRow) wrong() bool              { return r.Severity == playbook.SeverityError }

func (r findingRow) words() []string {
	return []string{string(r.Kind), r.Text, strings.Join(r.BulletIDs, " ")}
}

func (r findingRow) source() *playbook.Source {
	if r.By != nil || len(r.BulletIDs) == 0 {
		return r.By
	}
	if b := r.s.byID[r.BulletIDs[0]]; b != nil {
		return b.Added
	}
	return nil
}

// newTables returns the tables by mode.
func newTables(g theme.Glyphs) [4]*widget.Table {
	return [4]*widget.Table{
		bulletMode: widget.NewTable(
			widget.Heading{Title: "BULLET", Width: 12},
			widget.Heading{Title: g.Added, Width: 4, Right: true},
			widget.Heading{Title: g.Removed, Width: 3, Right: true},
			widget.Heading{Title: "TREND", Width: 8, Drop: 2},
			widget.Heading{Title: "AGE", Width: 5, Right: true, Drop: 3},
			widget.Heading{Title: "SECTION", Width: 14, Drop: 4},
			widget.Heading{Title: "TEXT", Minimum: 32}),
		versionMode: widget.NewTable(
			widget.Heading{Title: " ", Width: 1},
			widget.Heading{Title: "VERSION", Width: 7, Right: true},
			widget.Heading{Title: "AGE", Width: 5, Right: true, Drop: 2},
			widget.Heading{Title: "TASK", Minimum: 12},
			widget.Heading{Title: g.Delta, Width: 9},
			widget.Heading{Title: "BULLETS", Width: 7, Right: true, Drop: 1},
			widget.Heading{Title: "WHY", Minimum: 20, Drop: 3}),
		diffMode: widget.NewTable(
			widget.Heading{Title: " ", Width: 1},
			widget.Heading{Title: "BULLET", Width: 12},
			widget.Heading{Title: "CHANGE", Width: 22, Drop: 1},
			widget.Heading{Title: "TEXT", Minimum: 20}),
		HealthMode: widget.NewTable(
			widget.Heading{Title: "SEVERITY", Width: 8},
			widget.Heading{Title: "KIND", Width: 19, Drop: 1},
			widget.Heading{Title: "BULLETS", Width: 7, Right: true, Drop: 2},
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

func (r bulletRow) cells(now time.Time, s theme.Styles) []widget.Cell {
	b := r.Bullet
	age := s.Glyphs.Dash
	if r.Added != nil {
		age = text.Span(now.Sub(r.Added.At))
	}
	return []widget.Cell{
		{text.Safe(b.ID, " "), s.Accent},
		{strconv.Itoa(b.Helpful), widget.If(b.Helpful == 0, s.Muted, s.Added)},
		{strconv.Itoa(b.Harmful), widget.If(!r.wrong(), s.Muted, s.Error)},
		{trend(r.BulletHistory, r.seq, trendWidth, s.Glyphs), s.Muted},
		{age, s.Muted}, {text.Safe(b.Section, " "), s.Muted}, {oneLine(b.Content), s.Text},
	}
}

// oneLine returns the beginning of a text as safe text on one line.
func oneLine(t string) string {
	return strings.Join(strings.Fields(text.Safe(t[:min(len(t), 600)], " ")), " ")
}

func (r versionRow) cells(now time.Time, s theme.Styles) []widget.Cell {
	g := s.Glyphs
	mark := widget.Cell{" ", s.Text}
	if slices.Contains(r.s.marks, playbooks.VersionRef{Branch: r.s.data.Branch.Name, Seq: r.seq}) {
		mark = widget.Cell{g.Running, s.Accent}
	}
	number := widget.Cell{"v" + strconv.Itoa(r.seq), s.Accent}
	v, ok := r.version()
	switch {
	case r.seq == 0:
		return []widget.Cell{mark, number, {}, {"first version", s.Muted}, {g.Dash, s.Muted}, {},
			{"the first version of the branch", s.Muted}}
	case !ok:
		return []widget.Cell{mark, number, {}, {"reading" + g.Ellipsis, s.Muted}, {}, {}, {}}
	}
	return []widget.Cell{mark, number, {text.Span(now.Sub(v.At)), s.Muted},
		{console.OrDash(strings.TrimPrefix(v.TaskID, v.Branch+"-"), g), s.Text},
		{console.VersionDelta(v, g), widget.If(v.Hash == v.Parent, s.Muted, s.Text)},
		{ace.Number(v.Bullets), s.Text}, {oneLine(v.Rationale), s.Muted}}
}

func (r diffRow) cells(_ time.Time, s theme.Styles) []widget.Cell {
	m := s.Operation(r.operation())
	return []widget.Cell{{m.Glyph, m.Ink}, {text.Safe(r.bullet.ID, " "), m.Ink}, {whatChanged(r), s.Muted},
		{oneLine(r.bullet.Content), widget.If(r.onlyCounters(), s.Muted, m.Ink)}}
}

// operation returns the type of operation that would cause the difference.
func (r diffRow) operation() string {
	switch {
	case r.kind == "added":
		return string(ace.OpAdd)
	case r.kind == "removed":
		return string(ace.OpRemove)
	case r.onlyCounters():
		return string(ace.OpTag)
	}
	return string(ace.OpUpdate)
}

// counter is a counter of a bullet in both versions.
type counter struct {
	name          string
	before, after int
}

// counters returns the counters of a bullet that changed.
func counters(c *playbook.Change) []counter {
	all := []counter{{"helpful", c.Before.Helpful, c.After.Helpful},
		{"harmful", c.Before.Harmful, c.After.Harmful},
		{"neutral", c.Before.Neutral, c.After.Neutral}}
	return slices.DeleteFunc(all, func(n counter) bool { return n.before == n.after })
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
	for _, n := range counters(c) {
		parts = append(parts, n.name+" "+signedCount(n.after-n.before))
	}
	return strings.Join(parts, " ")
}

// signedCount formats a number other than 0 with its sign.
func signedCount(n int) string { return fmt.Sprintf("%+d", n) }

func (r findingRow) cells(_ time.Time, s theme.Styles) []widget.Cell {
	glyph, ink := findingMark(r.Finding, s)
	bullets := s.Glyphs.Dash
	if n := len(r.BulletIDs) + r.More; n > 0 {
		bullets = ace.Number(n)
	}
	return []widget.Cell{{glyph + " " + string(r.Severity), ink}, {string(r.Kind), s.Text},
		{bullets, s.Muted},
		{oneLine(r.Text), s.Text}}
}

func findingMark(f *playbook.Finding, s theme.Styles) (string, theme.Ink) {
	switch f.Severity {
	case playbook.SeverityError:
		return s.Glyphs.Failed, s.Error
	case playbook.SeverityWarning:
		return s.Glyphs.Unknown, s.Warning
	}
	return s.Glyphs.Dot, s.Muted
}
