// Package verify lists the verdicts of replaying many runs with the current workflow code.
package verify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/engine/temporal/replay"
	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
	"acescope/views/timemachine"
)

// list lists verified runs, those that do not match first.
type list struct {
	nav      *console.Navigation
	verifier *console.Verifier
	controls console.Controls
	feed     console.Value[*histories.Verified]
	stepTo   func(event int64) // shows an event in the time machine
	console.List[*histories.VerifiedRun]
	data *histories.Verified // newest, nil before the first verification
	only string              // outcome, "" for all
}

// Screen returns the screen of verified runs. stepTo shows an event in the time machine.
func Screen(c *console.Console, feed console.Value[*histories.Verified],
	stepTo func(event int64)) tui.Screen {
	v := &list{nav: c.Navigation, verifier: c.Verifier, controls: c.Controls, feed: feed, stepTo: stepTo,
		List: console.NewList[*histories.VerifiedRun]("Verified",
			widget.Heading{Title: "VERDICT", Width: 18},
			widget.Heading{Title: "RUN", Minimum: 14},
			widget.Heading{Title: "AT EVENT", Width: 8, Right: true},
			widget.Heading{Title: "HISTORY", Minimum: 16, Drop: 2},
			widget.Heading{Title: "CODE", Minimum: 16, Drop: 1},
			widget.Heading{Title: "EVENTS", Width: 7, Right: true, Drop: 3})}
	return tui.Screen{Name: "verified", Help: "the verdicts of verifying several runs", Aside: true,
		Share: 58, Views: []tui.View{v, &detail{v: v, Reader: console.NewReader("Verdict", c.Location)}}}
}

func (v *list) Title() string { return "Verified runs" }

func (v *list) Footer() string {
	return v.Join(widget.If(v.only != "" && v.Table.Rows > 0, "only "+v.only, ""), v.Table.Position())
}

func (v *list) Bindings() []tui.Binding {
	return append(widget.Motions("verified", v), v.keys("verified")...)
}

// keys returns the keys of both panes.
func (v *list) keys(view string) []tui.Binding {
	next := func(by int) func(tui.Shell) {
		differs := func(r *histories.VerifiedRun) bool {
			return r.Verdict.Outcome != replay.Deterministic
		}
		return func(s tui.Shell) { v.Next(s, by, differs, "all other listed runs match") }
	}
	return []tui.Binding{
		console.Key(view+".open", "open the run in the time machine, at the event where it diverges",
			"open", v.open, "enter"),
		console.Key(view+".event", "go to that event on the timeline; esc leads back", "timeline",
			v.toTimeline, "J"),
		console.Key(view+".next_error", "next run that does not match", "", next(1), "e"),
		console.Key(view+".previous_error", "previous run that does not match", "", next(-1), "E"),
		console.Key(view+".filter", "show only runs of one verdict, or all", "filter", v.nextFilter, "F"),
		console.Key(view+".verify", "verify the runs again", "again", func(s tui.Shell) { v.again(s, false) },
			"r"),
		console.Key(view+".strict",
			"verify the runs again with strict on or off; strict also reports differences that Temporal accepts",
			"strict", func(s tui.Shell) { v.again(s, true) }, "&"),
	}
}

func (v *list) Commands() []tui.Command {
	return []tui.Command{{Name: "verify", Args: "[all] [strict]",
		Help: "verify the marked runs, or the selected one; all: every run of the list's filter",
		Complete: func(typed string) []string {
			return console.WithPrefix(typed, []string{"all", "all strict", "strict"})
		}, Do: v.command}}
}

func (v *list) command(s tui.Shell, args string) tea.Cmd {
	all, strict := false, false
	for _, word := range strings.Fields(args) {
		switch word {
		case "all":
			all = true
		case "strict":
			strict = true
		default:
			return console.Failed("verify", fmt.Errorf("unknown argument %q; use all or strict", word))
		}
	}
	if all {
		v.verifier.VerifyAll(s, strict)
		return nil
	}
	v.verifier.Verify(s, strict)
	return nil
}

