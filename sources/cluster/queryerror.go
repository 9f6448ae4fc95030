package cluster

import (
	"regexp"
	"strconv"
	"strings"
)

// Positions in the server's error messages.
var (
	atPosition = regexp.MustCompile(`at position (\d+)(?: near '([^']*)')?`)
	namedThing = regexp.MustCompile(`(?:search attribute:|column name|filter on|operator) ?['"]?([\w.]+)`)
)

// statementPrefix is the text that the server prepends to a query. Error positions count from its start, and
// point after the invalid word.
const statementPrefix = "select * from table1 where "

// QueryErrorAt returns the byte offset of an error in a visibility query, or -1.
func QueryErrorAt(query string, err error) int {
	text := err.Error()
	if m := atPosition.FindStringSubmatch(text); m != nil {
		return offset(query, m[1], strings.TrimSpace(m[2]))
	}
	if m := namedThing.FindStringSubmatch(text); m != nil {
		return strings.Index(query, m[1])
	}
	return -1
}

func offset(query, position, near string) int {
	if near != "" {
		if at := strings.LastIndex(query, near); at >= 0 {
			return at
		}
	}
	n, err := strconv.Atoi(position)
	if err != nil {
		return -1
	}
	behind := min(max(n-len(statementPrefix)-1, 0), len(query))
	words := strings.TrimRight(query[:behind], " ")
	return strings.LastIndex(words, " ") + 1
}
