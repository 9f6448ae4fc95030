package transcripts

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"acescope/engine/agents/price"
	"acescope/engine/agents/transcript/transcripttest"
)

// setZone sets the local time zone for a test.
func setZone(t *testing.T, name string) {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	before := time.Local
	time.Local = zone
	t.Cleanup(func() { time.Local = before })
}

// answer is a line of an answer with 1000 input tokens.
type answer struct {
	id      string // of the line
	message string // by default that of the line
	at      string // RFC 3339
	model   string // by default claude-opus-5-5, at 4 USD per million input tokens
	agent   string
	output  int
}

func (a answer) String() string {
	model, message := a.model, a.message
	if model == "" {
		model = "claude-opus-5-5"
	}
	if message == "" {
		message = "m" + a.id
	}
	side := ""
	if a.agent != "" {
		side = fmt.Sprintf(`"isSidechain":true,"agentId":%q,`, a.agent)
	}
	return fmt.Sprintf(`{"type":"assistant",%s"uuid":%q,"timestamp":%q,"cwd":"/home/user/shop","message":{"id":%q,`+
		`"model":%q,"content":[{"type":"text","text":"x"}],"stop_reason":"end_turn",`+
		`"usage":{"input_tokens":1000,"output_tokens":%d}}}`+"\n", side, a.id, a.at, message, model, a.output)
}

func lines(list ...answer) (s string) {
	for _, a := range list {
		s += a.String()
	}
	return s
}

// rowTexts returns keys with input and output tokens, micro-dollars and sessions.
func rowTexts(rows ...Cost) (list []string) {
	for _, c := range rows {
		list = append(list, fmt.Sprintf("%s %d+%d $%.0f/%d", c.Key, c.Tokens.Input, c.Tokens.Output,
			c.CostUSD*1e6,
			c.Sessions))
	}
	return list
}

func checkRows(t *testing.T, what string, got []Cost, want ...string) {
	t.Helper()
	if texts := rowTexts(got...); !slices.Equal(texts, want) {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(texts, "\n"), strings.Join(want, "\n"))
	}
}

// costFiles writes a session with a subagent, a copy of both in another directory, a fork, and another
// session.
func costFiles(t *testing.T) Options {
	dir := t.TempDir()
	shop, copied := filepath.Join(dir, "projects", "-home-user-shop"),
		filepath.Join(dir, "projects", "-backup")
	shared := []answer{{id: "a1", at: "2026-03-28T22:59:59Z"}, {id: "a2", at: "2026-03-28T23:00:00Z"}}
	original := lines(append(shared,
		answer{id: "a3", at: "2026-03-29T21:59:59Z"},
		// the same message has grown
		answer{id: "a4", message: "ma3", at: "2026-03-29T21:59:59.5Z", output: 50},
		answer{id: "a5", message: "ma3", at: "2026-03-29T22:00:00Z", output: 100},
		answer{id: "a5", at: "2026-03-30T09:00:00Z"}, // a repeated line
	)...)
	sub := lines(answer{id: "s1", at: "2026-03-31T10:00:00Z", agent: "aa"},
		answer{id: "s2", at: "2026-04-01T10:00:00Z", agent: "aa", model: "house-1"})
	fork := lines(append(shared, answer{id: "f1", at: "2026-12-31T12:00:00Z", model: "claude-haiku-4-5"},
		answer{id: "f2", at: "2027-01-01T12:00:00Z"})...)
	for _, folder := range []string{shop, copied} {
		put(t, filepath.Join(folder, "one.jsonl"), original)
		put(t, filepath.Join(folder, "one", "subagents", "agent-aa.jsonl"), sub)
	}
	put(t, filepath.Join(shop, "two.jsonl"), fork)
	put(t, filepath.Join(dir, "projects", "-till", "three.jsonl"),
		strings.ReplaceAll(lines(answer{id: "t1", at: "2026-03-28T12:00:00Z"}), "user/shop", "user/till"))
	return Options{Roots: claudeRoot(dir), Cache: filepath.Join(dir, "cache")}
}