func (v *list) again(s tui.Shell, other bool) {
	if v.data == nil {
		s.Note("no runs verified yet")
		return
	}
	w := v.data.Request
	w.Strict = w.Strict != other
	v.controls.VerifyRuns(w)
}

func (v *list) Refresh() {
	if next := v.feed.Value(); next != nil && next != v.data {
		v.data = next
		v.arrange()
	}
}

// arrange filters the rows. The cursor stays on its run.
func (v *list) arrange() {
	var rows []*histories.VerifiedRun
	for i := range v.data.Rows {
		if r := &v.data.Rows[i]; v.only == "" || string(r.Verdict.Outcome) == v.only {
			rows = append(rows, r)
		}
	}
	v.Refill(rows, func(a, b *histories.VerifiedRun) bool { return a.Run.ID() == b.Run.ID() })
}

func (v *list) nextFilter() {
	outcomes := []string{"", string(replay.Nondeterministic), string(replay.Drifted),
		string(replay.Unverified), string(replay.Deterministic)}
	v.only = outcomes[(slices.Index(outcomes, v.only)+1)%len(outcomes)]
	if v.data != nil {
		v.arrange()
	}
}

// show selects the run under the cursor, and returns it with the event where it diverges, or 0.
func (v *list) show() (r *histories.VerifiedRun, event int64, ok bool) {
	if r, ok = v.Current(); !ok {
		return r, 0, false
	}
	v.nav.Show(r.Run)
	if d := r.Verdict.Divergence; d != nil {
		event = d.EventID
	}
	return r, event, true
}

// open shows the run in the time machine, at the event where it diverges or at its end.
func (v *list) open(s tui.Shell) {
	r, event, ok := v.show()
	if !ok {
		return
	}
	v.stepTo(event)
	s.Open("replay")
	if r.Verdict.Outcome != replay.Deterministic {
		s.Focus(1) // the pane with the verdict
	}
}

func (v *list) toTimeline(s tui.Shell) {
	if _, event, ok := v.show(); ok {
		v.nav.Event = event
		s.Open("timeline")
	}
}

func (v *list) Copy() (what, copied string) {
	r, ok := v.Current()
	if !ok {
		return "", ""
	}
	summary := r.Run.WorkflowID + " " + r.Run.RunID + " " + string(r.Verdict.Outcome)
	if d := r.Verdict.Divergence; d != nil {
		summary += " " + d.Sentence
	} else if r.Verdict.Why != "" {
		summary += " " + r.Verdict.Why
	}
	return "verdict", summary
}

func (v *list) Copies() []tui.Copy {
	r, _ := v.Current()
	return append(v.nav.RunCopies(r.Run), console.JSONCopy(r.Verdict))
}

func (v *list) Draw(now time.Time, focused bool) []string {
	d := v.data
	if d == nil {
		return v.Message(nil, "no runs verified yet",
			"in the list of runs, space marks, r verifies the marked runs, V all of the filter")
	}
	return v.DrawRows([]string{v.counts(d), v.scope(d, now)}, focused, v.cells)
}

// counts shows the progress and the number of runs per verdict.
func (v *list) counts(d *histories.Verified) string {
	s := v.Styles
	l := v.Line().Add(s.Strong, " "+ace.Number(d.Done))
	if (d.Ended.IsZero() || d.Incomplete) && d.Total > 0 {
		l.Add(s.Text, " of "+ace.Number(max(d.Total, d.Done)))
	}
	l.Add(s.Text, "  ").Add(s.Success, ace.Number(d.Deterministic)+" deterministic")
	for _, c := range []struct {
		n    int64
		name string
		ink  theme.Ink
	}{{d.Nondeterministic, "nondeterministic", s.Error}, {d.Drifted, "drifted", s.Warning},
		{d.Unverified, "unverified", s.Warning}} {
		if c.n > 0 {
			l.Add(c.ink, "  "+ace.Number(c.n)+" "+c.name)
		}
	}
	if n := d.Dropped(); n > 0 {
		l.Add(s.Muted, "  ("+ace.Number(n)+" counted, not listed)")
	}
	return l.String(s.Text)
}

