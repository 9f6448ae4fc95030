//go:build bench

package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// samples are the values of one figure, one for each attempt.
type samples []float64

// percentile returns the nearest-rank percentile, or 0 without values.
func (s samples) percentile(p int) float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[max((len(sorted)*p+99)/100, 1)-1]
}

// median returns the middle value, or the mean of the two middle values.
func (s samples) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// limits returns the smallest and the largest value, or nil without values.
func (s samples) limits() []float64 {
	if len(s) == 0 {
		return nil
	}
	return []float64{slices.Min(s), slices.Max(s)}
}

// figure is one measured quantity of a section. The ratio is ours over peer, or peer over ours if
// speedup is set. The target is a limit of our value ("≤ 150") or of the ratio ("≥ 1.3×").
type figure struct {
	what       string
	unit       string
	target     string
	speedup    bool
	ours, peer samples
}

func (f figure) ratio() float64 {
	ours, peer := f.ours.median(), f.peer.median()
	if f.speedup {
		ours, peer = peer, ours
	}
	if peer == 0 {
		return 0
	}
	return ours / peer
}

// met reports whether the figure reaches its target, or nil without a target.
func (f figure) met() *bool {
	limit, relative := strings.CutSuffix(f.target, "×")
	limit, atMost := strings.CutPrefix(limit, "≤ ")
	x, err := strconv.ParseFloat(strings.TrimPrefix(limit, "≥ "), 64)
	if err != nil {
		return nil
	}
	value := f.ours.median()
	if relative {
		value = f.ratio()
	}
	met := value >= x
	if atMost {
		met = value <= x
	}
	return &met
}

// line is a figure as a JSON line. Ours and Peer are medians.
type line struct {
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

func (f figure) line(section string) line {
	l := line{Type: "bench", Section: section, What: f.what, Unit: f.unit, Target: f.target, Met: f.met(),
		Ours: f.ours.median(), OursRange: f.ours.limits(), PeerRange: f.peer.limits(), Attempts: len(f.ours)}
	if len(f.peer) > 0 {
		peer, ratio := f.peer.median(), f.ratio()
		l.Peer, l.Ratio = &peer, &ratio
	}
	return l
}

// report writes figures: JSON lines at once, a table at the end.
type report struct {
	out     io.Writer
	json    bool
	section string // of the figures that are added
	lines   []line
	skipped bool // a section
	err     error
}

func (r *report) add(figures ...figure) {
	for _, f := range figures {
		if len(f.ours) == 0 {
			continue
		}
		l := f.line(r.section)
		if r.json && r.err == nil {
			r.err = json.NewEncoder(r.out).Encode(l)
		}
		r.lines = append(r.lines, l)
	}
}

func (r *report) end() error {
	switch {
	case len(r.lines) == 0 && r.skipped:
		return nil
	case len(r.lines) == 0:
		return errors.New("nothing was measured; docs/dev/bench.sh names the sections")
	}
	if r.json || r.err != nil {
		return r.err
	}
	w := tabwriter.NewWriter(r.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tOURS (MIN–MAX)\tPEER (MIN–MAX)\tRATIO\tTARGET\tMET\tN")
	for _, l := range r.lines {
		peer, ratio, met := "", "", ""
		if l.Peer != nil {
			peer, ratio = withRange(*l.Peer, l.PeerRange), fmt.Sprintf("%.2f×", *l.Ratio)
		}
		if l.Met != nil {
			met = map[bool]string{true: "yes", false: "NO"}[*l.Met]
		}
		fmt.Fprintf(w, "%s: %s, %s\t%s\t%s\t%s\t%s\t%s\t%d\n", l.Section, l.What, l.Unit,
			withRange(l.Ours, l.OursRange), peer, ratio, l.Target, met, l.Attempts)
	}
	return w.Flush()
}

func withRange(v float64, limits []float64) string {
	if limits[0] == limits[1] {
		return number(v)
	}
	return fmt.Sprintf("%s (%s–%s)", number(v), number(limits[0]), number(limits[1]))
}

// number formats v with about three digits.
func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// measure makes one attempt and returns a value for each figure, in their order. NaN is no value,
// and values at the end may be missing.
type measure func() []float64

// compare lets ours and peer take turns, attempts times each, and reports the figures. A nil peer
// is left out.
func (b *bench) compare(attempts int, figures []figure, ours, peer measure) {
	for n := range attempts {
		for side, m := range []measure{ours, peer} {
			if m == nil {
				continue
			}
			var text []string
			for i, v := range m() {
				if math.IsNaN(v) {
					continue
				}
				to := [2]*samples{&figures[i].ours, &figures[i].peer}[side]
				*to = append(*to, v)
				text = append(text, number(v)+" "+figures[i].unit)
			}
			if len(text) > 0 {
				b.progress("  %d of %d, %s: %s", n+1, attempts, [2]string{"ours", "peer"}[side],
					strings.Join(text, ", "))
			}
		}
	}
	b.report.add(figures...)
}

// compareBoth is compare for attempts that measure ours and the peer together.
func (b *bench) compareBoth(attempts int, figures []figure, both func() (ours, peer []float64)) {
	var peer []float64
	b.compare(attempts, figures, func() (ours []float64) {
		ours, peer = both()
		return ours
	}, func() []float64 { return peer })
}