// TestCosts checks sums over a change to daylight saving time, borders of weeks, months and years, forks,
// copies, subagents and messages of several lines; read from the files, and then from the cache.
func TestCosts(t *testing.T) {
	setZone(t, "Europe/Berlin")
	o := costFiles(t)
	for range 2 {
		list, p := once(t, o)
		if p.Trouble != "" || len(list) != 4 {
			t.Fatalf("%d sessions, %+v", len(list), p)
		}
		by := func(b By, q CostQuery) []Cost { rows, _ := Costs(list, b, q); return rows }
		checkRows(t, "days", by(ByDay, CostQuery{}), "2026-03-28 2000+0 $8000/2",
			"2026-03-29 2000+50 $9000/1",
			"2026-03-30 0+50 $1000/1", "2026-03-31 1000+0 $4000/1", "2026-04-01 1000+0 $0/1",
			"2026-12-31 1000+0 $1000/1", "2027-01-01 1000+0 $4000/1")
		checkRows(t, "weeks", by(ByWeek, CostQuery{}), "2026-W13 4000+50 $17000/2",
			"2026-W14 2000+50 $5000/1",
			"2026-W53 2000+0 $5000/1")
		checkRows(t, "months", by(ByMonth, CostQuery{}), "2026-03 5000+100 $22000/2", "2026-04 1000+0 $0/1",
			"2026-12 1000+0 $1000/1", "2027-01 1000+0 $4000/1")
		checkRows(t, "models", by(ByModel, CostQuery{}), "claude-opus-5-5 6000+100 $26000/3",
			"claude-haiku-4-5 1000+0 $1000/1", "house-1 1000+0 $0/1")
		checkRows(t, "agents", by(ByAgent, CostQuery{}), "claude 8000+100 $27000/3")
		checkRows(t, "projects", by(ByProject, CostQuery{}), "/home/user/shop 7000+100 $23000/2",
			"/home/user/till 1000+0 $4000/1")
		checkRows(t, "sessions", by(BySession, CostQuery{}), "one 5000+100 $18000/1", "two 2000+0 $5000/1",
			"three 1000+0 $4000/1")
		checkRows(t, "selected", by(ByDay, CostQuery{Since: "2026-03-29", Until: "2026-12-31",
			Agent:   "claude",
			Project: "shop", Model: "opus"}), "2026-03-29 2000+50 $9000/1", "2026-03-30 0+50 $1000/1",
			"2026-03-31 1000+0 $4000/1")
		checkTotal(t, list)
	}
}

// checkTotal checks that days, models and totals agree, and what the total says about prices.
func checkTotal(t *testing.T, list []*Session) {
	t.Helper()
	rows, total := Costs(list, ByDay, CostQuery{})
	var sum Cost
	for _, c := range rows {
		sum.Tokens, sum.CostUSD = sum.Tokens.Add(c.Tokens), sum.CostUSD+c.CostUSD
	}
	var own int64
	for _, s := range list {
		own += s.Totals().Tokens.Total()
		var models int64
		for _, m := range s.Models() {
			models += m.Tokens.Total()
		}
		if models != s.Totals().Tokens.Total() {
			t.Errorf("%s: %d tokens by model, %d in total", s.Path, models, s.Totals().Tokens.Total())
		}
	}
	if own != total.Tokens.Total() || sum.Tokens != total.Tokens || roundUSD(sum.CostUSD) != total.CostUSD {
		t.Errorf("%+v, but the days have %+v and the sessions %d tokens", total, sum, own)
	}
	if total.Unpriced != 1000 || !total.Known() || !slices.Equal(total.UnpricedModels, []string{"house-1"}) ||
		len(total.Models) != 3 || total.First != "2026-03-28" || total.Last != "2027-01-01" {
		t.Errorf("total %+v", total)
	}
	if april, _ := Costs(list, ByMonth,
		CostQuery{Since: "2026-04-01", Until: "2026-04-30"}); april[0].Known() {
		t.Errorf("a cost without any price is known: %+v", april[0])
	}
}

