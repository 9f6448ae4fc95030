// Command acescope-bench measures acescope against what a user would have otherwise: the
// temporal command for lists, and a bare Temporal worker for tasks. docs/dev/bench.sh
// builds what it needs and runs it. It may import everything; nobody imports it.
//
// Order: where there is a peer, ours and the peer's attempts alternate in one run, and
// the ratio is that of their medians. Everything that is measured runs in a process of
// its own. Bounds: nothing is kept but the figures. Loss: a section that fails is
// reported, the others still run, and the exit code is 1.
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
	"strings"
	"syscall"
)

// bench is one run of the program: what was asked for, and the rows measured so far.
type bench struct {
	acescope string // the program under measurement
	temporal string // the peer's
	dir      string // everything that is written lies below
	profile  string // directory for CPU profiles, "" for none
	streams  string // directory of recorded output of agents, by CLI
	size     sizes
	report   *report
}

// sizes say how much is measured.
type sizes struct {
	runs      int // attempts of each kind
	list      int // closed runs in the list
	tasks     int // tasks of one attempt
	growth    int // tasks of the growth run
	events    int // tool events that are tailed
	idleSecs  int
	frameSecs int // of typing
	logMB     int // megabytes of a log that is followed

	consoleSecs int // that a console idles
	programs    int // runs of a blueprint
	pending     int // runs that wait for a runner
}

var (
	fullSize  = sizes{runs: 3, list: 10_000, tasks: 1000, growth: 10_000, events: 300, idleSecs: 20, frameSecs: 20, logMB: 1024, consoleSecs: 30, programs: 1000, pending: 10_000}
	quickSize = sizes{runs: 2, list: 1000, tasks: 200, growth: 1000, events: 60, idleSecs: 5, frameSecs: 5, logMB: 64, consoleSecs: 5, programs: 100, pending: 1000}
)

// section is a part of the benchmark that can be asked for by name.
type section struct {
	name string
	run  func(*bench, context.Context) error
}

// sections in the order in which they run. The growth run leaves the data directory
// that list and idle look at.
var sections = []section{
	{"start", (*bench).start},
	{"tail", (*bench).tail},
	{"tasks", (*bench).tasks},
	{"growth", (*bench).growth},
	{"list", (*bench).list},
	{"idle", (*bench).idle},
	{"console", (*bench).console},
	{"frame", (*bench).frame},
	{"scroll", (*bench).scroll},
	{"history", (*bench).history},
	{"logs", (*bench).logs},
	{"diff", (*bench).diff},
	{"step", (*bench).step},
	{"verify", (*bench).verify},
	{"hook", (*bench).hook},
	{"transcripts", (*bench).transcripts},
	{"stream", (*bench).stream},
	{"runs", (*bench).runs},
	{"dispatch", (*bench).dispatch},
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "child" {
		os.Exit(exit(child(os.Args[2])))
	}
	os.Exit(exit(run()))
}

func exit(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "acescope-bench:", err)
	return 1
}

func run() error {
	b := &bench{size: fullSize}
	var asJSON, quick bool
	var runs int
	flag.StringVar(&b.acescope, "acescope", "bin/acescope", "the program to measure")
	flag.StringVar(&b.temporal, "temporal", ".cache/bench/bin/temporal", "the temporal command to compare with")
	flag.StringVar(&b.dir, "dir", ".cache/bench", "where data directories are made")
	flag.StringVar(&b.profile, "profile", "", "write CPU profiles of the serving processes into this directory")
	flag.StringVar(&b.streams, "streams", "engine/agents/agentcli/testdata", "recorded output of agents, in a directory for each")
	flag.BoolVar(&quick, "quick", false, "small sizes: to see that it works, not to judge by")
	flag.IntVar(&runs, "runs", 0, "attempts of each kind (default 3)")
	flag.BoolVar(&asJSON, "json", false, "write one JSON object a row instead of a table")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "acescope-bench [flags] [SECTION...]\nsections: %s (default all)\n", strings.Join(names(), " "))
		flag.PrintDefaults()
	}
	flag.Parse()
	if quick {
		b.size = quickSize
	}
	if runs > 0 {
		b.size.runs = runs
	}
	chosen, err := choose(flag.Args())
	if err != nil {
		return err
	}
	if err := b.prepare(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b.report = newReport(os.Stdout, asJSON)
	return b.measure(ctx, chosen)
}

func names() (all []string) {
	for _, s := range sections {
		all = append(all, s.name)
	}
	return all
}

func choose(wanted []string) ([]section, error) {
	if len(wanted) == 0 {
		return sections, nil
	}
	for _, name := range wanted {
		if !slices.Contains(names(), name) {
			return nil, fmt.Errorf("no section %q; there are %s", name, strings.Join(names(), ", "))
		}
	}
	var chosen []section
	for _, s := range sections {
		if slices.Contains(wanted, s.name) {
			chosen = append(chosen, s)
		}
	}
	return chosen, nil
}

// prepare makes paths absolute, as processes get directories of their own.
func (b *bench) prepare() error {
	for _, path := range []*string{&b.acescope, &b.temporal, &b.dir, &b.profile} {
		if *path == "" {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = abs
	}
	if _, err := os.Stat(b.acescope); err != nil {
		return fmt.Errorf("%w; build it with make build or name it with -acescope", err)
	}
	// Consoles keep where they were: not in the state of whoever measures.
	if err := os.Setenv("XDG_STATE_HOME", filepath.Join(b.dir, "state")); err != nil {
		return err
	}
	for _, dir := range []string{b.dir, b.profile} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) measure(ctx context.Context, chosen []section) error {
	var failed []error
	for _, s := range chosen {
		b.progress("%s …", s.name)
		if err := s.run(b, ctx); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", s.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(append(failed, b.report.end())...)
}

// progress tells on standard error what goes on.
func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// fresh makes an empty directory below the bench's, and says how to remove it.
func (b *bench) fresh(name string) (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp(b.dir, name+"-")
	return dir, func() { os.RemoveAll(dir) }, err
}
