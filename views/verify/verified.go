// Package verify lists the verdicts of replaying many runs with the current workflow code.
package verify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
	"acescope/views/timemachine"
)

// verified lists what verifying many runs has found, what is not the same first.
type verified struct {
	nav           *console.Navigation
	actor         *console.Actor
	controls      console.Controls
	location      *time.Location
	feed          console.Value[*histories.Verified]
	stepTo        func(event int64) // in the time machine
	styles        theme.Styles
	width, height int
	data          *histories.Verified // newest, nil before anybody asked
	table         *widget.Table
	only          string // outcome, "" for all
	rows          []int  // of the data, as far as they fit only
	of            *histories.Verified
	ofOnly        string
}

// verifiedHead is how many lines stand above the list.
const verifiedHead = 2

func VerifiedScreen(c *console.Console, feed console.Value[*histories.Verified], stepTo func(event int64)) tui.Screen {
	v := &verified{nav: c.Navigation, actor: c.Actor, controls: c.Controls, location: c.Location, feed: feed, stepTo: stepTo, table: widget.NewTable(
		widget.Heading{Title: "VERDICT", Width: 12},
		widget.Heading{Title: "RUN", Minimum: 14},
		widget.Heading{Title: "AT EVENT", Width: 8, Right: true},
		widget.Heading{Title: "THE HISTORY HAS", Minimum: 16, Drop: 2},
		widget.Heading{Title: "THE CODE DOES", Minimum: 16, Drop: 1},
		widget.Heading{Title: "EVENTS", Width: 7, Right: true, Drop: 3},
	)}
	return tui.Screen{Name: "verified", Help: "what verifying several runs has found", Aside: true, Share: 58, Views: []tui.View{v, &verifiedDetail{v: v}}}
}

func (v *verified) Name() string  { return "Verified" }
func (v *verified) Title() string { return "Verified runs" }

func (v *verified) Footer() string {
	v.arrange()
	if v.only != "" && v.table.Rows > 0 {
		return "only " + v.only + " " + v.styles.Glyphs.Dot + " " + v.table.Position()
	}
	return v.table.Position()
}

func (v *verified) Bindings() []tui.Binding {
	return append(widget.Motions("verified", v), v.keys("verified")...)
}

// keys work in both panes.
func (v *verified) keys(view string) []tui.Binding {
	b := func(name, help, short string, do func(tui.Shell), keys ...string) tui.Binding {
		return tui.Binding{Action: view + "." + name, Keys: keys, Help: help, Short: short, Do: func(s tui.Shell) tea.Cmd { do(s); return nil }}
	}
	return []tui.Binding{
		b("open", "open the run in the time machine, at the event where it diverges", "open there", v.open, "enter", "o"),
		b("event", "go to that event on the timeline; esc leads back", "timeline", v.toTimeline, "J"),
		b("next", "the next run that is not the same", "", func(s tui.Shell) { v.jump(s, 1) }, "e", "n"),
		b("previous", "the one before", "", func(s tui.Shell) { v.jump(s, -1) }, "E", "N"),
		b("filter", "only runs of one verdict, or all again", "filter", func(tui.Shell) { v.nextFilter() }, "f"),
		b("again", "verify them again", "again", func(s tui.Shell) { v.again(s, false) }, "r"),
		b("strict", "verify them again strictly: what Temporal lets pass counts too; or no longer so", "strict", func(s tui.Shell) { v.again(s, true) }, "S"),
	}
}

// Commands are those that verify.
func (v *verified) Commands() []tui.Command {
	return []tui.Command{{Name: "verify", Args: "[all] [strict]", Help: "verify the marked runs, or the selected one; all: every run of the list's filter",
		Complete: func(typed string) []string {
			return slices.DeleteFunc([]string{"all", "all strict", "strict"}, func(o string) bool { return !strings.HasPrefix(o, typed) })
		}, Do: v.command}}
}

