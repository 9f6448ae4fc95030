package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/learning/playbook"
	"acescope/sources/costs"
	"acescope/sources/experiments"
	"acescope/sources/playbooks"
	"acescope/sources/runs"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
	experimentsview "acescope/views/experiments"
)

// Rows that a section shows unless there is room for more.
const (
	experimentLimit = 3
	attentionLimit  = 5
	learnedLimit    = 3
	costLimit       = 5
)

// waiting lists the tool calls and the runs that wait for the user.
func (v *overview) waiting() console.Section {
	s := console.Section{Name: "Waiting for you", Limit: attentionLimit}
	if a := v.feeds.Approvals.Value(); a != nil {
		for _, one := range a.Rows {
			s.Rows = append(s.Rows, approvalRow{v.nav, one})
		}
		for _, r := range a.Runs {
			s.Rows = append(s.Rows, waitingRow{v.nav, r})
		}
	}
	return s
}

// approvalRow is a tool call that waits for the user.
type approvalRow struct {
	nav *console.Navigation
	sessions.Approval
}

// Draw implements [console.Row].
func (r approvalRow) Draw(s theme.Styles, width int, plain bool, _ time.Time) string {
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis,
		widget.SizedCell{Text: s.Glyphs.Failed + " approval", Width: 11, Ink: s.Alert},
		widget.SizedCell{Text: text.Safe(cmp.Or(r.Name, r.ID), " "), Width: 16, Ink: s.Text},
		widget.SizedCell{Text: text.Safe(r.Call.Name+" "+string(r.Call.Args), " "), Ink: s.Text})
}

// Open implements [console.Row].
func (r approvalRow) Open(s tui.Shell) tea.Cmd {
	r.nav.OpenSession(s, session.WorkflowID(r.ID))
	return nil
}

// Copied implements [console.Row].
func (r approvalRow) Copied() (what, content string) { return "session id", r.ID }

// waitingRow is a run that waits for the review of its operations, or for the approval of a step.
type waitingRow struct {
	nav *console.Navigation
	runs.Run
}

// Draw implements [console.Row].
func (r waitingRow) Draw(s theme.Styles, width int, plain bool, now time.Time) string {
	word, why, left := "approval", text.Safe(r.Flow, " "), ""
	if m := r.Review; m != nil {
		word, why = "review", ace.Count(m.Operations, "operation")
		if m.Subject != "" {
			why += ": " + text.Safe(m.Subject, " ")
		}
		left = text.Span(max(m.Until.Sub(now), 0)) + " left"
	}
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis,
		widget.SizedCell{Text: s.Glyphs.Failed + " " + word, Width: 11, Ink: s.Alert},
		widget.SizedCell{Text: console.NameOf(r.Run), Width: 16, Ink: s.Text},
		widget.SizedCell{Text: why, Ink: s.Text},
		widget.SizedCell{Text: left, Width: -9, Ink: s.Warning})
}

// Open implements [console.Row].
func (r waitingRow) Open(s tui.Shell) tea.Cmd { return r.nav.OpenRun(s, r.Run) }

// Copied implements [console.Row].
func (r waitingRow) Copied() (what, content string) { return "workflow ID", r.WorkflowID }

// experiments lists the experiments, open ones first.
func (v *overview) experiments() console.Section {
	s := console.Section{Name: "Experiments", Limit: experimentLimit}
	data := v.feeds.Experiments.Value()
	if data == nil {
		return s
	}
	isFork := func(r experiments.Experiment) bool { // forks are listed on the scoreboard and in the lineage
		return strings.HasPrefix(r.Name(), ace.BatchPrefix) || strings.HasPrefix(r.Name(), ace.ForkBranch(""))
	}
	rows := slices.DeleteFunc(slices.Clone(data.Rows), isFork)
	slices.SortStableFunc(rows, func(a, b experiments.Experiment) int {
		if a.Open() != b.Open() {
			return map[bool]int{true: -1, false: 1}[a.Open()]
		}
		return b.Start.Compare(a.Start)
	})
	for _, r := range rows {
		s.Rows = append(s.Rows, experimentRow{v.chosen, r})
	}
	return s
}

// experimentRow is an experiment.
type experimentRow struct {
	chosen *experimentsview.Experiments
	experiments.Experiment
}

// Draw implements [console.Row].
func (r experimentRow) Draw(s theme.Styles, width int, plain bool, now time.Time) string {
	status := s.Status(string(r.Status))
	cells := []widget.SizedCell{
		{Text: status.Glyph + " " + text.Safe(r.Name(), " "), Ink: status.Ink},
		{Text: experimentsview.Tasks(r.Experiment, s.Glyphs), Width: -8, Ink: s.Text},
		{Text: experimentsview.Held(r.Experiment, s.Glyphs), Width: -28, Ink: s.Strong},
	}
	if width >= 60 {
		cells = append(cells, widget.SizedCell{Text: text.Span(now.Sub(r.Start)), Width: -5, Ink: s.Muted})
	}
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis, cells...)
}

