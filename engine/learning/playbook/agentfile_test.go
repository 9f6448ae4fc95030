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
		first, err := WriteBlock([]byte(file), p, "main@1")
		if err != nil || !bytes.HasPrefix(first, []byte(strings.TrimRight(file, "\n"))) || bytes.Count(first, []byte(blockEnd)) != 1 {
			t.Fatalf("%q: %v\n%s", file, err, first)
		}
		edited := append(append([]byte("Before.\n"), first...), "After.\n"...)
		again, err := WriteBlock(edited, &Playbook{Bullets: p.Bullets[2:]}, "main@2 --> x")
		if err != nil || !bytes.HasPrefix(again, []byte("Before.\n")) || !bytes.HasSuffix(again, []byte(blockEnd+"\nAfter.\n")) ||
			bytes.Contains(again, []byte("a-00002")) || !bytes.Contains(again, []byte("- [b-00003] three\n")) {
			t.Fatalf("%v\n%s", err, again)
		}
		same, err := WriteBlock(again, &Playbook{Bullets: p.Bullets[2:]}, "main@2 --> x")
		if err != nil || !bytes.Equal(same, again) {
			t.Errorf("the second export differs: %v\n%s\n%s", err, same, again)
		}
	}
	for _, file := range []string{blockEnd, blockBegin, blockEnd + blockBegin, blockBegin + blockEnd + blockBegin + blockEnd} {
		if _, err := WriteBlock([]byte(file), p, "x"); !errors.Is(err, ErrBlock) {
			t.Errorf("%q: %v", file, err)
		}
	}
}

func TestWriteSkill(t *testing.T) {
	p := sample()
	first, err := WriteSkill(nil, p, "main@1", "My Skill_2")
	if err != nil || !bytes.HasPrefix(first, []byte("---\nname: my-skill-2\ndescription: \"Entries of a playbook learned from experience, about A, B.")) ||
		!bytes.Contains(first, []byte("\n## A\n\n- [a-00001] one")) || !bytes.Contains(first, []byte("- [a-00002] two\n  ## code\n  &lt;!--")) {
		t.Fatalf("%v\n%s", err, first)
	}
	if again, err := WriteSkill(first, p, "main@1", "My Skill_2"); err != nil || !bytes.Equal(again, first) {
		t.Error(err)
	}
	if _, err := WriteSkill([]byte("mine"), p, "x", "x"); !errors.Is(err, ErrNotOurs) {
		t.Error(err)
	}
}

// TestWithin keeps the bullets with the best counters, in the order of the playbook.
func TestWithin(t *testing.T) {
	p := sample()
	for tokens, want := range map[int]string{0: "", p.Bullets[1].tokens(): "a-00002", p.Tokens(): "a-00001 a-00002 b-00003",
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
	if s := out.String(); strings.Count(s, "## ") != len(wellKnown) || !strings.HasSuffix(s, "\n## OTHERS\n") ||
		!strings.HasPrefix(s, "## Formulas and Calculations:\n[calc-00001]") {
		t.Error(s)
	}
}