// TestCostsInZones checks the day of a line in zones that are a day apart, and in one whose day begins at
// one o'clock because the clocks change at midnight.
func TestCostsInZones(t *testing.T) {
	for zone, want := range map[string][]string{
		"UTC":                {"2026-09-05 1000+0 $4000/1", "2026-09-06 2000+0 $8000/1"},
		"America/Santiago":   {"2026-09-05 2000+0 $8000/1", "2026-09-06 1000+0 $4000/1"},
		"Pacific/Kiritimati": {"2026-09-06 3000+0 $12000/1"},
	} {
		t.Run(zone, func(t *testing.T) {
			setZone(t, zone)
			dir := t.TempDir()
			put(t, filepath.Join(dir, "projects", "-p", "s.jsonl"), lines(
				answer{id: "1", at: "2026-09-05T12:30:00Z"},
				answer{id: "2", at: "2026-09-06T04:00:00Z"}, // the first second of the day in Santiago
				answer{id: "3", at: "2026-09-06T03:59:59Z"}))
			list, _ := once(t, Options{Roots: claudeRoot(dir)})
			rows, _ := Costs(list, ByDay, CostQuery{})
			checkRows(t, zone, rows, want...)
		})
	}
}

func TestCostWithoutDay(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "projects", "-p", "s.jsonl"), lines(answer{id: "1"}))
	list, _ := once(t, Options{Roots: claudeRoot(dir)})
	for _, by := range []By{ByDay, ByWeek, ByMonth} {
		rows, _ := Costs(list, by, CostQuery{})
		checkRows(t, string(by), rows, " 1000+0 $4000/1")
	}
	for _, q := range []CostQuery{{Since: "2026-01-01"}, {Until: "2026-01-01"}} {
		if rows, _ := Costs(list, ByDay, q); len(rows) != 0 {
			t.Errorf("%+v selects usage without a day", q)
		}
	}
}

// TestGrowingFork checks that a fork is counted once while it grows, in each read of one index.
func TestGrowingFork(t *testing.T) {
	setZone(t, "UTC")
	dir := t.TempDir()
	folder := filepath.Join(dir, "projects", "-p")
	x := New(Options{Roots: claudeRoot(dir), Prices: price.Shipped()})
	check := func(what string, want ...string) {
		t.Helper()
		if err := x.Once(context.Background()); err != nil {
			t.Fatal(err)
		}
		list, _ := x.Sessions()
		rows, _ := Costs(list, ByDay, CostQuery{})
		checkRows(t, what, rows, want...)
	}
	first, second := answer{id: "1", at: "2026-09-05T12:00:00Z"}, answer{id: "2", at: "2026-09-06T12:00:00Z"}
	put(t, filepath.Join(folder, "a.jsonl"), lines(first, second))
	check("original", "2026-09-05 1000+0 $4000/1", "2026-09-06 1000+0 $4000/1")
	put(t, filepath.Join(folder, "b.jsonl"), lines(first))
	check("copy under way", "2026-09-05 1000+0 $4000/1", "2026-09-06 1000+0 $4000/1")
	put(t, filepath.Join(folder, "b.jsonl"), lines(first, second))
	check("copied", "2026-09-05 1000+0 $4000/1", "2026-09-06 1000+0 $4000/1")
	third := answer{id: "3", at: "2026-09-06T13:00:00Z"}
	put(t, filepath.Join(folder, "b.jsonl"), lines(first, second, third))
	check("grown", "2026-09-05 1000+0 $4000/1", "2026-09-06 2000+0 $8000/2")
	fourth := answer{id: "4", at: "2026-09-07T13:00:00Z"}
	put(t, filepath.Join(folder, "b.jsonl"), lines(first, second, third, fourth))
	check("grown again", "2026-09-05 1000+0 $4000/1", "2026-09-06 2000+0 $8000/2",
		"2026-09-07 1000+0 $4000/1")
}

// TestCostsOfGenerated compares costs with the tokens of generated transcripts.
func TestCostsOfGenerated(t *testing.T) {
	dir := t.TempDir()
	made, err := transcripttest.Write(dir, transcripttest.Options{Sessions: 40, Bytes: 2 << 20, Subagent: 3})
	if err != nil {
		t.Fatal(err)
	}
	list, _ := once(t, Options{Roots: claudeRoot(dir)})
	for _, by := range Bys() {
		rows, total := Costs(list, by, CostQuery{})
		sum := int64(0)
		for _, c := range rows {
			sum += c.Tokens.Total()
		}
		if sum != made.Tokens || total.Tokens.Total() != made.Tokens || total.Sessions != 40 {
			t.Errorf("%s: %d and %d tokens of %d, %d sessions", by, sum, total.Tokens.Total(), made.Tokens,
				total.Sessions)
		}
	}
}
