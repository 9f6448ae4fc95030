package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/system"
)

// HealthCommand returns the command health.
func HealthCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "health",
		Short: "Check the server, the workers and their task queues",
		Long: "Check the server, the workers and their task queues, and advise what to do. The exit code is 0 if every\n" +
			"check passes, 1 if one fails, and 5 if the server cannot be reached. See also acescope doctor.",
		Example: "acescope health\nacescope health --json | jq '.checks[] | select(.state != \"ok\")'",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return health(a, cmd.Context()) },
	}
}

const healthTimeout = 30 * time.Second

func health(a *cli.App, ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	e, done, err := a.OpenReadOnly(ctx)
	if err != nil {
		return unreachable(a, err)
	}
	defer done()
	s := system.Read(ctx, healthDeps(a, e), cluster.Connection{Mode: string(e.Mode()), Address: e.Address()})
	if err := writeHealth(a, s); err != nil {
		return err
	}
	if s.Err != "" {
		return &cli.ExitError{Code: cli.ExitUnreachable, Err: errors.New(s.Err)}
	}
	if n := system.CountErrors(s.Checks(s.At)); n > 0 {
		return checksFailed(n)
	}
	return nil
}

// unreachable writes the health of a server that cannot be reached, and returns err.
func unreachable(a *cli.App, err error) error {
	if code := cli.ExitCode(err); code != cli.ExitUnreachable {
		return err
	}
	s := &system.System{At: time.Now(), Mode: string(engine.Embedded), Space: ace.DefaultNamespace, Err: cli.OneLine(err)}
	if c := a.Cluster(); c != nil {
		s.Mode, s.Address = string(engine.Cluster), c.Address
		if c.Namespace != "" {
			s.Space = c.Namespace
		}
	} else if dir, dirErr := a.DataDir(); dirErr == nil {
		s.Host.DataDir = dir
	}
	s.Process = system.ThisProcess()
	if writeErr := writeHealth(a, s); writeErr != nil {
		return writeErr
	}
	return err
}

// healthDeps returns what the readers of the health need.
func healthDeps(a *cli.App, e *engine.Engine) cluster.Deps {
	dir, _ := a.DataDir() // the connection exists, so there is a data directory
	return cluster.Deps{
		Client: e.Client, Namespace: e.Namespace(), TaskQueue: ace.TaskQueue, Playbooks: e.Books, DataDir: dir,
		Artifact: e.Artifacts.Get, Meter: a.Meter, Host: host(e, dir), Agents: a.AgentChecks(),
	}
}

// host returns a function that describes the host of the server, which changes at a takeover.
func host(e *engine.Engine, dir string) func() cluster.Host {
	return func() cluster.Host {
		h := cluster.Host{Worker: e.Serves()}
		n := e.Node()
		if n == nil {
			return h
		}
		ep := n.Endpoint()
		h.PID, h.Version, h.Started, h.DataDir = ep.PID, ep.Version, ep.Started, dir
		free, err := e.Free()
		if err != nil {
			h.FreeErr = err.Error()
		}
		h.Free = free
		return h
	}
}

// healthLine is the health of the server and the workers.
type healthLine struct {
	Type       string       `json:"type"` // health
	OK         bool         `json:"ok"`
	At         time.Time    `json:"at"`
	Mode       string       `json:"mode"`
	Address    string       `json:"address,omitempty"`
	Namespace  string       `json:"namespace"`
	Error      string       `json:"error,omitempty"`
	Checks     []checkRow   `json:"checks"`
	Server     *serverInfo  `json:"server,omitempty"`
	Host       *hostInfo    `json:"host,omitempty"`
	Missing    []string     `json:"missing_attributes"`
	Queues     []queueInfo  `json:"queues"`
	Runs       int64        `json:"runs"`
	Open       int64        `json:"open"`
	Calls      []callInfo   `json:"calls"`
	Process    *processInfo `json:"process,omitempty"`
	DurationMS float64      `json:"duration_ms"`
}

type checkRow struct {
	Section system.Section    `json:"section"`
	Name    string            `json:"name"`
	State   system.CheckState `json:"state"`
	Text    string            `json:"text"`
	At      time.Time         `json:"-"`
	Advice  string            `json:"advice,omitempty"`
}