func (v *verified) command(s tui.Shell, args string) tea.Cmd {
	all, strict := false, false
	for _, word := range strings.Fields(args) {
		switch word {
		case "all":
			all = true
		case "strict":
			strict = true
		default:
			return console.Failed("verify", fmt.Errorf("%q: say all, strict, both, or nothing", word))
		}
	}
	if all {
		v.actor.VerifyAll(s, strict)
		return nil
	}
	v.actor.Verify(s, strict)
	return nil
}

func (v *verified) again(s tui.Shell, other bool) {
	if v.data == nil {
		s.Note("nothing was verified yet")
		return
	}
	w := v.data.Of
	w.Strict = w.Strict != other
	v.controls.VerifyRuns(w)
}

func (v *verified) Update(tea.Msg) tea.Cmd   { return nil }
func (v *verified) SetStyles(s theme.Styles) { v.styles = s }
func (v *verified) Page() int                { return v.table.Page() }
func (v *verified) Refresh()                 { v.data = v.feed.Value() }

func (v *verified) SetSize(width, height int) {
	v.width, v.height = width, height
	v.table.SetSize(width, max(height-verifiedHead, 1))
}

func (v *verified) Scroll(by int) {
	v.arrange()
	v.table.Scroll(by)
}

// arrange chooses the rows. The cursor stays on the run it was on.
func (v *verified) arrange() {
	if v.of == v.data && v.ofOnly == v.only {
		return
	}
	was, had := v.current()
	v.of, v.ofOnly, v.rows = v.data, v.only, v.rows[:0]
	if v.data == nil {
		v.table.SetRows(0)
		return
	}
	for i := range v.data.Rows {
		r := &v.data.Rows[i]
		if v.only != "" && string(r.Verdict.Outcome) != v.only {
			continue
		}
		if had && console.KeyOf(&r.Run) == console.KeyOf(&was.Run) {
			v.table.Cursor = len(v.rows)
		}
		v.rows = append(v.rows, i)
	}
	v.table.SetRows(len(v.rows))
}

// current is the run under the cursor, of what is arranged.
func (v *verified) current() (histories.VerifiedRun, bool) {
	if v.of == nil || v.table.Cursor >= len(v.rows) {
		return histories.VerifiedRun{}, false
	}
	return v.of.Rows[v.rows[v.table.Cursor]], true
}

func (v *verified) nextFilter() {
	outcomes := []string{"", string(histories.VerifyDiverged), string(histories.VerifyDrifted), string(histories.VerifyUnverified), string(histories.VerifySame)}
	v.only = outcomes[(slices.Index(outcomes, v.only)+1)%len(outcomes)]
}

func (v *verified) jump(s tui.Shell, by int) {
	v.arrange()
	for at := v.table.Cursor + by; at >= 0 && at < len(v.rows); at += by {
		if v.of.Rows[v.rows[at]].Verdict.Outcome != histories.VerifySame {
			v.table.Scroll(at - v.table.Cursor)
			return
		}
	}
	s.Note("there is no other that is not the same")
}

// open shows the run where it diverges; another one as of its end.
func (v *verified) open(s tui.Shell) {
	v.arrange()
	r, ok := v.current()
	if !ok {
		return
	}
	v.nav.Show(r.Run)
	event := int64(0)
	if d := r.Verdict.Divergence; d != nil {
		event = d.EventID
	}
	v.stepTo(event)
	s.Open("replay")
	if r.Verdict.Outcome != histories.VerifySame {
		s.Focus(1) // the verdict stands there
	}
}

func (v *verified) toTimeline(s tui.Shell) {
	v.arrange()
	r, ok := v.current()
	if !ok {
		return
	}
	v.nav.Show(r.Run)
	if d := r.Verdict.Divergence; d != nil {
		v.nav.Event = d.EventID
	}
	s.Open("timeline")
}

