package playbook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Thresholds of the findings; those of near-duplicates and collapses are [NearShare],
// [CollapseShare] and their like.
const (
	// HarmfulSure is from how many harmful tags on a bullet that was tagged harmful at
	// least twice as often as helpful is called bad rather than doubtful.
	HarmfulSure = 3
	// UnusedAfter is how many merges may pass until a bullet that nobody tagged is called
	// unused.
	UnusedAfter = 50
	// FlatTasks is how many judged tasks it takes to tell whether accuracy rises. The first
	// third of them is compared with the last.
	FlatTasks = 30
	// FlatRise is by how much accuracy has to rise between them, of 1, not to be flat, and
	// FlatGood from where on there is nothing left to rise to.
	FlatRise = 0.03
	FlatGood = 0.95
	// FlatCounters and FlatGrowth are how much the helpful counters rise meanwhile to be
	// called up: in tags, and against what they were.
	FlatCounters = 20
	FlatGrowth   = 0.25
	// GrowthAdds is how many bullets may be added with no update and no removal between.
	GrowthAdds = 40
)

// MaxFindings bounds the findings of one kind; others are counted.
const MaxFindings = 200

// maxFindingIDs bounds the bullets that one finding names; others are counted.
const maxFindingIDs = 1000

// FindingKind is what is wrong with a playbook.
type FindingKind string

// Kinds of findings, in the order in which they are listed among equals.
const (
	FindingCollapse  FindingKind = "collapse"
	FindingFlat      FindingKind = "flat-accuracy"
	FindingHarmful   FindingKind = "harmful"
	FindingDuplicate FindingKind = "near-duplicate"
	FindingGrowth    FindingKind = "growth-without-edit"
	FindingUnused    FindingKind = "never-used"
)

// Severity is how bad a finding is.
type Severity string

// Severities.
const (
	Bad    Severity = "bad"    // it costs answers now
	Doubt  Severity = "doubt"  // it probably does, or will
	Remark Severity = "remark" // worth knowing
)

func (s Severity) rank() int { return slices.Index([]Severity{Bad, Doubt, Remark}, s) }

// Finding is one thing that is wrong. Text says what, with its numbers, and Advice what to
// do; Numbers has the numbers by name. More counts bullets that BulletIDs has no room for.
type Finding struct {
	Kind      FindingKind        `json:"kind"`
	Severity  Severity           `json:"severity"`
	BulletIDs []string           `json:"bullet_ids"`
	More      int                `json:"more,omitempty"`
	Numbers   map[string]float64 `json:"numbers"`
	Text      string             `json:"text"`
	Advice    string             `json:"advice"`
	By        *Source            `json:"by,omitempty"` // the merge that did it, of a collapse
}

// Outcome is how a task was judged, for telling whether a playbook helps.
type Outcome struct {
	At      time.Time
	Correct bool
}

// Health is the findings on a playbook, the worst first. Checked lists the kinds that
// could be looked for, Unchecked the others with what was missing.
type Health struct {
	Bullets   int               `json:"bullets"`
	Findings  []Finding         `json:"findings"`
	Dropped   int               `json:"dropped,omitempty"` // findings beyond MaxFindings of a kind
	Checked   []FindingKind     `json:"checked"`
	Unchecked []UncheckedReason `json:"unchecked"`
}

// UncheckedReason is a kind of finding that was not looked for, and why.
type UncheckedReason struct {
	Kind FindingKind `json:"kind"`
	Why  string      `json:"why"`
}

// Check looks a playbook over. history is that of its branch up to this version, nil for a
// playbook that is no branch's; outcomes is how the branch's tasks were judged, in any
// order, nil where that is not known. Without them it finds less and says so.
func Check(book *Playbook, history *History, outcomes []Outcome) *Health {
	c := &checker{book: book, history: history, health: &Health{Bullets: len(book.Bullets), Findings: []Finding{},
		Checked: []FindingKind{}, Unchecked: []UncheckedReason{}}}
	c.harmful()
	c.duplicates()
	if history == nil {
		for _, k := range []FindingKind{FindingCollapse, FindingFlat, FindingGrowth, FindingUnused} {
			c.not(k, "the playbook belongs to no branch, so nothing is known of its past")
		}
	} else {
		c.collapse()
		c.flat(outcomes)
		c.growth()
		c.unused()
	}
	slices.SortStableFunc(c.health.Findings, func(a, b Finding) int {
		return cmp.Or(a.Severity.rank()-b.Severity.rank(), order(a.Kind)-order(b.Kind))
	})
	return c.health
}

