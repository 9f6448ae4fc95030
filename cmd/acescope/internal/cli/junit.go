package cli

import (
	"encoding/xml"
	"os"
)

// The parts of a JUnit report that CI systems agree on. Times are in seconds.
type (
	JUnitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []JUnitSuite `xml:"testsuite"`
	}
	JUnitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []JUnitCase `xml:"testcase"`
	}
	JUnitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    string        `xml:"time,attr"`
		Failure *JUnitProblem `xml:"failure"`
		Error   *JUnitProblem `xml:"error"`
		Skipped *JUnitProblem `xml:"skipped"`
	}
	JUnitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes a report of one suite to a file. Other users can read it, such as that of a CI system.
func WriteJUnit(path string, s JUnitSuite) error {
	data, err := xml.MarshalIndent(JUnitSuites{Suites: []JUnitSuite{s}}, "", "  ")
	if err != nil {
		return err
	}
	if path == "-" {
		return UsageError("--junit: name a file; - is not standard output here")
	}
	return os.WriteFile(path, append([]byte(xml.Header), append(data, '\n')...), 0o644)
}
