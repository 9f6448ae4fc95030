package views

import (
	"slices"
	"testing"

	"acescope/engine/learning/playbook"
	"acescope/sources/playbooks"
	"acescope/sources/triage"
)

// debugging has an experiment with one cause of wrong answers and a harmful bullet.
func debugging() *snapshot {
	s := listed(learnt("plain", "finance", 100, 5, 0.009))
	result := *ailing().Triage
	result.Retrying, result.Phases = nil, nil
	result.Groups = []triage.FailureGroup{result.Groups[1], result.Groups[0]}
	s.Triage = &result
	s.Books = &playbooks.Playbooks{Branch: playbook.Branch{Name: "plain", Versions: 9}, Version: &playbooks.VersionDetail{
		VersionRef: playbooks.VersionRef{Branch: "plain", Seq: 9}, HasBullets: true, Changes: &playbook.Difference{},
		Bullets: []playbook.BulletHistory{{Bullet: playbook.Bullet{ID: "calc-1", Harmful: 1}},
			{Bullet: playbook.Bullet{ID: "calc-2", Content: "Guess if no recipe is known.", Helpful: 2, Harmful: 5}}}}}
	return s
}

// Each question about wrong answers is answered in a few keys from the first screen.
func TestKeysPerQuestion(t *testing.T) {
	for _, c := range []struct {
		question string
		keys     []string
		most     int
		says     []string
		told     string
	}{
		{"why does it fail", nil, 0, []string{"80 wrong", "no recipe was known for the formula"}, ""},
		{"which runs fail for this reason, and how", []string{"]", "enter"}, 2,
			[]string{"▸7 triage", "80 runs, 4.0%", "Return on Equity, 2001: 0.172 → 0.2"}, ""},
		{"when did it go wrong", []string{"]", "t"}, 3, []string{"▸9 replay"}, "step to wrong"},
		{"when did it go wrong, from the triage", []string{"7", "t"}, 3, []string{"▸9 replay"}, "step to wrong"},
		{"which bullet hurts", nil, 0, []string{"harmful", "calc-2 +2 -5"}, ""},
		{"what does that bullet say, and who wrote it", []string{"b"}, 2, []string{"▸4 playbook", "▸ calc-2"}, ""},
	} {
		if len(c.keys) > c.most {
			t.Errorf("%s: %d keys", c.question, len(c.keys))
		}
		sc := newOverview(t, debugging(), 160, 40)
		sc.press(c.keys...)
		for _, want := range c.says {
			sc.has(want)
		}
		if c.told != "" && !slices.Contains(sc.store.heard(), c.told) {
			t.Errorf("%s: told %q", c.question, sc.store.heard())
		}
	}
}
