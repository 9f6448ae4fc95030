package logfile

import (
	"bytes"
	"strings"
)

// Severity is how bad a line is.
type Severity uint8

// Severities, in order. Unknown is of lines that do not tell.
const (
	Unknown Severity = iota
	Debug
	Info
	Warn
	Error
)

var severityNames = [...]string{"", "debug", "info", "warn", "error"}

func (s Severity) String() string { return severityNames[s] }

// SeverityOf is the severity that a word or, as Bunyan and Pino have it, a number names.
func SeverityOf(level string) Severity {
	switch strings.ToLower(level) {
	case "trace", "debug", "verbose", "fine", "dbg", "10", "20":
		return Debug
	case "info", "information", "notice", "inf", "30":
		return Info
	case "warn", "warning", "wrn", "40":
		return Warn
	case "error", "err", "fatal", "panic", "dpanic", "critical", "crit", "alert", "emergency", "severe", "50", "60":
		return Error
	}
	return Unknown
}

// LevelOf is a line's severity.
func LevelOf(line []byte) Severity { return SeverityOf(Parse(line).Level) }

// plainSearch is how much of the beginning of a plain line may name its level.
const plainSearch = 120

// plainLevel is the word by which a plain line names its level: in capitals, in brackets,
// or before a colon. "" for none.
func plainLevel(line []byte) string {
	line = line[:min(len(line), plainSearch)]
	for start := 0; start < len(line); {
		if !letter(line[start]) {
			start++
			continue
		}
		end := start
		for end < len(line) && letter(line[end]) {
			end++
		}
		word := line[start:end]
		marked := bytes.Equal(bytes.ToUpper(word), word) || end < len(line) && (line[end] == ':' || line[end] == ']')
		if marked && SeverityOf(string(word)) != Unknown {
			return string(word)
		}
		start = end
	}
	return ""
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// Levels gives the lines of one file their severities in order: a line that does not tell
// and is indented, as those of a stack are, has that of the line before it.
type Levels struct{ last Severity }

// Next is the severity of the next line.
func (l *Levels) Next(line []byte) Severity {
	s := LevelOf(line)
	if s == Unknown && len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
		return l.last
	}
	l.last = s
	return s
}
