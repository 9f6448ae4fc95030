package widget

import (
	"strings"
	"unicode"
)

// maxDiffWords bounds the words of each text that are compared; beyond, the rest of both
// counts as changed.
const maxDiffWords = 600

// Edit is a run of words that is in both texts, only in the old or only in the new one.
type Edit struct {
	Kind editKind
	Text string
}

type editKind uint8

const (
	editSame editKind = iota
	EditGone
	EditNew
)

// DiffWords tells how a text became another, word by word, what is gone before what is
// new. Libraries compare lines or letters and know no bound; this looks at words, weighs the
// white space between them less, and takes at most maxDiffWords squared steps.
func DiffWords(old, new string) []Edit {
	a, b := SplitWords(old), SplitWords(new)
	n, m := min(len(a), maxDiffWords), min(len(b), maxDiffWords)
	// common[i][j] is how much the ends from i and j have in common, in order: a word counts
	// more than the white space beside it.
	common := make([][]int16, n+1)
	for i := range common {
		common[i] = make([]int16, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + weight(a[i])
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var edits []Edit
	add := func(kind editKind, word string) {
		if k := len(edits) - 1; k >= 0 && edits[k].Kind == kind {
			edits[k].Text += word
		} else {
			edits = append(edits, Edit{kind, word})
		}
	}
	i, j := 0, 0
	for i < n || j < m {
		switch {
		case i < n && j < m && a[i] == b[j]:
			add(editSame, a[i])
			i, j = i+1, j+1
		case i < n && (j == m || common[i+1][j] >= common[i][j+1]):
			add(EditGone, a[i])
			i++
		default:
			add(EditNew, b[j])
			j++
		}
	}
	for _, w := range a[n:] {
		add(EditGone, w)
	}
	for _, w := range b[m:] {
		add(EditNew, w)
	}
	return joinNear(edits)
}

func weight(word string) int16 {
	if strings.TrimSpace(word) == "" {
		return 1
	}
	return 3
}

// joinNear takes white space between two changes into both, so that a changed phrase reads
// as one.
func joinNear(edits []Edit) []Edit {
	var out []Edit
	for i := 0; i < len(edits); {
		if edits[i].Kind == editSame {
			out = append(out, edits[i])
			i++
			continue
		}
		gone, added := "", ""
		for ; i < len(edits); i++ {
			e := edits[i]
			space := e.Kind == editSame && strings.TrimSpace(e.Text) == "" && i+1 < len(edits)
			if e.Kind == editSame && !space {
				break
			}
			if e.Kind != EditNew {
				gone += e.Text
			}
			if e.Kind != EditGone {
				added += e.Text
			}
		}
		if gone != "" {
			out = append(out, Edit{EditGone, gone})
		}
		if added != "" {
			out = append(out, Edit{EditNew, added})
		}
	}
	return out
}

// SplitWords splits into words and the white space between them.
func SplitWords(s string) []string {
	var words []string
	start, space := 0, false
	for i, r := range s {
		if now := unicode.IsSpace(r); i > start && now != space {
			words = append(words, s[start:i])
			start = i
			space = now
		} else if i == start {
			space = now
		}
	}
	if start < len(s) {
		words = append(words, s[start:])
	}
	return words
}