// Open implements [console.Row].
func (r experimentRow) Open(s tui.Shell) tea.Cmd {
	r.chosen.Cursor = r.WorkflowID
	s.Open("experiments")
	return nil
}

// Copied implements [console.Row].
func (r experimentRow) Copied() (what, content string) { return "experiment id", r.Name() }

// Copies implements [tui.MultiCopier].
func (r experimentRow) Copies() []tui.Copy { return experimentsview.Copies(r.Experiment) }

// alone lists the open runs of the filter that belong to no experiment.
func (v *overview) alone() console.Section {
	s := console.Section{Name: "Other open runs", Limit: experimentLimit}
	if v.listing.Runs.Query != "" {
		s.Remark = "of the filter"
	}
	for _, r := range v.listing.Runs.Rows {
		if r.Open() && r.Experiment == "" && r.Type != ace.ExperimentWorkflow {
			s.Rows = append(s.Rows, openRow{v.nav, r})
		}
	}
	return s
}

// openRow is an open run.
type openRow struct {
	nav *console.Navigation
	runs.Run
}

// Draw implements [console.Row].
func (r openRow) Draw(s theme.Styles, width int, plain bool, now time.Time) string {
	status := console.StatusMark(r.Run, s)
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis,
		widget.SizedCell{Text: status.Glyph + " " + console.NameOf(r.Run), Width: 24, Ink: status.Ink},
		widget.SizedCell{Text: text.Safe(cmp.Or(r.Reason(), string(r.Phase), runs.TypeOf(r.Type)), " "),
			Ink: s.Muted},
		widget.SizedCell{Text: text.Span(now.Sub(r.Began())), Width: -5, Ink: s.Muted})
}

// Open implements [console.Row].
func (r openRow) Open(s tui.Shell) tea.Cmd { return r.nav.OpenRun(s, r.Run) }

// Copied implements [console.Row].
func (r openRow) Copied() (what, content string) { return "workflow ID", r.WorkflowID }

// attention lists retrying runs, causes of failures and wrong answers, the most harmful bullet, and steps
// that took much longer than usual.
func (v *overview) attention() console.Section {
	s := console.Section{Name: "Needs attention", Limit: attentionLimit}
	t := v.feeds.Triage.Value()
	if t == nil {
		return s
	}
	row := func(m theme.Mark, what, why string, since time.Time, run runs.Run) attentionRow {
		return attentionRow{v.nav, m, what, why, since, run}
	}
	st := v.Styles
	for _, r := range t.Retrying {
		m := st.Retry()
		m.Word = "retry #" + strconv.Itoa(int(r.Attempt))
		s.Rows = append(s.Rows, row(m, console.NameOf(r.Run), cmp.Or(r.LastError.Message, r.Activity),
			r.Since, r.Run))
	}
	for _, g := range t.Groups[:min(len(t.Groups), maxCauses)] {
		m := st.Status(string(g.Status))
		if g.Verdict != "" {
			m = st.Verdict(string(g.Verdict))
		}
		m.Word = ace.Number(g.Count) + " " + m.Word
		why := strings.TrimPrefix(cmp.Or(string(g.Phase), g.Activity)+": "+g.Pattern, ": ")
		s.Rows = append(s.Rows, causeRow{row(m, "", why, g.Last.At, g.Last.Run), g.Key()})
	}
	if b := v.harmful(); b != nil {
		s.Rows = append(s.Rows, bulletRow{v, b})
	}
	for _, p := range t.Phases {
		if p.Slow() {
			m := theme.Mark{Glyph: st.Glyphs.Pending, Word: "slow", Ink: st.Warning}
			s.Rows = append(s.Rows, row(m, p.Phase, widget.Milliseconds(p.Max, st.Glyphs)+" in "+
				console.NameOf(p.Worst)+
				", p95 is "+widget.Milliseconds(p.P95, st.Glyphs), p.Worst.Start, p.Worst))
		}
	}
	return s
}

// maxCauses bounds the listed causes; the triage lists all.
const maxCauses = 3

// causeRow is a cause of failures or wrong answers.
type causeRow struct {
	attentionRow
	finding string
}

// Open implements [console.Row].
func (r causeRow) Open(s tui.Shell) tea.Cmd {
	r.nav.Finding = r.finding
	s.Open("triage")
	return nil
}

