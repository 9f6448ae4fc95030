package playbook

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"acescope/engine/learning/stats"
)

// Thresholds of the findings. [NearShare] and [CollapseShare] have their own.
const (
	// HarmfulSure is the number of harmful tags from which a bullet is an error rather than a
	// warning, if it was also tagged harmful at least twice as often as helpful.
	HarmfulSure = 3
	// UnusedAfter is the number of merges after which a bullet without a tag is unused.
	UnusedAfter = 50
	// FlatTasks is the number of judged tasks needed to measure a change in accuracy. The
	// first third of them is compared with the last.
	FlatTasks = 30
	// FlatRise is the rise in accuracy (of 1) below which it is flat. Accuracy of FlatGood or
	// more need not rise.
	FlatRise = 0.03
	FlatGood = 0.95
	// FlatCounters and FlatGrowth are the rise of the helpful counters, in tags and relative
	// to their previous sum, that should have raised accuracy.
	FlatCounters = 20
	FlatGrowth   = 0.25
	// GrowthAdds is the number of bullets that may be added without an update or removal.
	GrowthAdds = 40
)

// MaxFindings bounds the findings of one kind. Others are counted.
const MaxFindings = 200

// maxFindingIDs bounds the bullets that one finding lists. Others are counted.
const maxFindingIDs = 1000

// FindingKind is a kind of problem with a playbook.
type FindingKind string

// Kinds of findings.
const (
	FindingCollapse  FindingKind = "collapse"
	FindingFlat      FindingKind = "flat-accuracy"
	FindingHarmful   FindingKind = "harmful"
	FindingDuplicate FindingKind = "near-duplicate"
	FindingGrowth    FindingKind = "growth-without-edit"
	FindingUnused    FindingKind = "never-used"
)

// findingOrder is the order of findings of equal severity.
var findingOrder = []FindingKind{FindingCollapse, FindingFlat, FindingHarmful, FindingDuplicate,
	FindingGrowth, FindingUnused}

// Severity of a finding.
type Severity string

// Severities.
const (
	SeverityError   Severity = "error"   // it costs answers now
	SeverityWarning Severity = "warning" // it probably costs answers, or will
	SeverityInfo    Severity = "info"
)

var severityOrder = []Severity{SeverityError, SeverityWarning, SeverityInfo}

// Finding is one problem. Text describes it and Advice says what to do; Numbers has the
// figures by name. More counts bullets beyond those in BulletIDs.
type Finding struct {
	Kind      FindingKind        `json:"kind"`
	Severity  Severity           `json:"severity"`
	BulletIDs []string           `json:"bullet_ids"`
	More      int                `json:"more,omitempty"`
	Numbers   map[string]float64 `json:"numbers"`
	Text      string             `json:"text"`
	Advice    string             `json:"advice"`
	By        *Source            `json:"by,omitempty"` // the merge that caused a collapse
}

// Outcome is the verdict on a task, to measure whether a playbook helps.
type Outcome struct {
	At      time.Time
	Correct bool
}

// Health is the findings on a playbook, most severe first. Unchecked lists the kinds that
// could not be checked for lack of data.
type Health struct {
	Bullets   int               `json:"bullets"`
	Findings  []Finding         `json:"findings"`
	Dropped   int               `json:"dropped,omitempty"` // findings beyond MaxFindings of a kind
	Checked   []FindingKind     `json:"checked"`
	Unchecked []UncheckedReason `json:"unchecked"`
}

// UncheckedReason says why a kind of finding was not checked.
type UncheckedReason struct {
	Kind FindingKind `json:"kind"`
	Why  string      `json:"why"`
}

// Check returns the findings on a playbook. history is the history of its branch up to this
// version, or nil if it has no branch. outcomes are the verdicts on the branch's tasks in any
// order, or nil if unknown. Without them, some kinds remain unchecked.
func Check(book *Playbook, history *History, outcomes []Outcome) *Health {
	c := &checker{book: book, history: history, health: &Health{Bullets: len(book.Bullets), Findings: []Finding{},
		Checked: []FindingKind{}, Unchecked: []UncheckedReason{}}}
	c.harmful()
	c.duplicates()
	if history == nil {
		for _, k := range []FindingKind{FindingCollapse, FindingFlat, FindingGrowth, FindingUnused} {
			c.skip(k, "the playbook belongs to no branch and has no history")
		}
	} else {
		c.collapse()
		c.flat(outcomes)
		c.growth()
		c.unused()
	}
	slices.SortStableFunc(c.health.Findings, func(a, b Finding) int {
		severity := slices.Index(severityOrder, a.Severity) - slices.Index(severityOrder, b.Severity)
		return cmp.Or(severity, slices.Index(findingOrder, a.Kind)-slices.Index(findingOrder, b.Kind))
	})
	return c.health
}

