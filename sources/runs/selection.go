package runs

import (
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"

	"acescope/engine/ace"
)

// Names in conditions that the server does not know. They must be joined to other conditions by AND, except
// [SinceCondition] and [UntilCondition].
//
//   - Verdict is the verdict on the answer, such as Verdict = "correct". ExitStatus is success for correct,
//     unlabeled and ungraded answers, so the server only narrows the list to the exit statuses that the
//     verdict can have, and the rows are selected here by the verdict in their memo.
//   - Text is a text that the run mentions; see [Run.Mentions].
//   - CostUSD and Tokens are the cost in US dollars and the number of tokens.
//   - StartedBy is the user who started the run: user@host, or the user alone; [Me] is the user of this
//     process.
//   - Framework, Agent, Model and Calls are what the agents of a run did: names, and the number of requests to
//     models. As tokens and cost, they may be known from the history alone; see [NeedsTraces]. A run of which
//     they are unknown meets no condition on them.
//   - Since and Until are times of [TimeAt]: runs that started then or later, and before. Each request
//     replaces them by conditions on StartTime, so that a saved query stays relative.
//
// The server cannot count runs that are selected by conditions other than Since and Until.
const (
	VerdictCondition = "Verdict"
	TextCondition    = "Text"
	CostCondition    = "CostUSD"
	TokensCondition  = "Tokens"
	ByCondition      = "StartedBy"
	SinceCondition   = "Since"
	UntilCondition   = "Until"

	FrameworkCondition = "Framework"
	AgentCondition     = "Agent"
	ModelCondition     = "Model"
	CallsCondition     = "Calls"
)

// Me is the value of [ByCondition] for the user of this process, so that a saved query fits every user.
const Me = "me"

// selection is a query divided into the server's part and the conditions on the rows to select.
type selection struct {
	server   string
	keep     []func(*Run) bool // all must hold
	traced   bool              // a condition may need the history of a run
	searches bool              // few rows may be left: a condition other than that on the verdict
}

// keeps reports whether a row that the server returned belongs to the list.
func (s selection) keeps(r *Run) bool {
	return !slices.ContainsFunc(s.keep, func(holds func(*Run) bool) bool { return !holds(r) })
}

// of returns the rows that belong to the list.
func (s selection) of(rows []Run) []Run {
	return slices.DeleteFunc(rows, func(r Run) bool { return !s.keeps(&r) })
}

// exact reports whether the server's part selects the same runs as the query.
func (s selection) exact() bool { return len(s.keep) == 0 }

// NeedsTraces reports whether a query asks for what agents did, which only the histories of some runs say.
// They must be read before the query selects among these runs.
func NeedsTraces(query string) bool {
	s, err := divide(query)
	return err == nil && s.traced
}

// divide divides a query.
func divide(query string) (selection, error) {
	s := selection{server: query}
	e, err := parse(query)
	if err != nil {
		// The server reports it, unless it would not know a name.
		for _, t := range tokensOf(query) {
			if localOf(t.text) != nil {
				return s, serviceerror.NewInvalidArgument("it has " + err.Error())
			}
		}
		return s, nil
	}
	server, err := s.take(e)
	if len(s.keep) > 0 {
		s.server = server
	}
	return s, err
}

// take takes the conditions that the rows must meet, and returns what the server can evaluate.
func (s *selection) take(e expr) (server string, err error) {
	switch e.join {
	case "":
		if l := localOf(e.name); l != nil {
			return s.takeLocal(l, e)
		}
	case "(":
		if server, err = s.take(e.parts[0]); server != "" {
			server = "(" + server + ")"
		}
		return server, err
	case "AND":
		var parts []string
		for _, part := range e.parts {
			if server, err = s.take(part); err != nil {
				return "", err
			}
			if server != "" {
				parts = append(parts, server)
			}
		}
		return strings.Join(parts, " AND "), nil
	default:
		e.conditions(func(c expr) {
			if l := localOf(c.name); l != nil && err == nil {
				err = serviceerror.NewInvalidArgumentf("%s can only be joined to other conditions by AND",
					l.name)
			}
		})
	}
	return e.text, err
}

