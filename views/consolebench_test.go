//go:build unix

package views_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/price"
	"acescope/engine/agents/transcript"
	"acescope/engine/agents/transcript/transcripttest"
	"acescope/sources"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/historytest"
	"acescope/sources/runs"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/theme"
	"acescope/tui"
	"acescope/views"
	"acescope/views/console"
)

// The benchmarks of this file run the whole console, with its keys and its reader, in a simulated
// terminal. They report metrics of their own, and some measure the memory of the process:
// cmd/acescope-bench runs each of them in a new process.

const (
	benchWidth   = 200
	benchHeight  = 50
	benchTimeout = 2 * time.Minute // of each wait for the console
)

// benchSource is what a console reads and controls.
type benchSource interface {
	tui.Source
	console.Controls
	screens() views.Feeds
	moment() *moment
}

// moment is what the feeds held when the model took a change.
type moment struct {
	Runs        runs.RunList
	Detail      *histories.Detail
	Events      *histories.EventLog
	Transcripts *sessions.Transcripts
}

// feedSource is the source of a real console.
type feedSource struct {
	*sources.Feeds
	tui.Source
}

func newFeedSource() feedSource {
	f := sources.NewFeeds()
	return feedSource{f, views.NewSource(f)}
}

func (s feedSource) screens() views.Feeds { return views.FeedsOf(s.Feeds) }

func (s feedSource) moment() *moment {
	return &moment{Runs: s.Runs.Value(), Detail: s.Detail.Value(), Events: s.Events.Value(),
		Transcripts: s.Transcripts.Value()}
}

// probe is a running program that times the work from each message to its frame and knows what
// a frame shows.
type probe struct {
	b       *testing.B
	model   tea.Model
	source  benchSource // nil for a program without feeds
	program *tea.Program
	input   io.Writer
	ended   chan error
	drawn   chan struct{} // a frame was drawn
	writes  atomic.Int64  // to the terminal, one for each frame
	bytes   atomic.Int64

	mu         sync.Mutex
	applied    *moment    // last one that the model got
	shown      *moment    // by the last frame
	content    string     // of the last frame
	at         time.Time  // of the last frame
	began      time.Time  // of the work on the current message
	work       *[]float64 // list of the current message
	keys, data []float64  // milliseconds of work
}

// openConsole runs a console, with the list of runs, until the benchmark ends.
func openConsole(b *testing.B, s benchSource) *probe {
	screens, global := views.Screens(console.Options{Context: b.Context(), Controls: s}, s.screens())
	model, err := tui.New(tui.Options{Context: b.Context(), Source: s, Screens: screens, Global: global,
		Styles: theme.New(true, false)})
	if err != nil {
		b.Fatal(err)
	}
	p := runProbe(b, model, s)
	p.pressEach("1", 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys, p.data = nil, nil
	return p
}

func runProbe(b *testing.B, model tea.Model, source benchSource) *probe {
	p := &probe{b: b, model: model, source: source, ended: make(chan error, 1), drawn: make(chan struct{}, 1)}
	in, keys := io.Pipe()
	p.input = keys
	p.program = tea.NewProgram(p, tea.WithContext(b.Context()), tea.WithInput(in), tea.WithOutput(p),
		tea.WithWindowSize(benchWidth, benchHeight), tea.WithoutSignals(),
		tea.WithFPS(int(time.Second/tui.DefaultFrame)),
		tea.WithEnvironment([]string{"TERM=xterm-256color", "COLORTERM=truecolor"}))
	go func() {
		_, err := p.program.Run()
		p.ended <- err
	}()
	return p
}

// quit ends the program. The lists of work are complete then.
func (p *probe) quit() {
	p.program.Quit()
	if err := <-p.ended; err != nil && !errors.Is(err, context.Canceled) {
		p.b.Error(err)
	}
}

// Write implements [io.Writer] as the terminal.
func (p *probe) Write(data []byte) (int, error) {
	p.writes.Add(1)
	p.bytes.Add(int64(len(data)))
	return len(data), nil
}

// Init implements [tea.Model].
func (p *probe) Init() tea.Cmd { return p.model.Init() }

// Update implements [tea.Model].
func (p *probe) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	began, work := time.Now(), &p.data
	applied := p.applied
	switch msg.(type) {
	case tea.KeyPressMsg:
		work = &p.keys
	case tea.WindowSizeMsg, tea.ColorProfileMsg, tea.EnvMsg:
		work = nil
	default:
		if p.source != nil {
			applied = p.source.moment()
		}
	}
	model, cmd := p.model.Update(msg)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.model, p.began, p.work, p.applied = model, began, work, applied
	return p, cmd
}

