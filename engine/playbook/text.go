package playbook

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// counted is a bullet of ace-agent/ace, "[id] helpful=N harmful=N :: text". Some forks
// write neutral=N as well; we read it and never write it.
var counted = regexp.MustCompile(`^\[([^\[\]]{1,200})\]\s*helpful=(\d{1,9})\s*harmful=(\d{1,9})\s*(?:neutral=(\d{1,9})\s*)?::\s?(.*)$`)

// plainBullet is a bullet without counters. Its id has to look like one, for a line of
// code may begin with a list.
var plainBullet = regexp.MustCompile(`^\[([A-Za-z][A-Za-z0-9_.-]{0,110}-\d{1,15})\](?:\s+(.*))?$`)

var header = regexp.MustCompile(`^##\s*([^#\s].*)$`)

// markers are looked for behind at most so many spaces.
const maxIndent = 3

type lineKind int

const (
	otherLine lineKind = iota
	headerLine
	bulletLine
)

// classify tells what a line begins; the bullet has its id, counters and first line of
// content, or the section's name as its section.
func classify(line string) (kind lineKind, b Bullet, hasCounters bool) {
	s := strings.TrimLeft(line, " ")
	if len(line)-len(s) > maxIndent || s == "" || s[0] != '#' && s[0] != '[' {
		return otherLine, b, false
	}
	if m := header.FindStringSubmatch(s); m != nil {
		return headerLine, Bullet{Section: strings.TrimSpace(m[1])}, false
	}
	if m := counted.FindStringSubmatch(s); m != nil {
		b = Bullet{ID: strings.TrimSpace(m[1]), Content: m[5]}
		for i, to := range []*int{&b.Helpful, &b.Harmful, &b.Neutral} {
			*to, _ = strconv.Atoi(m[2+i]) // at most nine digits, or none
		}
		return bulletLine, b, true
	}
	if m := plainBullet.FindStringSubmatch(s); m != nil {
		return bulletLine, Bullet{ID: m[1], Content: m[2]}, false
	}
	return otherLine, b, false
}

func parseText(data []byte) (*Playbook, Report, error) {
	t := textParser{report: Report{Format: FormatPlain}, names: spellings{}, section: defaultSection}
	for line := range strings.Lines(cleanText(string(data))) {
		if len(line) > MaxLine {
			return nil, Report{}, fmt.Errorf("%w: line %d has more than %d bytes", ErrNotPlaybook, t.line+1, MaxLine)
		}
		t.read(strings.TrimSuffix(line, "\n"))
	}
	t.end()
	if len(t.drafts) == 0 && (t.stray > 0 || t.headers == 0) {
		return nil, Report{}, fmt.Errorf("%w: no bullet such as \"[calc-00001] text\"; line %d is %.60q", ErrNotPlaybook, t.strayAt, t.strayText)
	}
	return finish(t.drafts, 0, &t.report), t.report, nil
}

type textParser struct {
	report    Report
	names     spellings
	section   string
	line      int
	headers   int
	drafts    []draft
	open      bool // the last draft takes further lines
	more      []string
	stray     int
	strayAt   int
	strayText string
}

func (t *textParser) read(line string) {
	t.line++
	kind, b, hasCounters := classify(line)
	switch {
	case kind == headerLine:
		t.end()
		t.headers++
		t.section = t.names.of(b.Section, t.at(), &t.report)
	case kind == bulletLine:
		t.end()
		if hasCounters {
			t.report.Format = FormatText
		}
		b.Section = t.section
		t.drafts = append(t.drafts, draft{b, t.at()})
		t.open = true
	case t.open:
		t.more = append(t.more, line)
	case strings.TrimSpace(line) != "":
		if t.stray++; t.stray == 1 {
			t.strayAt, t.strayText = t.line, line
		}
		t.report.skip("%s: text outside a bullet, left out: %.60q", t.at(), line)
	}
}

func (t *textParser) at() string { return "line " + strconv.Itoa(t.line) }

// end closes the bullet that is open.
func (t *textParser) end() {
	if t.open && len(t.more) > 0 {
		last := &t.drafts[len(t.drafts)-1]
		last.Content += "\n" + strings.Join(t.more, "\n")
	}
	t.open, t.more = false, t.more[:0]
}

// WriteText writes the format of ace-agent/ace, which holds neither neutral counters
// nor the next id; [WriteSkillbook] holds both. A line within a bullet that would be
// read as a header or as another bullet is indented.
func WriteText(w io.Writer, p *Playbook) error {
	out := bufio.NewWriter(w)
	section := ""
	for _, b := range grouped(p.Bullets) {
		if b.Section != section {
			if section != "" {
				fmt.Fprintln(out)
			}
			section = b.Section
			fmt.Fprintf(out, "## %s\n", section)
		}
		first, rest, more := strings.Cut(b.Content, "\n")
		fmt.Fprintf(out, "[%s] helpful=%d harmful=%d :: %s\n", b.ID, b.Helpful, b.Harmful, first)
		for more {
			first, rest, more = strings.Cut(rest, "\n")
			if kind, _, _ := classify(first); kind != otherLine {
				first = strings.Repeat(" ", maxIndent+1) + first
			}
			fmt.Fprintln(out, first)
		}
	}
	if len(p.Bullets) == 0 {
		fmt.Fprintf(out, "## %s\n", defaultSection)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write playbook: %w", err)
	}
	return nil
}
