package runner

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// carried is a table as it goes from one run of the dispatcher to the next. What there is
// much of stands in columns, which compress to less than half of what rows do.
type carried struct {
	Runs    int            `json:"runs"`
	At      time.Time      `json:"at"`
	Asked   int64          `json:"asked"`
	Claims  int64          `json:"claims"`
	Ticks   int64          `json:"ticks"`
	Counts  Counts         `json:"counts"`
	Runners []carriedRow   `json:"runners"`
	Groups  []carriedGroup `json:"groups"`
	Waits   columns        `json:"waits"`
	Holds   columns        `json:"holds"`
	Untold  Answers        `json:"untold,omitempty"`
	// Suspects have ended without a word.
	Suspects []Request `json:"suspects,omitempty"`
}

type carriedRow struct {
	Registration Registration `json:"registration"`
	Epoch        int64        `json:"epoch"`
	Queue        string       `json:"queue"`
	Stale        bool         `json:"stale,omitempty"`
	Draining     bool         `json:"draining,omitempty"`
	Gone         bool         `json:"gone,omitempty"`
	Since        time.Time    `json:"since"`
	Tick         int64        `json:"tick"`
	Done         int64        `json:"done"`
}

type carriedGroup struct {
	Demands Demands  `json:"demands"`
	Avoid   []string `json:"avoid,omitempty"`
}

// columns are requests, the nth of each column together. Times are nanoseconds after the one
// before, and sequences likewise.
type columns struct {
	Run       []string `json:"run"`
	Execution []string `json:"execution"`
	Deadline  []int64  `json:"deadline"`
	Since     []int64  `json:"since"`
	Seq       []int64  `json:"seq"` // of those that wait; of the others the claim
	Group     []int    `json:"group"`
	Try       []int    `json:"try"`
	Parent    []string `json:"parent"`
	Name      []string `json:"name"`
	Runner    []int    `json:"runner,omitempty"` // of those that were given to one
	Slot      []bool   `json:"slot,omitempty"`

	last struct{ deadline, since, seq int64 }
}

func (c *columns) add(req Request, since time.Time, seq int64, group int) {
	deadline, at := nanos(req.Deadline), nanos(since)
	c.Run = append(c.Run, req.RunID)
	c.Execution = append(c.Execution, req.Execution)
	c.Deadline = append(c.Deadline, deadline-c.last.deadline)
	c.Since = append(c.Since, at-c.last.since)
	c.Seq = append(c.Seq, seq-c.last.seq)
	c.Group = append(c.Group, group)
	c.Try = append(c.Try, req.Try)
	c.Parent = append(c.Parent, req.Parent)
	c.Name = append(c.Name, req.Name)
	c.last.deadline, c.last.since, c.last.seq = deadline, at, seq
}

// nanos and fromNanos keep a time; the zero time is 0.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// each calls fn with each request.
func (c *columns) each(groups []carriedGroup, fn func(i int, req Request, since time.Time, seq int64)) error {
	n := len(c.Run)
	for _, l := range []int{len(c.Execution), len(c.Deadline), len(c.Since), len(c.Seq), len(c.Group), len(c.Try), len(c.Parent), len(c.Name)} {
		if l != n {
			return fmt.Errorf("columns of %d and %d", n, l)
		}
	}
	var deadline, since, seq int64
	for i := range n {
		deadline, since, seq = deadline+c.Deadline[i], since+c.Since[i], seq+c.Seq[i]
		if g := c.Group[i]; g < 0 || g >= len(groups) {
			return fmt.Errorf("no group %d", g)
		}
		g := groups[c.Group[i]]
		fn(i, Request{RunID: c.Run[i], Execution: c.Execution[i], Demands: g.Demands, Deadline: fromNanos(deadline), Parent: c.Parent[i],
			Name: c.Name[i], Try: c.Try[i], Avoid: g.Avoid}, fromNanos(since), seq)
	}
	return nil
}

