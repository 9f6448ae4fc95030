package playbook

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Bounds of a file.
const (
	MaxFile = 64 << 20
	MaxLine = 1 << 20
)

// maxWarnings is how many warnings a report keeps; the rest are counted.
const maxWarnings = 100

// ErrNotPlaybook is what a file gives that holds no playbook, whatever is wrong with it.
var ErrNotPlaybook = errors.New("not a playbook")

// Format is how a playbook was written.
type Format string

// Formats: FormatText is that of ace-agent/ace, FormatPlain the AppWorld variant without
// counters, FormatSkillbook the JSON of kayba-ai/agentic-context-engine, FormatCanonical
// our own.
const (
	FormatText      Format = "text"
	FormatPlain     Format = "plain-text"
	FormatSkillbook Format = "skillbook"
	FormatCanonical Format = "canonical"
)

// Report is what there is to say of a file that was parsed. Renamed counts bullets
// that got a new id, Skipped what was left out; Warnings says which, at most a hundred
// of them, and More counts the others.
type Report struct {
	Format   Format   `json:"format"`
	Bullets  int      `json:"bullets"`
	Renamed  int      `json:"renamed,omitempty"`
	Skipped  int      `json:"skipped,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	More     int      `json:"more,omitempty"`
}

func (r *Report) warn(format string, args ...any) {
	if len(r.Warnings) >= maxWarnings {
		r.More++
		return
	}
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

func (r *Report) skip(format string, args ...any) {
	r.Skipped++
	r.warn(format, args...)
}

// Parse reads a playbook in any known format. Its errors name the line.
func Parse(r io.Reader) (*Playbook, Report, error) {
	data, err := readAll(r)
	if err != nil {
		return nil, Report{}, err
	}
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		return parseJSON(data)
	}
	return parseText(data)
}

// ParseText reads the text formats. A bullet goes on until the next bullet or header,
// so lines of code, "# comment" among them, stay with it. Where an id occurs again, the
// first bullet keeps it and the later ones get new ids. The text holds neither neutral
// counters nor the next id, which becomes one more than the highest.
func ParseText(r io.Reader) (*Playbook, Report, error) {
	data, err := readAll(r)
	if err != nil {
		return nil, Report{}, err
	}
	return parseText(data)
}

// ParseSkillbook reads skillbook JSON of every generation, and the canonical form.
func ParseSkillbook(r io.Reader) (*Playbook, Report, error) {
	data, err := readAll(r)
	if err != nil {
		return nil, Report{}, err
	}
	return parseJSON(data)
}

// readAll reads within bounds what is UTF-8 text, without its byte order mark.
func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read playbook: %w", err)
	}
	if len(data) > MaxFile {
		return nil, fmt.Errorf("%w: more than %d MiB", ErrNotPlaybook, MaxFile>>20)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, fmt.Errorf("%w: the file is empty; an empty playbook is a line such as \"## %s\"", ErrNotPlaybook, defaultSection)
	}
	if bytes.IndexByte(data, 0) < 0 && utf8.Valid(data) {
		return data, nil
	}
	line := 0
	for l := range bytes.Lines(data) {
		line++
		if bytes.IndexByte(l, 0) >= 0 || !utf8.Valid(l) {
			break
		}
	}
	return nil, fmt.Errorf("%w: line %d is not UTF-8 text", ErrNotPlaybook, line)
}

// draft is a bullet as it was read; at says where.
type draft struct {
	Bullet
	at string
}

// finish makes a playbook of drafts: valid, unique ids and known spellings.
func finish(drafts []draft, nextID int, report *Report) *Playbook {
	p := &Playbook{Bullets: make([]Bullet, 0, len(drafts)), NextID: nextID}
	first := make(map[string]string, len(drafts))
	var again []int
	for _, d := range drafts {
		d.Content = cleanContent(d.Content)
		if d.Content == "" {
			report.skip("%s: bullet %.80q is empty, left out", d.at, d.ID)
			continue
		}
		if where, seen := first[d.ID]; seen || !validID(d.ID) {
			again = append(again, len(p.Bullets))
			if seen {
				where = "is used already, " + where
			} else {
				where = "is no id"
			}
			report.Renamed++
			report.warn("%s: %.80q %s; the bullet gets a new id", d.at, d.ID, where)
			d.ID = ""
		} else {
			first[d.ID] = d.at
		}
		p.Bullets = append(p.Bullets, d.Bullet)
	}
	p.NextID = p.nextNumber()
	for _, i := range again {
		p.Bullets[i].ID = formatID(Slug(p.Bullets[i].Section), p.NextID)
		p.NextID++
	}
	p.Bullets = grouped(p.Bullets)
	report.Bullets = len(p.Bullets)
	return p
}

// spellings gives every section the spelling it had first.
type spellings map[string]string

func (s spellings) of(name string, at string, report *Report) string {
	clean := cleanSection(name)
	if clean == "" {
		clean = defaultSection
	}
	if len(name) > 2*maxSection {
		report.warn("%s: the section name was cut to %d bytes", at, maxSection)
	}
	key := sectionKey(strings.TrimSpace(clean))
	if _, ok := s[key]; !ok {
		s[key] = clean
	}
	return s[key]
}