func (s *selection) takeLocal(l *local, e expr) (server string, err error) {
	holds := l.holds(e.comparison)
	if holds == nil {
		if l.name == VerdictCondition && e.oneOf() && len(e.texts()) > 0 {
			return e.text, nil // the server reports the error
		}
		_, rest, _ := strings.Cut(e.text, e.name)
		return "", serviceerror.NewInvalidArgumentf("%s needs %s, not %s", l.name, l.needs,
			strings.TrimLeft(rest, "` "))
	}
	s.keep = append(s.keep, holds)
	s.traced = s.traced || l.traced
	if l.name != VerdictCondition {
		s.searches = true
	} else if !e.negated() {
		var verdicts []ace.Verdict
		for _, v := range e.texts() {
			verdicts = append(verdicts, ace.Verdict(v))
		}
		server = equals(ace.AttrExit, "=", exitsOf(verdicts))
	}
	return server, nil
}

// negated reports whether an operator is != or NOT.
func (c comparison) negated() bool { return c.op == "!=" || strings.HasPrefix(c.op, "NOT ") }

// oneOf reports whether the condition holds for the values, or for all others.
func (c comparison) oneOf() bool { return slices.Contains([]string{"=", "!=", "IN", "NOT IN"}, c.op) }

// local is a name that only this process knows. holds returns nil for an operator or a value that the
// condition cannot have.
type local struct {
	name, needs string
	traced      bool // may need the history
	holds       func(comparison) func(*Run) bool
}

const (
	needsNames  = "=, !=, IN or NOT IN and quoted names"
	needsAmount = "<, <=, =, >= or > and an amount"
)

var locals = []local{
	{VerdictCondition, needsNames, false, holdsVerdict},
	{TextCondition, "= or != and a quoted text", false, holdsText},
	{ByCondition, needsNames, false, holdsBy},
	{FrameworkCondition, needsNames, true, holdsName((*Run).Frameworks)},
	{AgentCondition, needsNames, true, holdsName((*Run).Agents)},
	{ModelCondition, needsNames, true, holdsName((*Run).Models)},
	{CostCondition, needsAmount, true, holdsAmount(costOf)},
	{TokensCondition, needsAmount, true, holdsAmount(counted((*Run).Tokens))},
	{CallsCondition, needsAmount, true, holdsAmount(counted((*Run).Calls))},
}

func localOf(name string) *local {
	i := slices.IndexFunc(locals, func(l local) bool { return strings.EqualFold(l.name, name) })
	if i < 0 {
		return nil
	}
	return &locals[i]
}

// counted returns a sum of a run, whether any part of it is known, and whether all of it is.
func counted(of func(*Run) Figure) func(*Run) (n float64, known, all bool) {
	return func(r *Run) (n float64, known, all bool) {
		f := of(r)
		return float64(f.N), f.Known, f.Known && !f.Partial
	}
}

// costOf returns the cost of a run, as [counted] does.
func costOf(r *Run) (n float64, known, all bool) {
	if r.Summary != nil {
		n, known, all = r.Summary.Usage.CostUSD, true, !r.Summary.Usage.Unpriced
	}
	if r.Trace == nil {
		return n, known, all
	}
	return max(n, r.Trace.Sum.Cost), true, r.Trace.Sum.Unpriced == 0 && (all || r.Summary == nil)
}

func holdsVerdict(c comparison) func(*Run) bool {
	values := c.texts()
	unknown := func(v string) bool { return !slices.Contains(ace.Verdicts(), ace.Verdict(v)) }
	if !c.oneOf() || len(values) == 0 || slices.ContainsFunc(values, unknown) {
		return nil
	}
	return func(r *Run) bool { return slices.Contains(values, string(r.Verdict)) != c.negated() }
}