// harmful returns the bullet of the newest playbook that was tagged harmful most often, or nil.
func (v *overview) harmful() (worst *playbook.BulletHistory) {
	b := v.feeds.Playbooks.Value()
	if b == nil || b.Version == nil {
		return nil
	}
	for i := range b.Version.Bullets {
		h := &b.Version.Bullets[i]
		if n := h.Bullet.Harmful; n > 0 && (worst == nil || n > worst.Bullet.Harmful) {
			worst = h
		}
	}
	return worst
}

// bulletRow is the most harmful bullet.
type bulletRow struct {
	v *overview
	*playbook.BulletHistory
}

// Draw implements [console.Row].
func (r bulletRow) Draw(s theme.Styles, width int, plain bool, _ time.Time) string {
	b := r.Bullet
	bullet := fmt.Sprintf("%s %+d %+d: %s", b.ID, b.Helpful, -b.Harmful, b.Content)
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis,
		widget.SizedCell{Text: s.Glyphs.Failed + " harmful", Width: 12, Ink: s.Warning},
		widget.SizedCell{Text: text.Safe(bullet, " "), Ink: s.Muted},
		widget.SizedCell{Text: "b", Width: -5, Ink: s.Key})
}

// Open implements [console.Row].
func (r bulletRow) Open(s tui.Shell) tea.Cmd {
	r.v.nav.Version, r.v.nav.Bullet = r.v.feeds.Playbooks.Value().Version.VersionRef, r.Bullet.ID
	s.Open("playbook")
	return nil
}

// Copied implements [console.Row].
func (r bulletRow) Copied() (what, content string) { return "bullet " + r.Bullet.ID, r.Bullet.Content }

// attentionRow is a run that is stuck, failed, wrong or slow, or the newest of several such runs.
type attentionRow struct {
	nav   *console.Navigation
	mark  theme.Mark
	what  string
	why   string
	since time.Time
	run   runs.Run
}

// Draw implements [console.Row].
func (r attentionRow) Draw(s theme.Styles, width int, plain bool, now time.Time) string {
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis,
		widget.SizedCell{Text: r.mark.Glyph + " " + text.Safe(r.mark.Word, " "), Width: 12, Ink: r.mark.Ink},
		widget.SizedCell{Text: text.Safe(strings.TrimPrefix(r.what+": "+r.why, ": "), " "), Ink: s.Muted},
		widget.SizedCell{Text: text.Span(now.Sub(r.since)), Width: -5, Ink: s.Muted})
}

// Open implements [console.Row].
func (r attentionRow) Open(s tui.Shell) tea.Cmd { return r.nav.OpenRun(s, r.run) }

// Copied implements [console.Row].
func (r attentionRow) Copied() (what, content string) { return "workflow ID", r.run.WorkflowID }

// Copies implements [tui.MultiCopier].
func (r attentionRow) Copies() []tui.Copy { return console.RunCopies(r.run) }

func (r attentionRow) shown() runs.Run { return r.run }

// learned lists the newest versions of the playbook that changed last.
func (v *overview) learned() console.Section {
	s := console.Section{Name: "Playbook", Limit: learnedLimit}
	b := v.feeds.Playbooks.Value()
	if b == nil {
		return s
	}
	s.Remark = text.Safe(b.Branch.Name, " ")
	for i := len(b.Versions) - 1; i >= 0 && len(s.Rows) < maxVersions; i-- {
		s.Rows = append(s.Rows, versionRow{v.nav, playbooks.VersionRef{Branch: b.Branch.Name, Seq: b.From +
			i},
			b.Versions[i]})
	}
	return s
}

// maxVersions bounds the listed versions; the screen of playbooks lists all.
const maxVersions = 20

// versionRow is a version of a playbook.
type versionRow struct {
	nav *console.Navigation
	at  playbooks.VersionRef
	playbook.Version
}

// Draw implements [console.Row].
func (r versionRow) Draw(s theme.Styles, width int, plain bool, now time.Time) string {
	changes := ace.Summary{Added: r.Added, Updated: r.Updated, Removed: r.Removed, Merged: r.Merged,
		Tagged: r.Tagged}
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis,
		widget.SizedCell{Text: "v" + strconv.Itoa(r.at.Seq), Width: 5, Ink: s.Text},
		widget.SizedCell{Text: console.DeltaCell(&changes, s.Glyphs), Width: 10, Ink: s.Accent},
		widget.SizedCell{Text: text.Safe(cmp.Or(r.Rationale, r.TaskID), " "), Ink: s.Muted},
		widget.SizedCell{Text: ace.Count(r.Bullets, "bullet"), Width: -11, Ink: s.Text},
		widget.SizedCell{Text: text.Span(now.Sub(r.At)), Width: -5, Ink: s.Muted})
}