// View implements [tea.Model].
func (p *probe) View() tea.View {
	v := p.model.View()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown, p.content, p.at = p.applied, v.Content, time.Now()
	if p.work != nil {
		*p.work = append(*p.work, millis(p.at.Sub(p.began)))
		p.work = nil
	}
	select {
	case p.drawn <- struct{}{}:
	default:
	}
	return v
}

// press types keys and returns when.
func (p *probe) press(keys string) time.Time {
	at := time.Now()
	if _, err := io.WriteString(p.input, keys); err != nil {
		p.b.Fatal(err)
	}
	return at
}

// pressEach types a key count times, each time after the frame of the one before, and returns the
// milliseconds of work.
func (p *probe) pressEach(key string, count int) []float64 {
	p.mu.Lock()
	from := len(p.keys)
	p.mu.Unlock()
	for n := range count {
		p.press(key)
		p.wait("frame after a key", func() bool { return len(p.keys) > from+n })
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.keys[from : from+count])
}

// until waits for a frame of values for which ok returns true and returns when it was drawn.
func (p *probe) until(what string, ok func(*moment) bool) time.Time {
	return p.wait(what, func() bool { return p.shown != nil && ok(p.shown) })
}

func (p *probe) wait(what string, ok func() bool) time.Time {
	p.b.Helper()
	timeout := time.After(benchTimeout)
	for {
		p.mu.Lock()
		done, at := ok(), p.at
		p.mu.Unlock()
		if done {
			return at
		}
		select {
		case <-p.drawn:
		case err := <-p.ended:
			p.b.Fatalf("the console ended before: %s: %v", what, err)
		case <-timeout:
			p.mu.Lock()
			defer p.mu.Unlock()
			p.b.Fatalf("timeout: %s; the screen is\n%s", what, ansi.Strip(p.content))
		}
	}
}

// snapshot returns what the last frame shows and the time of the frame.
func (p *probe) snapshot() (*moment, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown, p.at
}

// readFeeds returns feeds that read from a server until stop is called.
func readFeeds(b *testing.B, d cluster.Deps) (s feedSource, stop func()) {
	s = newFeedSource()
	s.Link.SetConnection(cluster.Connection{State: cluster.ConnReady, Mode: "remote", Namespace: d.Namespace})
	return s, inBackground(b, func(ctx context.Context) { s.Feeds.Run(ctx, d) })
}

// inBackground calls run and returns a function that cancels its context and waits.
func inBackground(b *testing.B, run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() { run(ctx) })
	return func() {
		cancel()
		wg.Wait()
	}
}

// BenchmarkScroll scrolls page by page through more runs than the console holds, and checks that
// each run is in the list at its place.
func BenchmarkScroll(b *testing.B) {
	const count = 100_000
	for b.Loop() {
		source, stop := readFeeds(b, cluster.Deps{Client: newRunServer(count), Namespace: "bench"})
		p := openConsole(b, source)
		p.until("the list", func(s *moment) bool { return len(s.Runs.Rows) > 0 && s.Runs.Total == count })
		b.ReportMetric(residentMB(), "before-MB")
		began := time.Now()
		seen, held := 0, 0
		var work []float64
		for {
			s, _ := p.snapshot()
			first := int(s.Runs.First)
			if first > seen {
				b.Fatalf("runs %d to %d were not in the list", seen, first)
			}
			for i, r := range s.Runs.Rows {
				if r.RunID != servedRunID(first+i) {
					b.Fatalf("row %d is %s", first+i, r.RunID)
				}
			}
			seen, held = max(seen, first+len(s.Runs.Rows)), max(held, len(s.Runs.Rows))
			if !s.Runs.More {
				break
			}
			work = append(work, p.pressEach("\x1b[6~", 1)...) // page down
		}
		if seen != count {
			b.Fatalf("%d of %d runs were in the list", seen, count)
		}
		b.ReportMetric(time.Since(began).Seconds(), "scroll-s")
		b.ReportMetric(percentile(work, 99), "key-p99-ms")
		b.ReportMetric(float64(held), "held-runs")
		b.ReportMetric(heapMB(), "heap-MB")

		p.press("g")
		p.until("the first run", func(s *moment) bool { return s.Runs.First == 0 })
		pressed := p.press("G")
		last := p.until("the last run", func(s *moment) bool { return !s.Runs.More && s.Runs.Walking == 0 })
		b.ReportMetric(millis(last.Sub(pressed)), "last-ms")
		p.quit()
		stop()
		b.ReportMetric(peakMB(), "peak-MB")
	}
}

