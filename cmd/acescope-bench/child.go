package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"
)

// Kinds of child processes.
const (
	kindLoad    = "load"    // run tasks and say how long they took
	kindHost    = "host"    // host a data directory until told to end
	kindFirst   = "first"   // start the server and the first task
	kindFrame   = "frame"   // run a console and type
	kindSession = "session" // run one long session for a tail
	kindScroll  = "scroll"  // run a console and go through a long list
	kindHistory = "history" // run a console and open a long history
	kindLong    = "long"    // run a workflow with a long history

	kindTranscripts = "transcripts" // run a console and index transcripts
	kindStream      = "stream"      // read the output of agents
	kindRuns        = "runs"        // run programs on runners, and bare
	kindDispatch    = "dispatch"    // fill the dispatcher
)

// Variants of a child.
const (
	ours = "ours"
	bare = "bare"
)

// spec is what a child is told to do, as JSON in its argument.
type spec struct {
	Kind     string `json:"kind"`
	Variant  string `json:"variant,omitempty"`
	Dir      string `json:"dir"`
	Tasks    int    `json:"tasks,omitempty"`
	Every    int    `json:"every,omitempty"` // tasks of a stretch
	Turns    bool   `json:"turns,omitempty"` // begin a stretch when told
	Alone    int    `json:"alone,omitempty"` // but not those of the first so many tasks
	Steps    int    `json:"steps,omitempty"` // activities of a bare task
	LingerMS int    `json:"linger_ms,omitempty"`
	Events   int    `json:"events,omitempty"` // of a session
	Seconds  int    `json:"seconds,omitempty"`
	Profile  string `json:"profile,omitempty"`
	Name     string `json:"name,omitempty"` // of the profile's file
}

func (s spec) linger() time.Duration { return time.Duration(s.LingerMS) * time.Millisecond }

// child does what the argument says; its answers are lines of JSON on standard output.
func child(arg string) error {
	var s spec
	if err := json.Unmarshal([]byte(arg), &s); err != nil {
		return fmt.Errorf("child: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch s.Kind {
	case kindLoad:
		return load(ctx, s)
	case kindHost:
		return host(ctx, s)
	case kindFirst:
		return first(ctx, s)
	case kindFrame:
		return frames(ctx, s)
	case kindSession:
		return session(ctx, s)
	case kindScroll:
		return scrolling(ctx, s)
	case kindHistory:
		return opening(ctx, s)
	case kindLong:
		return makeLong(ctx, s)
	case kindTranscripts:
		return indexing(ctx, s)
	case kindStream:
		return reading(s)
	case kindRuns:
		return programsChild(ctx, s)
	case kindDispatch:
		return dispatchChild(ctx, s)
	}
	return fmt.Errorf("child: no kind %q", s.Kind)
}

func tell(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }

func childCommand(ctx context.Context, s spec) *exec.Cmd {
	arg, err := json.Marshal(s)
	if err != nil {
		panic(err) // a struct of plain fields
	}
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	cmd := exec.CommandContext(ctx, self, "child", string(arg))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopPatience
	cmd.Stderr = os.Stderr
	return cmd
}

// ask runs a child to its end and gives each of its lines to fn.
func ask[T any](ctx context.Context, s spec, fn func(T) error) error {
	cmd := childCommand(ctx, s)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		var line T
		if err = json.Unmarshal(scanner.Bytes(), &line); err == nil {
			err = fn(line)
		}
		if err != nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			break
		}
	}
	return errors.Join(err, scanner.Err(), cmd.Wait())
}

// heapProfile writes what the heap holds after a collection.
func heapProfile(s spec, name string) error {
	if s.Profile == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(s.Profile, name+"-heap.pprof"))
	if err != nil {
		return err
	}
	runtime.GC()
	return errors.Join(pprof.WriteHeapProfile(f), f.Close())
}

// profile writes a CPU profile until the returned function is called.
func profile(s spec, name string) (stop func(), err error) {
	if s.Profile == "" {
		return func() {}, nil
	}
	f, err := os.Create(filepath.Join(s.Profile, name+".pprof"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); f.Close() }, nil
}
