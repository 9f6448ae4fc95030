package playbook

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// Bounds of a file.
const (
	MaxFile = 64 << 20
	MaxLine = 1 << 20
)

// maxWarnings is the number of warnings that a report keeps. Others are counted.
const maxWarnings = 100

// ErrNotPlaybook is the error for a file that contains no playbook.
var ErrNotPlaybook = errors.New("not a playbook")

// Format is a file format of playbooks.
type Format string

// Formats: FormatText is that of ace-agent/ace, FormatPlain the AppWorld variant without
// counters, FormatSkillbook the JSON of kayba-ai/agentic-context-engine, FormatCanonical that
// of [Playbook.Canonical], FormatList JSON with a list of bullets that have other fields, such as
// helpful_count, FormatSections JSON with a list of bullets for each section, FormatBlock a marked block in a
// file of instructions for agents, such as AGENTS.md or SKILL.md.
const (
	FormatText      Format = "text"
	FormatPlain     Format = "plain-text"
	FormatSkillbook Format = "skillbook"
	FormatCanonical Format = "canonical"
	FormatList      Format = "bullet-list"
	FormatSections  Format = "section-lists"
	FormatBlock     Format = "agent-block"
)

// Report describes the parsing of a file. Renamed counts bullets that got a new ID, Skipped
// the parts that were ignored. Warnings lists at most a hundred of both; More counts the
// others. Losses lists the fields of which something was not read.
type Report struct {
	Format   Format   `json:"format"`
	Bullets  int      `json:"bullets"`
	Renamed  int      `json:"renamed,omitempty"`
	Skipped  int      `json:"skipped,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	More     int      `json:"more,omitempty"`
	Losses   []Loss   `json:"losses,omitempty"`

	repeated map[string]string // the repeated ID in the file, by the new ID of the bullet
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

// Parse reads a playbook in any known format: skillbook JSON of every generation, canonical
// JSON, text, or the block of an export to agents. Its errors name the line.
//
// In a text, a bullet extends to the next bullet or header, so it may contain lines of code,
// such as "# comment". If an ID is repeated, the first bullet keeps it and the others get new
// IDs. Text has neither neutral counters nor the next ID, which becomes the highest plus one.
func Parse(r io.Reader) (*Playbook, Report, error) {
	data, err := readAll(r)
	if err != nil {
		return nil, Report{}, err
	}
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return parseJSON(data)
	}
	if bytes.Contains(data, []byte("\n"+blockBegin)) || bytes.HasPrefix(data, []byte(blockBegin)) {
		return parseBlock(data)
	}
	return parseText(data)
}

// readAll reads UTF-8 text within bounds and removes its byte order mark.
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
		return nil, fmt.Errorf("%w: the file is empty; an empty playbook has a line such as \"## %s\"",
			ErrNotPlaybook, defaultSection)
	}
	line := 0
	for l := range bytes.Lines(data) {
		line++
		if bytes.IndexByte(l, 0) >= 0 || !utf8.Valid(l) {
			return nil, fmt.Errorf("%w: line %d is not UTF-8 text", ErrNotPlaybook, line)
		}
	}
	return data, nil
}

// draft is a parsed bullet and its position in the file.
type draft struct {
	Bullet
	at string
}

// finish makes a playbook of drafts: it removes empty bullets and assigns unique, valid IDs. sections are the
// sections that the file states, in its order.
func finish(drafts []draft, sections []string, nextID int, report *Report) *Playbook {
	p := &Playbook{Bullets: make([]Bullet, 0, len(drafts)), NextID: nextID}
	first := make(map[string]string, len(drafts)) // position by ID
	var withoutID []int
	was := map[int]string{}
	for _, d := range drafts {
		d.Content = cleanContent(d.Content)
		if d.Content == "" {
			report.skip("%s: bullet %.80q is empty; skipped", d.at, d.ID)
			continue
		}
		position, repeated := first[d.ID]
		if valid := validID(d.ID); valid && !repeated {
			first[d.ID] = d.at
		} else {
			problem := "is not a valid ID"
			if repeated {
				problem = "is already used at " + position
			}
			report.Renamed++
			report.warn("%s: %.80q %s; the bullet gets a new ID", d.at, d.ID, problem)
			withoutID = append(withoutID, len(p.Bullets))
			if repeated {
				was[len(p.Bullets)] = d.ID
			}
			d.ID = ""
		}
		p.Bullets = append(p.Bullets, d.Bullet)
	}
	p.NextID = p.nextNumber()
	for _, i := range withoutID {
		p.Bullets[i].ID = formatID(Slug(p.Bullets[i].Section), p.NextID)
		p.NextID++
		if was[i] != "" {
			if report.repeated == nil {
				report.repeated = map[string]string{}
			}
			report.repeated[p.Bullets[i].ID] = was[i]
		}
	}
	p.Bullets = grouped(p.Bullets, sections)
	p.Sections = keptSections(p.Bullets, sections)
	report.Bullets = len(p.Bullets)
	return p
}

// spellings maps section keys to their first spelling.
type spellings map[string]string

func (s spellings) of(name string, at string, report *Report) string {
	clean := cmp.Or(cleanSection(name), defaultSection)
	if len(name) > 2*maxSection {
		report.warn("%s: the section name was cut to %d bytes", at, maxSection)
	}
	key := sectionKey(strings.TrimSpace(clean))
	if _, ok := s[key]; !ok {
		s[key] = clean
	}
	return s[key]
}

// countedBullet is a bullet of ace-agent/ace, "[id] helpful=N harmful=N :: text". Some forks
// add neutral=N, which is read but never written.
var countedBullet = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`^\[([^\[\]]{1,200})\]\s*helpful=(\d{1,9})\s*harmful=(\d{1,9})\s*(?:neutral=(\d{1,9})\s*)?::\s?(.*)$`)
})

// plainBullet is a bullet without counters. The pattern of its ID is strict, since a line of
// code may begin with a list.
var plainBullet = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\[([A-Za-z][A-Za-z0-9_.-]{0,110}-\d{1,15})\](?:\s+(.*))?$`)
})

