package system

import (
	"fmt"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/cluster"
)

// Check is one row of the health of the machinery.
type Check struct {
	Section Section
	Name    string
	State   CheckState
	Text    string    // how it is, in words
	At      time.Time // of what Text says, zero where it is now
	Advice  string    // what to do, "" where nothing is wrong
}

// Section is a part of the health.
type Section string

// Sections, in the order in which they are shown.
const (
	SectionServer  Section = "server"
	SectionWorkers Section = "workers"
	SectionAgents  Section = "agents"
	SectionSources Section = "sources"
	SectionCalls   Section = "calls"
	SectionProcess Section = "process"
)

// Sections lists them.
func Sections() []Section {
	return []Section{SectionServer, SectionWorkers, SectionAgents, SectionSources, SectionCalls, SectionProcess}
}

// CheckState is how a row is.
type CheckState string

// Check states. Odd is worth a look and no failure.
const (
	CheckFine  CheckState = "ok"
	CheckOdd   CheckState = "odd"
	CheckWrong CheckState = "wrong"
)

// What is worth a look.
const (
	lowSpace   = 512 << 20
	noSpace    = 64 << 20
	oldBacklog = 10 * time.Second
	oldPoller  = 2 * time.Minute
)

// Checks judges what was read, at now.
func (s *System) Checks(now time.Time) []Check {
	var out []Check
	out = append(out, s.serverChecks()...)
	if s.Err == "" && !s.Loading {
		out = append(out, s.workerChecks(now)...)
	}
	for _, agent := range s.Agents {
		out = append(out, check(agent))
	}
	for _, src := range s.Sources {
		out = append(out, src.Check())
	}
	out = append(out, s.callChecks()...)
	return append(out, s.processChecks()...)
}

// Wrong counts the rows that are wrong.
func Wrong(checks []Check) int {
	n := 0
	for _, c := range checks {
		if c.State == CheckWrong {
			n++
		}
	}
	return n
}

func (s *System) serverChecks() []Check {
	c := Check{Section: SectionServer, Name: "server", State: CheckFine}
	switch {
	case s.Loading:
		c.Text = "asking…"
		return []Check{c}
	case s.Mode == cluster.ModeFile:
		c.Name, c.Text = "file", s.Address+": there is no server, and nothing runs"
		return []Check{c, s.runsCheck()}
	case s.Err != "":
		c.State, c.Text = CheckWrong, "cannot be reached: "+s.Err
		c.Advice = "start a host for this data directory: acescope serve" + s.dirFlag()
		if s.Host.PID == 0 {
			c.Advice = "check that the cluster runs and the address is right: acescope doctor" + s.addressFlags()
		}
		return append([]Check{c}, s.dataChecks()...)
	}
	c.Text = strings.TrimSpace(fmt.Sprintf("%s %s", s.Mode, s.Address)) + ", namespace " + s.Space
	if s.Server.Version != "" {
		c.Text += ", Temporal " + s.Server.Version
	}
	c.Text += ", answers in " + s.Server.Answered.Round(100*time.Microsecond).String()
	out := []Check{c}
	if s.Host.PID != 0 {
		host := Check{Section: SectionServer, Name: "host", State: CheckFine, At: s.Host.Started,
			Text: fmt.Sprintf("process %d, acescope %s", s.Host.PID, s.Host.Version)}
		out = append(out, host)
	}
	return append(append(out, s.attributeCheck(), s.runsCheck()), s.dataChecks()...)
}

func (s *System) attributeCheck() Check {
	c := Check{Section: SectionServer, Name: "attributes", State: CheckFine,
		Text: fmt.Sprintf("all %d search attributes are there", len(ace.SearchAttributes()))}
	switch {
	case s.AttrErr != "":
		c.State, c.Text = CheckOdd, "could not be listed: "+s.AttrErr
	case len(s.Attributes) > 0:
		c.State, c.Text = CheckWrong, fmt.Sprintf("namespace %s lacks %s", s.Space, strings.Join(s.Attributes, ", "))
		c.Advice = ace.SearchAttributesCommand(s.Space, s.Attributes)
	}
	return c
}

func (s *System) runsCheck() Check {
	c := Check{Section: SectionServer, Name: "runs", State: CheckFine, Text: fmt.Sprintf("%d recorded, %d open", s.TotalRuns, s.OpenRuns)}
	if s.CountErr != "" {
		c.State, c.Text = CheckOdd, "could not be counted: "+s.CountErr
	}
	return c
}

func (s *System) dataChecks() []Check {
	h := s.Host
	if h.DataDir == "" {
		return nil
	}
	size := Bytes(uint64(h.Size))
	if h.Partial {
		size = "more than " + size
	}
	c := Check{Section: SectionServer, Name: "data", State: CheckFine,
		Text: fmt.Sprintf("%s: %s in %d files, %s free", h.DataDir, size, h.Files, Bytes(h.Free))}
	switch {
	case h.FreeErr != "" || h.SizeErr != "":
		c.State, c.Text = CheckOdd, h.DataDir+": "+cluster.Or(h.FreeErr, h.SizeErr)
	case h.Free < noSpace:
		c.State, c.Advice = CheckWrong, "make room on that file system: a server whose disk is full stops"
	case h.Free < lowSpace:
		c.State, c.Advice = CheckOdd, "make room on that file system soon"
	}
	return []Check{c}
}

func (s *System) workerChecks(now time.Time) []Check {
	var out []Check
	for _, q := range s.Queues {
		out = append(out, s.queueCheck(q, now))
	}
	return out
}