type checker struct {
	book    *Playbook
	history *History
	health  *Health
}

func (c *checker) skip(k FindingKind, why string) {
	c.health.Unchecked = append(c.health.Unchecked, UncheckedReason{k, why})
}

// add appends the findings of a kind, most severe first, within bounds.
func (c *checker) add(kind FindingKind, list ...Finding) {
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

// harmful finds bullets that were tagged harmful at least as often as helpful.
func (c *checker) harmful() {
	var list []Finding
	for _, b := range c.book.Bullets {
		if b.Harmful == 0 || b.Harmful < b.Helpful {
			continue
		}
		f := Finding{Severity: SeverityWarning, BulletIDs: []string{b.ID},
			Numbers: map[string]float64{"helpful": float64(b.Helpful), "harmful": float64(b.Harmful)},
			Text:    fmt.Sprintf("%s was tagged harmful %s and helpful %s.", b.ID, times(b.Harmful), times(b.Helpful)),
			Advice:  "Reword it, or watch it for a few more tasks."}
		if b.Harmful >= HarmfulSure && b.Harmful >= 2*b.Helpful {
			f.Severity, f.Advice = SeverityError, "Remove it, or reword it so that it applies only where it helps."
		}
		list = append(list, f)
	}
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Compare(b.Numbers["harmful"]-b.Numbers["helpful"], a.Numbers["harmful"]-a.Numbers["helpful"])
	})
	c.add(FindingHarmful, list...)
}

