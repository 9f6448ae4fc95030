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
	a := v.feeds.Approvals.Value()
	if a == nil {
		return s
	}
	for _, call := range a.Rows {
		open := func(s tui.Shell) tea.Cmd { v.nav.OpenSession(s, session.WorkflowID(call.ID)); return nil }
		s.Rows = append(s.Rows, console.Row{
			What: "session id", Content: call.ID, Open: open,
			Answer: func(s tui.Shell) tea.Cmd { open(s); return v.home.Answer(s, call) },
			Cells: func(s theme.Styles, _ int, _ time.Time) []widget.SizedCell {
				return []widget.SizedCell{{s.Glyphs.Failed + " approval", 11, s.Alert},
					{text.Safe(cmp.Or(call.Name, call.ID), " "), 16, s.Text},
					{text.Safe(call.Call.Name+" "+string(call.Call.Args), " "), 0, s.Text}}
			}})
	}
	for _, r := range a.Runs {
		answer := func(s tui.Shell) tea.Cmd {
			s.Note("press w again to approve or reject")
			return v.nav.OpenRun(s, r)
		}
		s.Rows = append(s.Rows, console.Row{Run: r, Answer: answer, Cells: waitingCells(r)})
	}
	return s
}

// waitingCells shows a run that waits for the review of its operations, or for the approval of a step.
func waitingCells(r runs.Run) console.Cells {
	return func(s theme.Styles, _ int, now time.Time) []widget.SizedCell {
		word, why, left := "approval", text.Safe(r.Flow, " "), ""
		if m := r.Review; m != nil {
			word, why = "review", ace.Count(m.Operations, "operation")
			why += widget.If(m.Subject != "", ": "+text.Safe(m.Subject, " "), "")
			left = text.Span(max(m.Until.Sub(now), 0)) + " left"
		}
		return []widget.SizedCell{{s.Glyphs.Failed + " " + word, 11, s.Alert},
			{console.NameOf(r), 16, s.Text}, {why, 0, s.Text}, {left, -9, s.Warning}}
	}
}

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
			return widget.If(a.Open(), -1, 1)
		}
		return b.Start.Compare(a.Start)
	})
	for _, r := range rows {
		run := widget.If(r.RunID != "", r.Run, runs.Run{}) // an experiment may have only tasks
		s.Rows = append(s.Rows, console.Row{
			What: "experiment id", Content: r.Name(), Experiment: r.WorkflowID, Run: run,
			Copies: func() []tui.Copy { return v.chosen.CopiesOf(r) },
			Open: func(s tui.Shell) tea.Cmd {
				v.chosen.Cursor = r.WorkflowID
				s.Open("experiments")
				return nil
			},
			Cells: func(s theme.Styles, width int, now time.Time) []widget.SizedCell {
				status := s.Status(string(r.Status))
				cells := []widget.SizedCell{{status.Glyph + " " + text.Safe(r.Name(), " "), 0, status.Ink},
					{experimentsview.Tasks(r, s.Glyphs), -8, s.Text},
					{experimentsview.Held(r, s.Glyphs), -28, s.Strong},
					{text.Span(now.Sub(r.Start)), -5, s.Muted}}
				switch {
				case width < 50:
					return cells[:2]
				case width < 60:
					return cells[:3]
				}
				return cells
			}})
	}
	return s
}

// alone lists the open runs of the filter that belong to no experiment.
func (v *overview) alone() console.Section {
	s := console.Section{Name: "Other open runs", Limit: experimentLimit,
		Remark: widget.If(v.listing.Runs.Query != "", "of the filter", "")}
	all := v.listing.Runs.Rows
	for i := range all { // a copy of each of ten thousand runs takes too long to draw
		if !all[i].Close.IsZero() || all[i].Experiment != "" || all[i].Type == ace.ExperimentWorkflow {
			continue
		}
		r := all[i]
		s.Rows = append(s.Rows, console.Row{Run: r,
			Cells: func(s theme.Styles, _ int, now time.Time) []widget.SizedCell {
				status := console.StatusMark(r, s)
				why := cmp.Or(r.Reason(), string(r.Phase), runs.TypeOf(r.Type))
				return []widget.SizedCell{{status.Glyph + " " + console.NameOf(r), 24, status.Ink},
					{text.Safe(why, " "), 0, s.Muted}, {text.Span(now.Sub(r.Began())), -5, s.Muted}}
			}})
	}
	return s
}

