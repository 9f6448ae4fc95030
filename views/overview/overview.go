// Package overview is the first screen: the learning curve, what waits for the user or needs attention, what
// was learned last, and what it cost.
package overview

import (
	"cmp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/costs"
	"acescope/sources/experiments"
	"acescope/sources/playbooks"
	"acescope/sources/runs"
	"acescope/sources/sessions"
	"acescope/sources/triage"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/agents"
	"acescope/views/console"
	experimentsview "acescope/views/experiments"
	playbookview "acescope/views/playbook"
)

type Feeds struct {
	Experiments console.Feed[*experiments.Experiments]
	Triage      console.Feed[*triage.Result]
	Playbooks   playbookview.Feed
	Costs       console.Feed[*costs.Costs]
	Approvals   console.Value[*sessions.Approvals]
}

// The least width that shows the curve beside the sections, the least height that shows it above them, and
// its share of either in percent.
const (
	besideWidth = 118
	aboveHeight = 15
	curveShare  = 46
)

type overview struct {
	console.Pane
	nav      *console.Navigation
	launcher *console.Launcher
	pipeline *console.Pipeline
	listing  *console.Listing
	controls console.Controls
	feeds    Feeds
	moment   func() // goes to the event that produced a wrong answer, in the time machine
	chosen   *experimentsview.Experiments
	curves   *experimentsview.Curves
	home     *agents.Home
	openFile func(tui.Shell) tea.Cmd
	cost     costSection
	list     widget.SectionList[console.Row]
	plotted  string // workflow ID of the experiment whose curve is shown
	shown    bool
	reading  bool // sessions are being read, because there are no runs
}

// Screen returns the overview. chosen returns the experiments that the screen of experiments shows. moment
// goes to the event that produced a wrong answer, in the time machine.
func Screen(c *console.Console, feeds Feeds, chosen *experimentsview.Experiments, home *agents.Home,
	moment func()) tui.Screen {
	v := &overview{Pane: console.NewPane("Overview"), nav: c.Navigation, launcher: c.Launcher,
		pipeline: c.Pipeline, listing: c.Listing,
		controls: c.Controls, feeds: feeds, moment: moment, chosen: chosen, home: home, openFile: c.AskOpen}
	v.curves = experimentsview.NewCurves(chosen, func() []string {
		if v.plotted == "" {
			return nil
		}
		return []string{v.plotted}
	})
	return tui.Screen{Name: "overview", Short: "home", Aliases: []string{"home"}, Keys: []string{"H"},
		Help:  "what is running, what needs attention, what was learned and what it cost",
		Views: []tui.View{v}}
}

func (v *overview) Bindings() []tui.Binding {
	_, canStep := v.run()
	all := append(widget.Motions("overview", v),
		console.Key("overview.open", "open the item of the line; y copies a command of acescope", "open",
			v.open, "enter"))
	if v.launcher.Actions != nil {
		short := widget.If(v.selected().Answer != nil, "answer", "")
		all = append(all, console.MutatingKey("overview.answer",
			"open the run or the session that waits, to answer it", short, v.answer, "w"))
	}
	all = append(all,
		console.Key("overview.moment.open",
			"open the time machine on the run of the line: where a wrong answer became wrong",
			widget.If(canStep, "time machine", ""), v.openMoment, "t"),
		console.Key("overview.bullets",
			"show the bullet that was tagged harmful most often, in its playbook", "", v.openBullet, "b"))
	all = append(all, console.SectionKeys("overview", "section", "section", "", &v.list)...)
	if v.launcher.Actions != nil {
		all = append(all, v.launcher.LaunchBinding("overview")...)
		all = append(all, console.MutatingKey("overview.demo",
			"start an experiment that learns, to watch it (asks first)", "", v.askDemo, "d"))
	}
	return append(all, console.Key("overview.open_file",
		"open an exported history: a file or a directory", "", v.openFile, "o"))
}

// StartOn lists the runs if they come from files, which have no overview.
func (v *overview) StartOn() (screen string) {
	return widget.If(v.controls.Connection().Mode == cluster.ModeFile, "runs", "")
}

