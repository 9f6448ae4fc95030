package host

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/internal/process"
	"acescope/engine/store/artifact"
	"acescope/engine/tasks/executor"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// MaxSlots bounds the runs that one runner executes at a time.
const MaxSlots = 256

// Options configure a [Host].
type Options struct {
	ID           string // "": [ID]
	Capabilities runner.Capabilities
	External     []executor.External // in addition to the built-in executors
	SessionQueue string              // of the agent sessions of this machine, if any
	Version      string

	Client    client.Client
	TaskQueue string // of the workers that execute the runner's workflow; "": [ace.TaskQueue]
	DataDir   string // absolute
	Artifacts *artifact.Store

	Stale, Remove time.Duration // 0: [runner.DefaultStaleAfter] and [runner.DefaultRemoveAfter]
	Drain         time.Duration // how long runs may continue while the runner drains; 0: no limit
	Grace         time.Duration // between SIGTERM and SIGKILL; 0: the default
	WaitForLock   bool          // wait while another process is this runner
	OnEvent       func(Event)   // may be nil; must not block
	Logger        *slog.Logger  // nil: no log
}

// EventKind is the kind of an [Event].
type EventKind string

// Kinds of events.
const (
	Waiting    EventKind = "waits"      // another process is this runner, or the server is unreachable
	Registered EventKind = "registered" // also after a lost lease
	LeaseLost  EventKind = "lease_lost"
	RunStarted EventKind = "run_began"
	RunEnded   EventKind = "run_ended"
	Draining   EventKind = "draining"
	Left       EventKind = "left"
)

// Event reports a change of a runner.
type Event struct {
	Kind   EventKind
	Text   string
	Lease  runner.Lease
	Run    *run.Input  // of RunStarted and RunEnded
	Result *run.Result // of RunEnded
}

// ID returns a runner id that depends on the machine, the user, the directory and the executor
// types only, so that it is the same at each start.
func ID(c runner.Capabilities) string {
	types := slices.Sorted(slices.Values(c.ExecutorTypes))
	return "lnch_" + digest(c.Hostname, c.ProjectDir, strings.Join(types, ","))
}

// UniqueID returns the id of a runner that a user has named. It differs between machines, users
// and data directories, and is the same at each start.
func UniqueID(name, dataDir string) string { return name + "-" + digest(process.Hostname(), dataDir) }

// machineIDFile distinguishes machines of the same name, such as copies of a virtual machine.
const machineIDFile = "/etc/machine-id"

// digest returns a short digest that depends on the machine, the user and the texts.
func digest(texts ...string) string {
	machine, _ := os.ReadFile(machineIDFile) // optional; the texts contain the host name
	texts = append(texts, strings.TrimSpace(string(machine)), strconv.Itoa(os.Getuid()))
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:])[:12]
}

// complete sets defaults and returns an error if an option is invalid.
func (o *Options) complete() error {
	o.TaskQueue = cmp.Or(o.TaskQueue, ace.TaskQueue)
	c := &o.Capabilities
	types := slices.Clone(c.ExecutorTypes)
	for _, x := range o.External {
		if slices.Contains(types, x.Type) {
			return fmt.Errorf("executor %s: another executor has the type %q", x.Path, x.Type)
		}
		types = append(types, x.Type)
	}
	c.ExecutorTypes = slices.Compact(slices.Sorted(slices.Values(types)))
	c.Tags = slices.Compact(slices.Sorted(slices.Values(c.Tags)))
	o.ID = cmp.Or(o.ID, ID(*c))
	switch err := c.Check(); {
	case err != nil:
		return err
	case c.Slots > MaxSlots:
		return fmt.Errorf("slots %d: must be from 1 to %d", c.Slots, MaxSlots)
	case !filepath.IsAbs(c.ProjectDir):
		return fmt.Errorf("project directory %q is not absolute", c.ProjectDir)
	case !run.ValidName(o.ID):
		return fmt.Errorf("%q is not a valid runner id: use letters, digits, dots, dashes and underscores",
			o.ID)
	}
	o.Stale = cmp.Or(max(o.Stale, 0), runner.DefaultStaleAfter)
	o.Remove = cmp.Or(max(o.Remove, 0), runner.DefaultRemoveAfter)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.OnEvent == nil {
		o.OnEvent = func(Event) {}
	}
	return nil
}
