package views

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/sources/playbooks"
	"acescope/sources/triage"
)

// debugging has the feeds of a console on a running experiment after a finished one: one cause of wrong
// answers, a harmful bullet, costs, and the history and a fork of the newest wrong run.
func debugging() *snapshot {
	live := learnt("night-3", "finance", 40, 6, 0.002)
	live.Status, live.Close, live.Progress.TotalTasks = ace.Running, time.Time{}, 120
	live.Progress.Status, live.Progress.Stage = ace.Running, ace.StageLearning
	s := listed(live, learnt("plain", "finance", 100, 5, 0.009))
	s.Costs, s.Transcripts = busy().Costs, someCosts().Transcripts
	result := *ailing().Triage
	result.Retrying, result.Phases = nil, nil
	result.Groups = []triage.FailureGroup{result.Groups[1], result.Groups[0]}
	s.Triage = &result
	s.Books = &playbooks.Playbooks{Branch: playbook.Branch{Name: "plain", Versions: 9},
		Version: &playbooks.VersionDetail{
			VersionRef: playbooks.VersionRef{Branch: "plain", Seq: 9}, HasBullets: true,
			Changes: &playbook.Difference{},
			Bullets: []playbook.BulletHistory{{Bullet: playbook.Bullet{ID: "calc-1", Harmful: 1}},
				{Bullet: playbook.Bullet{ID: "calc-2", Content: "Guess if no recipe is known.", Helpful: 2,
					Harmful: 5}}}},
		From: 9, Versions: []playbook.Version{{Added: 1, Bullets: 9,
			Source: playbook.Source{TaskID: "plain-e1-0009",
				Rationale: "a formula was missing", At: noon.Add(-time.Minute)}}}}
	wrong := result.Groups[0].Last.Run
	s.Replay = replayAt(0).Replay
	s.Replay.WorkflowID, s.Replay.RunID = wrong.WorkflowID, wrong.RunID
	s.Replay.Verdict, s.Replay.Frame.Notes = nil, nil
	s.Lineage = family()
	s.Lineage.Root = wrong.WorkflowID
	s.Lineage.Nodes[0].Run = wrong
	return s
}

// questions are those of a user of learning loops.
var questions = []struct {
	ask  string
	keys []string // from the first screen
	most int
	says []string
	told string
}{
	{"what is it doing", nil, 0, []string{"night-3", "40/120"}, ""},
	{"why did it decide that", []string{"]", "t"}, 3, []string{"plan", "bullets used"}, "step to wrong"},
	{"what did it learn", nil, 0, []string{"v9", "a formula was missing"}, ""},
	{"did that help, and how sure are we", nil, 0, []string{"held-out 20.0→75.0%"}, ""},
	{"what would have happened otherwise", []string{"]", "t", "T"}, 3, []string{"~f1", "better"}, ""},
	{"why does it fail", nil, 0, []string{"80 wrong", "no recipe was known for the formula"}, ""},
	{"when did it go wrong", []string{"]", "t"}, 3, []string{"became wrong here"}, "step to wrong"},
	{"what did the night cost", []string{"$"}, 1, []string{"2026-05-04", "today $"}, ""},
	{"which bullet hurts", nil, 0, []string{"harmful", "calc-2 +2 -5"}, ""},
}

// Each question is answered in a few keys from the first screen, at every size.
func TestKeysPerQuestion(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
		for _, q := range questions {
			t.Run(fmt.Sprintf("%d/%s", size[0], q.ask), func(t *testing.T) {
				sc := newOverview(t, debugging(), size[0], size[1])
				sc.press(q.keys...)
				for _, want := range q.says {
					sc.has(want)
				}
				if q.told != "" && !slices.Contains(sc.store.heard(), q.told) {
					t.Errorf("told %q", sc.store.heard())
				}
				if len(q.keys) > q.most {
					t.Errorf("%d keys, at most %d", len(q.keys), q.most)
				}
			})
		}
	}
}