func order(k FindingKind) int {
	return slices.Index([]FindingKind{FindingCollapse, FindingFlat, FindingHarmful, FindingDuplicate, FindingGrowth, FindingUnused}, k)
}

type checker struct {
	book    *Playbook
	history *History
	health  *Health
}

func (c *checker) not(k FindingKind, why string) {
	c.health.Unchecked = append(c.health.Unchecked, UncheckedReason{k, why})
}

// found adds the findings of a kind, the worst first, within bounds.
func (c *checker) found(kind FindingKind, list []Finding) {
	c.health.Checked = append(c.health.Checked, kind)
	if over := len(list) - MaxFindings; over > 0 {
		c.health.Dropped += over
		list = list[:MaxFindings]
	}
	for _, f := range list {
		f.Kind = kind
		if f.BulletIDs == nil {
			f.BulletIDs = []string{}
		}
		if over := len(f.BulletIDs) - maxFindingIDs; over > 0 {
			f.BulletIDs, f.More = f.BulletIDs[:maxFindingIDs], over
		}
		c.health.Findings = append(c.health.Findings, f)
	}
}

// harmful finds bullets that were tagged harmful as often as helpful, or more.
func (c *checker) harmful() {
	var list []Finding
	for _, b := range c.book.Bullets {
		if b.Harmful == 0 || b.Harmful < b.Helpful {
			continue
		}
		f := Finding{Severity: Doubt, BulletIDs: []string{b.ID},
			Numbers: map[string]float64{"helpful": float64(b.Helpful), "harmful": float64(b.Harmful)},
			Text:    fmt.Sprintf("%s was tagged harmful %s and helpful %s.", b.ID, times(b.Harmful), times(b.Helpful)),
			Advice:  "Reword it, or watch it for some more tasks."}
		if b.Harmful >= HarmfulSure && b.Harmful >= 2*b.Helpful {
			f.Severity, f.Advice = Bad, "Remove it, or reword it so that it applies only where it helps."
		}
		list = append(list, f)
	}
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Compare(b.Numbers["harmful"]-b.Numbers["helpful"], a.Numbers["harmful"]-a.Numbers["helpful"])
	})
	c.found(FindingHarmful, list)
}

func (c *checker) duplicates() {
	var list []Finding
	for _, g := range NearDuplicates(c.book, NearShare) {
		f := Finding{Severity: Remark, BulletIDs: g.IDs,
			Numbers: map[string]float64{"bullets": float64(len(g.IDs)), "share_least": round2(g.Share), "share_most": round2(g.Most)},
			Advice:  "Compare them; where they mean the same, keep the one that helps more and remove the rest."}
		share := fmt.Sprintf("%.0f %%", 100*g.Most)
		if g.Share < g.Most {
			share = fmt.Sprintf("%.0f to %.0f %%", 100*g.Share, 100*g.Most)
		}
		f.Text = fmt.Sprintf("%s say nearly the same: %s of their wording is shared.", some(g.IDs), share)
		if g.Most == 1 {
			f.Severity = Doubt
			f.Text = fmt.Sprintf("%s say the same: %s of their wording is shared.", some(g.IDs), share)
			f.Advice = "Keep one and remove the rest."
		}
		list = append(list, f)
	}
	c.found(FindingDuplicate, list)
}

func (c *checker) collapse() {
	var list []Finding
	for _, fall := range slices.Backward(c.history.falls.found) {
		where := fmt.Sprintf("Version %d", fall.To)
		advice := "Look at what that version removed and why; if it was no clean-up, start again from the version before it."
		if fall.From < fall.To {
			where = fmt.Sprintf("Versions %d to %d", fall.From, fall.To)
			advice = "Look at what these versions removed and why; if it was no clean-up, start again from the version before them."
		}
		by := ""
		if fall.By.TaskID != "" {
			by = fmt.Sprintf(" (task %s)", fall.By.TaskID)
		}
		list = append(list, Finding{Severity: Bad, By: fall.By, Advice: advice,
			Numbers: map[string]float64{"from": float64(fall.From), "to": float64(fall.To),
				"bullets_before": float64(fall.Before.Bullets), "bullets_after": float64(fall.After.Bullets),
				"bytes_before": float64(fall.Before.Bytes), "bytes_after": float64(fall.After.Bytes)},
			Text: fmt.Sprintf("%s%s shrank the playbook from %d bullets to %d, from %d bytes to %d.", where, by,
				fall.Before.Bullets, fall.After.Bullets, fall.Before.Bytes, fall.After.Bytes)})
	}
	c.found(FindingCollapse, list)
}

