package runs

import (
	"regexp"
	"slices"
	"strings"

	"go.temporal.io/api/serviceerror"

	"acescope/engine/ace"
)

// VerdictCondition is the name in conditions on the verdict, such as Verdict = "correct". The server
// cannot evaluate them: no search attribute tells correct, unlabeled and ungraded answers apart, since
// ExitStatus is success for all of them. The server narrows the list to the exit statuses that such a
// verdict can have, and the rows, which have the verdict from the memo, are selected here. So the
// server cannot count these runs, and a run whose memo has no verdict is found by none.
const VerdictCondition = "Verdict"

// selection is a query divided into the server's part and the verdicts of the rows to select.
type selection struct {
	server string
	keep   []func(ace.Verdict) bool // all must hold
}

// keeps reports whether a row that the server returned belongs to the list.
func (s selection) keeps(r Run) bool {
	return !slices.ContainsFunc(s.keep, func(keep func(ace.Verdict) bool) bool { return !keep(r.Verdict) })
}

// of returns the rows that belong to the list.
func (s selection) of(rows []Run) []Run {
	return slices.DeleteFunc(rows, func(r Run) bool { return !s.keeps(r) })
}

// exact reports whether the server's part selects the same runs as the query.
func (s selection) exact() bool { return len(s.keep) == 0 }

var (
	onVerdict = regexp.MustCompile(`(?is)^` + VerdictCondition + `\s*(=|!=|\bIN\b|\bNOT\s+IN\b)(.*)$`)
	verdictAt = regexp.MustCompile(`(?i)\b` + VerdictCondition + `\s*(!?=|(NOT\s+)?IN\b)`)
)

// divide divides a query. Conditions on the verdict must be joined to the others by AND.
func divide(query string) (selection, error) {
	s := selection{server: query}
	if !verdictAt.MatchString(quotedText.ReplaceAllString(query, "q")) {
		return s, nil
	}
	parts, whole := conditions(query)
	if whole {
		return s, serviceerror.NewInvalidArgumentf("%s can only be joined to other conditions by AND", VerdictCondition)
	}
	var server []string
	for _, part := range parts {
		switch verdicts, op := verdictsIn(part); {
		case len(verdicts) > 0 && !strings.HasPrefix(op, "!") && !strings.HasPrefix(op, "N"):
			server = append(server, equals(ace.AttrExit, "=", exitsOf(verdicts)))
			s.keep = append(s.keep, func(v ace.Verdict) bool { return slices.Contains(verdicts, v) })
		case len(verdicts) > 0:
			s.keep = append(s.keep, func(v ace.Verdict) bool { return !slices.Contains(verdicts, v) })
		case strings.HasPrefix(part, "(") && strings.HasSuffix(part, ")"):
			inner, err := divide(part[1 : len(part)-1])
			if err != nil {
				return s, err
			}
			s.keep = append(s.keep, inner.keep...)
			if inner.server != "" {
				server = append(server, "("+inner.server+")")
			}
		default:
			server = append(server, part)
		}
	}
	if len(s.keep) > 0 {
		s.server = strings.Join(server, " AND ")
	}
	return s, nil
}

// verdictsIn returns the verdicts of a condition and its operator in upper case, or nil for a condition
// on something else.
func verdictsIn(condition string) (verdicts []ace.Verdict, op string) {
	m := onVerdict.FindStringSubmatch(condition)
	if m == nil {
		return nil, ""
	}
	for _, quoted := range quotedText.FindAllString(m[2], -1) {
		v := ace.Verdict(quoted[1 : len(quoted)-1])
		if !slices.Contains(ace.Verdicts(), v) {
			return nil, "" // not a verdict: the server reports the error
		}
		verdicts = append(verdicts, v)
	}
	return verdicts, strings.ToUpper(m[1])
}

// exitsOf returns the exit statuses that completed runs with one of the verdicts have.
func exitsOf(verdicts []ace.Verdict) (exits []ace.ExitStatus) {
	for _, v := range verdicts {
		if e := ace.ExitOf(ace.Completed, v); !slices.Contains(exits, e) {
			exits = append(exits, e)
		}
	}
	return exits
}
