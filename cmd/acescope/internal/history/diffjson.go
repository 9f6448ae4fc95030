package history

import (
	"fmt"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/temporal/compare"
	"acescope/sources/histories"
	"acescope/views/diff"
)

// RunDiffLine is what a comparison of two runs comes to.
type RunDiffLine struct {
	Type        string              `json:"type"` // run_diff
	A           diffSideLine        `json:"a"`
	B           diffSideLine        `json:"b"`
	Same        bool                `json:"same"`
	Counts      map[string]int      `json:"counts"`
	First       *compare.Divergence `json:"first,omitempty"`
	FirstResult *compare.Divergence `json:"first_result,omitempty"`
	Metrics     []compare.Metric    `json:"metrics"`
	Notes       []string            `json:"notes"`
	AllFields   bool                `json:"all_fields"`
	Ignored     *compare.Ignored    `json:"ignored,omitempty"`
}

// diffSideLine is one of the two runs.
type diffSideLine struct {
	Name    string `json:"name"`
	File    string `json:"file,omitempty"`
	History int    `json:"history,omitempty"` // in the file, 1-based
	compare.About
}

// PairLine is a step of both runs, or of one.
type PairLine struct {
	Type    string           `json:"type"` // pair
	Pair    int              `json:"pair"` // 1-based
	Status  string           `json:"status"`
	Kind    string           `json:"kind"`
	Name    string           `json:"name"`
	Step    string           `json:"step"`
	Moved   bool             `json:"moved,omitempty"`
	A       *compare.Step    `json:"a,omitempty"`
	B       *compare.Step    `json:"b,omitempty"`
	Input   []compare.Change `json:"input"`
	Result  []compare.Change `json:"result"`
	More    int              `json:"more,omitempty"`
	Partial bool             `json:"partial,omitempty"`
}

// putDiff writes a comparison; the error says whether they differ.
func putDiff(a *cli.App, d *compare.Diff, sides [2]*diffSide, f diffFlags) error {
	put := func(p0 *compare.Diff, p1 [2]*diffSide, p2 diffFlags) error { return diffText(a, p0, p1, p2) }
	if a.JSON {
		put = func(p0 *compare.Diff, p1 [2]*diffSide, p2 diffFlags) error { return diffLines(a, p0, p1, p2) }
	}
	if err := put(d, sides, f); err != nil || !d.Differs() {
		return err
	}
	differ := 0
	for status, n := range d.Counts {
		if compare.Differs(status) {
			differ += n
		}
	}
	return &cli.ExitError{Code: cli.ExitDiverged, Err: fmt.Errorf("%s and %s differ in %d of %d steps", cli.SafeText(sides[0].name), cli.SafeText(sides[1].name), differ, len(d.Pairs))}
}

func diffText(a *cli.App, d *compare.Diff, sides [2]*diffSide, f diffFlags) error {
	width, styles, paint := a.Canvas()
	return a.Print(diff.DiffText(d, sides[0].name, sides[1].name, diff.DiffOnly(f.only), !f.stat, width, styles), paint)
}

func diffLines(a *cli.App, d *compare.Diff, sides [2]*diffSide, f diffFlags) error {
	out := cli.NewLines(a.Out)
	l := RunDiffLine{Type: "run_diff", A: sides[0].line(d.A), B: sides[1].line(d.B), Same: !d.Differs(), Counts: map[string]int{},
		First: d.First, FirstResult: d.FirstResult, Metrics: d.Metrics, Notes: append([]string{}, d.Notes...), AllFields: d.All}
	for _, status := range compare.Statuses() {
		l.Counts[status] = d.Counts[status]
	}
	if !d.All {
		ignored := compare.WhatIsIgnored()
		l.Ignored = &ignored
	}
	if err := out.Put(l); err != nil {
		return err
	}
	for i := range d.Pairs {
		p := &d.Pairs[i]
		if f.stat || !diff.DiffOnly(f.only).Shows(p) {
			continue
		}
		if err := out.Put(pairLineOf(i, p, diff.DiffOnly(f.only))); err != nil {
			return err
		}
	}
	return out.Flush()
}

func pairLineOf(i int, p *histories.DiffPair, only diff.DiffOnly) PairLine {
	s := p.Step()
	l := PairLine{Type: "pair", Pair: i + 1, Status: p.Status, Kind: s.Kind, Name: s.Name, Step: s.Key, Moved: p.Moved, A: p.A, B: p.B,
		Input: []compare.Change{}, Result: []compare.Change{}, More: p.More, Partial: p.Partial}
	if only != diff.DiffOnlyResult {
		l.Input = append(l.Input, p.Input...)
	}
	if only != diff.DiffOnlyInput {
		l.Result = append(l.Result, p.Result...)
	}
	return l
}

func (s *diffSide) line(about compare.About) diffSideLine {
	l := diffSideLine{Name: s.name, File: s.file, About: about}
	if s.file != "" {
		l.History = s.number
	}
	l.RunIDs = append([]string{}, l.RunIDs...)
	return l
}
