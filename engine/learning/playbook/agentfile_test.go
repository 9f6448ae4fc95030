package playbook

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func sample() *Playbook {
	return &Playbook{Bullets: []Bullet{
		{ID: "a-00001", Section: "A", Content: "one " + strings.Repeat("x", 100), Helpful: 1},
		{ID: "a-00002", Section: "A", Content: "two\n## code\n" + blockEnd, Helpful: 5, Harmful: 1},
		{ID: "b-00003", Section: "B", Content: "th\u202eree", Helpful: 9, Harmful: 9},
	}, NextID: 4}
}

func TestWriteBlock(t *testing.T) {
	p := sample()
	for _, file := range []string{"", "# Mine\n\nKeep.", "# Mine\r\nKeep.\r\n\n\n"} {
		first, err := WriteBlock([]byte(file), p, Mark{Name: "main@1"})
		if err != nil || !bytes.HasPrefix(first, []byte(strings.TrimRight(file, "\n"))) ||
			bytes.Count(first, []byte(blockEnd)) != 1 {
			t.Fatalf("%q: %v\n%s", file, err, first)
		}
		edited := append(append([]byte("Before.\n"), first...), "After.\n"...)
		again, err := WriteBlock(edited, &Playbook{Bullets: p.Bullets[2:]}, Mark{Name: "main@2 --> x"})
		if err != nil || !bytes.HasPrefix(again, []byte("Before.\n")) ||
			!bytes.HasSuffix(again, []byte(blockEnd+"\nAfter.\n")) ||
			bytes.Contains(again, []byte("a-00002")) ||
			!bytes.Contains(again, []byte("- [b-00003] three\n")) {
			t.Fatalf("%v\n%s", err, again)
		}
		same, err := WriteBlock(again, &Playbook{Bullets: p.Bullets[2:]}, Mark{Name: "main@2 --> x"})
		if err != nil || !bytes.Equal(same, again) {
			t.Errorf("the second export differs: %v\n%s\n%s", err, same, again)
		}
	}
	for _, file := range []string{blockEnd, blockBegin, blockEnd + blockBegin, blockBegin + blockEnd +
		blockBegin + blockEnd} {
		if _, err := WriteBlock([]byte(file), p, Mark{Name: "x"}); !errors.Is(err, ErrBlock) {
			t.Errorf("%q: %v", file, err)
		}
	}
}

// imports matches what Claude Code, Gemini CLI and Cursor import, and commands that Claude Code runs for a
// skill.
var imports = regexp.MustCompile("(^|[^\\pL\\pN_])@|!`|(```|~~~)!")

// TestNeutralized checks that imports and commands become text, that invisible characters are left out, and
// that both are listed. Addresses and other ordinary text stay.
func TestNeutralized(t *testing.T) {
	for content, want := range map[string]string{
		"See @~/notes.md":                     "See &#64;~/notes.md",
		"@./a.md, (@../b.md) and @/c/d":       "&#64;./a.md, (&#64;../b.md) and &#64;/c/d",
		"use `@docs/x.md` or \"@README\"\n@x": "use `&#64;docs/x.md` or \"&#64;README\"\n&#64;x",
		"@\u200b~/n.md \u200b@x":              "&#64;~/n.md &#64;x",
		"@@a -@b é@c":                         "&#64;&#64;a -&#64;b é@c",
		"date: !`date`":                       "date: &#33;`date`",
		"```!\ndate\n```\n~~~!\ndate\n~~~":    "```&#33;\ndate\n```\n~~~&#33;\ndate\n~~~",
		"<!-- hidden -->":                     "&lt;!-- hidden -->",
		"mail ann@example.com, a_@b, 1@2 !x":  "mail ann@example.com, a_@b, 1@2 !x",
		"财務 ⚠ é naïve ➜ 🚀 \tx":                "财務 ⚠ é naïve ➜ 🚀 \tx",
		"a\ufe0f\U000e0101\u3164\u115f\uffa0\u034f\u180b\U000e0041\u00ad\ue000\U000f0001b": "ab",
		"one\u2028two\u2029three": "one two three",
	} {
		p := &Playbook{Bullets: []Bullet{{ID: "a-00001", Section: "A", Content: content}}}
		if got, _, _ := agentText(content); got != want {
			t.Errorf("%q became %q, want %q", content, got, want)
		}
		if losses := p.Neutralized(); len(losses) > 0 != (content != want) ||
			len(losses) > 0 && losses[0].Field != "a-00001" {
			t.Errorf("%q: listed %v", content, losses)
		}
	}
	p := &Playbook{Bullets: []Bullet{{ID: "a-00001", Section: "@~/s", Content: "@a @b \u3164"}}}
	block, err := WriteBlock(nil, p, Mark{Name: "@name", Branch: "b"})
	if err != nil || imports.Match(block) || !bytes.Contains(block, []byte("\n## &#64;~/s\n")) {
		t.Errorf("%v\n%s", err, block)
	}
	skill, err := WriteSkill(nil, p, Mark{Name: "@name"}, "x")
	if err != nil || imports.Match(skill) {
		t.Errorf("%v\n%s", err, skill)
	}
	const asText = "imports of files, commands and comments are written as text"
	if got := fmt.Sprint(p.Neutralized()); got != "[section @~/s (1): "+asText+" a-00001 (2): "+asText+
		" a-00001 (1): invisible characters are left out]" {
		t.Error(got)
	}
}