func holdsText(c comparison) func(*Run) bool {
	values := c.texts()
	if len(values) == 0 || c.op != "=" && c.op != "!=" {
		return nil
	}
	part := strings.ToLower(values[0])
	return func(r *Run) bool { return r.Mentions(part) != c.negated() }
}

func holdsBy(c comparison) func(*Run) bool {
	values := c.texts()
	if !c.oneOf() || len(values) == 0 {
		return nil
	}
	me := ace.User()
	return func(r *Run) bool {
		return slices.ContainsFunc(values, func(v string) bool { return r.startedBy(v, me) }) != c.negated()
	}
}

// holdsName tests names, of which those that are "" are unknown.
func holdsName(of func(*Run) []string) func(comparison) func(*Run) bool {
	return func(c comparison) func(*Run) bool {
		values := c.texts()
		if len(values) == 0 || strings.ContainsAny(c.op, "<>") {
			return nil
		}
		prefix := strings.HasSuffix(c.op, "STARTS_WITH")
		return func(r *Run) bool {
			names := slices.DeleteFunc(of(r), func(n string) bool { return n == "" })
			return len(names) > 0 && slices.ContainsFunc(names, func(n string) bool {
				return slices.Contains(values, n) || prefix && strings.HasPrefix(n, values[0])
			}) != c.negated()
		}
	}
}

// holdsAmount tests an amount. Of an amount that is not all known, the known part is the least that it can be.
func holdsAmount(of func(*Run) (n float64, known, all bool)) func(comparison) func(*Run) bool {
	return func(c comparison) func(*Run) bool {
		if len(c.values) != 1 {
			return nil
		}
		bound, ok := numberOf(c.values[0].text)
		if !ok {
			return nil
		}
		switch op := c.op; op {
		case ">", ">=":
			return func(r *Run) bool {
				n, known, _ := of(r)
				return known && (n > bound || n == bound && op == ">=")
			}
		case "<", "<=", "=":
			return func(r *Run) bool {
				n, _, all := of(r)
				return all && (n == bound && op != "<" || n < bound && op != "=")
			}
		}
		return nil
	}
}

// startedBy reports whether a user started the run. A name without a machine matches the user on every
// machine; some runs record no machine.
func (r *Run) startedBy(name, me string) bool {
	if name == Me {
		name = me
	}
	user, machine, _ := strings.Cut(r.By, "@")
	wanted, on, _ := strings.Cut(name, "@")
	return user != "" && strings.EqualFold(user, wanted) &&
		(machine == "" || on == "" || strings.EqualFold(machine, on))
}

// exitsOf returns the exit statuses that completed runs with one of the verdicts have.
func exitsOf(verdicts []ace.Verdict) (exits []ace.ExitStatus) {
	for _, v := range verdicts {
		if e := ace.ExitOf(ace.Completed, v); !slices.Contains(exits, e) {
			exits = append(exits, e)
		}
	}
	return exits
}

// withTimes replaces the conditions on relative times by conditions on the start time. An invalid time stays,
// so that the server reports it.
func withTimes(query string, now time.Time) string {
	e, err := parse(query)
	if err != nil {
		return query
	}
	var out strings.Builder
	end := 0
	e.conditions(func(c expr) {
		until := strings.EqualFold(c.name, UntilCondition)
		values := c.texts()
		if c.op != "=" || len(values) == 0 || !until && !strings.EqualFold(c.name, SinceCondition) {
			return
		}
		at, err := TimeAt(values[0], now)
		if err != nil {
			return
		}
		op := " >= "
		if until {
			op = " < "
		}
		out.WriteString(query[end:c.at] + "StartTime" + op + Quote(at.UTC().Format(time.RFC3339)))
		end = c.at + len(c.text)
	})
	return out.String() + query[end:]
}
