package operation

import (
	"strconv"
	"strings"
)

// The parts of an id. All of it is ASCII, and at most [MaxID] characters.
const (
	MaxID = 1000

	maxStepPart   = 240
	maxBranchPart = 640
	hashDigits    = 32
)

// Prefixes of ids: what has a place in the workflow's logic.
const (
	prefixOperation = "op"
	prefixRandom    = "random"
	prefixTime      = "time"
)

// idOf is the id of the nth thing (from 1) at a place: "op.draft.left/inner.2". The main
// path is "-". Nothing in it is counted by events or attempts, so that it is the same in
// every replay, and after other operations were added or removed elsewhere.
func idOf(prefix, step, branch string, n int) string {
	if branch == "" {
		branch = "-"
	}
	return prefix + "." + bounded(escape(step), maxStepPart) + "." + bounded(branch, maxBranchPart) + "." + strconv.Itoa(n)
}

// escape keeps letters, digits, "_" and "-"; other bytes become %XX, and so does a name
// that is "-", which stands for the main path.
func escape(s string) string {
	if s == "-" {
		return "%2D"
	}
	plain := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
	}
	var out strings.Builder
	for i := range len(s) {
		if c := s[i]; plain(c) {
			out.WriteByte(c)
		} else {
			out.WriteByte('%')
			out.WriteByte("0123456789ABCDEF"[c>>4])
			out.WriteByte("0123456789ABCDEF"[c&15])
		}
	}
	return out.String()
}

// bounded is a part that is too long cut, with its digest behind "~", which no escaped
// text has.
func bounded(part string, limit int) string {
	if len(part) <= limit {
		return part
	}
	head := part[:limit-hashDigits-1]
	for range 2 { // not in the middle of %XX
		if i := strings.LastIndexByte(head, '%'); i > len(head)-3 && i >= 0 {
			head = head[:i]
		}
	}
	return head + "~" + digest([]byte(part))[:hashDigits]
}
