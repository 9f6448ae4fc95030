package runs

import (
	"regexp"
	"slices"
	"strconv"
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
)

// Me is the value of [ByCondition] for the user of this process, so that a saved query fits every user.
const Me = "me"

// selection is a query divided into the server's part and the conditions on the rows to select.
type selection struct {
	server   string
	keep     []func(*Run) bool // all must hold
	searches bool              // few rows may be left: a condition other than that on the verdict
}

// keeps reports whether a row that the server returned belongs to the list.
func (s selection) keeps(r *Run) bool {
	return !slices.ContainsFunc(s.keep, func(keep func(*Run) bool) bool { return !keep(r) })
}

// of returns the rows that belong to the list.
func (s selection) of(rows []Run) []Run {
	return slices.DeleteFunc(rows, func(r Run) bool { return !s.keeps(&r) })
}

// exact reports whether the server's part selects the same runs as the query.
func (s selection) exact() bool { return len(s.keep) == 0 }

const localNames = `(` + VerdictCondition + `|` + TextCondition + `|` + CostCondition + `|` +
	TokensCondition + `|` +
	ByCondition + `)`

var (
	localCondition = regexp.MustCompile(`(?is)^` + localNames +
		`\s*(>=|<=|!=|=|>|<|\bIN\b|\bNOT\s+IN\b)\s*(.*)$`)
	localAt = regexp.MustCompile(`(?i)\b` + localNames + `\s*(!?=|[<>]|(NOT\s+)?IN\b)`)
)

// divide divides a query.
func divide(query string) (selection, error) {
	s := selection{server: query}
	local := localAt.FindStringSubmatch(quotedText.ReplaceAllString(query, "q"))
	if local == nil {
		return s, nil
	}
	parts, obstacle := conditions(query)
	switch obstacle {
	case "":
	case notJoined:
		return s, serviceerror.NewInvalidArgumentf("%s can only be joined to other conditions by AND",
			local[1])
	default:
		return s, serviceerror.NewInvalidArgument("it has " + obstacle)
	}
	var server []string
	for _, part := range parts {
		if strings.HasPrefix(part, "(") && strings.HasSuffix(part, ")") {
			inner, err := divide(part[1 : len(part)-1])
			if err != nil {
				return s, err
			}
			s.keep = append(s.keep, inner.keep...)
			s.searches = s.searches || inner.searches
			if inner.server != "" {
				server = append(server, "("+inner.server+")")
			}
			continue
		}
		rest, err := s.take(part)
		if err != nil {
			return s, err
		}
		if rest != "" {
			server = append(server, rest)
		}
	}
	if len(s.keep) > 0 {
		s.server = strings.Join(server, " AND ")
	}
	return s, nil
}

// take takes a condition that the rows must meet, and returns what the server can evaluate of it.
func (s *selection) take(condition string) (server string, err error) {
	m := localCondition.FindStringSubmatch(condition)
	if m == nil {
		return condition, nil
	}
	op, operand := strings.ToUpper(m[2]), strings.TrimSpace(m[3])
	switch {
	case strings.EqualFold(m[1], VerdictCondition):
		return s.takeVerdict(condition, op, operand)
	case strings.EqualFold(m[1], TextCondition):
		err = s.takeText(op, operand)
	case strings.EqualFold(m[1], ByCondition):
		err = s.takeBy(op, operand)
	case strings.EqualFold(m[1], TokensCondition):
		err = s.takeAmount(TokensCondition, op, operand,
			func(u ace.Usage) float64 { return float64(u.InputTokens + u.OutputTokens) })
	default:
		err = s.takeAmount(CostCondition, op, operand, func(u ace.Usage) float64 { return u.CostUSD })
	}
	return "", err
}

// negated reports whether an operator is != or NOT IN.
func negated(op string) bool { return strings.HasPrefix(op, "!") || strings.HasPrefix(op, "N") }

func (s *selection) takeVerdict(condition, op, operand string) (server string, err error) {
	var verdicts []ace.Verdict
	for _, quoted := range quotedText.FindAllString(operand, -1) {
		v := ace.Verdict(quoted[1 : len(quoted)-1])
		if !slices.Contains(ace.Verdicts(), v) {
			return condition, nil // the server reports the error
		}
		verdicts = append(verdicts, v)
	}
	if len(verdicts) == 0 {
		return condition, nil
	}
	is := !negated(op)
	s.keep = append(s.keep, func(r *Run) bool { return slices.Contains(verdicts, r.Verdict) == is })
	if is {
		server = equals(ace.AttrExit, "=", exitsOf(verdicts))
	}
	return server, nil
}

func (s *selection) takeText(op, operand string) error {
	quoted := quotedText.FindString(operand)
	if quoted == "" || quoted != operand || op != "=" && op != "!=" {
		return serviceerror.NewInvalidArgumentf(`%s needs = or != and a quoted text, not %s %s`,
			TextCondition, op, operand)
	}
	part := strings.ToLower(unquote(quoted))
	s.keep = append(s.keep, func(r *Run) bool { return r.Mentions(part) == (op == "=") })
	s.searches = true
	return nil
}

func (s *selection) takeBy(op, operand string) error {
	var names []string
	for _, quoted := range quotedText.FindAllString(operand, -1) {
		names = append(names, unquote(quoted))
	}
	if len(names) == 0 || strings.ContainsAny(op, "<>") {
		return serviceerror.NewInvalidArgumentf(`%s needs =, !=, IN or NOT IN and quoted names, not %s %s`,
			ByCondition, op,
			operand)
	}
	me := ace.User()
	s.keep = append(s.keep, func(r *Run) bool {
		return slices.ContainsFunc(names,
			func(name string) bool { return r.startedBy(name, me) }) != negated(op)
	})
	s.searches = true
	return nil
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

func (s *selection) takeAmount(name, op, operand string, of func(ace.Usage) float64) error {
	bound, err := strconv.ParseFloat(operand, 64)
	if err != nil || !strings.ContainsAny(op, "<>=") || op == "!=" {
		return serviceerror.NewInvalidArgumentf("%s needs <, <=, =, >= or > and an amount, not %s %s", name,
			op, operand)
	}
	s.keep = append(s.keep, func(r *Run) bool {
		if r.Summary == nil {
			return false
		}
		switch amount := of(r.Summary.Usage); op {
		case "<":
			return amount < bound
		case "<=":
			return amount <= bound
		case "=":
			return amount == bound
		case ">=":
			return amount >= bound
		default:
			return amount > bound
		}
	})
	s.searches = true
	return nil
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

// timeAt matches conditions on relative times, and quoted texts, which may look like one.
var timeAt = regexp.MustCompile(quotedText.String() +
	`|(?i:\b(` + SinceCondition + `|` + UntilCondition + `))\s*=\s*(?:"([^"\\]*)"|'([^'\\]*)')`)

// withTimes replaces the conditions on relative times by conditions on the start time. An invalid time stays,
// so that the server reports it.
func withTimes(query string, now time.Time) string {
	return timeAt.ReplaceAllStringFunc(query, func(part string) string {
		m := timeAt.FindStringSubmatch(part)
		at, err := TimeAt(m[2]+m[3], now)
		if m[1] == "" || err != nil {
			return part
		}
		op := " >= "
		if strings.EqualFold(m[1], UntilCondition) {
			op = " < "
		}
		return "StartTime" + op + Quote(at.UTC().Format(time.RFC3339))
	})
}