var header = regexp.MustCompile(`^##\s*([^#\s].*)$`)

// maxIndent is the number of spaces allowed before a header or bullet.
const maxIndent = 3

type lineKind int

const (
	otherLine lineKind = iota
	headerLine
	plainLine   // a bullet without counters
	countedLine // a bullet with counters
)

// classify returns what a line begins. For a bullet, b has the ID, the counters and the first
// line of content; for a header, b.Section is its name.
func classify(line string) (kind lineKind, b Bullet) {
	s := strings.TrimLeft(line, " ")
	if len(line)-len(s) > maxIndent || s == "" || s[0] != '#' && s[0] != '[' {
		return otherLine, b
	}
	if m := header.FindStringSubmatch(s); m != nil {
		return headerLine, Bullet{Section: strings.TrimSpace(m[1])}
	}
	if m := countedBullet().FindStringSubmatch(s); m != nil {
		b = Bullet{ID: strings.TrimSpace(m[1]), Content: m[5]}
		for i, to := range []*int{&b.Helpful, &b.Harmful, &b.Neutral} {
			*to, _ = strconv.Atoi(m[2+i]) // at most nine digits, or empty
		}
		return countedLine, b
	}
	if m := plainBullet().FindStringSubmatch(s); m != nil {
		return plainLine, Bullet{ID: m[1], Content: m[2]}
	}
	return otherLine, b
}

func parseText(data []byte) (*Playbook, Report, error) {
	t := textParser{report: Report{Format: FormatPlain}, names: spellings{}, section: defaultSection}
	for line := range strings.Lines(cleanText(string(data))) {
		if len(line) > MaxLine {
			return nil, Report{}, fmt.Errorf("%w: line %d has more than %d bytes", ErrNotPlaybook, t.line+1,
				MaxLine)
		}
		t.add(strings.TrimSuffix(line, "\n"))
	}
	t.endBullet()
	if len(t.drafts) == 0 && (t.strayAt > 0 || t.headers == 0) {
		return nil, Report{}, fmt.Errorf("%w: no bullet such as \"[calc-00001] text\"; line %d is %.60q",
			ErrNotPlaybook, t.strayAt, t.strayText)
	}
	return finish(t.drafts, sectionOrder(nil, t.sections), 0, &t.report), t.report, nil
}

type textParser struct {
	report    Report
	names     spellings
	section   string
	sections  []string // of the headers
	line      int
	headers   int
	drafts    []draft
	inBullet  bool     // the last draft continues
	more      []string // its further lines
	strayAt   int      // the first line outside a bullet
	strayText string
}

func (t *textParser) add(line string) {
	t.line++
	at := "line " + strconv.Itoa(t.line)
	kind, b := classify(line)
	switch {
	case kind == headerLine:
		t.endBullet()
		t.headers++
		t.section = t.names.of(b.Section, at, &t.report)
		t.sections = append(t.sections, t.section)
	case kind != otherLine:
		t.endBullet()
		if kind == countedLine {
			t.report.Format = FormatText
		}
		b.Section = t.section
		t.drafts = append(t.drafts, draft{b, at})
		t.inBullet = true
	case t.inBullet:
		t.more = append(t.more, line)
	case strings.TrimSpace(line) != "":
		if t.strayAt == 0 {
			t.strayAt, t.strayText = t.line, line
		}
		t.report.skip("%s: text outside a bullet; skipped: %.60q", at, line)
	}
}

func (t *textParser) endBullet() {
	if t.inBullet && len(t.more) > 0 {
		last := &t.drafts[len(t.drafts)-1]
		last.Content += "\n" + strings.Join(t.more, "\n")
	}
	t.inBullet, t.more = false, t.more[:0]
}

// WriteText writes the format of ace-agent/ace, with all sections, also empty ones. [Playbook.Losses]
// lists what the format does not hold. WriteText indents a content line that would be read as a header
// or bullet.
func WriteText(w io.Writer, p *Playbook) error {
	out := bufio.NewWriter(w)
	bullets := grouped(p.Bullets, p.Sections)
	sections := sectionOrder(bullets, p.Sections)
	if len(sections) == 0 {
		sections = []string{defaultSection}
	}
	for i, section := range sections {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "## %s\n", section)
		for ; len(bullets) > 0 && bullets[0].Section == section; bullets = bullets[1:] {
			writeBullet(out, &bullets[0])
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write playbook: %w", err)
	}
	return nil
}

func writeBullet(out io.Writer, b *Bullet) {
	first, rest, more := strings.Cut(b.Content, "\n")
	fmt.Fprintf(out, "[%s] helpful=%d harmful=%d :: %s\n", b.ID, b.Helpful, b.Harmful, first)
	for more {
		first, rest, more = strings.Cut(rest, "\n")
		if kind, _ := classify(first); kind != otherLine {
			first = strings.Repeat(" ", maxIndent+1) + first
		}
		fmt.Fprintln(out, first)
	}
}
