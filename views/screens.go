package views

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

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

// screens are those of the console, in the order of their keys.
func screens(c *console.Console) []tui.Screen {
	whole := run.NewReading(c)
	books, blame := playbook.NewPlaybookScreens(c)
	x := &experiments.Experiments{Console: c, Metric: experiments.AllMetrics}
	list := experiments.NewExperimentList(x)
	found := triage.NewTriage(c)
	machine := health.NewHealth(c)
	facts := run.NewRun(c)
	return append([]tui.Screen{
		{Name: "runs", Keys: []string{"1"}, Help: "the list of runs", Views: []tui.View{runs.NewRuns(c), facts}},
		{Name: "run", Keys: []string{"2"}, Help: "the selected run, whole", Views: []tui.View{run.NewStory(whole), run.NewInspector(whole)}},
		timeline.TimelineScreen(c),
		{Name: "playbook", Short: "book", Keys: []string{"4"}, Help: "playbooks: bullets and who wrote them, versions, differences, health", Views: []tui.View{books, blame}},
		{Name: "experiments", Short: "exps", Keys: []string{"5"}, Help: "experiments and their learning curves", Share: 42,
			Views: []tui.View{list, experiments.NewExperimentPlots(x, list)}},
		logs.LogScreen(c),
		{Name: "triage", Keys: []string{"7"}, Help: "what fails, is stuck, is slow or dear", Views: []tui.View{found, triage.NewTriageDetail(c, found)}},
		{Name: "health", Keys: []string{"8"}, Help: "the server, the workers, the sources", Views: []tui.View{machine, health.NewHealthDetail(c, machine)}},
		timemachine.ReplayScreen(c),
		verify.VerifiedScreen(c),
		{Name: "compare", Keys: []string{"D"}, Help: "the two marked experiments, task by task", Aside: true, Views: []tui.View{experiments.NewExperimentCompare(x)}},
		diff.DiffScreen(c),
		lineage.LineageScreen(c, facts),
		runners.RunnersScreen(c),
	}, agents.AgentScreens(c)...)
}

// Screens makes the screens, the list of runs first, and the keys that work in all of
// them.
func Screens(o console.Options) ([]tui.Screen, []tui.Binding) {
	if o.Context == nil {
		o.Context = context.Background()
	}
	if o.Location == nil {
		o.Location = time.Local
	}
	c := &console.Console{Options: o, Following: true}
	c.StartFilter()
	return screens(c), bindings(c)
}

func bindings(c *console.Console) []tui.Binding {
	b := []tui.Binding{
		{Action: "runs.query", Keys: []string{"/"}, Help: "choose which runs are listed", Short: "filter", Hints: []string{"runs", "run", "triage"}, Do: c.Ask},
		{Action: "runs.refresh", Keys: []string{"ctrl+r"}, Help: "read the list again now",
			Do: func(s tui.Shell) tea.Cmd { c.Controls.Refresh(); s.Note("refreshing"); return nil }},
		{Action: "replay.open", Keys: []string{"t"}, Help: "the time machine: the selected run as of any event", Short: "time machine", Hints: []string{"runs", "run"}, Do: c.OpenReplay},
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
