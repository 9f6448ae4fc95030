package evaluations

import (
	"slices"
	"testing"

	"acescope/engine/ace"
)

// version returns a version whose items have verdicts: + correct, x wrong, ? without a label.
func version(verdicts string) (v Version) {
	for i, c := range verdicts {
		item := ace.EvalItem{Index: i, Answer: string(c)}
		if c != '?' {
			item.Correct = new(c == '+')
		}
		v.Items = append(v.Items, item)
	}
	return v
}

// The grid lists regressions first, and says how each item changed over the versions.
func TestRows(t *testing.T) {
	versions := []Version{version("+x+x+?"), version("x++x+?"), version("+xx++?")}
	list := Rows(versions)
	var got []string
	for _, r := range list {
		got = append(got, string(r.Change))
	}
	want := []string{"broken", "broken", "unstable", "fixed", "always right", "unlabeled"}
	if !slices.Equal(got, want) || list[0].Index != 1 || list[1].Index != 2 || list[2].Index != 0 {
		t.Errorf("%q, %+v", got, list)
	}
	g := &Grid{Versions: versions, Rows: list}
	fixed, broken := g.Flips(0, 2)
	if !slices.Equal(fixed, []int{3}) || !slices.Equal(broken, []int{2}) {
		t.Errorf("fixed %v, broken %v", fixed, broken)
	}
	if versions[0].Item(4).Answer != "+" || versions[0].Item(9) != nil {
		t.Error("wrong item")
	}
}

// A version whose worker kept no items has no marks.
func TestRowsWithoutItems(t *testing.T) {
	list := Rows([]Version{version("+x"), {}, version("x+")})
	if len(list) != 2 || list[0].Marks[1] != Unknown || list[0].Change != Broken || list[1].Change != Fixed {
		t.Errorf("%+v", list)
	}
}
