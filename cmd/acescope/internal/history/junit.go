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

// writeJUnit writes a report: what diverges is a failure, what could not be verified an
// error.
func writeJUnit(path string, list []VerdictLine, end VerifyEnd) error {
	s := junitSuite{Name: "acescope replay verify", Tests: end.Histories, Failures: end.Diverged + end.Drifted, Errors: end.Unverified, Time: seconds(end.TookMS)}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b VerdictLine) int { return cmp.Or(cmp.Compare(a.Source, b.Source), a.Number-b.Number) })
	for _, l := range list {
		c := junitCase{Class: l.WorkflowType, Name: l.WorkflowID, Time: seconds(l.TookMS)}
		if c.Name == "" {
			c.Name = l.Source
		}
		if l.RunID != "" {
			c.Name += " " + l.RunID
		}
		switch d := l.Divergence; {
		case d != nil:
			c.Failure = &junitProblem{d.Sentence, string(d.Kind), d.Advice}
		case l.Outcome == replay.Unverified:
			c.Error = &junitProblem{l.Why, string(l.Outcome), l.Source}
		}
		s.Cases = append(s.Cases, c)
	}
	if end.Incomplete { // or it would look as if all were well
		s.Tests++
		s.Errors++
		s.Cases = append(s.Cases, junitCase{Class: "acescope", Name: "the whole", Time: seconds(end.TookMS),
			Error: &junitProblem{"it broke off before all was verified", "incomplete", ""}})
	}
	data, err := xml.MarshalIndent(JunitSuites{Suites: []junitSuite{s}}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte(xml.Header), append(data, '\n')...), 0o600)
}

func seconds(ms float64) string { return fmt.Sprintf("%.3f", ms/1000) }