// Copy is what was found of the run under the cursor.
func (v *verified) Copy() (what, copied string) {
	v.arrange()
	r, ok := v.current()
	if !ok {
		return "", ""
	}
	said := r.Run.WorkflowID + " " + r.Run.RunID + " " + string(r.Verdict.Outcome)
	if d := r.Verdict.Divergence; d != nil {
		said += " " + d.Sentence
	} else if r.Verdict.Why != "" {
		said += " " + r.Verdict.Why
	}
	return "the verdict", said
}

func (v *verified) Draw(now time.Time, focused bool) []string {
	v.arrange()
	d := v.data
	if d == nil {
		return widget.Centre([]string{"nothing was verified yet", "on the list of runs: space marks, r verifies the marked ones, V all of the filter"}, v.width, v.height, v.styles)
	}
	lines := []string{v.counts(d), v.scope(d, now)}
	return widget.Fill(append(lines, v.table.Draw(v.styles, focused, func(i int) []widget.Cell { return v.cells(&d.Rows[v.rows[i]]) })...), v.width, v.height)
}

// counts is how far it is and what was found.
func (v *verified) counts(d *histories.Verified) string {
	s := v.styles
	l := &text.Line{Max: v.width, Tail: s.Glyphs.Ellipsis}
	l.Add(s.Strong, " "+text.Count(d.Done))
	if d.Ended.IsZero() || d.Broken {
		if d.Total > 0 {
			l.Add(s.Text, " of "+text.Count(max(d.Total, d.Done)))
		}
	}
	l.Add(s.Text, " verified  ").Add(s.Success, text.Count(d.Same)+" same")
	for _, c := range []struct {
		n    int64
		name string
		ink  theme.Ink
	}{{d.Diverged, "diverged", s.Error}, {d.Drifted, "drifted", s.Warning}, {d.Unverified, "unverified", s.Warning}} {
		ink := c.ink
		if c.n == 0 {
			ink = s.Muted
		}
		l.Add(ink, "  "+text.Count(c.n)+" "+c.name)
	}
	if n := d.Dropped(); n > 0 {
		l.Add(s.Muted, "  ("+text.Count(n)+" counted, not listed)")
	}
	return text.Fit(l.String(s.Text), v.width, s.Glyphs.Ellipsis)
}

// scope is what was verified, how, and whether it goes on.
func (v *verified) scope(d *histories.Verified, now time.Time) string {
	s := v.styles
	l := &text.Line{Max: v.width, Tail: s.Glyphs.Ellipsis}
	took := d.Ended.Sub(d.Began)
	switch {
	case d.Err != "":
		l.Add(s.Error, " "+s.Glyphs.Failed+" "+text.Safe(d.Err, " ")+"  ")
	case d.Ended.IsZero():
		took = now.Sub(d.Began)
		l.Add(s.Running, " verifying  ")
	case d.Broken:
		l.Add(s.Warning, " stopped before the end  ")
	}
	l.Add(s.Muted, " "+timemachine.Judged(d.Of.Strict)+" "+s.Glyphs.Dot+" "+scopeOf(d.Of))
	if took > 0 && d.Events > 0 {
		l.Add(s.Muted, fmt.Sprintf(" %s %s events in %s", s.Glyphs.Dot, text.Count(d.Events), text.Took(took)))
	}
	return text.Fit(l.String(s.Text), v.width, s.Glyphs.Ellipsis)
}

func scopeOf(w histories.VerifyWish) string {
	switch n := len(w.Runs); {
	case n == 1:
		return "1 marked run"
	case n > 1:
		return text.Count(int64(n)) + " marked runs"
	case w.Query == "":
		return "all runs"
	}
	return text.Safe(w.Query, " ")
}

