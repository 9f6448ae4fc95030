package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// series are the values of one figure over the attempts.
type series []float64

// median is the middle value, the mean of the two middle ones where there are two.
func (s series) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// percentile is the nearest-rank percentile.
func (s series) percentile(p int) float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[max((len(sorted)*p+99)/100, 1)-1]
}

// spread is the smallest and the largest value.
func (s series) spread() []float64 {
	if len(s) == 0 {
		return nil
	}
	return []float64{slices.Min(s), slices.Max(s)}
}

// target is what a figure has to be: of its ratio where relative, else of its value.
type target struct {
	limit    float64
	atLeast  bool
	relative bool
}

func (t *target) String() string {
	if t == nil {
		return ""
	}
	sign, of := "≤", ""
	if t.atLeast {
		sign = "≥"
	}
	if t.relative {
		of = "×"
	}
	return sign + " " + number(t.limit) + of
}

func (t *target) met(value, ratio float64) bool {
	if t.relative {
		value = ratio
	}
	if t.atLeast {
		return value >= t.limit
	}
	return value <= t.limit
}

func atLeast(x float64) *target { return &target{limit: x, atLeast: true, relative: true} }
func atMost(x float64) *target  { return &target{limit: x, relative: true} }
func below(x float64) *target   { return &target{limit: x} }
func above(x float64) *target   { return &target{limit: x, atLeast: true} }

// row is one measured figure. Faster says that the ratio is the peer's time over ours,
// so that more than 1 is always better where a target says "at least".
type row struct {
	section string
	what    string
	unit    string
	ours    series
	peer    series
	faster  bool
	target  *target
}

func (r row) ratio() float64 {
	ours, peer := r.ours.median(), r.peer.median()
	if r.faster {
		ours, peer = peer, ours
	}
	if len(r.peer) == 0 || peer == 0 {
		return 0
	}
	return ours / peer
}

// rowLine is a row as JSON. Ours and Peer are medians of Attempts values.
type rowLine struct {
	Type      string    `json:"type"` // bench
	Section   string    `json:"section"`
	What      string    `json:"what"`
	Unit      string    `json:"unit"`
	Ours      float64   `json:"ours"`
	OursRange []float64 `json:"ours_range"`
	Peer      *float64  `json:"peer,omitempty"`
	PeerRange []float64 `json:"peer_range,omitempty"`
	Ratio     *float64  `json:"ratio,omitempty"`
	Target    string    `json:"target,omitempty"`
	Met       *bool     `json:"met,omitempty"`
	Attempts  int       `json:"attempts"`
}

func (r row) line() rowLine {
	l := rowLine{Type: "bench", Section: r.section, What: r.what, Unit: r.unit, Ours: r.ours.median(),
		OursRange: r.ours.spread(), PeerRange: r.peer.spread(), Target: r.target.String(), Attempts: len(r.ours)}
	if len(r.peer) > 0 {
		peer, ratio := r.peer.median(), r.ratio()
		l.Peer, l.Ratio = &peer, &ratio
	}
	if r.target != nil {
		met := r.target.met(l.Ours, r.ratio())
		l.Met = &met
	}
	return l
}

// report collects rows: as JSON they are written at once, as a table at the end.
type report struct {
	out  io.Writer
	json bool
	rows []row
	err  error
}

func newReport(out io.Writer, json bool) *report { return &report{out: out, json: json} }

func (r *report) add(rows ...row) {
	for _, x := range rows {
		if r.json && r.err == nil {
			r.err = json.NewEncoder(r.out).Encode(x.line())
		}
		r.rows = append(r.rows, x)
	}
}

func (r *report) end() error {
	if r.json || r.err != nil || len(r.rows) == 0 {
		return r.err
	}
	w := tabwriter.NewWriter(r.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tOURS (MIN–MAX)\tPEER (MIN–MAX)\tRATIO\tTARGET\tMET\tN")
	for _, x := range r.rows {
		l := x.line()
		peer, ratio, met := "", "", ""
		if l.Peer != nil {
			peer, ratio = withSpread(*l.Peer, l.PeerRange), fmt.Sprintf("%.2f×", *l.Ratio)
		}
		if l.Met != nil {
			met = map[bool]string{true: "yes", false: "NO"}[*l.Met]
		}
		fmt.Fprintf(w, "%s: %s, %s\t%s\t%s\t%s\t%s\t%s\t%d\n", l.Section, l.What, l.Unit,
			withSpread(l.Ours, l.OursRange), peer, ratio, l.Target, met, l.Attempts)
	}
	return w.Flush()
}

func withSpread(v float64, spread []float64) string {
	if len(spread) < 2 || spread[0] == spread[1] {
		return number(v)
	}
	return fmt.Sprintf("%s (%s–%s)", number(v), number(spread[0]), number(spread[1]))
}

// number has three digits or so.
func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