// historyEvents is the length of a long history; a server allows 51,200 events.
const historyEvents = 50_000

// BenchmarkHistory opens the timeline of a long history, moves in it and searches it. Embedded
// needs a server in another process with one such run, which the environment describes
// (TEMPORAL_ADDRESS and so on).
func BenchmarkHistory(b *testing.B) {
	b.Run("simulated", func(b *testing.B) {
		h := historytest.NewClient()
		h.Put(servedRunID(0), historytest.Long(historyEvents).Events...)
		openHistory(b, oneRun{h, newRunServer(1)}, "bench")
	})
	b.Run("embedded", func(b *testing.B) { openHistory(b, dialBench(b), ace.DefaultNamespace) })
}

// dialBench returns a client of the server that cmd/acescope-bench started.
func dialBench(b *testing.B) client.Client {
	b.Helper()
	if os.Getenv("ACESCOPE_BENCH_DATA") == "" {
		b.Skip("needs a server; run docs/dev/bench.sh")
	}
	c, err := client.DialContext(b.Context(), envconfig.MustLoadDefaultClientOptions())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	return c
}

func openHistory(b *testing.B, c client.Client, namespace string) {
	for b.Loop() {
		pages := &firstPage{Client: c}
		source, stop := readFeeds(b, cluster.Deps{Client: pages, Namespace: namespace})
		p := openConsole(b, source)
		p.until("the run", func(s *moment) bool {
			return len(s.Runs.Rows) > 0 && s.Detail != nil && s.Detail.Events >= historyEvents
		})
		before := heapMB()
		b.ReportMetric(residentMB(), "before-MB")
		pressed := p.press("3")
		first := p.until("the first screen", func(s *moment) bool {
			return s.Events != nil && s.Events.Len() > 0
		})
		all := p.until("all events", func(s *moment) bool {
			l := s.Events
			return l != nil && l.Unread == 0 && !l.Reading && l.Len() >= historyEvents
		})
		answered := pressed // if the process had read the history before
		if at := pages.at.Load(); at > 0 {
			answered = time.Unix(0, at)
		}
		b.ReportMetric(millis(answered.Sub(pressed)), "byte-ms")
		b.ReportMetric(millis(first.Sub(answered)), "first-ms")
		b.ReportMetric(millis(all.Sub(answered)), "all-ms")
		s, _ := p.snapshot()
		b.ReportMetric(float64(s.Events.Bytes)/(1<<20), "history-MB")
		b.ReportMetric(heapMB()-before, "heap-MB")
		b.ReportMetric(residentMB(), "resident-MB")
		b.ReportMetric(peakMB(), "peak-MB")

		const steps = 300
		bars := append(p.pressEach("k", steps), p.pressEach("j", steps)...)
		b.ReportMetric(percentile(bars, 99), "bars-p99-ms")
		p.press("m")
		list := append(p.pressEach("k", steps), p.pressEach("j", steps)...)
		b.ReportMetric(percentile(list, 99), "list-p99-ms")
		b.ReportMetric(p.search("7", false), "search-ms")
		p.press("P")
		b.ReportMetric(p.search("shareholders", true), "full-search-ms")
		p.quit()
		stop()
	}
}

