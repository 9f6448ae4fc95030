package views

import (
	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/sources/histories"
	"acescope/sources/system"
	"acescope/tui"
	"acescope/views/agents"
	"acescope/views/console"
	"acescope/views/diff"
	"acescope/views/experiments"
	"acescope/views/health"
	"acescope/views/lineage"
	"acescope/views/logs"
	"acescope/views/playbook"
	"acescope/views/run"
	"acescope/views/runners"
	"acescope/views/runs"
	"acescope/views/timeline"
	"acescope/views/timemachine"
	"acescope/views/triage"
	"acescope/views/verify"
)

// Feeds are what the screens show. [FeedsOf] takes them from the console's readers.
type Feeds struct {
	Runs        runs.Feeds
	Run         run.Feeds
	Timeline    timeline.Feed
	TimeMachine timemachine.Feed
	Verified    console.Value[*histories.Verified]
	Diff        diff.Feed
	Playbooks   playbook.Feed
	Experiments experiments.Feed
	Triage      triage.Feed
	Logs        logs.Feed
	Agents      agents.Feeds
	Runners     runners.Feed
	Health      console.Feed[*system.System]
}

// FeedsOf returns the feeds of a console.
func FeedsOf(f *sources.Feeds) Feeds {
	return Feeds{
		Runs:        runs.Feeds{List: f.Runs, Facets: f.Facets, Detail: f.Detail},
		Run:         run.Feeds{Detail: f.Detail, Lineage: f.Lineage, Artifacts: f.Artifacts},
		Timeline:    f.Events,
		TimeMachine: f.Replay,
		Verified:    f.Verified,
		Diff:        f.Diff,
		Playbooks:   f.Playbooks,
		Experiments: f.Experiments,
		Triage:      f.Triage,
		Logs:        f.Logs,
		Agents:      agents.Feeds{Transcripts: f.Transcripts, Sessions: f.Sessions, Approvals: f.Approvals},
		Runners:     f.Runners,
		Health:      f.System,
	}
}

// screens returns the screens of the console in the order of their keys.
func screens(c *console.Console, f Feeds) []tui.Screen {
	whole := run.NewReading(c, f.Run)
	books, blame := playbook.NewPlaybookScreens(c, f.Playbooks)
	x := experiments.New(c, f.Experiments)
	list := experiments.NewExperimentList(x)
	found := triage.NewTriage(c, f.Triage)
	machine := health.NewHealth(c, f.Health)
	facts := run.NewRun(c, f.Run.Detail)
	return append([]tui.Screen{
		{Name: "runs", Keys: []string{"1"}, Help: "the list of runs", Views: []tui.View{runs.NewRuns(c, f.Runs), facts}},
		{Name: "run", Keys: []string{"2"}, Help: "the selected run, whole", Views: []tui.View{run.NewOutline(whole), run.NewInspector(whole)}},
		timeline.TimelineScreen(c, f.Timeline),
		{Name: "playbook", Short: "book", Keys: []string{"4"}, Help: "playbooks: bullets and who wrote them, versions, differences, health", Views: []tui.View{books, blame}},
		{Name: "experiments", Short: "exps", Keys: []string{"5"}, Help: "experiments and their learning curves", Share: 42,
			Views: []tui.View{list, experiments.NewExperimentPlots(x, list)}},
		logs.LogScreen(c, f.Logs, f.Run.Detail),
		{Name: "triage", Keys: []string{"7"}, Help: "what fails, is stuck, is slow or dear", Views: []tui.View{found, triage.NewTriageDetail(c, found)}},
		{Name: "health", Keys: []string{"8"}, Help: "the server, the workers, the sources", Views: []tui.View{machine, health.NewHealthDetail(c, machine)}},
		timemachine.ReplayScreen(c, f.TimeMachine),
		verify.VerifiedScreen(c, f.Verified, f.TimeMachine.StepTo),
		{Name: "compare", Keys: []string{"D"}, Help: "the two marked experiments, task by task", Aside: true, Views: []tui.View{experiments.NewExperimentCompare(x)}},
		diff.DiffScreen(c, f.Diff),
		lineage.LineageScreen(c, f.Run.Lineage, facts),
		runners.RunnersScreen(c, f.Runners),
	}, agents.AgentScreens(c, f.Agents)...)
}

// Screens returns the screens, the list of runs first, and the keys that work on all of them.
func Screens(o console.Options, f Feeds) ([]tui.Screen, []tui.Binding) {
	c := console.New(o)
	return screens(c, f), bindings(c)
}

func bindings(c *console.Console) []tui.Binding {
	b := []tui.Binding{
		{Action: "runs.query", Keys: []string{"/"}, Help: "choose which runs are listed", Short: "filter", Hints: []string{"runs", "run", "triage"}, Do: c.AskFilter},
		{Action: "runs.refresh", Keys: []string{"ctrl+r"}, Help: "read the list again now",
			Do: func(s tui.Shell) tea.Cmd { c.Controls.Refresh(); s.Note("refreshing"); return nil }},
		{Action: "replay.open", Keys: []string{"t"}, Help: "the time machine: the selected run as of any event", Short: "time machine", Hints: []string{"runs", "run"}, Do: func(s tui.Shell) tea.Cmd { c.OpenTimeMachine(s); return nil }},
		{Action: "replay.verify_selected", Keys: []string{"r"}, Help: "verify the marked runs, or the selected one, against today's code", Short: "verify", Hints: []string{"run"},
			Do: func(s tui.Shell) tea.Cmd { c.Verify(s, false); return nil }},
	}
	if c.Acts() {
		b = append(b, c.MutationBindings()...)
		b = append(b, tui.Binding{Action: "run.cancel", Keys: []string{"x"}, Help: "cancel the marked runs, or the selected one (asks first)",
			Short: "cancel", Hints: []string{"runs", "run", "timeline"}, Mutates: true, Do: c.Cancel})
	}
	return append(b, tui.Binding{Action: "runs.pause", Keys: []string{"p"}, Help: "pause or resume refreshing", Short: "pause", Do: c.Pause})
}
