// Package lineage describes the runs of a lineage as plain text, for the screens and the command. The text is
// not safe for a terminal yet.
package lineage

import (
	"cmp"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/sources/histories"
)

// Row is a run of a lineage. Unknown fields are "".
type Row struct {
	Place   string // lines to the original: "│  └─ "
	Name    string
	At      string // fork point: the last reused event and the first phase that reruns
	Changed string
	Answer  string
	Effect  string // compared with the original: better, worse, same, other
}

// maxAnswer bounds the bytes of an answer, maxValue the characters of a changed value in a row.
const (
	maxAnswer = 4096
	maxValue  = 40
)

// RowOf returns the row of a run.
func RowOf(n *histories.LineageNode) Row {
	r := Row{Place: placeOf(n), Effect: string(n.Effect)}
	r.Name = cmp.Or(n.Run.TaskID, n.Run.WorkflowID)
	if n.RunNumber > 0 {
		r.Name += " run " + strconv.Itoa(n.RunNumber)
	}
	if f := n.Run.Fork; f != nil {
		r.At = strconv.FormatInt(f.Event, 10) + " " + f.Place()
		r.Changed = Changed(f)
	}
	if n.Run.ResetFrom != "" {
		r.At, r.Changed = "reset", ""
	}
	if n.Outcome != nil {
		r.Answer = strings.TrimSpace(ace.Cut(n.Outcome.Answer, maxAnswer))
	}
	return r
}

// placeOf returns the lines from a run to its original. Roots are not connected.
func placeOf(n *histories.LineageNode) string {
	var b strings.Builder
	for _, more := range n.More[min(len(n.More), 1):] {
		if more {
			b.WriteString("│  ")
		} else {
			b.WriteString("   ")
		}
	}
	switch {
	case n.Depth == 0:
	case n.Last:
		b.WriteString("└─ ")
	default:
		b.WriteString("├─ ")
	}
	return b.String()
}

// Changed returns what was changed for a fork in one line of bounded length: "model: small → large".
func Changed(f *ace.Forked) string { return strings.Join(Changes(f, maxValue), "; ") }

// Changes returns what was changed for a fork, a text per field by name, with at most most characters of each
// value.
func Changes(f *ace.Forked, most int) (parts []string) {
	value := func(v string) string {
		if raw, err := hex.DecodeString(v); err == nil && len(raw) == 32 { // a playbook version
			return v[:12]
		}
		v = strings.Join(strings.Fields(ace.Cut(v, 4*most)), " ")
		if runes := []rune(v); len(runes) > most {
			v = string(runes[:most-1]) + "…"
		}
		return cmp.Or(v, "none")
	}
	for _, name := range slices.Sorted(maps.Keys(f.Changed)) {
		c := f.Changed[name]
		parts = append(parts, strings.TrimSuffix(name, "_hash")+": "+value(c.From)+" → "+value(c.To))
	}
	if len(parts) == 0 {
		return []string{"nothing"}
	}
	return parts
}

// Origin returns where a fork comes from.
func Origin(t *histories.LineageTree, n *histories.LineageNode) string {
	f := n.Run.Fork
	switch {
	case n.Run.ResetFrom != "":
		return "reset from run " + n.Run.ResetFrom
	case f == nil:
		return "not a fork"
	}
	summary := "forked from " + ace.TaskIDOf(f.WorkflowID) + " at event " + strconv.FormatInt(f.Event, 10)
	if n.Original < 0 || t.Nodes[n.Original].Run.RunID != f.RunID {
		summary += " (run " + f.RunID + ", no longer listed)"
	}
	var phases []string
	for _, step := range ace.Steps() {
		if step == f.Phase || len(phases) > 0 {
			phases = append(phases, string(step))
		}
	}
	return summary + "; reruns " + strings.Join(phases, ", ")
}

// Effect compares the outcome of a fork with that of its original. It is "" if one is unknown.
func Effect(t *histories.LineageTree, n *histories.LineageNode) string {
	if n.Effect == histories.EffectUnknown {
		return ""
	}
	of := &t.Nodes[n.Original]
	summary := map[histories.Effect]string{
		histories.EffectBetter: "better than ", histories.EffectWorse: "worse than ",
		histories.EffectSame: "the same as ", histories.EffectOther: "neither better nor worse than ",
	}[n.Effect]
	return summary + of.Run.TaskID + ", which " + outcome(of)
}

// outcome returns the outcome of a run as a verb phrase.
func outcome(n *histories.LineageNode) string {
	o := n.Outcome
	switch {
	case o == nil && n.Run.Open():
		return "is running"
	case o == nil:
		return "closed as " + cmp.Or(string(n.Run.Status), "unknown")
	}
	summary := "answered " + cmp.Or(strings.TrimSpace(ace.Cut(o.Answer, maxAnswer)), "nothing")
	switch {
	case o.Correct == nil:
		return summary
	case *o.Correct:
		return summary + ", correct"
	}
	return summary + ", wrong"
}
