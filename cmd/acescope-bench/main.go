// Command acescope-bench measures acescope side by side with what a user would otherwise use: the
// temporal command, a bare Temporal worker, jq, or a plain loop. docs/dev/bench.sh runs it. It may
// import everything; nothing imports it.
//
// What one process can measure is a Go benchmark next to the code; this program runs it and prints
// its metrics with the others. What needs several processes is here, written like a test: [check]
// ends a section with an error.
//
// Order: ours and peer take turns in one run, and the ratio is the ratio of their medians. Loss: a
// section that fails is reported, the others still run, and the exit code is 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"
)

// section is a part of the benchmark that can be run by name.
type section struct {
	name     string
	measures string
	peer     string // what it is compared with; "" for nothing
	run      func(*bench)
}

// sections in the order in which they run. growth creates the runs that list, idle and console use.
var sections = []section{
	{"start", "exec to the first frame of the console; exec to the first task", "a plain embedded server", start},
	{"tail", "a tool event to its line of acescope tail", "", tail},
	{"tasks", "throughput and CPU of tasks", "a bare worker", tasks},
	{"growth", "throughput after many tasks", "an empty data directory", growth},
	{"list", "acescope list", "temporal workflow list", list},
	{"idle", "CPU of an idle server", "", idle},
	{"console", "CPU and output of an idle console", "", console},
	{"frame", "the console while events come and a user types", "the table of Bubbles", frame},
	{"scroll", "scrolling through 100,000 runs", "", scroll},
	{"history", "opening and searching a history of 50,000 events", "", history},
	{"logs", "following a log at full speed", "tail | jq", logs},
	{"diff", "acescope diff of two long histories", "", diff},
	{"step", "reading a long history and seeking in it", "the bare JSON decoder", step},
	{"verify", "verifying histories, in one process and on two cores", "the SDK's replayer; one core", verify},
	{"hook", "acescope-hook, and from the hook to the screen", "/bin/cat", hook},
	{"transcripts", "indexing transcripts while a user types", "", transcripts},
	{"stream", "parsing the output of agents", "encoding/json", stream},
	{"runs", "runs of a blueprint", "a bare activity; a fixed task queue", runs},
	{"dispatch", "the dispatcher while many runs wait", "", dispatch},
}

// bench is one run of this program.
type bench struct {
	ctx      context.Context
	acescope string // program under measurement
	temporal string // the temporal command
	dir      string // all files are written below it
	profile  string // directory for profiles; "" for none
	size     sizes
	report   *report
	cleanups []func() // at the end of the section
}

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
}

var (
	fullSizes = sizes{runs: 3, list: 10_000, tasks: 1000, growth: 10_000, events: 300, idleSecs: 20,
		consoleSecs: 30, typingSecs: 20, megabytes: 1024, programs: 1000, pending: 10_000}
	quickSizes = sizes{runs: 2, list: 1000, tasks: 200, growth: 1000, events: 60, idleSecs: 5,
		consoleSecs: 5, typingSecs: 5, megabytes: 64, programs: 100, pending: 1000}
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := try(func() {
		if len(os.Args) == 3 && os.Args[1] == "child" {
			runChild(ctx, os.Args[2])
		} else {
			runSections(ctx)
		}
	})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "acescope-bench:", err)
		os.Exit(1)
	}
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

func usage() {
	fmt.Fprintln(os.Stderr, "usage: acescope-bench [flags] [SECTION...]\n\nSections (default all):")
	w := tabwriter.NewWriter(os.Stderr, 0, 4, 2, ' ', 0)
	for _, s := range sections {
		peer := ""
		if s.peer != "" {
			peer = "; peer: " + s.peer
		}
		fmt.Fprintf(w, "  %s\t%s%s\n", s.name, s.measures, peer)
	}
	w.Flush()
	fmt.Fprintln(os.Stderr, "\nFlags:")
	flag.PrintDefaults()
}

func runSections(ctx context.Context) {
	b := &bench{ctx: ctx, size: fullSizes, report: &report{out: os.Stdout}}
	flag.StringVar(&b.acescope, "acescope", "bin/acescope", "`program` to measure")
	flag.StringVar(&b.temporal, "temporal", "", "temporal `command` to compare with (default: built below -dir)")
	flag.StringVar(&b.dir, "dir", ".cache/bench", "`directory` of everything that is written")
	flag.StringVar(&b.profile, "profile", "", "write profiles of servers and benchmarks to this `directory`")
	quick := flag.Bool("quick", false, "use small sizes, to try the benchmark; the figures are not reliable")
	runs := flag.Int("runs", 0, "`number` of attempts (default 3; 2 with -quick)")
	flag.BoolVar(&b.report.json, "json", false, "write one JSON object per figure instead of a table")
	flag.Usage = usage
	flag.Parse()
	if *quick {
		b.size = quickSizes
	}
	if *runs > 0 {
		b.size.runs = *runs
	}
	for _, name := range flag.Args() {
		if !slices.ContainsFunc(sections, func(s section) bool { return s.name == name }) {
			fail("section %q not found; run acescope-bench -h", name)
		}
	}
	b.prepare()
	var failed []error
	for _, s := range sections {
		if ctx.Err() != nil || flag.NArg() > 0 && !slices.Contains(flag.Args(), s.name) {
			continue
		}
		b.progress("%s …", s.name)
		b.report.section = s.name
		if err := b.runSection(s); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", s.name, err))
		}
	}
	check(errors.Join(append(failed, b.report.end())...))
}

func (b *bench) runSection(s section) error {
	defer func() {
		for _, f := range slices.Backward(b.cleanups) {
			f()
		}
		b.cleanups = nil
	}()
	return try(func() { s.run(b) })
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
	check(os.MkdirAll(filepath.Join(b.dir, "bin"), 0o700))
	if b.profile != "" {
		check(os.MkdirAll(b.profile, 0o700))
	}
}

// progress writes a line to standard error.
func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// cleanup calls f at the end of the section, the last one first.
func (b *bench) cleanup(f func()) { b.cleanups = append(b.cleanups, f) }

// tempDir creates a directory below -dir that is removed at the end of the section.
func (b *bench) tempDir() string {
	dir := must(os.MkdirTemp(b.dir, b.report.section+"-"))
	b.cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
