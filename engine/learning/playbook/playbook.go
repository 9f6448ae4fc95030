// Package playbook stores what a learning loop has learned: bullets, the operations that
// change them, and every version of every branch.
//
// It owns the canonical form and its hash, the merge rules ([Apply]), the text and JSON
// formats in use ([Parse], [WriteText], [WriteSkillbook]), a directory of versions ([Store]),
// and the analyses of a playbook: [Diff], [History] and [Check].
//
// Order: a branch is a sequence of versions. Merges into a branch are serialized across all
// processes, and each applies to the newest head. Operations apply in the order given.
//
// Bounds: a merged bullet has at most [MaxContent] bytes, a merge [MaxOperations] operations,
// a parsed file [MaxFile] bytes and [MaxLine] bytes per line. A store caches [cachedBooks]
// playbooks and keeps about two hundred bytes in memory for each version. A history keeps
// [MaxTouches] changes of each bullet and counts the others.
//
// Loss: a merge that has returned is on disk. An interrupted merge is stored completely or
// not at all, and merging it again under the same delta ID never applies it twice. Every
// operation is returned with its outcome.
package playbook

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Bullet is one entry of a playbook. The counters say how often a reflector found it
// helpful, harmful or neutral.
type Bullet struct {
	ID      string `json:"id"`
	Section string `json:"section"`
	Content string `json:"content"`
	Helpful int    `json:"helpful"`
	Harmful int    `json:"harmful"`
	Neutral int    `json:"neutral"`
	Extra   Extra  `json:"extra,omitempty"`
}

// bulletFields are the names of the fields of a bullet in the JSON formats.
var bulletFields = []string{"content", "extra", "harmful", "helpful", "id", "neutral", "section", "status"}

// Playbook is an ordered list of bullets. Sections lists all sections in their order if one of them
// has no bullet; otherwise it is nil. NextID is the number of the next bullet ID; it
// never decreases, so a branch never reuses an ID. The zero value is the empty playbook.
// A [Store] returns shared values: do not change them.
type Playbook struct {
	Bullets  []Bullet `json:"bullets"`
	NextID   int      `json:"next_id"`
	Sections []string `json:"sections,omitempty"`
}

// Find returns a copy of the bullet with that ID.
func (p *Playbook) Find(id string) (Bullet, bool) {
	for i := range p.Bullets {
		if p.Bullets[i].ID == id {
			return p.Bullets[i], true
		}
	}
	return Bullet{}, false
}

var errInvalid = errors.New("not a valid playbook")

// check rejects a playbook that the canonical form cannot hold without loss. Parsers and
// merges never produce such a playbook.
func (p *Playbook) check() error {
	seen := make(map[string]bool, len(p.Bullets))
	for i := range p.Bullets {
		b := &p.Bullets[i]
		var problem string
		switch {
		case !validID(b.ID):
			problem = "has an invalid ID"
		case seen[b.ID]:
			problem = "repeats the ID of an earlier bullet"
		case b.Content == "" || b.Content != cleanContent(b.Content):
			problem = "has content that is empty or contains control characters"
		case b.Section == "" || b.Section != cleanSection(b.Section):
			problem = "has an invalid section name"
		case !b.counts().valid():
			problem = "has a counter out of range"
		case b.Extra != "" && !b.Extra.valid():
			problem = "has invalid extra fields"
		}
		if problem != "" {
			return fmt.Errorf("%w: bullet %d (%.80q) %s", errInvalid, i+1, b.ID, problem)
		}
		seen[b.ID] = true
	}
	for _, s := range p.Sections {
		if s == "" || s != cleanSection(s) {
			return fmt.Errorf("%w: section %.80q has an invalid name", errInvalid, s)
		}
	}
	return nil
}

// Canonical returns the form that is hashed and stored: JSON according to RFC 8785 (no white
// space, sorted object keys, UTF-8 with only `"`, `\` and control characters escaped),
// without a final line feed:
//
//	{"bullets":[{"content":"…","harmful":0,"helpful":2,"id":"calc-00001","neutral":0,"section":"…"}],"next_id":2}
//
// Bullets are grouped by section, sections in the order of their first bullet. A NextID
// below 1 is written as 1. A bullet with extra fields also has "extra", an object; a playbook with an
// empty section also has "sections", the names of all sections in their order.
func (p *Playbook) Canonical() []byte {
	sections := keptSections(p.Bullets, p.Sections)
	bullets := grouped(p.Bullets, sections)
	size := 64
	for i := range bullets {
		size += 96 + len(bullets[i].Content) + len(bullets[i].Section) + len(bullets[i].Extra)
	}
	out := append(make([]byte, 0, size), `{"bullets":[`...)
	for i := range bullets {
		b := &bullets[i]
		if i > 0 {
			out = append(out, ',')
		}
		out = appendString(append(out, `{"content":`...), b.Content)
		if b.Extra != "" {
			out = append(append(out, `,"extra":`...), b.Extra...)
		}
		out = strconv.AppendInt(append(out, `,"harmful":`...), int64(b.Harmful), 10)
		out = strconv.AppendInt(append(out, `,"helpful":`...), int64(b.Helpful), 10)
		out = appendString(append(out, `,"id":`...), b.ID)
		out = strconv.AppendInt(append(out, `,"neutral":`...), int64(b.Neutral), 10)
		out = appendString(append(out, `,"section":`...), b.Section)
		out = append(out, '}')
	}
	out = strconv.AppendInt(append(out, `],"next_id":`...), int64(max(p.NextID, 1)), 10)
	for i, s := range sections {
		if i == 0 {
			out = append(out, `,"sections":[`...)
		} else {
			out = append(out, ',')
		}
		out = appendString(out, s)
	}
	if len(sections) > 0 {
		out = append(out, ']')
	}
	return append(out, '}')
}

// Hash returns the SHA-256 of [Playbook.Canonical] in lower-case hexadecimal. It names the
// version.
func (p *Playbook) Hash() string { return digest(p.Canonical()) }

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// appendString appends a JSON string according to RFC 8785 §3.2.2.2. Invalid UTF-8 becomes
// U+FFFD.
func appendString(out []byte, s string) []byte {
	s = strings.ToValidUTF8(s, "�")
	out = append(out, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		out = append(out, s[from:i]...)
		from = i + 1
		if short := strings.IndexByte("\"\\\b\f\n\r\t", c); short >= 0 {
			out = append(out, '\\', `"\bfnrt`[short])
			continue
		}
		out = append(out, '\\', 'u', '0', '0', '0'+c>>4, "0123456789abcdef"[c&15])
	}
	return append(append(out, s[from:]...), '"')
}

func validHash(hash string) bool { return len(hash) == 2*sha256.Size && isHex(hash) }

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
