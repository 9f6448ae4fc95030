package playbook

import (
	"bytes"
	"errors"
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
		if p.check() != nil || agentText(content) != content || agentText(section) != section {
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
