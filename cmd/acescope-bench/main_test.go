//go:build bench

// Package bench measures acescope side by side with what a user would otherwise use: the temporal
// command, a bare Temporal worker, jq, or a plain loop. docs/dev/bench.sh runs it.
//
// What one process can measure is a Go benchmark next to the code; this package runs it and prints
// its metrics with the others. What needs several processes is here: ours and peer take turns in
// one run, and the ratio is the ratio of their medians. [check] ends a section with an error; the
// other sections still run, and the exit code is 1.
package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// BenchmarkSections runs the sections. Growth creates the runs that list, idle and console use.
func BenchmarkSections(b *testing.B) {
	for _, s := range []struct {
		name string
		run  func(*bench)
	}{
		{"start", start},                // exec to the first frame; against a plain embedded server
		{"tail", tail},                  // a tool event to its line of acescope tail
		{"tasks", tasks},                // throughput and CPU; against a bare worker
		{"growth", growth},              // throughput after many tasks; against an empty data directory
		{"list", list},                  // against temporal workflow list
		{"idle", idle},                  // CPU of an idle server, CPU and memory of idle consoles
		{"console", console},            // CPU and output of an idle console
		{"frame", frame},                // events come and a user types; against the table of Bubbles
		{"scroll", scroll},              // through 100,000 runs
		{"history", history},            // opening and searching 50,000 events
		{"logs", logs},                  // following a log at full speed; against tail | jq
		{"diff", diff},                  // of two long histories
		{"step", step},                  // reading a long history and seeking; against a JSON decoder
		{"verify", verify},              // against the SDK's replayer, and two cores against one
		{"hook", hook},                  // acescope-hook, to the screen; against /bin/cat
		{"transcripts", transcripts},    // indexing while a user types
		{"stream", stream},              // output of agents; against encoding/json
		{"runs", runs},                  // of a blueprint; against a bare activity and a fixed queue
		{"dispatch", dispatch},          // the dispatcher while many runs wait
		{"cluster-tasks", clusterTasks}, // two serving processes of a cluster against one
		{"cluster-list", clusterList},   // of a cluster; against temporal workflow list
		{"evaluation", evaluation},      // of 1,000 items; against bare activities
		// a flow against the same workflow in Go, and a loop of 10,000 iterations
		{"flows", flows},
	} {
		b.Run(s.name, func(b *testing.B) {
			section := settings
			section.B = b
			section.report.section = s.name
			section.progress("%s …", s.name)
			if err := try(func() { s.run(&section) }); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// bench is one run of a section.
type bench struct {
	*testing.B
	ctx      context.Context
	acescope string // program under measurement
	temporal string // the temporal command
	dir      string // all files are written below it
	profile  string // directory for profiles; "" for none
	size     sizes
	report   *report
}

// settings hold what all sections share.
var settings = bench{size: fullSizes, report: &report{out: os.Stdout}}

// sizes determine how much is measured.
type sizes struct {
	runs        int // attempts
	list        int // closed runs in the list
	tasks       int // of one attempt
	growth      int // tasks of the section growth
	events      int // tool events, or runs that are timed one by one
	idleSecs    int // of a server
	consoleSecs int // of an idle console
	typingSecs  int
	megabytes   int // of logs, transcripts and streams
	programs    int // runs of a blueprint
	pending     int // runs that wait for a runner
	clusterList int // closed runs in the list of a cluster
}

var (
	fullSizes = sizes{runs: 3, list: 10_000, tasks: 1000, growth: 10_000, events: 300, idleSecs: 20,
		consoleSecs: 30, typingSecs: 20, megabytes: 1024, programs: 1000, pending: 10_000,
		clusterList: 100_000}
	quickSizes = sizes{runs: 2, list: 1000, tasks: 200, growth: 1000, events: 60, idleSecs: 5,
		consoleSecs: 5, typingSecs: 5, megabytes: 64, programs: 100, pending: 1000,
		clusterList: 10_000}
)

// TestMain reads the flags, or does the work of a child process.
func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) == 3 && os.Args[1] == "child" {
		err = try(func() { runChild(ctx, os.Args[2]) })
	} else {
		err = try(func() { readFlags(ctx); settings.prepare() })
		os.Stdout = os.Stderr // of package testing; the report has the real one
		if err == nil {
			code := m.Run()
			err = settings.report.end()
			if code != 0 {
				err = errors.Join(errors.New("a section has failed"), err)
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "acescope-bench:", err)
		os.Exit(1)
	}
}

// skip ends the section without an error.
func (b *bench) skip(format string, args ...any) {
	b.progress("  skipped: "+format, args...)
	b.report.skipped = true
	b.SkipNow()
}

// failure is what check panics with.
type failure struct{ error }

// check ends the function that try calls if err is not nil. Like Fatal of a test, it may only be
// called by the goroutine of that function.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must is check for functions that also return a value.
func must[T any](v T, err error) T {
	check(err)
	return v
}

// fail is check for a new error.
func fail(format string, args ...any) { check(fmt.Errorf(format, args...)) }

func try(run func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.error
		default:
			panic(r)
		}
	}()
	run()
	return nil
}

func readFlags(ctx context.Context) {
	s := &settings
	s.ctx = ctx
	flag.StringVar(&s.acescope, "acescope", "bin/acescope", "`program` to measure")
	flag.StringVar(&s.temporal, "temporal", "",
		"temporal `command` to compare with (default: built below -dir)")
	flag.StringVar(&s.dir, "dir", ".cache/bench", "`directory` of everything that is written")
	flag.StringVar(&s.profile, "profile", "", "write profiles of servers and benchmarks to this `directory`")
	quick := flag.Bool("quick", false, "use small sizes, to try the benchmark; the figures are not reliable")
	runs := flag.Int("runs", 0, "`number` of attempts (default 3; 2 with -quick)")
	flag.BoolVar(&s.report.json, "json", false, "write one JSON object per figure instead of a table")
	flag.Parse()
	sections := ".*"
	if flag.NArg() > 0 {
		sections = "^(" + strings.Join(flag.Args(), "|") + ")$"
	}
	for name, value := range map[string]string{
		"test.run": "^$", "test.bench": "Sections/" + sections, "test.benchtime": "1x", "test.timeout": "0"} {
		check(flag.Set(name, value))
	}
	if *quick {
		s.size = quickSizes
	}
	if *runs > 0 {
		s.size.runs = *runs
	}
}

// prepare makes paths absolute, because processes have directories of their own, and creates the
// directories.
func (b *bench) prepare() {
	for _, path := range []*string{&b.acescope, &b.temporal, &b.dir, &b.profile} {
		if *path != "" {
			*path = must(filepath.Abs(*path))
		}
	}
	if !exists(b.acescope) {
		fail(`%s not found; run "make build", or name the program with -acescope`, b.acescope)
	}
	// Consoles keep their state; do not use the state of the user.
	check(os.Setenv("XDG_STATE_HOME", filepath.Join(b.dir, "state")))
	check(os.Setenv("ACESCOPE_TRUST_DATA_DIR", "true")) // also those that an engine of this process made
	check(os.MkdirAll(b.dir, 0o755))                    // PostgreSQL is another user and has its data below
	check(os.MkdirAll(filepath.Join(b.dir, "bin"), 0o700))
	if b.profile != "" {
		check(os.MkdirAll(b.profile, 0o700))
	}
}

// progress writes a line to standard error.
func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// tempDir creates a directory below -dir that is removed at the end of the section.
func (b *bench) tempDir() string {
	dir := must(os.MkdirTemp(b.dir, b.report.section+"-"))
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
