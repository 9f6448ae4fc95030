package playbook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"acescope/engine/ace"
)

// ExportForms lists the forms in which a playbook can be written to a file: canonical JSON, texts of ACE, the
// JSON of a skillbook, and files of coding agents.
func ExportForms() []string {
	return []string{"json", "ace", "text", "skillbook", "skill", "claude-md", "agents-md"}
}

// bytesPerToken estimates the tokens of a text. Tokenizers differ; English text has about four bytes per
// token.
const bytesPerToken = 4

// Tokens estimates the number of tokens of the bullets as lists in Markdown.
func (p *Playbook) Tokens() int {
	n := 0
	for i := range p.Bullets {
		n += p.Bullets[i].tokens()
	}
	return n
}

func (b *Bullet) tokens() int {
	return (len(b.ID) + len(b.Content) + 6 + bytesPerToken - 1) / bytesPerToken
}

// Within returns the bullets that fit into a number of tokens, in the order of the playbook: those with the
// highest helpful minus harmful counter first, and of equal ones those with the higher helpful counter. A
// bullet that does not fit is left out, and smaller ones after it may still fit.
func (p *Playbook) Within(tokens int) *Playbook {
	order := make([]int, len(p.Bullets))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &p.Bullets[i], &p.Bullets[j]
		if d := (b.Helpful - b.Harmful) - (a.Helpful - a.Harmful); d != 0 {
			return d
		}
		return b.Helpful - a.Helpful
	})
	keep := make([]bool, len(p.Bullets))
	for _, i := range order {
		if n := p.Bullets[i].tokens(); n <= tokens {
			keep[i] = true
			tokens -= n
		}
	}
	q := &Playbook{NextID: p.NextID, Sections: p.Sections}
	for i, b := range p.Bullets {
		if keep[i] {
			q.Bullets = append(q.Bullets, b)
		}
	}
	q.Sections = keptSections(q.Bullets, p.Sections)
	return q
}

// WithReferenceSections returns the playbook with all sections of ace-agent/ace, whose curator files a bullet
// of any other section under OTHERS.
func (p *Playbook) WithReferenceSections() *Playbook {
	sections := sectionOrder(p.Bullets, p.Sections)
	known := map[string]bool{}
	for _, s := range sections {
		known[sectionKey(s)] = true
	}
	for _, s := range wellKnown {
		if !known[sectionKey(s)] {
			sections = append(sections, s)
		}
	}
	return &Playbook{Bullets: p.Bullets, NextID: p.NextID, Sections: sections}
}

// markdown returns the bullets as lists, with a heading for each section.
func (p *Playbook) markdown() []byte {
	var out bytes.Buffer
	section := ""
	for _, b := range grouped(p.Bullets, p.Sections) {
		if b.Section != section {
			section = b.Section
			heading, _, _ := agentText(section)
			fmt.Fprintf(&out, "\n## %s\n\n", heading)
		}
		content, _, _ := agentText(b.Content)
		fmt.Fprintf(&out, "- [%s] %s\n", b.ID, strings.ReplaceAll(content, "\n", "\n  "))
	}
	return out.Bytes()
}

// active matches text on which an agent that reads the block may act: @path imports a file, !`command` and a
// code block with ! run a command, a comment delimits the block or hides text. An @ after a letter or a digit
// is part of an address.
var active = regexp.MustCompile("[\\pL\\pN_]?@|!`|``!|~~!|<!--")

// escapes has the characters of active text that are written as entities, and back.
var (
	escapes  = strings.NewReplacer("@", "&#64;", "<!--", "&lt;!--", "!", "&#33;")
	original = strings.NewReplacer("&#64;", "@", "&#33;", "!", "&lt;!--", "<!--")
)

// invisible reports whether a character could hide instructions from the reader of a file.
func invisible(r rune) bool {
	return r != '\n' && r != '\t' && (!unicode.IsGraphic(r) ||
		unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point))
}

// agentText makes text safe to put into a block. It returns how often it wrote active text as entities and
// left out an invisible character.
func agentText(s string) (safe string, escaped, hidden int) {
	s = strings.Map(func(r rune) rune {
		switch {
		case !invisible(r):
			return r
		case unicode.In(r, unicode.Zl, unicode.Zp):
			hidden++
			return ' '
		}
		hidden++
		return -1
	}, s)
	return active.ReplaceAllStringFunc(s, func(match string) string {
		if strings.HasSuffix(match, "@") && len(match) > 1 {
			return match
		}
		escaped++
		return escapes.Replace(match)
	}), escaped, hidden
}

// Neutralized returns which bullets and sections [WriteBlock] and [WriteSkill] change, and why.
func (p *Playbook) Neutralized() (list []Loss) {
	add := func(field, s string) {
		_, escaped, hidden := agentText(s)
		for range escaped {
			list = lose(list, field, "imports of files, commands and comments are written as text")
		}
		for range hidden {
			list = lose(list, field, "invisible characters are left out")
		}
	}
	for _, section := range sectionOrder(grouped(p.Bullets, p.Sections), nil) {
		add("section "+section, section)
	}
	for _, b := range p.Bullets {
		add(b.ID, b.Content)
	}
	return list
}