func (v *verified) cells(r *histories.VerifiedRun) []widget.Cell {
	s := v.styles
	event, has, does := "", "", text.Safe(r.Verdict.Why, " ")
	if d := r.Verdict.Divergence; d != nil {
		event, has, does = text.Count(d.EventID), command(d.Expected, d.Kind), command(d.Actual, d.Kind)
	}
	mark, ink := s.Glyphs.Success, s.Success
	switch r.Verdict.Outcome {
	case histories.VerifyDiverged:
		mark, ink = s.Glyphs.Failed, s.Error
	case histories.VerifyDrifted, histories.VerifyUnverified:
		mark, ink = s.Glyphs.Unknown, s.Warning
	}
	all := []widget.Cell{{mark + " " + string(r.Verdict.Outcome), ink}, {console.NameOf(r.Run), s.Text}, {event, s.Text}, {has, s.Removed}, {does, s.Added},
		{text.Count(int64(r.Verdict.Events)), s.Muted}}
	if r.Verdict.Divergence == nil {
		all[3].Ink, all[4].Ink = s.Muted, s.Muted
	}
	return all
}

// command is a decision in few words: its input only where that is what differs.
func command(c *histories.VerifyCommand, kind histories.VerifyKind) string {
	if c != nil && kind != histories.VerifyChanged {
		short := *c
		short.Detail = ""
		c = &short
	}
	return text.Safe(c.String(), " ")
}

// verifiedDetail is the verdict of the run under the cursor, whole.
type verifiedDetail struct {
	v             *verified
	styles        theme.Styles
	width, height int
	top, lines    int
	doc           widget.Document
	of            console.RowKey
}

func (d *verifiedDetail) Name() string { return "Verdict" }

func (d *verifiedDetail) Title() string {
	if r, ok := d.v.current(); ok {
		return "Verdict of " + console.NameOf(r.Run)
	}
	return "Verdict"
}

func (d *verifiedDetail) Footer() string { return "" }

func (d *verifiedDetail) Bindings() []tui.Binding {
	return append(widget.Motions("verdict", d), d.v.keys("verdict")...)
}

func (d *verifiedDetail) Update(tea.Msg) tea.Cmd    { return nil }
func (d *verifiedDetail) SetStyles(s theme.Styles)  { d.styles = s }
func (d *verifiedDetail) SetSize(width, height int) { d.width, d.height = width, height }
func (d *verifiedDetail) Refresh()                  {}
func (d *verifiedDetail) Page() int                 { return max(d.height, 1) }
func (d *verifiedDetail) Scroll(by int)             { d.top = widget.Clamp(d.top+by, 0, max(d.lines-d.height, 0)) }
func (d *verifiedDetail) Copy() (string, string)    { return d.v.Copy() }

func (d *verifiedDetail) Draw(now time.Time, _ bool) []string {
	d.v.arrange()
	r, ok := d.v.current()
	if !ok {
		return widget.Centre([]string{"no run is chosen"}, d.width, d.height, d.styles)
	}
	if key := console.KeyOf(&r.Run); key != d.of {
		d.of, d.top = key, 0
	}
	w := &widget.Writer{Doc: &d.doc, S: d.styles, Width: d.width, Now: now, Loc: d.v.location}
	timemachine.Verdict(w, &r.Verdict, d.v.of.Of.Strict)
	w.Section("Run", "")
	w.Prose("   workflow  ", w.S.Text, text.Safe(r.Run.WorkflowID, " "))
	w.Prose("   run       ", w.S.Text, text.Safe(r.Run.RunID, " "))
	w.Prose("   type      ", w.S.Text, text.Safe(r.Verdict.WorkflowType, " "))
	w.Say(w.S.Muted, "")
	w.Say(w.S.Muted, " "+w.S.Glyphs.Enter+" opens it in the time machine, J on the timeline")
	d.lines = len(w.Lines)
	d.top = widget.Clamp(d.top, 0, max(d.lines-d.height, 0))
	lines := append([]string(nil), w.Lines[min(d.top, len(w.Lines)):min(d.top+max(d.height, 0), len(w.Lines))]...)
	for i := range lines {
		lines[i] = text.Fit(lines[i], d.width, d.styles.Glyphs.Ellipsis)
	}
	return widget.Fill(lines, d.width, d.height)
}
