package history

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"os"
	"slices"

	"acescope/engine/temporal/replay"
)

// The parts of a JUnit report that CI systems agree on. Times are in seconds.
type (
	JunitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitProblem `xml:"failure"`
		Error   *junitProblem `xml:"error"`
		Skipped *junitProblem `xml:"skipped"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes a report. A divergence is a failure. An unverified history is skipped, or an error if it could not
// be read or all are required.
func writeJUnit(path string, list []VerdictLine, end VerifyEnd, requireAll bool) error {
	s := junitSuite{
		Name: "acescope replay verify", Tests: end.Histories, Failures: end.Nondeterministic + end.Drifted,
		Time: seconds(end.DurationMS),
	}
	slices.SortStableFunc(list, func(a, b VerdictLine) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), a.Number-b.Number)
	})
	for _, l := range list {
		c := junitCase{Class: l.WorkflowType, Name: cmp.Or(l.WorkflowID, l.Source), Time: seconds(l.DurationMS)}
		if l.RunID != "" {
			c.Name += " " + l.RunID
		}
		unverified := &junitProblem{l.Why, string(l.Outcome), l.Source}
		switch d := l.Divergence; {
		case d != nil:
			c.Failure = &junitProblem{d.Sentence, string(d.Kind), d.Advice}
		case l.Outcome == replay.Unverified && (requireAll || l.readErr != nil):
			c.Error = unverified
			s.Errors++
		case l.Outcome == replay.Unverified:
			c.Skipped = unverified
			s.Skipped++
		}
		s.Cases = append(s.Cases, c)
	}
	if end.Incomplete { // otherwise the report would look like a success
		s.Tests++
		s.Errors++
		s.Cases = append(s.Cases, junitCase{
			Class: "acescope", Name: "complete", Time: seconds(end.DurationMS),
			Error: &junitProblem{"not all histories were verified", "incomplete", ""},
		})
	}
	data, err := xml.MarshalIndent(JunitSuites{Suites: []junitSuite{s}}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte(xml.Header), append(data, '\n')...), 0o600)
}

func seconds(ms float64) string { return fmt.Sprintf("%.3f", ms/1000) }
