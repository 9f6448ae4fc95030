package views

import "acescope/tui"

// screens are those of the console, in the order of their keys.
func screens(c *console) []tui.Screen {
	whole := newReading(c)
	books, blame := newPlaybook(c)
	x := &experiments{console: c, metric: allMetrics}
	list := newExperimentList(x)
	found := newTriage(c)
	machine := newHealth(c)
	facts := newRun(c)
	return append([]tui.Screen{
		{Name: "runs", Keys: []string{"1"}, Help: "the list of runs", Views: []tui.View{newRuns(c), facts}},
		{Name: "run", Keys: []string{"2"}, Help: "the selected run, whole", Views: []tui.View{newStory(whole), newInspector(whole)}},
		timelineScreen(c),
		{Name: "playbook", Short: "book", Keys: []string{"4"}, Help: "playbooks: bullets and who wrote them, versions, differences, health", Views: []tui.View{books, blame}},
		{Name: "experiments", Short: "exps", Keys: []string{"5"}, Help: "experiments and their learning curves", Share: 42,
			Views: []tui.View{list, newExperimentPlots(x, list)}},
		logScreen(c),
		{Name: "triage", Keys: []string{"7"}, Help: "what fails, is stuck, is slow or dear", Views: []tui.View{found, newTriageDetail(c, found)}},
		{Name: "health", Keys: []string{"8"}, Help: "the server, the workers, the sources", Views: []tui.View{machine, newHealthDetail(c, machine)}},
		replayScreen(c),
		verifiedScreen(c),
		{Name: "compare", Keys: []string{"D"}, Help: "the two marked experiments, task by task", Aside: true, Views: []tui.View{newExperimentCompare(x)}},
		diffScreen(c),
		lineageScreen(c, facts),
		runnersScreen(c),
	}, agentScreens(c)...)
}