type serverInfo struct {
	Version    string  `json:"version,omitempty"`
	Cluster    string  `json:"cluster,omitempty"`
	Store      string  `json:"store,omitempty"`
	Visibility string  `json:"visibility,omitempty"`
	Shards     int32   `json:"shards,omitempty"`
	AnsweredMS float64 `json:"answered_ms"`
}

type hostInfo struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	DataDir string    `json:"data_dir"`
	Bytes   int64     `json:"bytes"`
	Files   int       `json:"files"`
	Free    uint64    `json:"free_bytes"`
}

type queueInfo struct {
	Name     string       `json:"name"`
	Kind     string       `json:"kind"`
	Backlog  int64        `json:"backlog"`
	OldestMS float64      `json:"oldest_ms"`
	In       float64      `json:"tasks_in_per_second"`
	Out      float64      `json:"tasks_out_per_second"`
	Pollers  []pollerInfo `json:"pollers"`
	Error    string       `json:"error,omitempty"`
}

type pollerInfo struct {
	Identity string    `json:"identity"`
	Last     time.Time `json:"last_access"`
	Rate     float64   `json:"rate_per_second"`
}

type callInfo struct {
	Name      string  `json:"name"`
	Waits     bool    `json:"waits"`
	PerMinute int     `json:"per_minute"`
	Failed    int     `json:"failed"`
	P50MS     float64 `json:"p50_ms"`
	P95MS     float64 `json:"p95_ms"`
	LastError string  `json:"last_error,omitempty"`
}

type processInfo struct {
	PID        int    `json:"pid"`
	Goroutines int    `json:"goroutines"`
	Heap       uint64 `json:"heap_bytes"`
	Held       uint64 `json:"heap_held_bytes"`
	RSS        uint64 `json:"rss_bytes,omitempty"`
	GCs        uint32 `json:"collections"`
}

func healthOf(s *system.System) healthLine {
	checks := s.Checks(s.At)
	p := s.Process
	l := healthLine{
		Type: "health", OK: system.CountErrors(checks) == 0, At: s.At.UTC(), Mode: s.Mode, Address: s.Address,
		Namespace: s.Space, Error: s.Err, Checks: []checkRow{}, Missing: append([]string{}, s.Attributes...),
		Queues: []queueInfo{}, Runs: s.TotalRuns, Open: s.OpenRuns, Calls: []callInfo{}, DurationMS: cli.Millis(s.Took),
		Process: &processInfo{p.PID, p.Goroutines, p.Heap, p.HeapSys, p.RSS, p.GCs},
	}
	for _, c := range checks {
		l.Checks = append(l.Checks, checkRow(c))
	}
	if s.Err == "" {
		i := s.Server
		l.Server = &serverInfo{i.Version, i.Cluster, i.Store, i.Search, i.Shards, cli.Millis(i.Answered)}
	}
	if h := s.Host; h.PID != 0 {
		l.Host = &hostInfo{h.PID, h.Version, h.Started, h.DataDir, h.Size, h.Files, h.Free}
	}
	for _, q := range s.Queues {
		pollers := []pollerInfo{}
		for _, p := range q.Pollers {
			pollers = append(pollers, pollerInfo(p))
		}
		l.Queues = append(l.Queues, queueInfo{q.Name, q.Kind, q.Backlog, cli.Millis(q.Oldest), q.In, q.Out, pollers, q.Err})
	}
	for _, c := range s.Calls {
		l.Calls = append(l.Calls, callInfo{
			c.Name, c.Waits, c.PerMinute, c.Failed, cli.Millis(c.P50), cli.Millis(c.P95), c.LastError,
		})
	}
	return l
}

func writeHealth(a *cli.App, s *system.System) error {
	l := healthOf(s)
	if a.JSON {
		return cli.NewLines(a.Out).Write(l)
	}
	marks := map[system.CheckState]string{
		system.CheckOK: "ok", system.CheckWarning: "WARNING", system.CheckError: "ERROR",
	}
	w := cli.NewTable(a.Out)
	for _, c := range l.Checks {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", marks[c.State], c.Section, cli.SafeText(c.Name), cli.SafeText(c.Text))
		if c.Advice != "" {
			fmt.Fprintf(w, "\t\t\t  %s\n", cli.SafeText(c.Advice))
		}
	}
	return w.Flush()
}