func (v *overview) SetStyles(s theme.Styles) {
	v.Styles = s
	v.curves.SetStyles(s)
}

func (v *overview) SetShown(shown bool) {
	v.shown = shown
	v.nav.UnderCursor = nil
	v.feeds.Experiments.Look(shown)
	v.feeds.Triage.Look(shown)
	v.feeds.Playbooks.Look(shown)
	v.feeds.Costs.Look(shown)
	v.readSessions(shown && v.noRuns())
	if shown {
		v.nav.UnderCursor = v.run
		v.chosen.Read(v.plotted)
		v.feeds.Playbooks.Refine(playbooks.Ask{Seq: -1, Around: -1, Bullets: true})
	}
}

// readSessions reads the transcripts on this machine, which takes a while, or stops reading them.
func (v *overview) readSessions(on bool) {
	if v.reading != on {
		v.reading = on
		v.home.SetShown(on)
	}
}

// noRuns reports whether the namespace has no runs, as far as known.
func (v *overview) noRuns() bool {
	list := v.listing.Runs
	return !list.Loaded.IsZero() && len(list.Rows) == 0 && list.Query == "" && list.Err == ""
}

func (v *overview) Unfilter() bool { return v.listing.Unfilter() }

func (v *overview) Refresh() {
	v.home.Refresh()
	if v.shown {
		v.readSessions(v.noRuns())
	}
}

func (v *overview) Scroll(by int)  { v.list.Scroll(by) }
func (v *overview) Page() int      { return v.list.Page() }
func (v *overview) Footer() string { return v.list.Position() }

// Copy returns what the row under the cursor copies, by default the ID of its run.
func (v *overview) Copy() (what, content string) {
	r := v.selected()
	return cmp.Or(r.What, "workflow ID"), cmp.Or(r.Content, r.Run.WorkflowID)
}

func (v *overview) Copies() []tui.Copy {
	if r := v.selected(); r.Copies != nil {
		return r.Copies()
	}
	return v.nav.RunCopies(v.selected().Run)
}

func (v *overview) open(s tui.Shell) tea.Cmd {
	switch r := v.selected(); {
	case r.Open != nil:
		return r.Open(s)
	case r.Run.WorkflowID != "":
		return v.nav.OpenRun(s, r.Run)
	}
	return nil
}

func (v *overview) answer(s tui.Shell) tea.Cmd {
	if r := v.selected(); r.Answer != nil {
		return r.Answer(s)
	}
	s.Note("nothing waits on this row")
	return nil
}

// openMoment opens the time machine on the run of the row.
func (v *overview) openMoment(s tui.Shell) {
	if v.nav.OpenTimeMachine(s) && v.nav.Selected.Run.Verdict == ace.Wrong {
		v.moment()
	}
}

func (v *overview) openBullet(s tui.Shell) tea.Cmd {
	b := v.harmful()
	if b == nil {
		s.Note("no bullet of the newest playbook was tagged harmful; b on an experiment measures effects")
		return nil
	}
	v.nav.Version, v.nav.Bullet = v.feeds.Playbooks.Value().Version.VersionRef, b.ID
	s.Open("playbook")
	return nil
}

// run returns the run of the row under the cursor, if it has one.
func (v *overview) run() (runs.Run, bool) {
	r := v.selected().Run
	return r, r.WorkflowID != ""
}

// selected returns the row under the cursor, or the zero row.
func (v *overview) selected() console.Row {
	r, _ := v.list.Current()
	return r
}

func (v *overview) askDemo(s tui.Shell) tea.Cmd {
	lines := []string{
		"120 generated finance problems for the built-in learner",
		"needs no language model, no API key and no network",
		"takes about five minutes and stays in the list of runs",
	}
	v.pipeline.Confirm(s, "start the demo", runs.Prepared{Title: "Start the demo?", Lines: lines,
		Yes: "start the demo", Do: console.Doing("the demo has started", v.launcher.Actions.StartDemo)})
	return nil
}