// scope shows which runs were verified, how they were verified, and how long that took.
func (v *list) scope(d *histories.Verified, now time.Time) string {
	s := v.Styles
	l := v.Line()
	duration := d.Ended.Sub(d.Began)
	switch {
	case d.Err != "":
		l.Add(s.Error, " "+s.Glyphs.Failed+" "+text.Safe(d.Err, " ")+"  ")
	case d.Ended.IsZero():
		duration = now.Sub(d.Began)
		l.Add(s.Running, " verifying  ")
	case d.Incomplete:
		l.Add(s.Warning, " stopped before the end  ")
	}
	l.Add(s.Muted, " "+timemachine.Comparing(d.Request.Strict)+" "+s.Glyphs.Dot+" "+scopeOf(d.Request))
	if duration > 0 && d.Events > 0 {
		l.Add(s.Muted, fmt.Sprintf(" %s %s events in %s", s.Glyphs.Dot, ace.Number(d.Events),
			text.Duration(duration)))
	}
	return l.String(s.Text)
}

func scopeOf(w histories.VerifyRequest) string {
	switch n := len(w.Runs); {
	case n > 0:
		return ace.Count(n, "marked run")
	case w.Query == "":
		return "all runs"
	}
	return text.Safe(w.Query, " ")
}

func (v *list) cells(r *histories.VerifiedRun) []widget.Cell {
	s := v.Styles
	event, has, does := "", "", text.Safe(r.Verdict.Why, " ")
	if r.More > 0 {
		does = "and " + ace.Number(r.More) + " more: " + does
	}
	if d := r.Verdict.Divergence; d != nil {
		if d.EventID > 0 {
			event = ace.Number(d.EventID)
		}
		has, does = command(d.Expected, d.Kind), command(d.Actual, d.Kind)
	}
	mark, ink := s.Glyphs.Success, s.Success
	switch r.Verdict.Outcome {
	case replay.Nondeterministic:
		mark, ink = s.Glyphs.Failed, s.Error
	case replay.Drifted, replay.Unverified:
		mark, ink = s.Glyphs.Unknown, s.Warning
	}
	same := r.Verdict.Divergence == nil
	return []widget.Cell{{mark + " " + string(r.Verdict.Outcome), ink}, {console.NameOf(r.Run), s.Text},
		{event, s.Text}, {has, widget.If(same, s.Muted, s.Removed)},
		{does, widget.If(same, s.Muted, s.Added)},
		{ace.Number(r.Verdict.Events), s.Muted}}
}

// command formats a command, with its input only if the input differs.
func command(c *replay.Command, kind replay.Kind) string {
	if c != nil && kind != replay.KindChanged {
		short := *c
		short.Detail = ""
		c = &short
	}
	return text.Safe(c.String(), " ")
}

// detail shows the whole verdict on the run under the cursor.
type detail struct {
	v *list
	console.Reader
}

func (d *detail) Title() string {
	if r, ok := d.v.Current(); ok {
		return "Verdict of " + console.NameOf(r.Run)
	}
	return "Verdict"
}

func (d *detail) Bindings() []tui.Binding {
	return append(widget.Motions("verdict", d), d.v.keys("verdict")...)
}

func (d *detail) Copy() (string, string) { return d.v.Copy() }

func (d *detail) Draw(now time.Time, focused bool) []string {
	r, ok := d.v.Current()
	if !ok {
		return d.Message(nil, "no run is selected")
	}
	return d.Show(r.Run.ID(), nil, now, focused, func(w *widget.Writer) {
		timemachine.Verdict(w, &r.Verdict, d.v.data.Request.Strict)
		w.Section("Run", "")
		w.Prose("   workflow  ", w.S.Text, text.Safe(r.Run.WorkflowID, " "))
		w.Prose("   run       ", w.S.Text, text.Safe(r.Run.RunID, " "))
		w.Prose("   type      ", w.S.Text, text.Safe(r.Verdict.WorkflowType, " "))
		if r.More > 0 {
			w.Prose("   not listed", w.S.Text, ace.Number(r.More)+" more runs for the same reason")
		}
		w.Say(w.S.Muted, "")
		w.Say(w.S.Muted, " "+w.S.Glyphs.Enter+" opens it in the time machine, J on the timeline")
	})
}
