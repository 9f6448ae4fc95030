package evaluations

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
)

// maxImported bounds the items of an imported evaluation.
const maxImported = 100_000

// place is the position in training that the name of an imported snapshot states.
var place = regexp.MustCompile(`(?:epoch_(\d{1,9})_)?step_(\d{1,9})`)

// Imported returns the evaluations of an imported branch on one of its data sets, and the names of all of
// them. An empty data selects the data set with the most evaluations. Items have an answer and a label only
// if they are wrong, because the files record no others.
func Imported(books *playbook.Store, branch, data string) (*Grid, []string, error) {
	about, err := books.Branch(branch)
	if err != nil {
		return nil, nil, err
	}
	records, err := books.Page(branch, 1, math.MaxInt)
	if err != nil {
		return nil, nil, err
	}
	byData := map[string][]Version{}
	var names []string
	add := func(hash, file string, scores []playbook.Score) {
		for _, s := range scores {
			if s.Total < 1 {
				continue
			}
			if byData[s.Data] == nil {
				names = append(names, s.Data)
			}
			byData[s.Data] = append(byData[s.Data], importedVersion(hash, file, s))
		}
	}
	if about.Origin != nil {
		add(about.Start, "", about.Origin.Scores)
	}
	for _, r := range records {
		if r.Imported != nil {
			add(r.Hash, r.Imported.File, r.Imported.Scores)
		}
	}
	most := slices.MaxFunc(append([]string{""}, names...), func(a, b string) int {
		return cmp.Compare(len(byData[a]), len(byData[b]))
	})
	g := &Grid{Versions: byData[cmp.Or(data, most)], Status: ace.Completed}
	g.Input.ExperimentID = branch
	g.Rows = Rows(g.Versions)
	return g, names, nil
}

func importedVersion(hash, file string, s playbook.Score) Version {
	v := Version{EvalResult: ace.EvalResult{Tasks: s.Total, Correct: s.Correct, Playbook: hash,
		Accuracy: float64(s.Correct) / float64(s.Total)}}
	if m := place.FindStringSubmatch(file); m != nil {
		v.Learned, _ = strconv.Atoi(m[2])
		v.Epoch, _ = strconv.Atoi(cmp.Or(m[1], "1"))
	} else if file != "" {
		v.Epoch = 1
	}
	wrong := map[int]playbook.WrongAnswer{}
	for _, w := range s.Wrong {
		wrong[w.Item] = w
	}
	if len(wrong) != s.Total-s.Correct || s.Total > maxImported { // the file does not list every wrong answer
		return v
	}
	for i := range s.Total {
		item := ace.EvalItem{Index: i, Correct: new(true)}
		if w, ok := wrong[i]; ok {
			item = ace.EvalItem{Index: i, Correct: new(false), Answer: w.Answer, Label: &w.Expected}
			v.Wrong = append(v.Wrong, i)
		}
		v.Items = append(v.Items, item)
	}
	return v
}