// attention lists retrying runs, causes of failures and wrong answers, the most harmful bullet, and steps
// that took much longer than usual.
func (v *overview) attention() console.Section {
	s := console.Section{Name: "Needs attention", Limit: attentionLimit}
	t := v.feeds.Triage.Value()
	if t == nil {
		return s
	}
	row := func(m theme.Mark, what string, since time.Time, run runs.Run) console.Row {
		return console.Row{Run: run, Cells: func(s theme.Styles, _ int, now time.Time) []widget.SizedCell {
			return []widget.SizedCell{{m.Glyph + " " + text.Safe(m.Word, " "), 12, m.Ink},
				{text.Safe(what, " "), 0, s.Muted}, {text.Span(now.Sub(since)), -5, s.Muted}}
		}}
	}
	st := v.Styles
	for _, r := range t.Retrying {
		m := st.Retry()
		m.Word = "retry #" + strconv.Itoa(int(r.Attempt))
		why := cmp.Or(r.LastError.Message, r.Activity)
		s.Rows = append(s.Rows, row(m, console.NameOf(r.Run)+": "+why, r.Since, r.Run))
	}
	for _, g := range t.Groups[:min(len(t.Groups), maxCauses)] {
		m := widget.If(g.Verdict != "", st.Verdict(string(g.Verdict)), st.Status(string(g.Status)))
		m.Word = ace.Number(g.Count) + " " + m.Word
		why := strings.TrimPrefix(cmp.Or(string(g.Phase), g.Activity)+": "+g.Pattern, ": ")
		cause := row(m, why, g.Last.At, g.Last.Run)
		cause.Open = func(s tui.Shell) tea.Cmd { v.nav.Finding = g.Key(); s.Open("triage"); return nil }
		s.Rows = append(s.Rows, cause)
	}
	if b := v.harmful(); b != nil {
		s.Rows = append(s.Rows, console.Row{What: "bullet " + b.ID, Content: b.Content, Open: v.openBullet,
			Cells: func(s theme.Styles, _ int, _ time.Time) []widget.SizedCell {
				bullet := fmt.Sprintf("%s %+d %+d: %s", b.ID, b.Helpful, -b.Harmful, b.Content)
				return []widget.SizedCell{{s.Glyphs.Failed + " harmful", 12, s.Warning},
					{text.Safe(bullet, " "), 0, s.Muted}, {"b", -5, s.Key}}
			}})
	}
	for _, p := range t.Phases {
		if p.Slow() {
			m := theme.Mark{Glyph: st.Glyphs.Pending, Word: "slow", Ink: st.Warning}
			what := p.Phase + ": " + widget.Milliseconds(p.Max, st.Glyphs) + " in " +
				console.NameOf(p.Worst) + ", p95 is " + widget.Milliseconds(p.P95, st.Glyphs)
			s.Rows = append(s.Rows, row(m, what, p.Worst.Start, p.Worst))
		}
	}
	return s
}

// maxCauses bounds the listed causes; the triage lists all.
const maxCauses = 3

// harmful returns the bullet of the newest playbook that was tagged harmful most often, or nil.
func (v *overview) harmful() (worst *playbook.Bullet) {
	b := v.feeds.Playbooks.Value()
	if b == nil || b.Version == nil {
		return nil
	}
	for i := range b.Version.Bullets {
		h := &b.Version.Bullets[i].Bullet
		if h.Harmful > 0 && (worst == nil || h.Harmful > worst.Harmful) {
			worst = h
		}
	}
	return worst
}

// learned lists the newest versions of the playbook that changed last.
func (v *overview) learned() console.Section {
	s := console.Section{Name: "Playbook", Limit: learnedLimit}
	b := v.feeds.Playbooks.Value()
	if b == nil {
		return s
	}
	s.Remark = text.Safe(b.Branch.Name, " ")
	for i := len(b.Versions) - 1; i >= 0 && len(s.Rows) < maxVersions; i-- {
		r, at := b.Versions[i], playbooks.VersionRef{Branch: b.Branch.Name, Seq: b.From + i}
		s.Rows = append(s.Rows, console.Row{What: "hash", Content: r.Hash,
			Open: func(s tui.Shell) tea.Cmd { v.nav.Version = at; s.Open("playbook"); return nil },
			Cells: func(s theme.Styles, _ int, now time.Time) []widget.SizedCell {
				return []widget.SizedCell{{"v" + strconv.Itoa(at.Seq), 5, s.Text},
					{console.VersionDelta(r, s.Glyphs), 10, s.Accent},
					{text.Safe(cmp.Or(r.Rationale, r.TaskID), " "), 0, s.Muted},
					{ace.Count(r.Bullets, "bullet"), -11, s.Text}, {text.Span(now.Sub(r.At)), -5, s.Muted}}
			}})
	}
	return s
}

// maxVersions bounds the listed versions; the screen of playbooks lists all.
const maxVersions = 20