// arrange takes the newest values. Sections without rows are left out. Without runs, it lists the coding
// agents of this machine and what to do next, which comes first if there are no sessions either.
func (v *overview) arrange(now time.Time) {
	var all []console.Section
	if v.noRuns() {
		steps := console.Section{Name: "Next steps", Remark: "no runs yet", Rows: v.steps()}
		all = append(all, v.home.Sections(now, v.Styles.Glyphs)...)
		if v.home.Empty() {
			all = slices.Insert(all, 0, steps)
		} else {
			all = append(all, steps)
		}
	} else {
		all = []console.Section{v.waiting(), v.experiments(), v.alone(), v.attention(), v.learned(),
			v.cost.section(v.nav, v.feeds.Costs.Value(), v.feeds.Experiments.Value(), now)}
		all = slices.DeleteFunc(all, func(s console.Section) bool { return len(s.Rows) == 0 })
	}
	v.list.Set(all)
	if id := v.toPlot(); id != v.plotted {
		v.plotted = id
		if v.shown {
			v.chosen.Read(id)
		}
	}
}

// toPlot returns the experiment under the cursor, or else the newest running one, or else the newest.
func (v *overview) toPlot() string {
	if id := v.selected().Experiment; id != "" {
		return id
	}
	for _, s := range v.list.Sections {
		for _, r := range s.Rows {
			if r.Experiment != "" {
				return r.Experiment
			}
		}
	}
	return ""
}

func (v *overview) Draw(now time.Time, focused bool) []string {
	v.arrange(now)
	head := v.caption()
	space := max(v.Height-len(head), 0)
	var lines []string
	switch {
	case v.plotted == "":
		lines = v.drawList(now, focused, v.Width, space)
	case v.Width >= besideWidth:
		right := v.Width * curveShare / 100
		v.curves.SetSize(right-1, space)
		lines = v.drawList(now, focused, v.Width-right, space)
		for i, l := range v.curves.Draw(now, false) {
			lines[i] += " " + l
		}
	case space >= aboveHeight:
		above := space * curveShare / 100
		v.curves.SetSize(v.Width, above)
		lines = append(v.curves.Plot(), v.drawList(now, focused, v.Width, space-above)...)
	default:
		lines = v.drawList(now, focused, v.Width, space)
	}
	return widget.Fill(append(head, lines...), v.Width, v.Height)
}

func (v *overview) drawList(now time.Time, focused bool, width, height int) []string {
	v.list.SetSize(width, height)
	if v.list.Empty() {
		return widget.Fill(widget.Center([]string{v.empty()}, width, height, v.Styles), width, height)
	}
	return v.list.Draw(v.Styles, focused, func(r console.Row, width int) []widget.SizedCell {
		return r.Cells(v.Styles, width, now)
	})
}

func (v *overview) empty() string {
	list := v.listing.Runs
	switch {
	case v.controls.Connection().Mode == cluster.ModeFile:
		return "files have no overview; 1 lists their runs"
	case list.Loaded.IsZero():
		return "reading" + v.Styles.Glyphs.Ellipsis
	case list.Query != "" && len(list.Rows) == 0 && list.Err == "":
		return "no run matches; esc clears the filter"
	}
	return cmp.Or(text.Safe(list.Err, " "), "nothing to report; 1 lists the runs")
}

// DemoPrefix begins the names of experiments that the demo starts.
const DemoPrefix = "demo-"

// The least heights of a screen with a caption, and of one with an empty line below it.
const (
	captionHeight = 16
	roomyHeight   = 30
)

// caption explains the demo while the curve of its experiment is shown.
func (v *overview) caption() []string {
	name := strings.TrimPrefix(v.plotted, ace.ExperimentIDPrefix)
	if v.Height < captionHeight || !strings.HasPrefix(name, DemoPrefix) {
		return nil
	}
	var lines []string
	for _, l := range []string{
		"The built-in learner answers finance problems. At first it knows no formula.",
		"A reflector finds the cause of each wrong answer, a curator writes a bullet.",
		"Later answers use these bullets, so accuracy rises. ? lists the keys.",
	} {
		lines = append(lines, v.Styles.Muted.Paint(text.Fit(" "+l, v.Width, v.Styles.Glyphs.Ellipsis)))
	}
	if v.Height >= roomyHeight {
		lines = append(lines, text.Spaces(v.Width))
	}
	return lines
}