// Marks of text that acescope wrote. The begin mark ends with the name of the playbook.
const (
	blockBegin = "<!-- acescope:playbook begin "
	blockEnd   = "<!-- acescope:playbook end -->"
)

// Mark describes the content of a block: the version Name, and for a version of a branch what is needed to
// write the block again. Sum is the beginning of the SHA-256 of the text between the marks.
type Mark struct {
	Name   string `json:"-"`
	Branch string `json:"branch,omitempty"`
	Budget int    `json:"budget,omitempty"`
	Sum    string `json:"sha256"`
}

// begin returns the begin mark. "--" and "}" in a name must not end the comment or the JSON.
func (m Mark) begin() string {
	fields, _ := json.Marshal(m) // strings and numbers
	inner := strings.NewReplacer("--", `-\u002d`, "}", `\u007d`).Replace(string(fields[1 : len(fields)-1]))
	name, _, _ := agentText(cleanSection(m.Name))
	name = strings.NewReplacer("--", "- -", "{", "(").Replace(name)
	return fmt.Sprintf("%s%s {%s}; \"acescope playbook export\" replaces this text -->\n", blockBegin, name,
		inner)
}

var markFields = regexp.MustCompile(`^[^{\n]*(\{[^}\n]*\});`)

// ReadMark reads the mark of the only block in a file. It reports whether the text between the marks is as it
// was written. ok is false without a block. A mark of an earlier version of this program has no Sum.
func ReadMark(file []byte) (m Mark, asWritten, ok bool, err error) {
	from, to, err := blockRange(file)
	if err != nil || to == 0 {
		return m, false, false, err
	}
	mark, body, _ := bytes.Cut(file[from+len(blockBegin):to], []byte("\n"))
	if fields := markFields.FindSubmatch(mark); fields != nil {
		if err := json.Unmarshal(fields[1], &m); err != nil {
			return m, false, false, fmt.Errorf("%w: %w", ErrBlock, err)
		}
	}
	return m, m.Sum != "" && m.Sum == bodySum(body), true, nil
}

func bodySum(body []byte) string { return digest(body)[:16] }

// blockRange returns where the begin and the end mark of the only block in a file begin, zeros without a
// block.
func blockRange(file []byte) (from, to int, err error) {
	begins, ends := bytes.Count(file, []byte(blockBegin)), bytes.Count(file, []byte(blockEnd))
	from, to = bytes.Index(file, []byte(blockBegin)), bytes.Index(file, []byte(blockEnd))
	switch {
	case begins == 0 && ends == 0:
		return 0, 0, nil
	case begins != 1 || ends != 1 || to < from:
		return 0, 0, errTwoMarks
	}
	return from, to, nil
}

// block returns the playbook between marks.
func (p *Playbook) block(m Mark) []byte {
	heading := []byte("\n# Learned playbook\n\nApply the entries that fit the task.\n")
	body := slices.Concat(heading, p.markdown(), []byte("\n"))
	m.Sum = bodySum(body)
	return slices.Concat([]byte(m.begin()), body, []byte(blockEnd))
}

// Errors of exports into files that a user may have edited.
var (
	ErrBlock    = errors.New("its acescope block is damaged")
	ErrNotOurs  = errors.New("acescope did not write it")
	errTwoMarks = fmt.Errorf("%w: a mark is missing or repeated", ErrBlock)
)

// WriteBlock returns the content of a file of instructions for an agent, such as CLAUDE.md or AGENTS.md, with
// the playbook in a marked block. It replaces the block of an earlier export, or appends one, and leaves the
// rest alone.
func WriteBlock(file []byte, p *Playbook, m Mark) ([]byte, error) {
	block := p.block(m)
	from, to, err := blockRange(file)
	switch {
	case err != nil:
		return nil, err
	case to == 0:
		before := bytes.TrimRight(file, "\n")
		if len(before) > 0 {
			before = append(slices.Clip(before), "\n\n"...)
		}
		return append(append(slices.Clip(before), block...), '\n'), nil
	}
	return slices.Concat(file[:from], block, file[to+len(blockEnd):]), nil
}

// Bounds of the front matter of a skill.
const (
	maxSkillName        = 64
	maxSkillDescription = 1024
)

// WriteSkill returns the SKILL.md of a skill for coding agents. folder is the name of its folder, old the
// content of an existing SKILL.md, which must be of an earlier export, or nil.
func WriteSkill(old []byte, p *Playbook, m Mark, folder string) ([]byte, error) {
	if old != nil && !bytes.Contains(old, []byte(blockBegin)) {
		return nil, ErrNotOurs
	}
	sections := sectionOrder(grouped(p.Bullets, p.Sections), nil)
	subjects, _, _ := agentText(strings.Join(sections, ", "))
	description, err := json.Marshal(ace.Head(fmt.Sprintf(
		"Entries of a playbook learned from experience, about %s. Use it for tasks on these subjects.",
		subjects), maxSkillDescription))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "---\nname: %s\ndescription: %s\n---\n\n", skillName(folder), description)
	out.Write(p.block(m))
	out.WriteString("\n")
	return out.Bytes(), nil
}

// skillName returns a name of lower-case letters, digits and hyphens.
func skillName(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	name := cmp.Or(strings.Join(words, "-"), "playbook")
	return strings.TrimRight(ace.Head(name, maxSkillName), "-")
}