func (c *checker) duplicates() {
	var list []Finding
	for _, g := range NearDuplicates(c.book, NearShare) {
		f := Finding{Severity: SeverityInfo, BulletIDs: g.IDs,
			Numbers: map[string]float64{"bullets": float64(len(g.IDs)), "share_least": round2(g.Share), "share_most": round2(g.Most)},
			Advice:  "Compare them; if they mean the same, keep the more helpful bullet and remove the rest."}
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

func (c *checker) collapse() {
	var list []Finding
	for _, found := range slices.Backward(c.history.collapses.found) {
		which, them, before := fmt.Sprintf("Version %d", found.To), "that version", "the version before it"
		if found.From < found.To {
			which, them = fmt.Sprintf("Versions %d to %d", found.From, found.To), "these versions"
			before = "the version before them"
		}
		if found.By.TaskID != "" {
			which += fmt.Sprintf(" (task %s)", found.By.TaskID)
		}
		list = append(list, Finding{Severity: SeverityError, By: found.By,
			Numbers: map[string]float64{"from": float64(found.From), "to": float64(found.To),
				"bullets_before": float64(found.Before.Bullets), "bullets_after": float64(found.After.Bullets),
				"bytes_before": float64(found.Before.Bytes), "bytes_after": float64(found.After.Bytes)},
			Text: fmt.Sprintf("%s shrank the playbook from %d bullets to %d, from %d bytes to %d.", which,
				found.Before.Bullets, found.After.Bullets, found.Before.Bytes, found.After.Bytes),
			Advice: fmt.Sprintf("Check what %s removed and why; unless it was a cleanup, restart from %s.", them, before)})
	}
	c.add(FindingCollapse, list...)
}

// flat compares the accuracy of the first and the last third of the tasks with the growth of
// the counters in between.
func (c *checker) flat(outcomes []Outcome) {
	if len(outcomes) < FlatTasks {
		c.skip(FindingFlat, fmt.Sprintf("only %d judged tasks, %d are needed", len(outcomes), FlatTasks))
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
		c.add(FindingFlat)
		return
	}
	c.add(FindingFlat, Finding{Severity: SeverityError,
		Numbers: map[string]float64{"tasks": float64(len(list)), "accuracy_first": round2(early), "accuracy_last": round2(late),
			"helpful_before": float64(before), "helpful_after": float64(after)},
		Text: fmt.Sprintf("The helpful counters rose from %d to %d, "+
			"but accuracy went from %s in the first %d tasks to %s in the last %d (95 %% intervals).", before, after,
			accuracyText(list[:third]), third, accuracyText(list[len(list)-third:]), third),
		Advice: "The tags reflect what the reflector likes, not what helps. Check it against labels before learning more."})
}

func accuracy(list []Outcome) float64 { return stats.Share(correctOf(list), len(list)) }

// accuracyText returns the accuracy with its interval: "40 % (26–56)".
func accuracyText(list []Outcome) string {
	i := stats.Wilson(correctOf(list), len(list))
	return fmt.Sprintf("%.0f %% (%.0f–%.0f)", 100*accuracy(list), 100*i.Low, 100*i.High)
}

func correctOf(list []Outcome) int {
	correct := 0
	for _, o := range list {
		if o.Correct {
			correct++
		}
	}
	return correct
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

// unused finds bullets that no merge has tagged since they were added.
func (c *checker) unused() {
	f := Finding{Severity: SeverityInfo}
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
		c.add(FindingUnused)
		return
	}
	f.Numbers = map[string]float64{"bullets": float64(n), "of": float64(len(c.book.Bullets)), "merges": float64(longest)}
	f.Text = fmt.Sprintf("%d of %d bullets were never tagged in the %d or more merges since they were added.",
		n, len(c.book.Bullets), UnusedAfter)
	if n == 1 {
		f.Text = fmt.Sprintf("%s was never tagged in the %d merges since it was added.", f.BulletIDs[0], longest)
	}
	f.Advice = "No run found them helpful or harmful; citations by plans are not counted here. " +
		"They take up space in every prompt: remove them, or make them easier to apply."
	c.add(FindingUnused, f)
}

func round2(f float64) float64 { return math.Round(100*f) / 100 }

func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// listIDs formats two or more IDs for a sentence. It counts all but the first of many.
func listIDs(ids []string) string {
	if len(ids) > 3 {
		return fmt.Sprintf("%s and %d others", ids[0], len(ids)-1)
	}
	return strings.Join(ids[:len(ids)-1], ", ") + " and " + ids[len(ids)-1]
}

// Thresholds of [FindingCollapse].
const (
	// CollapseShare is the share of the bullets, or of the bytes of their contents, that one
	// merge must remove.
	CollapseShare = 0.30
	// CollapseWindow and CollapseWindowShare are the same for a sequence of merges.
	CollapseWindow      = 20
	CollapseWindowShare = 0.50
	// CollapseLeast is the minimum number of bullets before the loss.
	CollapseLeast = 10
)

// maxCollapses is the number of collapses that a history keeps, newest first.
const maxCollapses = 50

// Collapse is a large loss: merges From to To shrank the playbook from Before to After.
type Collapse struct {
	From   int     `json:"from"`
	To     int     `json:"to"`
	Before Size    `json:"before"`
	After  Size    `json:"after"`
	By     *Source `json:"by"` // the last merge
}

// collapseDetector finds collapses in the sequence of sizes of a branch.
type collapseDetector struct {
	window []Size // the newest sizes, oldest first
	found  []Collapse
}

func (d *collapseDetector) add(by *Source, now Size) {
	if n := len(d.window); n > 0 && shrank(d.window[n-1], now, CollapseShare) {
		d.report(Collapse{From: now.Seq, To: now.Seq, Before: d.window[n-1], After: now, By: by})
	}
	peak := -1
	for i, before := range d.window {
		larger := peak < 0 || before.Bullets >= d.window[peak].Bullets
		if larger && shrank(before, now, CollapseWindowShare) {
			peak = i
		}
	}
	if peak >= 0 {
		d.report(Collapse{From: d.window[peak].Seq + 1, To: now.Seq, Before: d.window[peak], After: now, By: by})
	}
	if len(d.window) >= CollapseWindow {
		d.window = d.window[1:]
	}
	d.window = append(d.window, now)
}

// report records a collapse and clears the window, so that the loss is reported once.
func (d *collapseDetector) report(c Collapse) {
	d.window = nil
	if len(d.found) >= maxCollapses {
		d.found = slices.Clone(d.found[1:])
	}
	d.found = append(d.found, c)
}

// shrank reports whether the playbook lost the share of its bullets or of their bytes.
func shrank(before, now Size, share float64) bool {
	if before.Bullets < CollapseLeast {
		return false
	}
	kept := 1 - share
	return float64(now.Bullets) <= kept*float64(before.Bullets) || float64(now.Bytes) <= kept*float64(before.Bytes)
}
