// Package diff describes the comparison of two runs as plain text, for the screen and the command. The text
// is not safe for a terminal yet.
package diff

import (
	"fmt"
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/temporal/compare"
)

// Only selects pairs: all, those that differ, or those whose input or result differs.
type Only string

// Selections of pairs.
const (
	Every       Only = ""
	OnlyChanged Only = "changed"
	OnlyInput   Only = "input"
	OnlyResult  Only = "result"
)

// Shows reports whether a pair is selected.
func (o Only) Shows(p *compare.Pair) bool {
	single := p.Status == compare.OnlyA || p.Status == compare.OnlyB
	differs := compare.Differs(p.Status)
	switch o {
	case OnlyChanged:
		return differs
	case OnlyInput:
		return single || len(p.Input) > 0
	case OnlyResult:
		return single || differs && (len(p.Result) > 0 || len(p.Input) == 0)
	}
	return true
}

// StatusWord returns the word of a pair's status: "only in A".
func StatusWord(status string) string {
	switch status {
	case compare.OnlyA:
		return "only in A"
	case compare.OnlyB:
		return "only in B"
	}
	return strings.ReplaceAll(status, "_", " ")
}

// StatusWidth is the width of the longest word of a status.
const StatusWidth = 11

// About describes a side: its workflow type, events, steps and runs.
func About(a *compare.About) string {
	summary := fmt.Sprintf("%s, %s, %s", a.Type, ace.Count(a.Events, "event"), ace.Count(a.Steps, "step"))
	if a.Runs > 1 {
		summary += ", " + ace.Count(a.Runs, "run")
	}
	return summary
}

// First describes the first difference and the first different result, or says that the runs do not differ.
func First(d *compare.Diff) []string {
	if d.First == nil {
		return []string{"no difference" + limit(d)}
	}
	lines := []string{"first difference: " + d.First.Text}
	if r := d.FirstResult; r != nil && r.Text != d.First.Text {
		lines = append(lines, "first different result: "+r.Text)
	}
	return lines
}

// limit returns what was compared, as the end of the sentence "no difference".
func limit(d *compare.Diff) string {
	switch {
	case d.Counts[compare.Unreadable] > 0:
		return " in readable payloads"
	case d.Counts[compare.NotReached] > 0:
		return " up to the end of the shorter run"
	case d.All:
		return " in any field"
	}
	return ": the runs made the same decisions"
}

// Counts returns the number of pairs by status.
func Counts(d *compare.Diff) string {
	var parts []string
	for _, status := range compare.Statuses() {
		if n := d.Counts[status]; n > 0 || status == compare.Same {
			parts = append(parts, strconv.Itoa(n)+" "+StatusWord(status))
		}
	}
	return strings.Join(parts, ", ")
}

// FoldFrom is how many equal pairs in a row become one line.
const FoldFrom = 4

// EqualFrom returns how many pairs from i on are equal and not moved.
func EqualFrom(d *compare.Diff, i int) int {
	n := 0
	for ; i+n < len(d.Pairs) && d.Pairs[i+n].Status == compare.Same && !d.Pairs[i+n].Moved; n++ {
	}
	return n
}

// Both returns what say returns for both steps of a pair, and a dash for a step that does not exist.
func Both(p *compare.Pair, say func(*compare.Step) string) (a, b string) {
	a, b = "–", "–"
	if p.A != nil {
		a = say(p.A)
	}
	if p.B != nil {
		b = say(p.B)
	}
	return a, b
}

// Event returns the number of a step's event.
func Event(s *compare.Step) string { return strconv.FormatInt(s.Event, 10) }

// Facts returns the events of a pair, durations, attempts and outcomes.
func Facts(p *compare.Pair, duration func(*compare.Step) string) string {
	of := func(say func(*compare.Step) string) string {
		a, b := Both(p, say)
		if a == b {
			return a
		}
		return a + " | " + b
	}
	parts := []string{"event " + of(Event)}
	if p.Step().DurationMS > 0 || p.B != nil && p.B.DurationMS > 0 {
		parts = append(parts, of(duration))
	}
	if p.A != nil && p.B != nil && p.A.Attempt != p.B.Attempt && Reused(p) == "" {
		parts = append(parts, "attempts "+of(func(s *compare.Step) string {
			return strconv.Itoa(int(s.Attempt))
		}))
	}
	if status := of(func(s *compare.Step) string { return s.Status }); status != "done" {
		parts = append(parts, status)
	}
	if p.Moved {
		parts = append(parts, "moved")
	}
	if where := Reused(p); where != "" {
		parts = append(parts, where)
	}
	return strings.Join(parts, "  ")
}

// Reused returns which sides reused a step of the original, or "".
func Reused(p *compare.Pair) string {
	a, b := p.A != nil && p.A.Taken, p.B != nil && p.B.Taken
	switch {
	case a && b:
		return "reused in both"
	case a:
		return "reused in A"
	case b:
		return "reused in B"
	}
	return ""
}

// Errors returns the errors of a pair if they differ.
func Errors(p *compare.Pair) (a, b string) {
	if p.A != nil {
		a = p.A.Error
	}
	if p.B != nil {
		b = p.B.Error
	}
	if a == b && p.A != nil && p.B != nil {
		return "", ""
	}
	return a, b
}

// Rest says which changes of a pair are not listed.
func Rest(p *compare.Pair) (lines []string) {
	if p.More > 0 {
		lines = append(lines, ace.Count(p.More, "more change")+" not listed")
	}
	if p.Partial {
		lines = append(lines, "the payload has too many values: the last ones are compared as a whole")
	}
	return lines
}
