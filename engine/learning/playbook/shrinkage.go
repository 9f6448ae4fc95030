package playbook

import (
	"fmt"
	"slices"
)

// Thresholds of [FindingCollapse] and [FindingErosion]. A healthy playbook is one whose merges add about as
// many bullets as they remove, or more, and rewrite some; see TestFalseAlarms.
const (
	// CollapseShare is the share of the bullets, or of the bytes of their contents, that one merge must
	// remove.
	CollapseShare = 0.30
	// ErosionShare is the same for the difference to the running peak.
	ErosionShare = 0.50
	// CollapseLeast is the minimum number of bullets before the loss. A playbook of fewer bullets needs
	// CollapseBytes and must lose ErosionShare, because one of its bullets can be CollapseShare of it.
	CollapseLeast = 10
	CollapseBytes = 8192
)

// maxShrinkages is the number of losses that a history keeps, newest first.
const maxShrinkages = 50

// shrinkage is a large loss: merges From to To shrank the playbook from Before, its largest size, to After.
type shrinkage struct {
	From, To      int
	Before, After Size
	By            *Source // the last merge
}

// shrinkDetector finds losses in the sequence of sizes of a branch.
type shrinkDetector struct {
	started        bool
	bullets, bytes Size // the running peaks since the last loss
	found          []shrinkage
}

// add takes the sizes before and after a merge.
func (d *shrinkDetector) add(by *Source, before, now Size) {
	if !d.started {
		d.started, d.bullets, d.bytes = true, before, before
	}
	loss := shrinkage{To: now.Seq, After: now, By: by}
	switch {
	case shrank(before, now, CollapseShare):
		loss.From, loss.Before = now.Seq, before
	case shrank(d.bytes, now, ErosionShare):
		loss.From, loss.Before = d.bytes.Seq+1, d.bytes
	case shrank(d.bullets, now, ErosionShare):
		loss.From, loss.Before = d.bullets.Seq+1, d.bullets
	default:
		if now.Bullets >= d.bullets.Bullets {
			d.bullets = now
		}
		if now.Bytes >= d.bytes.Bytes {
			d.bytes = now
		}
		return
	}
	d.bullets, d.bytes = now, now // so that the loss is reported once
	if len(d.found) >= maxShrinkages {
		d.found = slices.Clone(d.found[1:])
	}
	d.found = append(d.found, loss)
}

// shrank reports whether the playbook lost the share of its bullets or of their bytes.
func shrank(before, now Size, share float64) bool {
	if before.Bullets < CollapseLeast {
		return before.Bytes >= CollapseBytes && float64(now.Bytes) <= (1-ErosionShare)*float64(before.Bytes)
	}
	kept := 1 - share
	return float64(now.Bullets) <= kept*float64(before.Bullets) ||
		float64(now.Bytes) <= kept*float64(before.Bytes)
}

// shrinkages finds collapses, which one merge causes, and erosion by several merges.
func (c *checker) shrinkages() {
	found := map[FindingKind][]Finding{}
	for _, loss := range slices.Backward(c.history.shrinks.found) {
		kind, which := FindingCollapse, fmt.Sprintf("Version %d", loss.To)
		advice := "Check what that version removed and why; unless it was a cleanup, restart from the version before it."
		if loss.From < loss.To {
			kind, which = FindingErosion, fmt.Sprintf("Versions %d to %d", loss.From, loss.To)
			advice = fmt.Sprintf("Check what these versions removed and why; version %d has the most.",
				loss.Before.Seq)
		}
		if loss.By.TaskID != "" {
			which += fmt.Sprintf(" (task %s)", loss.By.TaskID)
		}
		found[kind] = append(found[kind], Finding{Severity: SeverityError, By: loss.By,
			Numbers: map[string]float64{"from": float64(loss.From), "to": float64(loss.To),
				"bullets_before": float64(loss.Before.Bullets), "bullets_after": float64(loss.After.Bullets),
				"bytes_before": float64(loss.Before.Bytes), "bytes_after": float64(loss.After.Bytes)},
			Text: fmt.Sprintf("%s shrank the playbook from %d bullets to %d, from %d bytes to %d.", which,
				loss.Before.Bullets, loss.After.Bullets, loss.Before.Bytes, loss.After.Bytes),
			Advice: advice})
	}
	c.add(FindingCollapse, found[FindingCollapse]...)
	c.add(FindingErosion, found[FindingErosion]...)
}
