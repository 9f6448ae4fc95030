package transcripts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/transcript"
)

// By is the unit by which the usage of sessions is summed up.
type By string

// Values of By.
const (
	ByDay        By = "day"
	ByWeek       By = "week" // of ISO 8601
	ByMonth      By = "month"
	ByModel      By = "model"
	ByAgent      By = "agent"
	ByProject    By = "project"
	ByExperiment By = "experiment" // or flow, of the runs of [RunsAgent]
	BySession    By = "session"
)

// RunsAgent is the agent of sessions that stand for runs.
const RunsAgent agentcli.CLI = "acescope"

// Bys returns all values.
func Bys() []By {
	return []By{ByDay, ByWeek, ByMonth, ByModel, ByAgent, ByProject, ByExperiment, BySession}
}

// IsTime reports whether rows stand for days, weeks or months.
func (b By) IsTime() bool { return b == ByDay || b == ByWeek || b == ByMonth }

// Period returns the day, the ISO week ("2026-W47") or the month ("2026-11") of a day; "" for "".
func (b By) Period(day string) string {
	at, err := time.Parse(time.DateOnly, day)
	switch {
	case err != nil:
		return ""
	case b == ByWeek:
		year, week := at.ISOWeek()
		return fmt.Sprintf("%04d-W%02d", year, week)
	case b == ByMonth:
		return at.Format("2006-01")
	}
	return day
}

// Today returns the current day of the local time zone.
func Today(now time.Time) string { return now.Local().Format(time.DateOnly) }

// CostQuery selects usage. Empty fields select everything.
type CostQuery struct {
	Since, Until string // first and last day, as 2006-01-02; usage without a day is not selected
	Agent        string
	Project      string // part of the directory
	Model        string // part of the model's name
	// By and Key select the usage of a row, by its key, the path for a session. The zero By selects
	// everything.
	By  By
	Key string
}

// selects leaves out copies of transcripts of other machines, because which of them are here is arbitrary.
func (q CostQuery) selects(s *Session) bool {
	return s.Machine == "" && (q.Agent == "" || q.Agent == string(s.Agent)) &&
		strings.Contains(s.Dir(), q.Project)
}

func (q CostQuery) selectsDay(s *Session, d transcript.DayUse) bool {
	return d.Day >= q.Since && (q.Until == "" || d.Day != "" && d.Day <= q.Until) &&
		strings.Contains(d.Model, q.Model) && (q.By == "" || q.By.key(s, d) == q.Key)
}

// Cost is the usage of a day, a model or another [By]. Calls are not counted. Texts are untrusted.
type Cost struct {
	Key     string   // the day, model, directory or session and so on; "" for usage without one
	Keys    []string // one for each By
	Name    string   // of a session
	Path    string   // of a session
	Project string   // of a session: its directory
	transcript.Totals
	Sessions       int
	Models         []string // in alphabetical order
	UnpricedModels []string
	First, Last    string // days

	counted *Session // the last one
}

// Known reports whether the cost is known at least in part.
func (c Cost) Known() bool { return c.Unpriced == 0 || c.Priced > 0 }

// Current returns the usage of the day, week or month of now.
func Current(sessions []*Session, by By, now time.Time) Cost {
	_, total := Costs(sessions, by, CostQuery{By: by, Key: by.Period(Today(now))})
	return total
}

// Costs sums up usage, each message once. Days, weeks and months are in order; of other rows, the most
// expensive one is first.
func Costs(sessions []*Session, by By, q CostQuery) (rows []Cost, total Cost) {
	return CostsBy(sessions, []By{by}, q)
}

// CostsBy is like [Costs] with a row for each combination of the keys. Rows with several keys are in their
// order.
func CostsBy(sessions []*Session, by []By, q CostQuery) (rows []Cost, total Cost) {
	sums := map[string]*Cost{}
	for _, s := range sessions {
		if !q.selects(s) {
			continue
		}
		for _, d := range s.days() {
			if !q.selectsDay(s, d) {
				continue
			}
			var id string
			for _, b := range by {
				id += b.key(s, d) + "\x00"
			}
			c := sums[id]
			if c == nil {
				c = newCost(s, d, by)
				sums[id] = c
			}
			c.add(s, d)
			total.add(s, d)
		}
	}
	for _, c := range sums {
		rows = append(rows, c.sorted())
	}
	slices.SortFunc(rows, func(a, b Cost) int {
		if len(by) > 1 || by[0].IsTime() {
			return slices.Compare(a.Keys, b.Keys)
		}
		return cmp.Or(cmp.Compare(b.CostUSD, a.CostUSD), cmp.Compare(b.Unpriced, a.Unpriced),
			strings.Compare(a.Key, b.Key), strings.Compare(a.Path, b.Path))
	})
	return rows, total.sorted()
}

func newCost(s *Session, d transcript.DayUse, by []By) *Cost {
	c := &Cost{Keys: make([]string, len(by))}
	for i, b := range by {
		c.Keys[i] = b.key(s, d)
		if b == BySession {
			c.Keys[i] = s.ID
			c.Name, c.Path, c.Project = s.Name(), s.Path, s.Dir()
		}
	}
	c.Key = c.Keys[0]
	return c
}

// key returns what identifies the row of a usage.
func (b By) key(s *Session, d transcript.DayUse) string {
	switch b {
	case ByModel:
		return d.Model
	case ByAgent:
		return string(s.Agent)
	case ByProject:
		return s.Dir()
	case ByExperiment:
		if s.Agent != RunsAgent {
			return ""
		}
		return s.Dir()
	case BySession:
		return s.Path
	}
	return b.Period(d.Day)
}

func (c *Cost) add(s *Session, d transcript.DayUse) {
	if c.counted != s {
		c.counted = s
		c.Sessions++
	}
	c.Tokens = c.Tokens.Add(d.Tokens)
	c.CostUSD += d.CostUSD
	if d.Priced {
		c.Priced += d.Tokens.Total()
	} else {
		c.Unpriced += d.Tokens.Total()
		c.UnpricedModels = include(c.UnpricedModels, d.Model)
	}
	c.Models = include(c.Models, d.Model)
	if d.Day != "" && (c.First == "" || d.Day < c.First) {
		c.First = d.Day
	}
	c.Last = max(c.Last, d.Day)
}

func include(names []string, name string) []string {
	if name == "" || slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

func (c *Cost) sorted() Cost {
	c.counted = nil
	slices.Sort(c.Models)
	slices.Sort(c.UnpricedModels)
	c.CostUSD = roundUSD(c.CostUSD)
	return *c
}