// search types a search and returns the milliseconds from the last key to the screen with what it
// found.
func (p *probe) search(text string, payloads bool) float64 {
	p.press("/\x15" + text) // ctrl+u empties the line
	pressed := p.press("\r")
	found := 0
	shown := p.until("the search for "+text, func(s *moment) bool {
		l := s.Events
		if l == nil || l.Filter.Include != text || l.Filter.Full != payloads {
			return false
		}
		found = l.Shown()
		return true
	})
	if found == 0 || found == historyEvents {
		p.b.Errorf("the search for %q found %d events", text, found)
	}
	return millis(shown.Sub(pressed))
}

// firstPage is a client that notes when the first page of events that are read backward came. Only
// the timeline reads backward.
type firstPage struct {
	client.Client
	at atomic.Int64
}

func (f *firstPage) WorkflowService() workflowservice.WorkflowServiceClient {
	return firstPageService{f.Client.WorkflowService(), f}
}

type firstPageService struct {
	workflowservice.WorkflowServiceClient
	f *firstPage
}

func (s firstPageService) GetWorkflowExecutionHistoryReverse(ctx context.Context,
	q *workflowservice.GetWorkflowExecutionHistoryReverseRequest, o ...grpc.CallOption) (
	*workflowservice.GetWorkflowExecutionHistoryReverseResponse, error) {
	page, err := s.WorkflowServiceClient.GetWorkflowExecutionHistoryReverse(ctx, q, o...)
	s.f.at.CompareAndSwap(0, time.Now().UnixNano())
	return page, err
}

// oneRun lists one run, whose history another client has.
type oneRun struct {
	*historytest.Client
	list *runServer
}

func (o oneRun) ListWorkflow(ctx context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (
	*workflowservice.ListWorkflowExecutionsResponse, error) {
	return o.list.ListWorkflow(ctx, r)
}

func (o oneRun) CountWorkflow(ctx context.Context, r *workflowservice.CountWorkflowExecutionsRequest) (
	*workflowservice.CountWorkflowExecutionsResponse, error) {
	return o.list.CountWorkflow(ctx, r)
}

func (o oneRun) QueryWorkflow(ctx context.Context, id, runID, name string, args ...any) (
	converter.EncodedValue, error) {
	return o.list.QueryWorkflow(ctx, id, runID, name, args...)
}

func (o oneRun) GetWorkflowHistory(ctx context.Context, id, runID string, poll bool,
	filter enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	return o.list.GetWorkflowHistory(ctx, id, runID, poll, filter)
}

func (o oneRun) CheckHealth(ctx context.Context, r *client.CheckHealthRequest) (
	*client.CheckHealthResponse, error) {
	return o.list.CheckHealth(ctx, r)
}

// BenchmarkHookToScreen measures from the exit of acescope-hook to the frame that shows its tool
// call. The server is another process, which reads the spool that the environment names.
func BenchmarkHookToScreen(b *testing.B) {
	c := dialBench(b)
	hook := func(event string, n int) {
		cmd := exec.CommandContext(b.Context(), os.Getenv("ACESCOPE_BENCH_HOOK"))
		cmd.Stdin = strings.NewReader(
			fmt.Sprintf(`{"session_id":"bench","transcript_path":"/home/u/bench.jsonl",`+
				`"cwd":"/home/u/p","permission_mode":"default","hook_event_name":%q,"prompt":"go","tool_name":"Bash",`+
				`"tool_input":{"command":"go test ./..."},"tool_use_id":"call-%d-%d"}`, event,
				time.Now().UnixNano(), n))
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("hook: %v: %s", err, out)
		}
	}
	source, stop := readFeeds(b, cluster.Deps{Client: c, Namespace: ace.DefaultNamespace,
		DataDir: os.Getenv("ACESCOPE_BENCH_DATA")})
	defer stop()
	p := openConsole(b, source)
	defer p.quit()
	hook("UserPromptSubmit", 0)
	calls := 0
	p.until("the run of the session", func(s *moment) bool {
		if s.Detail == nil || s.Detail.WorkflowID != ace.WorkflowID("claude-bench") {
			return false
		}
		calls = s.Detail.Skills.Total
		return true
	})
	var latencies []float64
	for b.Loop() {
		calls++
		hook("PreToolUse", calls)
		left := time.Now()
		shown := p.until("the tool call", func(s *moment) bool { return s.Detail.Skills.Total >= calls })
		latencies = append(latencies, max(0, millis(shown.Sub(left))))
	}
	b.ReportMetric(percentile(latencies, 50), "p50-ms")
	b.ReportMetric(percentile(latencies, 99), "p99-ms")
}

