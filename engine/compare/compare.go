package compare

import (
	"bytes"
	"encoding/json"

	"github.com/aymanbagabas/go-udiff/lcs"
	"github.com/wI2L/jsondiff"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
)

// Bounds of what is compared and listed.
const (
	MaxPayload = 1 << 20 // bytes
	MaxChanges = 200     // of one payload
)

// Ways in which a pair is.
const (
	Same    = "same"
	Changed = "changed"
	OnlyA   = "only_a"
	OnlyB   = "only_b"
)

// Pair is the same step in both runs, or a step that only one has.
type Pair struct {
	Status string   `json:"status"`
	A      *Step    `json:"a,omitempty"`
	B      *Step    `json:"b,omitempty"`
	Input  []Change `json:"input,omitempty"`
	Result []Change `json:"result,omitempty"`
	More   int      `json:"more,omitempty"` // changes that are not listed
}

// Change is one difference of two payloads. Path is a JSON pointer (RFC 6901), "" for the
// whole.
type Change struct {
	Path string          `json:"path"`
	A    json.RawMessage `json:"a,omitempty"` // nil where it was added
	B    json.RawMessage `json:"b,omitempty"` // nil where it was removed
}

// Metric is a figure of both runs.
type Metric struct {
	Name string  `json:"name"`
	Unit string  `json:"unit,omitempty"`
	A    float64 `json:"a"`
	B    float64 `json:"b"`
}

// Diff is two runs side by side. First is the position in Pairs of the first that is not
// the same, -1 where all are.
type Diff struct {
	Pairs   []Pair   `json:"pairs"`
	First   int      `json:"first"`
	Metrics []Metric `json:"metrics"`
}

// Runs compares two histories.
func Runs(a, b []*historypb.HistoryEvent) Diff {
	as, stateA := Steps(a)
	bs, stateB := Steps(b)
	d := Diff{Pairs: align(as, bs), First: -1, Metrics: metrics(as, stateA, bs, stateB)}
	for i := range d.Pairs {
		d.Pairs[i].judge()
		if d.First < 0 && d.Pairs[i].Status != Same {
			d.First = i
		}
	}
	return d
}

// align pairs the steps that are the same thing: those of the longest common sequence,
// then those that only stand in another place.
func align(as, bs []Step) []Pair {
	var pairs []Pair
	ia, ib := 0, 0
	both := func(until int) {
		for ; ia < until; ia, ib = ia+1, ib+1 {
			pairs = append(pairs, Pair{A: &as[ia], B: &bs[ib]})
		}
	}
	for _, d := range lcs.DiffLines(keys(as), keys(bs)) {
		both(d.Start)
		for ; ia < d.End; ia++ {
			pairs = append(pairs, Pair{A: &as[ia]})
		}
		for ; ib < d.ReplEnd; ib++ {
			pairs = append(pairs, Pair{B: &bs[ib]})
		}
	}
	both(len(as))
	return rejoin(pairs)
}

// rejoin joins steps that both runs have in different places.
func rejoin(pairs []Pair) []Pair {
	alone := map[string]int{}
	for i, p := range pairs {
		if p.A == nil {
			alone[p.B.Key] = i
		}
	}
	taken := map[int]bool{}
	for i := range pairs {
		p := &pairs[i]
		if p.B != nil || p.A == nil {
			continue
		}
		if at, ok := alone[p.A.Key]; ok {
			p.B, taken[at] = pairs[at].B, true
		}
	}
	out := pairs[:0]
	for i, p := range pairs {
		if !taken[i] {
			out = append(out, p)
		}
	}
	return out
}

func keys(steps []Step) []string {
	out := make([]string, len(steps))
	for i := range steps {
		out[i] = steps[i].Key
	}
	return out
}

func (p *Pair) judge() {
	switch {
	case p.B == nil:
		p.Status = OnlyA
		return
	case p.A == nil:
		p.Status = OnlyB
		return
	}
	p.Input = p.changes(p.A.Input, p.B.Input)
	p.Result = p.changes(p.A.Result, p.B.Result)
	p.Status = Same
	if len(p.Input)+len(p.Result) > 0 || p.A.Status != p.B.Status || p.A.Error != p.B.Error || p.A.Note != p.B.Note {
		p.Status = Changed
	}
}

// changes lists what differs in two payloads.
func (p *Pair) changes(a, b json.RawMessage) []Change {
	if bytes.Equal(a, b) {
		return nil
	}
	if len(a) == 0 || len(b) == 0 || len(a) > MaxPayload || len(b) > MaxPayload {
		return []Change{{A: a, B: b}}
	}
	patch, err := jsondiff.CompareJSON(a, b)
	if err != nil {
		return []Change{{A: a, B: b}}
	}
	var out []Change
	for _, op := range patch {
		if len(out) == MaxChanges {
			p.More += len(patch) - MaxChanges
			break
		}
		c := Change{Path: op.Path}
		if op.Type != jsondiff.OperationAdd {
			c.A = asJSON(op.OldValue)
		}
		if op.Type != jsondiff.OperationRemove {
			c.B = asJSON(op.Value)
		}
		out = append(out, c)
	}
	return out
}

func asJSON(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return data
}

// metrics are the figures of both runs in a fixed order.
func metrics(as []Step, a *ace.State, bs []Step, b *ace.State) []Metric {
	var out []Metric
	add := func(name, unit string, of func([]Step, *ace.State) float64) {
		if m := (Metric{name, unit, of(as, a), of(bs, b)}); m.A != 0 || m.B != 0 {
			out = append(out, m)
		}
	}
	add("duration", "ms", func(s []Step, _ *ace.State) float64 { return span(s) })
	add("input tokens", "", func(_ []Step, st *ace.State) float64 { return float64(st.Usage.InputTokens) })
	add("output tokens", "", func(_ []Step, st *ace.State) float64 { return float64(st.Usage.OutputTokens) })
	add("cost", "USD", func(_ []Step, st *ace.State) float64 { return st.Usage.CostUSD })
	for _, kind := range []string{KindActivity, KindTool, KindChild, KindTimer, KindSignal} {
		add(kind+"s", "", func(s []Step, _ *ace.State) float64 { return count(s, func(x Step) bool { return x.Kind == kind }) })
	}
	add("failed steps", "", func(s []Step, _ *ace.State) float64 {
		return count(s, func(x Step) bool { return x.Status == Failed || x.Status == TimedOut })
	})
	add("retries", "", func(s []Step, _ *ace.State) float64 {
		n := 0.0
		for _, x := range s {
			n += float64(max(x.Attempt-1, 0))
		}
		return n
	})
	for _, fate := range []ace.Fate{ace.FateAccepted, ace.FateRejected} {
		add("operations "+string(fate), "", func(_ []Step, st *ace.State) float64 {
			n := 0.0
			for _, op := range st.Operations {
				if op.Fate == fate {
					n++
				}
			}
			return n
		})
	}
	add("bullets", "", func(_ []Step, st *ace.State) float64 { return float64(st.Bullets) })
	return out
}

func count(steps []Step, is func(Step) bool) (n float64) {
	for _, s := range steps {
		if is(s) {
			n++
		}
	}
	return n
}

// span is the time from the first step to the end of the last one in milliseconds.
func span(steps []Step) float64 {
	if len(steps) == 0 {
		return 0
	}
	last := steps[len(steps)-1]
	return float64(last.At.Sub(steps[0].At).Microseconds())/1000 + last.DurationMS
}
