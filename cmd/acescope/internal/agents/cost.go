package agents

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/transcript"
	"acescope/engine/temporal/server"
	"acescope/engine/trace/adapter"
	"acescope/sources/costs"
	sourceruns "acescope/sources/runs"
	"acescope/sources/transcripts"
	"acescope/tui/text"
)

func CostCommand(a *cli.App) *cobra.Command {
	by := []transcripts.By{transcripts.ByDay}
	var q transcripts.CostQuery
	var began time.Time // of runs, if --since is in hours
	var noRuns bool
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Show what agents and runs cost: by day, week, month, model, agent, project, experiment or session",
		Long: `Sums up the tokens and the cost in the transcripts of agents on this machine, at list prices or those
of the configuration, and of runs of tasks and flows that used a model provider. Forks, copies,
subagents and messages of several lines count once. What an agent's command line did for a run counts
with its transcript only. A run is a session of the agent acescope on the day on which it began, and its
project is the experiment or the flow. A run of agents of a framework is a session of the framework, and its
project is the workflow type. With hours, --since selects the runs that began since; of transcripts,
whole days count. Days are of the local time zone, weeks those of ISO 8601.
Without a data directory or with --no-runs, no server is needed.`,
		Example: `acescope cost --since 7d
acescope cost --since 12h --by experiment,model
acescope cost --by model --since 2026-11-01 --project shop
acescope cost --json --since 30d | jq -s 'map(.cost_usd) | add'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Until != "" && q.Since > q.Until {
				return cli.UsageError("--since %s is after --until %s", q.Since, q.Until)
			}
			return showCosts(a, cmd.Context(), by, q, began, noRuns)
		},
	}
	fs := cmd.Flags()
	fs.Var(checkedValue{kind: "string", get: func() string { return cli.Join(by) }, set: func(s string) error {
		by = nil
		for name := range strings.SplitSeq(s, ",") {
			if !slices.Contains(transcripts.Bys(), transcripts.By(name)) ||
				slices.Contains(by, transcripts.By(name)) {
				return fmt.Errorf("must be some of %s, each once", cli.Join(transcripts.Bys()))
			}
			by = append(by, transcripts.By(name))
		}
		return nil
	}}, "by", "what a row stands for, one or several with commas: "+cli.Join(transcripts.Bys()))
	day := func(p *string, name, usage string) {
		fs.Var(checkedValue{kind: "day", get: func() string { return *p }, set: func(s string) (err error) {
			*p, err = parseDay(s, time.Now())
			if ago, notHours := time.ParseDuration(s); name == "since" && notHours == nil {
				began = time.Now().Add(-ago)
			}
			return err
		}}, name, usage)
	}
	day(&q.Since, "since",
		"first day: today, yesterday, a date such as 2026-11-22, or how long ago, such as 2w, 7d or 36h")
	day(&q.Until, "until", "last day, likewise")
	agents := append(agentcli.CLIs(), costs.Agent)
	fs.Var(checkedValue{kind: "string", choices: strings.Split(cli.Join(agents), ", "),
		get: func() string { return q.Agent },
		set: func(s string) error {
			if !slices.Contains(agents, agentcli.CLI(s)) && !slices.Contains(adapter.Frameworks(), s) {
				return fmt.Errorf("must be one of %s, or a framework: %s", cli.Join(agents),
					cli.Join(adapter.Frameworks()))
			}
			q.Agent = s
			return nil
		}}, "agent", "only this agent, acescope for its own runs: "+cli.Join(agents)+"; or this framework")
	fs.StringVar(&q.Project, "project", "",
		"only sessions whose directory, experiment or flow contains this text")
	fs.BoolVar(&noRuns, "no-runs", false, "leave out runs, which are read from a server")
	fs.StringVar(&q.Model, "model", "", "only models whose name contains this text")
	return cmd
}

// maxDaysAgo keeps days within four-digit years.
const maxDaysAgo = 365_000

// parseDay returns a day of the local time zone, as 2006-01-02, given a word, a date or a duration before
// now.
func parseDay(s string, now time.Time) (string, error) {
	if number, ok := strings.CutSuffix(s, "d"); ok {
		if days, err := strconv.Atoi(number); err == nil && days >= 0 && days <= maxDaysAgo {
			y, m, d := now.Local().Date()
			return time.Date(y, m, d-days, 12, 0, 0, 0, time.UTC).Format(time.DateOnly), nil
		}
	}
	if at, err := sourceruns.TimeAt(s, now.Local()); err == nil {
		return transcripts.Today(at), nil
	}
	if ago, err := time.ParseDuration(s); err == nil && ago >= 0 {
		return transcripts.Today(now.Add(-ago)), nil
	}
	return "", errors.New(
		"must be today, yesterday, a date such as 2026-11-22, or a duration such as 2w, 7d or 36h")
}

// CostLine is the usage of a day, a model or another unit. Keys are the keys by unit if there are several.
type CostLine struct {
	By   string                    `json:"by"`
	Key  string                    `json:"key"`
	Keys map[transcripts.By]string `json:"keys,omitempty" jsonschema:"the keys by unit, if there are several"`
	Name string                    `json:"name,omitempty"`
	// CostUSD is nil if no price is known.
	CostUSD        *float64          `json:"cost_usd,omitempty"`
	Tokens         transcript.Tokens `json:"tokens" jsonschema:"tokens"`
	Unpriced       int64             `json:"unpriced_tokens,omitempty"`
	UnpricedModels []string          `json:"unpriced_models,omitempty" jsonschema:"models of these tokens"`
	Models         []string          `json:"models,omitempty" jsonschema:"names of the models"`
	Sessions       int               `json:"sessions" jsonschema:"sessions and runs with usage"`
	First          string            `json:"first_day,omitempty" jsonschema:"first day with usage"`
	Last           string            `json:"last_day,omitempty" jsonschema:"last day with usage"`
	TimeZone       string            `json:"time_zone" jsonschema:"time zone of the days"`
}

func newCostLine(c transcripts.Cost, by []transcripts.By, zone string) CostLine {
	l := CostLine{
		By: strings.ReplaceAll(cli.Join(by), " ", ""), Key: c.Key, Name: c.Name, Tokens: c.Tokens,
		Unpriced: c.Unpriced, UnpricedModels: c.UnpricedModels, Models: c.Models, Sessions: c.Sessions,
		First: c.First, Last: c.Last, TimeZone: zone,
	}
	if c.Known() {
		l.CostUSD = &c.CostUSD
	}
	if len(by) > 1 {
		l.Keys = map[transcripts.By]string{}
		for i, b := range by {
			l.Keys[b] = c.Keys[i]
		}
	}
	return l
}

// zoneText names the local time zone.
func zoneText(now time.Time) string {
	name := time.Local.String()
	if name == "Local" {
		name = now.Local().Format("MST")
	}
	if name == "UTC" {
		return name
	}
	return name + now.Local().Format(" (UTC-07:00)")
}

func showCosts(
	a *cli.App, ctx context.Context, by []transcripts.By, q transcripts.CostQuery, began time.Time,
	noRuns bool,
) error {
	var ofRuns *costs.Costs
	var partly bool // earlier runs were not read
	var err error
	if !noRuns && !slices.Contains(agentcli.CLIs(), agentcli.CLI(q.Agent)) {
		if ofRuns, partly, err = readRunCosts(a, ctx, q.Since, began); err != nil {
			return fmt.Errorf("the costs of runs cannot be read: %w; use --no-runs to sum up transcripts alone", err)
		}
	}
	list, err := readTranscripts(a, ctx, partly || ofRuns != nil && len(ofRuns.Rows) > 0)
	if err != nil {
		return err
	}
	noticeUnread(a, list)
	list = ofRuns.With(list)
	rows, total := transcripts.CostsBy(list, by, q)
	switch {
	case len(rows) > 0:
		err = writeCosts(a, by, rows, total)
	case partly:
		cli.Warn(a, "the query selects no usage since %s", q.Since)
	case len(list) > 0:
		_, all := transcripts.CostsBy(list, by, transcripts.CostQuery{})
		noticeEmpty(a, all)
	}
	if total.Unpriced > 0 {
		noticeUnpriced(a, total)
	}
	return err
}

// readRunCosts reads the runs that began at a time or later, or on a day or later, "" for all, from the
// cluster or the data directory. partly reports whether there may be others. A data directory that no engine
// has used has no runs, and none is created.
func readRunCosts(
	a *cli.App, ctx context.Context, since string, from time.Time,
) (c *costs.Costs, partly bool, err error) {
	if a.Cluster() == nil {
		if dir, err := a.DataDir(); err != nil || server.RecordedVersion(dir) == "" {
			return nil, false, nil // without a home directory there is no data directory either
		}
	}
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return nil, false, err
	}
	if since != "" && from.IsZero() {
		if from, err = time.ParseInLocation(time.DateOnly, since, time.Local); err != nil {
			return nil, false, err
		}
	}
	x := costs.NewIndex()
	x.Traces = cli.Traces(e)
	if err := x.Read(ctx, e.Client, from, time.Now()); err != nil {
		return nil, false, err
	}
	if c = x.Costs(); c.Dropped {
		cli.Warn(a, "only the newest %s are read; use --since", ace.Count(costs.MaxRuns, "run"))
	}
	if c.Untraced {
		cli.Warn(a, "of agents of frameworks, only the newest %s are read; use --since",
			ace.Count(costs.MaxTraced, "history"))
	}
	return c, !from.IsZero(), nil
}

func writeCosts(a *cli.App, by []transcripts.By, rows []transcripts.Cost, total transcripts.Cost) error {
	zone := zoneText(time.Now())
	if a.JSON {
		lines := cli.Mapped(rows, func(c transcripts.Cost) CostLine { return newCostLine(c, by, zone) })
		return cli.WriteRows(a, lines, "", func(CostLine) []any { return nil })
	}
	total.Keys = make([]string, len(by))
	total.Keys[0] = "total"
	header := strings.ToUpper(strings.ReplaceAll(cli.Join(by), ", ", "\t")) +
		"\tINPUT\tOUTPUT\tCACHE READ\tCACHE WRITE\tCOST\tSESSIONS+RUNS"
	if total.Unpriced > 0 {
		header += "\tUNPRICED"
	}
	named := slices.Contains(by, transcripts.BySession)
	if named {
		header += "\tNAME"
	}
	err := cli.WriteRows(a, slices.Values(append(rows, total)), header, func(c transcripts.Cost) []any {
		var cells []any
		for i, b := range by {
			cells = append(cells, costKey(c.Keys, i, b))
		}
		cells = append(cells, ace.Number(c.Tokens.Input), ace.Number(c.Tokens.Output),
			ace.Number(c.Tokens.CacheRead), ace.Number(c.Tokens.CacheWrite()), costText(c.Totals),
			ace.Number(c.Sessions))
		if total.Unpriced > 0 {
			cells = append(cells, ace.Number(c.Unpriced))
		}
		if named {
			cells = append(cells, text.Cut(cli.SafeText(c.Name), 60, "…"))
		}
		return cells
	})
	if err == nil {
		_, err = fmt.Fprintln(a.Out, "Days are of the time zone "+cli.SafeText(zone)+".")
	}
	return err
}

// costKey names the unit that a row stands for.
func costKey(keys []string, i int, by transcripts.By) string {
	switch {
	case keys[i] != "" || keys[0] == "total":
		return keys[i]
	case by.IsTime():
		return "no date"
	case by == transcripts.ByExperiment:
		return "none"
	}
	return "unknown"
}

// noticeUnread says which transcripts could not be read.
func noticeUnread(a *cli.App, list []*transcripts.Session) {
	var failed []string
	for _, s := range list {
		if s.Err != "" {
			failed = append(failed, s.Err)
		}
	}
	if len(failed) > 0 {
		cli.Warn(a, "%s cannot be read and may be missing in the costs; the first: %s",
			ace.Count(len(failed), "session"), failed[0])
	}
}

// noticeEmpty says what the transcripts contain if the query selects nothing.
func noticeEmpty(a *cli.App, all transcripts.Cost) {
	switch {
	case all.Sessions == 0:
		cli.Warn(a, "the transcripts and runs contain no usage of a model")
	case all.First == "":
		cli.Warn(a, "the query selects no usage; the usage has no dates")
	default:
		cli.Warn(a, "the query selects no usage; there is usage from %s to %s", all.First, all.Last)
	}
}

// noticeUnpriced says how to get the cost of models without a known price.
func noticeUnpriced(a *cli.App, total transcripts.Cost) {
	models := strings.Join(total.UnpricedModels, ", ")
	if models == "" {
		models = "messages without a model"
	}
	file := "config.toml"
	if dir, err := cli.ConfigDir(); err == nil {
		file = filepath.Join(dir, file)
	}
	cli.Warn(a, "the cost lacks %s without a known price: %s; set prices in %s ([[prices]])",
		ace.Count(total.Unpriced, "token"), text.Cut(models, 200, "…"), file)
}