// Open implements [console.Row].
func (r versionRow) Open(s tui.Shell) tea.Cmd {
	r.nav.Version = r.at
	s.Open("playbook")
	return nil
}

// Copied implements [console.Row].
func (r versionRow) Copied() (what, content string) { return "hash", r.Hash }

// costSection sums up what runs cost: today and this week, by experiment and by model of this week.
type costSection struct {
	of   *costs.Costs
	day  string
	rows []console.Row
}

// section sums up again if the runs or the day have changed.
func (c *costSection) section(of *costs.Costs, now time.Time) console.Section {
	s := console.Section{Name: "Cost", Limit: costLimit}
	if of == nil {
		return s
	}
	if day := transcripts.Today(now); c.of != of || c.day != day {
		c.of, c.day = of, day
		c.rows = costRows(of.Rows, day)
	}
	s.Rows = c.rows
	return s
}

// costRows returns the rows: today and this week, then the experiments and the models of the week.
func costRows(all []*transcripts.Session, day string) (rows []console.Row) {
	week := transcripts.CostQuery{By: transcripts.ByWeek, Key: transcripts.ByWeek.Period(day)}
	_, today := transcripts.Costs(all, transcripts.ByDay, transcripts.CostQuery{By: transcripts.ByDay,
		Key: day})
	experiments, total := transcripts.Costs(all, transcripts.ByExperiment, week)
	models, _ := transcripts.Costs(all, transcripts.ByModel, week)
	if total.Sessions == 0 {
		return nil
	}
	rows = []console.Row{costRow{"today", "", today}, costRow{"this week", "", total}}
	for _, e := range experiments[:min(len(experiments), maxCosts)] {
		rows = append(rows, costRow{"this week", cmp.Or(e.Key, "no experiment"), e})
	}
	for _, m := range models[:min(len(models), maxCosts)] {
		rows = append(rows, costRow{"this week", m.Key, m})
	}
	return rows
}

// maxCosts bounds the experiments and the models; the screen of costs lists all.
const maxCosts = 3

// costRow is the cost of a period, or of an experiment or a model in it.
type costRow struct {
	period string
	of     string
	transcripts.Cost
}

// Draw implements [console.Row].
func (r costRow) Draw(s theme.Styles, width int, plain bool, _ time.Time) string {
	u := r.Totals.Usage()
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis,
		widget.SizedCell{Text: r.period, Width: 10, Ink: s.Muted},
		widget.SizedCell{Text: text.Safe(r.of, " "), Ink: s.Text},
		widget.SizedCell{Text: console.CostCell(u, s.Glyphs), Width: -9, Ink: s.Strong},
		widget.SizedCell{Text: ace.Count(u.InputTokens+u.OutputTokens, "token"), Width: -17,
			Ink: s.Muted},
		widget.SizedCell{Text: ace.Count(r.Sessions, "run"), Width: -10, Ink: s.Muted})
}

// Open implements [console.Row].
func (r costRow) Open(s tui.Shell) tea.Cmd { s.Open("cost"); return nil }

// Copied implements [console.Row].
func (r costRow) Copied() (what, content string) {
	return "cost", strconv.FormatFloat(r.CostUSD, 'f', -1, 64)
}

// step is something to do next: a screen, an action of the overview, or a command for the shell.
type step struct {
	key, screen, command, does string
	do                         func(tui.Shell) tea.Cmd // nil for a screen or a command
}

func (v *overview) steps() []console.Row {
	return []console.Row{
		step{key: "d", does: "demo: watch a program learn; needs no API key", do: v.askDemo},
		step{key: "n", does: "new experiment or task: opens a form", do: v.launcher.AskLaunch},
		step{key: "o", does: "open an exported history", do: v.openFile},
		step{key: "0", screen: "agents", does: "sessions: conversations and tool calls"},
		step{key: "$", screen: "cost", does: "cost by day, month, model or project"},
		step{command: "acescope observe install", does: "make each new Claude Code session a run"},
		step{command: "acescope session start --resume ID", does: "continue a conversation in acescope"},
	}
}

// Draw implements [console.Row].
func (p step) Draw(s theme.Styles, width int, plain bool, _ time.Time) string {
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis,
		widget.SizedCell{Text: p.key + p.command, Width: 36, Ink: s.Accent},
		widget.SizedCell{Text: p.does, Ink: s.Muted})
}

// Open implements [console.Row].
func (p step) Open(s tui.Shell) tea.Cmd {
	switch {
	case p.do != nil:
		return p.do(s)
	case p.screen != "":
		s.Open(p.screen)
	default:
		s.Note("y copies " + p.command + "; run it in a shell")
	}
	return nil
}

// Copied implements [console.Row].
func (p step) Copied() (what, content string) {
	if p.command == "" {
		return "", ""
	}
	return "command", p.command
}
