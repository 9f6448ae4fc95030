package system

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/cluster"
)

// Check is one row of the health screen.
type Check struct {
	Section Section    `json:"section"`
	Name    string     `json:"name"`
	State   CheckState `json:"state"`
	Text    string     `json:"text"`             // the finding
	At      time.Time  `json:"-"`                // time that Text refers to, zero for now
	Advice  string     `json:"advice,omitempty"` // what to do, "" if nothing is wrong
}

// Section is a part of the health screen.
type Section string

// Sections, in display order.
const (
	SectionServer  Section = "server"
	SectionWorkers Section = "workers"
	SectionAgents  Section = "agents"
	SectionSources Section = "sources"
	SectionCalls   Section = "calls"
	SectionProcess Section = "process"
)

// Sections returns all sections.
func Sections() []Section {
	return []Section{SectionServer, SectionWorkers, SectionAgents, SectionSources, SectionCalls,
		SectionProcess}
}

// CheckState is the severity of a row.
type CheckState = cluster.Severity

// Check states.
const (
	CheckOK      = cluster.OK
	CheckInfo    = cluster.Info
	CheckWarning = cluster.Warning
	CheckError   = cluster.Error
)

// Thresholds of warnings.
const (
	lowSpace   = 512 << 20
	noSpace    = 64 << 20
	oldBacklog = 10 * time.Second
	oldPoller  = 90 * time.Second
	listedFor  = 5*time.Minute + 30*time.Second // for which a server lists a worker that has ended
	startsFor  = 30 * time.Second               // within which the workers of a new host begin to poll
)

// Checks judges the health as of the reading.
func (s *System) Checks() []Check {
	var out []Check
	out = append(out, s.serverChecks()...)
	if s.Err == "" && !s.Loading {
		for _, q := range s.Queues {
			out = append(out, s.queueCheck(q))
		}
	}
	for _, agent := range s.Agents {
		out = append(out, check(agent))
	}
	for _, src := range s.Sources {
		out = append(out, src.Check())
	}
	if s.Spool != nil {
		out = append(out, s.spoolCheck())
	}
	out = append(out, s.callChecks()...)
	return append(out, s.processChecks()...)
}

// CountErrors returns the number of rows with errors.
func CountErrors(checks []Check) int {
	n := 0
	for _, c := range checks {
		if c.State == CheckError {
			n++
		}
	}
	return n
}

func (s *System) serverChecks() []Check {
	c := Check{Section: SectionServer, Name: "server", State: CheckOK}
	switch {
	case s.Loading:
		c.Text = "asking…"
		return []Check{c}
	case s.Mode == cluster.ModeFile:
		c.Name, c.Text = "file", s.Address+": there is no server, and nothing runs"
		return []Check{c, s.runsCheck()}
	case s.Err != "":
		c.State, c.Text = CheckError, "cannot be reached: "+s.Err
		c.Advice = "start a host for this data directory: acescope serve" + s.dirFlag()
		if s.Host.PID == 0 {
			c.Advice = "check that the cluster runs and the address is right: acescope doctor" +
				s.addressFlags()
		}
		return append([]Check{c}, s.dataChecks()...)
	}
	c.Text = strings.TrimSpace(fmt.Sprintf("%s %s", s.Mode, s.Address)) + ", namespace " + s.Space
	if s.Server.Version != "" {
		c.Text += ", Temporal " + s.Server.Version
	}
	c.Text += ", answers in " + shortly(s.Server.AnsweredMS)
	out := []Check{c}
	if s.Host.PID != 0 {
		host := Check{Section: SectionServer, Name: "host", State: CheckOK, At: s.Host.Started,
			Text: fmt.Sprintf("process %d, acescope %s", s.Host.PID, s.Host.Version)}
		out = append(out, host)
	}
	if s.Host.Clock != "" {
		out = append(out, Check{Section: SectionServer, Name: "clock", State: CheckWarning,
			Text: s.Host.Clock})
	}
	out = append(append(out, s.attributeCheck(), s.runsCheck()), s.dataChecks()...)
	if s.Store.URL != "" {
		out = append(out, s.Store.check())
	}
	return out
}

func (i StoreInfo) check() Check {
	c := Check{Section: SectionServer, Name: "shared store", State: CheckOK,
		Text: i.URL + ", answers in " + shortly(i.AnsweredMS)}
	if i.Err != "" {
		c.State, c.Text = CheckError, i.URL+": "+i.Err
	}
	return c
}