func (s *System) queueCheck(q Queue, now time.Time) Check {
	c := Check{Section: SectionWorkers, Name: q.Name + " " + q.Kind, State: CheckFine}
	if q.Err != "" {
		c.State, c.Text = CheckOdd, "could not be described: "+q.Err
		return c
	}
	backlog := "no backlog"
	if q.Backlog > 0 {
		backlog = fmt.Sprintf("%d waiting, the oldest for %s", q.Backlog, q.Oldest.Round(time.Second))
	}
	c.Text = fmt.Sprintf("%d %s, %s", len(q.Pollers), Plural(len(q.Pollers), "poller"), backlog)
	switch {
	case len(q.Pollers) == 0 && !q.Ours && q.Kind == "activity" && q.Backlog == 0:
		c.Text = "no worker polls and nothing waits"
	case len(q.Pollers) == 0:
		c.State, c.Text, c.Advice = CheckWrong, "no worker polls: nothing runs; "+backlog, s.startWorker(q)
	case now.Sub(q.Pollers[0].Last) > oldPoller:
		c.State, c.At, c.Advice = CheckOdd, q.Pollers[0].Last, "the last worker seems to be gone: "+s.startWorker(q)
	case q.Oldest > oldBacklog:
		c.State, c.Advice = CheckOdd, "the workers do not keep up: start another one, "+s.startWorker(q)
	default:
		c.At = q.Pollers[0].Last
	}
	return c
}

func (s *System) startWorker(q Queue) string {
	switch {
	case !q.Ours:
		return "start the program that serves task queue " + q.Name
	case s.Host.PID == 0:
		return "start one: acescope serve" + s.addressFlags()
	}
	return "start one: acescope serve" + s.dirFlag()
}

func (s *System) dirFlag() string {
	if s.Host.DataDir == "" {
		return ""
	}
	return " --data-dir " + s.Host.DataDir
}

func (s *System) addressFlags() string {
	if s.Address == "" {
		return ""
	}
	return " --address " + s.Address + " --namespace " + s.Space
}

// check is odd where an agent is there and of no use.
func check(a cluster.AgentCheck) Check {
	c := Check{Section: SectionAgents, Name: a.Name, State: CheckFine, Text: a.Text}
	if !a.OK {
		c.State, c.Advice = CheckOdd, "acescope doctor says more"
	}
	return c
}

func (src SourceAge) Check() Check {
	c := Check{Section: SectionSources, Name: src.Name, State: CheckFine, Text: src.Text, At: src.Since}
	if src.Dropped > 0 {
		c.Text = strings.TrimPrefix(fmt.Sprintf("%s, %d dropped", c.Text, src.Dropped), ", ")
	}
	switch {
	case !src.OK && src.Minor:
		c.State = CheckOdd
	case !src.OK:
		c.State = CheckWrong
	}
	return c
}

func (s *System) callChecks() []Check {
	if len(s.Calls) == 0 {
		return nil
	}
	made, failed := 0, 0
	all := Check{Section: SectionCalls, Name: "all calls", State: CheckFine}
	out := []Check{all}
	for _, call := range s.Calls {
		made += call.PerMinute
		failed += call.Failed
		c := Check{Section: SectionCalls, Name: call.Name, State: CheckFine, Text: fmt.Sprintf("%d a minute", call.PerMinute)}
		if !call.Waits && call.PerMinute > 0 {
			c.Text += fmt.Sprintf(", p50 %s, p95 %s", shortly(call.P50), shortly(call.P95))
		}
		if call.Failed > 0 {
			c.State, c.Text = CheckOdd, c.Text+fmt.Sprintf(", %d failed: %s", call.Failed, call.LastError)
		}
		out = append(out, c)
	}
	out[0].Text = fmt.Sprintf("%d in the last minute, %d failed", made, failed)
	if failed > 0 {
		out[0].State = CheckOdd
	}
	return out
}

func shortly(d time.Duration) string { return d.Round(100 * time.Microsecond).String() }

func (s *System) processChecks() []Check {
	p := s.Process
	if p.PID == 0 {
		return nil
	}
	memory := fmt.Sprintf("heap %s of %s held", Bytes(p.Heap), Bytes(p.HeapSys))
	if p.RSS > 0 {
		memory = Bytes(p.RSS) + " resident, " + memory
	}
	out := []Check{
		{Section: SectionProcess, Name: "memory", State: CheckFine, Text: memory},
		{Section: SectionProcess, Name: "collector", State: CheckFine,
			Text: fmt.Sprintf("%d collections, %s paused in all", p.GCs, p.GCPause.Round(time.Microsecond))},
		{Section: SectionProcess, Name: "process", State: CheckFine, At: p.Started,
			Text: fmt.Sprintf("%d, %d goroutines", p.PID, p.Goroutines)},
	}
	if p.Snapshots > 0 {
		out[2].Text += fmt.Sprintf(", %d snapshots made", p.Snapshots)
	}
	if c := p.Screen; c.Frames > 0 {
		out = append(out, Check{Section: SectionProcess, Name: "screen", State: CheckFine,
			Text: fmt.Sprintf("%.1f frames a second, the slowest drawn in %s; %d snapshots shown, %d skipped for newer ones",
				c.PerSecond, shortly(c.Slowest), c.Shown, c.Skipped)})
	}
	return out
}

func Plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// Bytes is a number of bytes for a person: "512 B", "1.5 MiB".
func Bytes(n uint64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, at := float64(n)/1024, 0
	for f >= 1024 && at < len(units)-1 {
		f, at = f/1024, at+1
	}
	return fmt.Sprintf("%.1f %ciB", f, units[at])
}
