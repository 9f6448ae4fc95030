package views

import (
	"acescope/sources"
	"acescope/sources/histories"
	"acescope/sources/system"
	"acescope/tui"
	"acescope/views/agents"
	"acescope/views/console"
	"acescope/views/cost"
	"acescope/views/diff"
	"acescope/views/evaluations"
	"acescope/views/experiments"
	"acescope/views/health"
	"acescope/views/lineage"
	"acescope/views/logs"
	"acescope/views/overview"
	"acescope/views/phaseprompts"
	"acescope/views/playbook"
	"acescope/views/run"
	"acescope/views/runners"
	"acescope/views/runs"
	"acescope/views/scoreboard"
	"acescope/views/timeline"
	"acescope/views/timemachine"
	"acescope/views/triage"
	"acescope/views/verify"
)

// Feeds are the data of all screens. [FeedsOf] takes them from the console's readers.
type Feeds struct {
	Runs        runs.Feeds
	Run         run.Feeds
	Timeline    timeline.Feed
	TimeMachine timemachine.Feed
	Verified    console.Value[*histories.Verified]
	Diff        diff.Feed
	Scoreboard  scoreboard.Feed
	Playbooks   playbook.Feed
	Prompts     phaseprompts.Feed
	Experiments experiments.Feed
	Evaluations evaluations.Feed
	Triage      triage.Feed
	Logs        logs.Feed
	Agents      agents.Feeds
	Cost        cost.Feeds
	Runners     runners.Feed
	Health      console.Feed[*system.System]
}

// FeedsOf returns the feeds for the screens of a console.
func FeedsOf(f *sources.Feeds) Feeds {
	return Feeds{
		Runs: runs.Feeds{List: f.Runs, Facets: f.Facets, Counts: f.RunCounts, Detail: f.Detail},
		Run: run.Feeds{Detail: f.Detail, Lineage: f.Lineage,
			Artifacts: console.NewArtifacts(f.Artifacts)},
		Timeline:    f.Events,
		TimeMachine: f.Replay,
		Verified:    f.Verified,
		Diff:        f.Diff,
		Scoreboard:  f.Scoreboard,
		Playbooks:   f.Playbooks,
		Prompts:     f.Prompts,
		Experiments: f.Experiments,
		Evaluations: f.Evaluations,
		Triage:      f.Triage,
		Logs:        f.Logs,
		Agents: agents.Feeds{Transcripts: f.Transcripts, Conversations: f.Transcripts.Conversations,
			Sessions: f.Sessions, Details: f.Sessions.Details, Approvals: f.Approvals},
		Cost:    cost.Feeds{Transcripts: f.Transcripts, Runs: f.Costs},
		Runners: f.Runners,
		Health:  f.System,
	}
}

// screens returns the screens of the console in the order of their keys.
func screens(c *console.Console, actions console.Actions, f Feeds) []tui.Screen {
	whole := run.NewReading(c, run.Actions{Flows: actions.Flows, Reviews: actions.Reviews}, f.Run)
	facts := run.NewRun(c, f.Run.Detail)
	chosen := experiments.New(c, f.Experiments)
	experimentList, compare := experiments.Screens(chosen)
	agentScreens, home := agents.Screens(c, actions.Sessions, f.Agents)
	grid, effects := evaluations.Screens(c, f.Evaluations, f.Run.Artifacts)
	return append([]tui.Screen{
		overview.Screen(c, overview.Feeds{Experiments: f.Experiments, Triage: f.Triage,
			Playbooks: f.Playbooks,
			Costs:     f.Cost.Runs, Approvals: f.Agents.Approvals}, chosen, home, f.TimeMachine.StepToWrong),
		{Name: "runs", Keys: []string{"1"}, Help: "the list of runs", Argument: c.QueryArgument(),
			Views: []tui.View{runs.New(c, f.Runs), facts}},
		{Name: "run", Keys: []string{"2"}, Detail: true, Help: "the whole selected run",
			Argument: c.RunArgument("run"),
			Views:    []tui.View{run.NewOutline(whole), run.NewInspector(whole)}},
		timeline.Screen(c, f.Timeline),
		playbook.Screen(c, f.Playbooks),
		experimentList,
		logs.Screen(c, f.Logs, f.Run.Detail),
		triage.Screen(c, f.Triage, f.TimeMachine.StepToWrong),
		health.Screen(c, f.Health),
		timemachine.Screen(c, f.TimeMachine, f.Run.Artifacts),
		verify.Screen(c, f.Verified, f.TimeMachine.StepTo),
		compare,
		grid,
		effects,
		diff.Screen(c, f.Diff),
		scoreboard.Screen(c, f.Scoreboard),
		lineage.Screen(c, f.Run.Lineage, facts),
		runners.Screen(c, actions.Runners, f.Runners),
		cost.Screen(c, f.Cost),
		phaseprompts.Screen(c, f.Prompts),
	}, agentScreens...)
}

// Screens returns the screens, the overview first, and the keys that work on all of them.
func Screens(o console.Options, f Feeds) ([]tui.Screen, []tui.Binding) {
	c := console.New(o, f.Run.Detail)
	return screens(c, o.Actions, f), bindings(c)
}

func bindings(c *console.Console) []tui.Binding {
	query := console.Key("runs.query", "filter the list of runs", "filter", c.Listing.AskFilter, "/")
	query.Hints = []string{"runs", "run", "triage"}
	open := console.Key("replay.open", "open the time machine: the selected run as of any event",
		"time machine", func(s tui.Shell) { c.Navigation.OpenTimeMachine(s) }, "t")
	open.Hints = []string{"runs", "run"}
	verify := console.Key("replay.verify",
		"verify the marked runs, or the selected one, against the current code", "verify",
		func(s tui.Shell) { c.Verifier.Verify(s, false) }, "r")
	verify.Hints = []string{"run"}
	refresh := func(s tui.Shell) { c.Controls.Refresh(); s.Note("refreshing") }
	reread := console.Key("runs.refresh", "read the list again now", "", refresh, "ctrl+r")
	b := append([]tui.Binding{query, reread, open, verify}, c.WebBindings()...)
	if c.Actor.Acts() {
		cancel := console.MutatingKey("run.cancel",
			"cancel the marked runs, or the selected one (asks first)", "cancel", c.Actor.Cancel, "x")
		cancel.Hints = []string{"runs", "run", "timeline"}
		b = append(append(b, c.Forks.MutationBindings()...), cancel)
	}
	return append(b, console.Key("runs.pause", "pause or resume refreshing", "pause", c.Listing.Pause, "p"))
}