// grouping numbers groups as they come.
type grouping struct {
	c  *carried
	by map[string]int
}

func (g *grouping) of(req Request) int {
	avoid := avoided(req.Avoid)
	key := keyOf(req.Demands, avoid)
	n, ok := g.by[key]
	if !ok {
		n = len(g.c.Groups)
		g.by[key] = n
		g.c.Groups = append(g.c.Groups, carriedGroup{req.Demands, avoid})
	}
	return n
}

// Carry is the table, compressed, for the next run of the dispatcher, which is the nth.
// untold are answers that did not reach their runs so far. The same table gives the same
// bytes.
func (t *Table) Carry(runs int, untold Answers) ([]byte, error) {
	c := carried{Runs: runs, At: t.at, Asked: t.asked, Claims: t.claims, Ticks: t.ticks, Counts: t.count, Suspects: t.suspects,
		Untold: append(untold[:len(untold):len(untold)], t.out...)}
	g := grouping{&c, map[string]int{}}
	for i, r := range t.rows {
		c.Runners = append(c.Runners, carriedRow{r.reg, r.epoch, r.queue, r.stale, r.draining, r.gone, r.since, r.tick, r.done})
		for _, h := range r.held {
			c.Holds.add(h.req, h.since, h.claim, g.of(h.req))
			c.Holds.Runner = append(c.Holds.Runner, i)
			c.Holds.Slot = append(c.Holds.Slot, h.slot)
		}
	}
	for _, w := range t.bySeq() {
		c.Waits.add(w.req, w.since, w.seq, g.of(w.req))
	}
	return pack(c)
}

// Restore is the table that was carried, and the number of the run. Nothing carried is an
// empty table.
func Restore(data []byte) (*Table, int, error) {
	t := NewTable()
	if len(data) == 0 {
		return t, 1, nil
	}
	var c carried
	if err := unpack(data, &c); err != nil {
		return nil, 0, fmt.Errorf("the table that was carried: %w", err)
	}
	if err := t.fill(c); err != nil {
		return nil, 0, fmt.Errorf("the table that was carried: %w", err)
	}
	return t, c.Runs, nil
}

func (t *Table) fill(c carried) error {
	t.at, t.asked, t.claims, t.ticks, t.count, t.out, t.suspects = c.At, c.Asked, c.Claims, c.Ticks, c.Counts, c.Untold, c.Suspects
	for _, k := range c.Runners {
		r := t.addRow(k.Registration.ID)
		r.reg, r.offer, r.epoch, r.queue = k.Registration, k.Registration.Capabilities.normal(), k.Epoch, k.Queue
		r.stale, r.draining, r.gone, r.since, r.tick, r.done = k.Stale, k.Draining, k.Gone, k.Since, k.Tick, k.Done
		t.offers += size(r.offer)
		t.weigh(r)
	}
	if len(c.Holds.Runner) != len(c.Holds.Run) || len(c.Holds.Slot) != len(c.Holds.Run) {
		return errors.New("columns of different lengths")
	}
	if err := c.Holds.each(c.Groups, func(i int, req Request, since time.Time, claim int64) {
		if n := c.Holds.Runner[i]; n >= 0 && n < len(t.rows) {
			t.hold(&hold{req: req, row: t.rows[n], claim: claim, slot: c.Holds.Slot[i], since: since})
			t.weigh(t.rows[n])
		}
	}); err != nil {
		return err
	}
	return c.Waits.each(c.Groups, func(_ int, req Request, since time.Time, seq int64) {
		if g := t.groupOf(req); g != nil {
			t.addWait(&wait{req: req, seq: seq, since: since, group: g})
		}
	})
}

func pack(c carried) ([]byte, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// maxUnpacked bounds what a table that was carried unpacks to.
const maxUnpacked = 64 << 20

func unpack(data []byte, c *carried) error {
	r := flate.NewReader(bytes.NewReader(data))
	text, err := io.ReadAll(io.LimitReader(r, maxUnpacked))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, c)
}