// BenchmarkTranscripts indexes one transcript of about one megabyte per iteration while a user
// types, and then starts again with the cache.
func BenchmarkTranscripts(b *testing.B) {
	dir := b.TempDir()
	o := transcripttest.Options{Sessions: b.N, Bytes: int64(b.N) << 20, Subagent: 10, Newest: time.Now()}
	made, err := transcripttest.Write(dir, o)
	if err != nil {
		b.Fatal(err)
	}
	cache := filepath.Join(b.TempDir(), "cache")
	cpu := cpuTime()
	b.ResetTimer()
	first := indexTranscripts(b, dir, cache, made)
	b.StopTimer()
	b.ReportMetric(millis(first.newest), "first-ms")
	b.ReportMetric(first.all.Seconds(), "index-s")
	b.ReportMetric(first.readMB/first.all.Seconds(), "index-MB/s")
	b.ReportMetric((cpuTime() - cpu).Seconds(), "cpu-s")
	b.ReportMetric(percentile(first.work, 99), "key-p99-ms")
	b.ReportMetric(first.heapMB, "heap-MB")
	b.ReportMetric(peakMB(), "peak-MB")
	restart := indexTranscripts(b, dir, cache, made)
	if restart.readMB > 0 {
		b.Errorf("the restart read %.0f MB again", restart.readMB)
	}
	b.ReportMetric(millis(restart.all), "restart-ms")
}

type indexing struct {
	newest time.Duration // from the key to the newest session
	all    time.Duration // from the key to the last session
	readMB float64
	heapMB float64
	work   []float64 // milliseconds of each key
}

// indexTranscripts runs a console without a server and types until all sessions are on the screen.
func indexTranscripts(b *testing.B, dir, cache string, made transcripttest.Made) (t indexing) {
	source := newFeedSource()
	stop := inBackground(b, func(ctx context.Context) {
		source.Transcripts.Run(
			ctx, sessions.Local{Roots: []transcripts.Root{{Format: transcript.Of(agentcli.Claude), Dir: dir}},
				Prices: price.Shipped(), Cache: cache})
	})
	defer stop()
	p := openConsole(b, source)
	defer p.quit()
	began := p.press("0")
	t.newest = p.until("the newest session", func(s *moment) bool {
		return s.Transcripts != nil && len(s.Transcripts.Rows) > 0 && s.Transcripts.Rows[0].Known
	}).Sub(began)
	for {
		s, at := p.snapshot()
		progress := s.Transcripts.Progress
		if progress.Files == made.Files && progress.Done == made.Files {
			t.all, t.readMB, t.heapMB = at.Sub(began), float64(progress.Read)/(1<<20), heapMB()
			tokens := int64(0)
			for _, r := range s.Transcripts.Rows {
				tokens += r.Totals.Tokens.Total()
			}
			if tokens != made.Tokens {
				b.Fatalf("%d tokens were counted, not %d", tokens, made.Tokens)
			}
			return t
		}
		t.work = append(t.work, p.pressEach(upOrDown(len(t.work), 50), 1)...)
		time.Sleep(10 * time.Millisecond)
	}
}

// upOrDown returns the n-th key of a user who moves down by count rows and up again.
func upOrDown(n, count int) string {
	if n/count%2 == 0 {
		return "j"
	}
	return "k"
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// percentile returns the nearest-rank percentile, or 0 without values.
func percentile(values []float64, p int) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max((len(sorted)*p+99)/100, 1)-1]
}

// heapMB returns the size of the heap after a collection.
func heapMB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// cpuTime returns the CPU time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// residentMB and peakMB return the resident size of this process and its peak, or 0 if the system is
// not Linux. The peak of getrusage includes the size of the parent process before exec.
func residentMB() float64 { return statusMB("VmRSS:") }
func peakMB() float64     { return statusMB("VmHWM:") }

func statusMB(field string) (kib float64) {
	data, _ := os.ReadFile("/proc/self/status")
	if _, rest, ok := strings.Cut(string(data), field); ok {
		_, _ = fmt.Sscan(rest, &kib)
	}
	return kib / 1024
}