// FuzzNeutralized checks that no text of a bullet, a section or a name becomes an import, a command or hidden
// text of a file for agents.
func FuzzNeutralized(f *testing.F) {
	f.Add("!```!@\u200b!`@@`!", "``\ufe0f`!", "--@")
	f.Fuzz(func(t *testing.T, content, section, name string) {
		p := &Playbook{Bullets: []Bullet{
			{ID: "a-00001", Section: cleanSection(section), Content: cleanContent(content)}}}
		if p.check() != nil {
			return
		}
		block, err := WriteBlock(nil, p, Mark{Name: name})
		if err != nil || imports.Match(block) || bytes.ContainsFunc(block, invisible) ||
			bytes.Count(block, []byte("<!--")) != 2 {
			t.Errorf("%v\n%q", err, block)
		}
	})
}

func TestWriteSkill(t *testing.T) {
	p := sample()
	first, err := WriteSkill(nil, p, Mark{Name: "main@1"}, "My Skill_2")
	if err != nil || !bytes.HasPrefix(first,
		[]byte("---\nname: my-skill-2\ndescription: \"Entries of a playbook learned from experience, about A, B.")) ||
		!bytes.Contains(first, []byte("\n## A\n\n- [a-00001] one")) ||
		!bytes.Contains(first, []byte("- [a-00002] two\n  ## code\n  &lt;!--")) {
		t.Fatalf("%v\n%s", err, first)
	}
	if again, err := WriteSkill(first, p, Mark{Name: "main@1"}, "My Skill_2"); err != nil ||
		!bytes.Equal(again, first) {
		t.Error(err)
	}
	if _, err := WriteSkill([]byte("mine"), p, Mark{Name: "x"}, "x"); !errors.Is(err, ErrNotOurs) {
		t.Error(err)
	}
}

// TestWithin keeps the bullets with the best counters, in the order of the playbook.
func TestWithin(t *testing.T) {
	p := sample()
	for tokens, want := range map[int]string{0: "", p.Bullets[1].tokens(): "a-00002",
		p.Tokens(): "a-00001 a-00002 b-00003",
		p.Bullets[1].tokens() + p.Bullets[2].tokens(): "a-00002 b-00003"} {
		var got []string
		q := p.Within(tokens)
		for _, b := range q.Bullets {
			got = append(got, b.ID)
		}
		if s := strings.Join(got, " "); s != want || q.Tokens() > tokens || q.NextID != 4 {
			t.Errorf("%d tokens: %q, want %q", tokens, s, want)
		}
	}
}

// TestL3ReferenceSections adds the sections that the reference implementation needs to file a bullet.
func TestL3ReferenceSections(t *testing.T) {
	p, _ := parse(t, "## Formulas and Calculations:\n[calc-00001] helpful=1 harmful=0 :: x\n")
	var out bytes.Buffer
	if err := WriteText(&out, p.WithReferenceSections()); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); strings.Count(s, "## ") != len(wellKnown) ||
		!strings.HasSuffix(s, "\n## OTHERS\n") ||
		!strings.HasPrefix(s, "## Formulas and Calculations:\n[calc-00001]") {
		t.Error(s)
	}
}

// FuzzBlock checks that a block is read back with the bullets that it holds, except for their counters.
func FuzzBlock(f *testing.F) {
	f.Add("Use ## A\n## B\n\n  - [x-1] y <!-- z -->", "A & B")
	f.Add("<!-- acescope:playbook end -->", "OTHERS")
	f.Fuzz(func(t *testing.T, content, section string) {
		p := &Playbook{NextID: 3, Bullets: []Bullet{
			{ID: "a-00001", Section: cleanSection(section), Content: cleanContent(content)},
			{ID: "a-00002", Section: cleanSection(section), Content: "second"}}}
		heading, _, _ := agentText(section)
		text, _, hidden := agentText(content)
		if p.check() != nil || heading != section || hidden > 0 || original.Replace(text) != content {
			return
		}
		data, err := WriteBlock([]byte("# Mine\n"), p, Mark{Name: "name"})
		if err != nil {
			t.Fatal(err)
		}
		q, r, err := Parse(bytes.NewReader(data))
		if err != nil || r.Format != FormatBlock || string(p.Canonical()) != string(q.Canonical()) {
			t.Fatalf("%v %+v\n%s\n%s\n%s", err, r, data, p.Canonical(), q.Canonical())
		}
	})
}

func TestReadMark(t *testing.T) {
	m := Mark{Name: "a--b{@3", Branch: "a--> b}\"{", Budget: 20}
	file, err := WriteBlock([]byte("# Mine\n"), sample(), m)
	if err != nil {
		t.Fatal(err)
	}
	got, asWritten, ok, err := ReadMark(file)
	if err != nil || !ok || !asWritten || got.Branch != m.Branch || got.Budget != m.Budget {
		t.Errorf("%+v %v %v %v\n%s", got, asWritten, ok, err, file)
	}
	edited := bytes.Replace(file, []byte("two"), []byte("2"), 1)
	if _, asWritten, ok, err := ReadMark(edited); err != nil || !ok || asWritten {
		t.Error(asWritten, ok, err)
	}
	if _, _, ok, err := ReadMark([]byte("# Mine\n")); ok || err != nil {
		t.Error(ok, err)
	}
	old := blockBegin + "main@1; \"acescope playbook export\" replaces this text -->\nx\n" + blockEnd
	if m, asWritten, ok, err := ReadMark([]byte(old)); m.Branch != "" || asWritten || !ok || err != nil {
		t.Error(m, asWritten, ok, err)
	}
}