func (s *System) attributeCheck() Check {
	c := Check{Section: SectionServer, Name: "attributes", State: CheckOK,
		Text: fmt.Sprintf("all %d search attributes are registered", len(ace.SearchAttributes()))}
	switch {
	case s.noNamespace:
		c.State, c.Text = CheckError, fmt.Sprintf("namespace %s does not exist", s.Space)
		c.Advice = ace.SetupCommand(s.Address, s.Space)
	case s.AttrErr != "":
		c.State, c.Text = CheckWarning, "could not be listed: "+s.AttrErr
	case len(s.Attributes) > 0:
		c.State, c.Text = CheckError, fmt.Sprintf("namespace %s lacks %s", s.Space,
			strings.Join(s.Attributes, ", "))
		c.Advice = ace.SetupCommand(s.Address, s.Space)
	}
	return c
}

func (s *System) runsCheck() Check {
	c := Check{Section: SectionServer, Name: "runs", State: CheckOK,
		Text: ace.Number(s.TotalRuns) + " recorded, " + ace.Number(s.OpenRuns) + " open"}
	if s.CountErr != "" {
		c.State, c.Text = CheckWarning, "could not be counted: "+s.CountErr
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
	c := Check{Section: SectionServer, Name: "data", State: CheckOK,
		Text: fmt.Sprintf("%s: %s in %s, %s free", h.DataDir, size, ace.Count(h.Files, "file"),
			Bytes(h.Free))}
	switch {
	case h.Lost != "":
		c.State, c.Text = CheckError, h.DataDir+": "+h.Lost
		c.Advice = fmt.Sprintf("end process %d; then restore the directory, or start with an empty one",
			h.PID)
	case h.FreeErr != "" || h.SizeErr != "":
		c.State, c.Text = CheckWarning, h.DataDir+": "+cmp.Or(h.FreeErr, h.SizeErr)
	case h.Free < noSpace:
		c.State, c.Advice = CheckError, "free space on that file system; the server stops when it is full"
	case h.Free < lowSpace:
		c.State, c.Advice = CheckWarning, "free space on that file system soon"
	}
	return []Check{c}
}

func (s *System) queueCheck(q Queue) Check {
	c := Check{Section: SectionWorkers, Name: q.Name + " " + q.Kind, State: CheckOK}
	if q.Err != "" {
		c.State, c.Text = CheckWarning, "could not be described: "+q.Err
		return c
	}
	backlog := "no backlog"
	if q.Backlog > 0 {
		backlog = fmt.Sprintf("%s waiting, the oldest for %s", ace.Number(q.Backlog),
			q.oldest().Round(time.Second))
	}
	c.Text = ace.Count(len(q.Pollers), "poller") + ", " + backlog
	switch {
	case len(q.Pollers) == 0 && !q.Ours && q.Kind == "activity" && q.Backlog == 0:
		c.Text = "no worker polls and nothing waits"
	case len(q.Pollers) == 0 && !q.Gone.IsZero(): // or the clocks differ
		c.State, c.Text, c.At = CheckWarning, "no worker polls any more, "+backlog, q.Gone
		c.Advice = "the last worker has ended: " + s.startWorker(q)
	case len(q.Pollers) == 0 && q.Ours && s.Starting():
		c.State, c.Text = CheckInfo, "no worker polls yet, "+backlog+"; the host has just started"
	case len(q.Pollers) == 0:
		c.State, c.Text, c.Advice = CheckError, "no worker polls: nothing runs; "+backlog, s.startWorker(q)
		// on a data directory only acescope's own workflows can wait
		waits := q.Backlog > 0 && s.Host.PID == 0
		if !waits && s.OpenRuns == 0 && !s.hosted() {
			c.State, c.Text = CheckInfo, "no worker polls, and no run is open"
		}
	case q.Ours && len(q.foreign()) > 0:
		c.State = CheckError
		c.Text += fmt.Sprintf("; not acescope: %s, which fails acescope's steps",
			strings.Join(q.foreign(), ", "))
		c.Advice = "let it poll a task queue of its own, or serve acescope's runs on another one with --task-queue"
	case q.oldest() > oldBacklog:
		c.State, c.Advice = CheckWarning, "the workers do not keep up: start another one, "+s.startWorker(q)
	default:
		c.At = q.Pollers[0].Last
	}
	return c
}

// hosted reports whether another process, or this one with workers, hosts the server.
func (s *System) hosted() bool {
	return s.Host.PID != 0 && (s.Host.PID != s.Process.PID || s.Host.Worker)
}

// Starting reports whether the host started moments ago; its workers begin after its server.
func (s *System) Starting() bool { return s.hosted() && s.At.Sub(s.Host.Started) < startsFor }

// foreign returns the pollers that are not acescope's workers.
func (q Queue) foreign() []string {
	var out []string
	for _, p := range q.Pollers {
		if !strings.HasPrefix(p.Identity, ace.WorkerIdentity) {
			out = append(out, p.Identity)
		}
	}
	return out
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

// check warns if an agent is installed but cannot be called.
func check(a cluster.ToolCheck) Check {
	c := Check{Section: SectionAgents, Name: a.Name, State: a.State, Text: a.Text}
	if a.State == CheckError {
		c.State, c.Advice = CheckWarning, "run \"acescope doctor\" for details"
	}
	return c
}

func (src SourceAge) Check() Check {
	c := Check{Section: SectionSources, Name: src.Name, State: src.State, Text: src.Text, At: src.Since}
	if src.Dropped > 0 {
		c.Text = strings.TrimPrefix(fmt.Sprintf("%s, %d dropped", c.Text, src.Dropped), ", ")
	}
	return c
}

// SpoolCheck is the name of the row about observers' events that the server refused.
const SpoolCheck = "spool"

func (s *System) spoolCheck() Check {
	c := Check{Section: SectionSources, Name: SpoolCheck, State: CheckOK, Text: "no refused events"}
	switch q := s.Spool; {
	case s.SpoolErr != "":
		c.State, c.Text = CheckWarning, s.SpoolErr
	case q.Quarantined > 0:
		c.State, c.Advice = CheckError, q.Advice()
		c.Text = fmt.Sprintf("the server refused %s of observed runs: %s", ace.Count(q.Quarantined, "event"),
			q.Reason)
	}
	return c
}

func (s *System) callChecks() []Check {
	if len(s.Calls) == 0 {
		return nil
	}
	made, failed := 0, 0
	all := Check{Section: SectionCalls, Name: "all calls", State: CheckOK}
	out := []Check{all}
	for _, call := range s.Calls {
		made += call.PerMinute
		failed += call.Failed
		c := Check{Section: SectionCalls, Name: call.Name, State: CheckOK,
			Text: fmt.Sprintf("%d a minute", call.PerMinute)}
		if !call.Waits && call.PerMinute > 0 {
			c.Text += fmt.Sprintf(", p50 %s, p95 %s", shortly(call.P50MS), shortly(call.P95MS))
		}
		if call.Failed > 0 {
			c.State, c.Text = CheckWarning, c.Text+fmt.Sprintf(", %d failed: %s", call.Failed, call.LastError)
		}
		out = append(out, c)
	}
	out[0].Text = fmt.Sprintf("%d in the last minute, %d failed", made, failed)
	if failed > 0 {
		out[0].State = CheckWarning
	}
	return out
}

func shortly(ms float64) string {
	return cluster.Milliseconds(ms).Round(100 * time.Microsecond).String()
}

func (q Queue) oldest() time.Duration { return cluster.Milliseconds(q.OldestMS) }

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
		{Section: SectionProcess, Name: "memory", State: CheckOK, Text: memory},
		{Section: SectionProcess, Name: "collector", State: CheckOK,
			Text: fmt.Sprintf("%s, %s paused in all", ace.Count(p.GCs, "collection"),
				p.GCPause.Round(time.Microsecond))},
		{Section: SectionProcess, Name: "process", State: CheckOK, At: p.Started,
			Text: fmt.Sprintf("%d, %s", p.PID, ace.Count(p.Goroutines, "goroutine"))},
	}
	if p.Snapshots > 0 {
		out[2].Text += ", " + ace.Count(int64(p.Snapshots), "snapshot") + " made"
	}
	if c := p.Screen; c.Frames > 0 {
		out = append(out, Check{Section: SectionProcess, Name: "screen", State: CheckOK,
			Text: fmt.Sprintf("%.1f frames a second, the slowest drawn in %s; %s shown, %s skipped",
				c.PerSecond, shortly(cluster.Millis(c.Slowest)), ace.Count(int64(c.Shown), "snapshot"),
				ace.Number(int64(c.Skipped)))})
	}
	return out
}

// Bytes formats a number of bytes: "512 B", "1.5 MiB".
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
