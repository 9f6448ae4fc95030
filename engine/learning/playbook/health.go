package playbook

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"acescope/engine/ace"
)

// falseAlarms is the share of healthy playbooks, at most, in which one check finds a kind. What healthy means
// for a kind is with its thresholds; TestFalseAlarms measures the shares.
var falseAlarms = map[FindingKind]float64{
	FindingCollapse: 0.01, FindingErosion: 0.02, FindingZero: 0.02, FindingGap: 0.04, FindingFlat: 0.04,
	FindingRejected: 0.06, FindingHarmful: 0.05, FindingDuplicate: 0.01, FindingGrowth: 0.02,
	FindingUnused: 0.05,
}

// MaxFindings bounds the findings of one kind. Others are counted.
const MaxFindings = 200

// maxFindingIDs bounds the bullets that one finding lists. Others are counted.
const maxFindingIDs = 1000

// FindingKind is a kind of problem with a playbook.
type FindingKind string

// Kinds of findings.
const (
	FindingCollapse  FindingKind = "collapse"
	FindingErosion   FindingKind = "erosion"
	FindingZero      FindingKind = "zero-accuracy"
	FindingGap       FindingKind = "held-out-gap"
	FindingFlat      FindingKind = "flat-accuracy"
	FindingRejected  FindingKind = "rejection-rate"
	FindingBudget    FindingKind = "budget-overrun" // never by chance
	FindingHarmful   FindingKind = "harmful"
	FindingDuplicate FindingKind = "near-duplicate"
	FindingGrowth    FindingKind = "growth-without-edit"
	FindingUnused    FindingKind = "never-used"
)

// findingOrder is the order of findings of equal severity.
var findingOrder = []FindingKind{FindingCollapse, FindingErosion, FindingZero, FindingGap, FindingFlat,
	FindingRejected, FindingHarmful, FindingBudget, FindingDuplicate, FindingGrowth, FindingUnused}

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
	// By is the merge that caused a collapse, or the last one of an erosion.
	By *Source `json:"by,omitempty"`
	// FalseAlarms is the share of healthy playbooks, at most, that have such a finding by chance.
	FalseAlarms float64 `json:"false_alarms"`
}

// Chance says how often a healthy playbook has such a finding.
func (f *Finding) Chance() string {
	return fmt.Sprintf("(By chance: at most %.0f %% of healthy playbooks.)", 100*f.FalseAlarms)
}

// Outcome is the verdict on a task, to measure whether a playbook helps.
type Outcome struct {
	At      time.Time
	Correct bool
}

// Evaluation is the result of a version on held-out items with a label.
type Evaluation struct {
	Playbook string // hash of the version
	Correct  int
	Labeled  int
}

// Proposals counts the operations that curators proposed in a number of tasks, and those that were rejected,
// by the curator's own checks or by the merge.
type Proposals struct{ Tasks, Operations, Rejected int }

// Evidence is what is known about a playbook besides its history: the verdicts on the tasks of its branch in
// any order, the evaluations of its experiment, oldest first, its operations, and its usage with the budget,
// nil for none.
type Evidence struct {
	Outcomes    []Outcome
	Evaluations []Evaluation
	Proposals   Proposals
	Usage       ace.Usage
	Budget      *ace.Budget
}

// Health is the findings on a playbook, most severe first. Unchecked lists the kinds that
// could not be checked for lack of data.
type Health struct {
	Bullets   int               `json:"bullets"`
	Findings  []Finding         `json:"findings"`
	Dropped   int               `json:"dropped,omitempty"` // findings beyond MaxFindings of a kind
	Checked   []FindingKind     `json:"checked"`
	Unchecked []UncheckedReason `json:"unchecked"`
	// FalseAlarms is, for each checked kind, the share of healthy playbooks, at most, that have such a
	// finding.
	FalseAlarms map[FindingKind]float64 `json:"false_alarms"`
}

// UncheckedReason says why a kind of finding was not checked.
type UncheckedReason struct {
	Kind FindingKind `json:"kind"`
	Why  string      `json:"why"`
}

// Check returns the findings on a playbook. history is the history of its branch up to this version, or nil
// if it has no branch. Without a history or evidence, some kinds remain unchecked.
func Check(book *Playbook, history *History, evidence Evidence) *Health {
	c := &checker{book: book, history: history, health: &Health{Bullets: len(book.Bullets),
		Findings: []Finding{},
		Checked:  []FindingKind{}, Unchecked: []UncheckedReason{}, FalseAlarms: map[FindingKind]float64{}}}
	c.harmful()
	c.duplicates()
	if history == nil {
		for _, k := range findingOrder {
			if k != FindingHarmful && k != FindingDuplicate && k != FindingBudget {
				c.skip(k, "the playbook belongs to no branch and has no history")
			}
		}
	} else {
		c.shrinkages()
		c.growth()
		c.unused()
		c.rejections(evidence.Proposals)
		c.budget(evidence)
		outcomes := slices.Clone(evidence.Outcomes)
		slices.SortStableFunc(outcomes, func(a, b Outcome) int { return a.At.Compare(b.At) })
		c.zero(outcomes)
		c.gap(outcomes, evidence.Evaluations)
		c.flat(outcomes)
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
	c.health.FalseAlarms[kind] = falseAlarms[kind]
	if over := len(list) - MaxFindings; over > 0 {
		c.health.Dropped += over
		list = list[:MaxFindings]
	}
	for _, f := range list {
		f.Kind, f.FalseAlarms = kind, falseAlarms[kind]
		if f.BulletIDs == nil {
			f.BulletIDs = []string{}
		}
		if over := len(f.BulletIDs) - maxFindingIDs; over > 0 {
			f.BulletIDs, f.More = f.BulletIDs[:maxFindingIDs], over
		}
		c.health.Findings = append(c.health.Findings, f)
	}
}

func round2(f float64) float64 { return math.Round(100*f) / 100 }

func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return ace.Count(n, "time")
}

// listIDs formats two or more IDs for a sentence. It counts all but the first of many.
func listIDs(ids []string) string {
	if len(ids) > 3 {
		return fmt.Sprintf("%s and %d others", ids[0], len(ids)-1)
	}
	return strings.Join(ids[:len(ids)-1], ", ") + " and " + ids[len(ids)-1]
}
