package main

import (
	"fmt"

	"acescope/engine/compare"
	"acescope/sources"
	"acescope/views"
)

// runDiffLine is what a comparison of two runs comes to.
type runDiffLine struct {
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

// pairLine is a step of both runs, or of one.
type pairLine struct {
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
func (a *app) putDiff(d *compare.Diff, sides [2]*diffSide, f diffFlags) error {
	put := a.diffText
	if a.json {
		put = a.diffLines
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
	return &coded{exitDiverged, fmt.Errorf("%s and %s differ in %d of %d steps", safe(sides[0].name), safe(sides[1].name), differ, len(d.Pairs))}
}

func (a *app) diffText(d *compare.Diff, sides [2]*diffSide, f diffFlags) error {
	width, styles, paint := a.canvas()
	return a.print(views.DiffText(d, sides[0].name, sides[1].name, views.DiffOnly(f.only), !f.stat, width, styles), paint)
}

func (a *app) diffLines(d *compare.Diff, sides [2]*diffSide, f diffFlags) error {
	out := newLines(a.out)
	l := runDiffLine{Type: "run_diff", A: sides[0].line(d.A), B: sides[1].line(d.B), Same: !d.Differs(), Counts: map[string]int{},
		First: d.First, FirstResult: d.FirstResult, Metrics: d.Metrics, Notes: append([]string{}, d.Notes...), AllFields: d.All}
	for _, status := range compare.Statuses() {
		l.Counts[status] = d.Counts[status]
	}
	if !d.All {
		ignored := compare.WhatIsIgnored()
		l.Ignored = &ignored
	}
	if err := out.put(l); err != nil {
		return err
	}
	for i := range d.Pairs {
		p := &d.Pairs[i]
		if f.stat || !views.DiffOnly(f.only).Shows(p) {
			continue
		}
		if err := out.put(pairLineOf(i, p, views.DiffOnly(f.only))); err != nil {
			return err
		}
	}
	return out.flush()
}

func pairLineOf(i int, p *sources.DiffPair, only views.DiffOnly) pairLine {
	s := p.Step()
	l := pairLine{Type: "pair", Pair: i + 1, Status: p.Status, Kind: s.Kind, Name: s.Name, Step: s.Key, Moved: p.Moved, A: p.A, B: p.B,
		Input: []compare.Change{}, Result: []compare.Change{}, More: p.More, Partial: p.Partial}
	if only != views.DiffOnlyResult {
		l.Input = append(l.Input, p.Input...)
	}
	if only != views.DiffOnlyInput {
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