// flat compares the accuracy of the first third of the tasks with that of the last, and
// the counters at the ends of both.
func (c *checker) flat(outcomes []Outcome) {
	if len(outcomes) < FlatTasks {
		c.not(FindingFlat, fmt.Sprintf("%d judged tasks are known, %d are needed", len(outcomes), FlatTasks))
		return
	}
	list := slices.Clone(outcomes)
	slices.SortStableFunc(list, func(a, b Outcome) int { return a.At.Compare(b.At) })
	third := len(list) / 3
	early, late := accuracy(list[:third]), accuracy(list[len(list)-third:])
	sizes := c.history.Sizes()
	before, after := sizes.before(list[third-1].At).Helpful, sizes.before(list[len(list)-1].At).Helpful
	rise := after - before
	if late-early >= FlatRise || early >= FlatGood || rise < FlatCounters || float64(rise) < FlatGrowth*float64(before) {
		c.found(FindingFlat, nil)
		return
	}
	c.found(FindingFlat, []Finding{{Severity: Bad,
		Numbers: map[string]float64{"tasks": float64(len(list)), "accuracy_first": round2(early), "accuracy_last": round2(late),
			"helpful_before": float64(before), "helpful_after": float64(after)},
		Text: fmt.Sprintf("The helpful counters rose from %d to %d, but accuracy went from %.0f %% (first %d tasks) to %.0f %% (last %d).",
			before, after, 100*early, third, 100*late, third),
		Advice: "The tags say what the reflector likes, not what helps. Check it against labels before more is learnt."}})
}

func accuracy(list []Outcome) float64 {
	right := 0
	for _, o := range list {
		if o.Correct {
			right++
		}
	}
	return float64(right) / float64(len(list))
}

func (c *checker) growth() {
	h := c.history
	if h.since < GrowthAdds {
		c.found(FindingGrowth, nil)
		return
	}
	last := "No bullet was ever updated or removed"
	if h.edit != nil {
		last = fmt.Sprintf("The last update or removal was in version %d", h.edit.Seq)
	}
	c.found(FindingGrowth, []Finding{{Severity: Doubt,
		Numbers: map[string]float64{"adds": float64(h.since), "updates": float64(h.totals.Updated), "removals": float64(h.totals.Removed)},
		Text:    fmt.Sprintf("%s; %d bullets were added since.", last, h.since),
		Advice:  "Let the curator update and remove too: what is only ever added gets longer, not better."}})
}

// unused finds bullets with no tag in all the merges since they were added.
func (c *checker) unused() {
	f := Finding{Severity: Remark}
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
		if age >= UnusedAfter {
			f.BulletIDs = append(f.BulletIDs, b.ID)
			longest = max(longest, age)
		}
	}
	n := len(f.BulletIDs)
	if n == 0 {
		c.found(FindingUnused, nil)
		return
	}
	f.Numbers = map[string]float64{"bullets": float64(n), "of": float64(len(c.book.Bullets)), "merges": float64(longest)}
	f.Text = fmt.Sprintf("%d of %d bullets were never tagged in %d merges or more since they were added.", n, len(c.book.Bullets), UnusedAfter)
	if n == 1 {
		f.Text = fmt.Sprintf("%s was never tagged in the %d merges since it was added.", f.BulletIDs[0], longest)
	}
	f.Advice = "No run found them helpful or harmful; whether a plan cited one is not counted here. They take room in every prompt: remove them, or make them easier to apply."
	c.found(FindingUnused, []Finding{f})
}

func round2(f float64) float64 { return float64(int(100*f+0.5)) / 100 }

func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// some is a list of ids for a sentence: all of a few, else how many.
func some(ids []string) string {
	if len(ids) > 3 {
		return fmt.Sprintf("%s and %d others", ids[0], len(ids)-1)
	}
	return strings.Join(ids[:len(ids)-1], ", ") + " and " + ids[len(ids)-1]
}
