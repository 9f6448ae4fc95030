package evaluations

import (
	"slices"
	"testing"

	"acescope/engine/ace"
)

// version returns a version whose items have verdicts: + correct, x wrong, ! failed, ? without a label.
func version(verdicts string) (v Version) {
	for i, c := range verdicts {
		item := ace.EvalItem{Index: i, Answer: string(c)}
		if c == '!' {
			item.Error = "refused"
		} else if c != '?' {
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

// A failed item is neither correct nor wrong. It is listed first if its last answer failed.
func TestRowsOfFailedItems(t *testing.T) {
	list := Rows([]Version{version("+!+"), version("!+x")})
	var got []string
	for _, r := range list {
		got = append(got, string(r.Change))
	}
	if want := []string{"broken", "failed", "always right"}; !slices.Equal(got, want) ||
		list[1].Marks[1] != Failed || list[2].Marks[0] != Failed {
		t.Errorf("%q: %+v", got, list)
	}
	if fixed, broken := (&Grid{Rows: list}).Flips(0, 1); len(fixed) != 0 || len(broken) != 1 {
		t.Errorf("fixed %v, broken %v", fixed, broken)
	}
	e := ace.EvalResult{Epoch: 1, Tasks: 10, Correct: 6, Accuracy: 1, FailedItems: ace.FailedItems{Failed: 4}}
	better := ace.EvalResult{Epoch: 2, Tasks: 10, Correct: 7, Accuracy: 0.7}
	if When(e) != "after epoch 1, 4 of 10 failed" {
		t.Errorf("%q", When(e))
	}
	if best := (&Grid{Versions: []Version{{EvalResult: e}, {EvalResult: better}}}).Best(); best != 1 {
		t.Errorf("version %d is the best one", best)
	}
}
