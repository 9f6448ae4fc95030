package playbook

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"acescope/engine/learning/stats"
)

// Thresholds of findings about bullets. [NearShare] has its own.
const (
	// HarmfulShare is the share of harmful votes that a bullet of a healthy playbook gets.
	HarmfulShare = 0.20
	// UnusedShare is the share of versions that vote on a bullet of a healthy playbook, and UnusedAfter the
	// minimum number of versions without a vote.
	UnusedShare = 0.10
	UnusedAfter = 50
	// GrowthAdds is the number of bullets that may be added without an update or removal. If a tenth of the
	// changes are updates or removals, as many additions in a row have probability 0.9^GrowthAdds, 1.5 %.
	GrowthAdds = 40
)

// harmful finds bullets with at least as many harmful as helpful votes, and more than chance gives to one of
// so many bullets.
func (c *checker) harmful() {
	var list []Finding
	voted := 0
	for _, b := range c.book.Bullets {
		if b.Helpful+b.Harmful > 0 {
			voted++
		}
	}
	for _, b := range c.book.Bullets {
		chance := stats.BinomialTail(b.Harmful, b.Helpful+b.Harmful, HarmfulShare)
		if b.Harmful == 0 || b.Harmful < b.Helpful || chance*float64(voted) > stats.Alpha {
			continue
		}
		f := Finding{Severity: SeverityWarning, BulletIDs: []string{b.ID},
			Numbers: map[string]float64{"helpful": float64(b.Helpful), "harmful": float64(b.Harmful)},
			Text: fmt.Sprintf("%s was voted harmful %s and helpful %s.", b.ID, times(b.Harmful),
				times(b.Helpful)),
			Advice: "Reword it, or watch it for a few more tasks."}
		if b.Harmful >= 2*b.Helpful {
			f.Severity, f.Advice = SeverityError,
				"Remove it, or reword it so that it applies only where it helps."
		}
		f.Advice += " acescope playbook ablate measures its effect."
		list = append(list, f)
	}
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Compare(b.Numbers["harmful"]-b.Numbers["helpful"],
			a.Numbers["harmful"]-a.Numbers["helpful"])
	})
	c.add(FindingHarmful, list...)
}

func (c *checker) duplicates() {
	var list []Finding
	for _, g := range NearDuplicates(c.book, NearShare) {
		f := Finding{Severity: SeverityInfo, BulletIDs: g.IDs,
			Numbers: map[string]float64{
				"bullets": float64(len(g.IDs)), "share_least": round2(g.Share), "share_most": round2(g.Most),
			},
			Advice: "Compare them; if they mean the same, keep the more helpful bullet and remove the rest."}
		share := fmt.Sprintf("%.0f %%", 100*g.Most)
		if g.Share < g.Most {
			share = fmt.Sprintf("%.0f to %.0f %%", 100*g.Share, 100*g.Most)
		}
		f.Text = fmt.Sprintf("%s say nearly the same: they share %s of their wording.", listIDs(g.IDs), share)
		if g.Most == 1 {
			f.Severity = SeverityWarning
			f.Text = fmt.Sprintf("%s say the same: they share %s of their wording.", listIDs(g.IDs), share)
			f.Advice = "Keep one and remove the rest."
		}
		list = append(list, f)
	}
	c.add(FindingDuplicate, list...)
}

func (c *checker) growth() {
	h := c.history
	if h.since < GrowthAdds {
		c.add(FindingGrowth)
		return
	}
	last := "No bullet was ever updated or removed"
	if h.edit != nil {
		last = fmt.Sprintf("The last update or removal was in version %d", h.edit.Seq)
	}
	c.add(FindingGrowth, Finding{Severity: SeverityWarning,
		Numbers: map[string]float64{"adds": float64(h.since),
			"updates": float64(h.totals.Updated), "removals": float64(h.totals.Removed),
			"merges": float64(h.totals.Merged)},
		Text:   fmt.Sprintf("%s; %d bullets were added since.", last, h.since),
		Advice: "Let the curator update and remove bullets too; adding alone makes a playbook longer, not better."})
}

// unused finds bullets that no merge has voted on since they were added, for longer than chance explains for
// one of so many bullets.
func (c *checker) unused() {
	f := Finding{Severity: SeverityInfo}
	chance := stats.Alpha / float64(max(len(c.book.Bullets), 1))
	after := max(UnusedAfter, int(math.Ceil(math.Log(chance)/math.Log(1-UnusedShare))))
	longest := 0
	for _, b := range c.book.Bullets {
		l := c.history.lives[b.ID]
		if l == nil || l.Tags > 0 || b.Helpful+b.Harmful+b.Neutral > 0 {
			continue
		}
		age := c.history.Seq
		if l.Added != nil && l.Added.Branch == c.history.Branch {
			age -= l.Added.Seq
		}
		if age >= after {
			f.BulletIDs = append(f.BulletIDs, b.ID)
			longest = max(longest, age)
		}
	}
	n := len(f.BulletIDs)
	if n == 0 {
		c.add(FindingUnused)
		return
	}
	f.Numbers = map[string]float64{"bullets": float64(n), "of": float64(len(c.book.Bullets)),
		"merges": float64(longest)}
	f.Text = fmt.Sprintf("%d of %d bullets got no vote in the %d or more versions since they were added.",
		n, len(c.book.Bullets), after)
	if n == 1 {
		f.Text = fmt.Sprintf("%s got no vote in the %d versions since it was added.", f.BulletIDs[0], longest)
	}
	f.Advice = "No run found them helpful or harmful; citations by plans are not counted here. " +
		"They take up space in every prompt: remove them, or make them easier to apply."
	c.add(FindingUnused, f)
}