// costSection sums up what runs cost: today and this week, in all and by experiment and model.
type costSection struct {
	of   *costs.Costs
	day  string
	rows []console.Row
}

// section sums up again if the runs or the day have changed.
func (c *costSection) section(
	nav *console.Navigation, of *costs.Costs, open *experiments.Experiments, now time.Time,
) console.Section {
	if day := transcripts.Today(now); of != nil && (c.of != of || c.day != day) {
		c.of, c.day, c.rows = of, day, costRows(nav, of.Rows, day)
	}
	s := console.Section{Name: "Cost and tokens", Limit: costLimit, Rows: c.rows}
	evaluates := func(r experiments.Experiment) bool {
		return r.Open() && r.Progress != nil && r.Progress.Stage == ace.StageEvaluating
	}
	if open != nil && slices.ContainsFunc(open.Rows, evaluates) {
		s.Remark = "without evaluations in progress"
	}
	return s
}

// costRows returns the sum of all runs, then the experiments and the models that cost most this week.
func costRows(nav *console.Navigation, all []*transcripts.Session, day string) (rows []console.Row) {
	thisWeek := transcripts.CostQuery{By: transcripts.ByWeek, Key: transcripts.ByWeek.Period(day)}
	thisDay := transcripts.CostQuery{By: transcripts.ByDay, Key: day}
	for _, by := range []transcripts.By{transcripts.ByExperiment, transcripts.ByModel} {
		week, total := transcripts.Costs(all, by, thisWeek)
		ofDay, today := transcripts.Costs(all, by, thisDay)
		switch {
		case total.Sessions == 0:
			return nil
		case rows == nil:
			total.Key = day
			rows = []console.Row{costRow(nav, transcripts.ByDay, "all", today, total)}
		}
		for _, c := range week[:min(len(week), maxCosts)] {
			var ofToday transcripts.Cost
			if i := slices.IndexFunc(ofDay, func(d transcripts.Cost) bool { return d.Key == c.Key }); i >= 0 {
				ofToday = ofDay[i]
			}
			rows = append(rows, costRow(nav, by, cmp.Or(c.Key, "no experiment"), ofToday, c))
		}
	}
	return rows
}

// maxCosts bounds the experiments and the models; the screen of costs lists all.
const maxCosts = 3

// costRow is the cost of all runs, of an experiment or of a model. It opens its row on the screen of costs.
func costRow(
	nav *console.Navigation, by transcripts.By, of string, today, week transcripts.Cost,
) console.Row {
	return console.Row{What: "cost", Content: strconv.FormatFloat(week.CostUSD, 'f', -1, 64),
		Open: func(s tui.Shell) tea.Cmd {
			nav.CostBy, nav.CostKey = by, week.Key
			s.Open("cost")
			return nil
		},
		Cells: func(s theme.Styles, _ int, _ time.Time) []widget.SizedCell {
			cells := []widget.SizedCell{{text.Safe(of, " "), 0, s.Text}}
			for _, period := range []struct {
				name string
				transcripts.Cost
			}{{"today", today}, {"week", week}} {
				u := period.Totals.Usage()
				cells = append(cells, widget.SizedCell{period.name, -6, s.Muted},
					widget.SizedCell{console.CostCell(u, s.Glyphs), -8, s.Strong},
					widget.SizedCell{text.ShortCount(u.InputTokens + u.OutputTokens), -5, s.Muted})
			}
			return cells
		}}
}

// steps lists what to do next: screens and actions by their keys, and commands for the shell.
func (v *overview) steps() []console.Row {
	step := func(key, does string, open func(tui.Shell) tea.Cmd) console.Row {
		return console.Row{Open: open, Cells: func(s theme.Styles, _ int, _ time.Time) []widget.SizedCell {
			return []widget.SizedCell{{key, 34, s.Accent}, {does, 0, s.Muted}}
		}}
	}
	command := func(line, does string) console.Row {
		copied := v.nav.Command(strings.Fields(line)[1:]...)
		r := step(line, does, func(s tui.Shell) tea.Cmd {
			s.Note("y copies " + copied + "; run it in a shell")
			return nil
		})
		r.What, r.Content = "command", copied
		return r
	}
	return []console.Row{
		step("d", "demo: a program learns; needs no API key", v.askDemo),
		step("n", "new experiment or task: opens a form", v.launcher.AskLaunch),
		step("o", "open an exported history", v.openFile),
		step("0", "sessions: conversations and tool calls", console.Opens("agents")),
		step("$", "cost by day, model, experiment", console.Opens("cost")),
		command("acescope observe install", "make each new Claude Code session a run"),
		command("acescope session start --resume ID", "continue a conversation in acescope"),
	}
}
