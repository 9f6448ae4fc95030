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
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitProblem `xml:"failure"`
		Error   *junitProblem `xml:"error"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes a report. A divergence is a failure, an unverified history an error.
func writeJUnit(path string, list []VerdictLine, end VerifyEnd) error {
	s := junitSuite{
		Name: "acescope replay verify", Tests: end.Histories, Failures: end.Nondeterministic + end.Drifted,
		Errors: end.Unverified, Time: seconds(end.DurationMS),
	}
	slices.SortStableFunc(list, func(a, b VerdictLine) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), a.Number-b.Number)
	})
	for _, l := range list {
		c := junitCase{Class: l.WorkflowType, Name: cmp.Or(l.WorkflowID, l.Source), Time: seconds(l.DurationMS)}
		if l.RunID != "" {
			c.Name += " " + l.RunID
		}
		if d := l.Divergence; d != nil {
			c.Failure = &junitProblem{d.Sentence, string(d.Kind), d.Advice}
		} else if l.Outcome == replay.Unverified {
			c.Error = &junitProblem{l.Why, string(l.Outcome), l.Source}
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
