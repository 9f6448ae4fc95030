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

// carried is the table that one run of the dispatcher's workflow passes to the next. The runs in it are
// stored as columns, which compress to less than half the size of rows.
type carried struct {
	Runs        int            `json:"runs"`
	At          time.Time      `json:"at"`
	Asked       int64          `json:"asked"`
	Claims      int64          `json:"claims"`
	Ticks       int64          `json:"ticks"`
	Counts      Counts         `json:"counts"`
	Runners     []record       `json:"runners"`
	Groups      []carriedGroup `json:"groups"`
	Waits       columns        `json:"waits"`
	Holds       columns        `json:"holds"`
	Undelivered Answers        `json:"untold,omitempty"`
	Suspects    []Request      `json:"suspects,omitempty"`

	numbers map[string]int // of the groups, by key
}

type carriedGroup struct {
	Requirements Requirements `json:"demands"`
	Avoid        []string     `json:"avoid,omitempty"`
}

// groupNumber returns the number of a request's group. It adds a new group.
func (c *carried) groupNumber(req Request) int {
	avoid := avoided(req.Avoid)
	key := groupKey(req.Requirements, avoid)
	n, ok := c.numbers[key]
	if !ok {
		n = len(c.Groups)
		c.numbers[key] = n
		c.Groups = append(c.Groups, carriedGroup{req.Requirements, avoid})
	}
	return n
}

// columns holds requests; the values of one request have the same index. Times and sequence numbers are
// stored as differences from the previous request, times in nanoseconds.
type columns struct {
	Run       []string `json:"run"`
	Execution []string `json:"execution"`
	Deadline  []int64  `json:"deadline"`
	Since     []int64  `json:"since"`
	Seq       []int64  `json:"seq"` // of waiting runs; the claims of held runs
	Group     []int    `json:"group"`
	Try       []int    `json:"try"`
	Parent    []string `json:"parent"`
	Name      []string `json:"name"`
	Runner    []int    `json:"runner,omitempty"` // of held runs
	Slot      []bool   `json:"slot,omitempty"`   // of held runs

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

// each calls fn with each request.
func (c *columns) each(groups []carriedGroup, fn func(i int, req Request, since time.Time, seq int64)) error {
	n := len(c.Run)
	for _, l := range []int{len(c.Execution), len(c.Deadline), len(c.Since), len(c.Seq), len(c.Group),
		len(c.Try), len(c.Parent), len(c.Name)} {
		if l != n {
			return fmt.Errorf("columns of %d and %d", n, l)
		}
	}
	var deadline, since, seq int64
	for i := range n {
		deadline += c.Deadline[i]
		since += c.Since[i]
		seq += c.Seq[i]
		if g := c.Group[i]; g < 0 || g >= len(groups) {
			return fmt.Errorf("no group %d", g)
		}
		g := groups[c.Group[i]]
		fn(i, Request{RunID: c.Run[i], Execution: c.Execution[i], Requirements: g.Requirements,
			Deadline: fromNanos(deadline), Parent: c.Parent[i], Name: c.Name[i], Try: c.Try[i],
			Avoid: g.Avoid},
			fromNanos(since), seq)
	}
	return nil
}

// nanos returns the Unix time in nanoseconds, or 0 for the zero time.
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

// Carry returns the compressed table for the given run of the dispatcher. undelivered are answers
// that did not reach their runs. Equal tables give equal bytes.
func (t *Table) Carry(runs int, undelivered Answers) ([]byte, error) {
	c := carried{Runs: runs, At: t.at, Asked: t.queue.asked, Claims: t.claims, Ticks: t.roster.ticks,
		Counts: t.count, Suspects: t.suspects,
		Undelivered: append(undelivered[:len(undelivered):len(undelivered)], t.out...),
		numbers:     map[string]int{}}
	for i, r := range t.roster.rows {
		c.Runners = append(c.Runners, r.record)
		for _, h := range r.held {
			c.Holds.add(h.req, h.since, h.claim, c.groupNumber(h.req))
			c.Holds.Runner = append(c.Holds.Runner, i)
			c.Holds.Slot = append(c.Holds.Slot, h.slot)
		}
	}
	for _, w := range t.queue.sorted() {
		c.Waits.add(w.req, w.since, w.seq, c.groupNumber(w.req))
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(data)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// maxUnpacked bounds the size of an uncompressed table.
const maxUnpacked = 64 << 20

// Restore returns the table and the number of the dispatcher's run that were passed to Carry. Without data it
// returns an empty table and run 1.
func Restore(data []byte) (*Table, int, error) {
	t := NewTable()
	if len(data) == 0 {
		return t, 1, nil
	}
	var c carried
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), maxUnpacked))
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err == nil {
		err = t.fill(c)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the carried table: %w", err)
	}
	return t, c.Runs, nil
}

func (t *Table) fill(c carried) error {
	t.at = c.At
	t.queue.asked = c.Asked
	t.claims = c.Claims
	t.roster.ticks = c.Ticks
	t.count = c.Counts
	t.out = c.Undelivered
	t.suspects = c.Suspects
	for _, k := range c.Runners {
		r := t.roster.add(k.Registration.ID)
		r.record = k
		t.roster.setRegistration(r, k.Registration)
		t.roster.update(r)
	}
	if len(c.Holds.Runner) != len(c.Holds.Run) || len(c.Holds.Slot) != len(c.Holds.Run) {
		return errors.New("columns of different lengths")
	}
	err := c.Holds.each(c.Groups, func(i int, req Request, since time.Time, claim int64) {
		if n := c.Holds.Runner[i]; n >= 0 && n < len(t.roster.rows) {
			r := t.roster.rows[n]
			t.hold(&hold{req: req, row: r, claim: claim, slot: c.Holds.Slot[i], since: since})
			t.roster.update(r)
		}
	})
	if err != nil {
		return err
	}
	return c.Waits.each(c.Groups, func(_ int, req Request, since time.Time, seq int64) {
		if g := t.queue.group(req); g != nil {
			t.queue.add(&wait{req: req, seq: seq, since: since, group: g})
		}
	})
}
