package runs

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// localAttributes are the search attributes of which a run in memory has the server's value.
var localAttributes = []string{history.AttrStatus, ace.AttrExperiment, ace.AttrDataset, ace.AttrModel,
	ace.AttrPhase}

var (
	onAttribute = regexp.MustCompile(`(?is)^(\w+)\s*(=|!=|\bIN\b|\bNOT\s+IN\b)\s*(.*)$`)
	onClose     = regexp.MustCompile(`(?i)^CloseTime\s+IS\s+(NOT\s+)?NULL$`)
)

// matcher returns a function that selects the runs of a query among those in memory. It reports false for a
// query that only the server can evaluate.
func matcher(query string) (matches func(*Run) bool, ok bool) {
	parts, obstacle := conditions(query)
	if obstacle != "" {
		return nil, false
	}
	var all []func(*Run) bool
	for _, part := range parts {
		one, ok := matcherOf(part)
		if !ok {
			return nil, false
		}
		all = append(all, one)
	}
	return func(r *Run) bool {
		return !slices.ContainsFunc(all, func(one func(*Run) bool) bool { return !one(r) })
	}, true
}

func matcherOf(condition string) (matches func(*Run) bool, ok bool) {
	if m := onClose.FindStringSubmatch(condition); m != nil {
		return func(r *Run) bool { return r.Open() == (m[1] == "") }, true
	}
	m := onAttribute.FindStringSubmatch(condition)
	if m == nil {
		return nil, false
	}
	var values []string
	for _, quoted := range quotedText.FindAllString(m[3], -1) {
		values = append(values, unquote(quoted))
	}
	is := m[2] == "=" || strings.EqualFold(m[2], "IN")
	switch name := m[1]; {
	case len(values) == 0:
		return nil, false
	case name == SinceCondition || name == UntilCondition:
		return func(r *Run) bool {
			at, err := TimeAt(values[0], time.Now())
			return err == nil && r.Start.Before(at) == (name == UntilCondition)
		}, true
	case name == ace.AttrExit && is && slices.Equal(values, []string{string(ace.ExitWrong)}):
		return func(r *Run) bool { return r.Status == ace.Completed && r.Verdict == ace.Wrong }, true
	case slices.Contains(localAttributes, name):
		return func(r *Run) bool { return slices.Contains(values, r.Value(name)) == is }, true
	}
	return nil, false
}
