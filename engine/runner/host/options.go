package host

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"acescope/engine/artifact"
	"acescope/engine/executor"
	"acescope/engine/redact"
	"acescope/engine/run"
	"acescope/engine/runner"
)

// Options say what a runner is and where it keeps things.
type Options struct {
	ID           string // "": [ID]
	Capabilities runner.Capabilities
	External     []executor.External // beside the executors that acescope brings along
	SessionQueue string              // of the agent sessions of this machine, "" for none
	Version      string

	Client    client.Client
	DataDir   string // absolute
	Artifacts *artifact.Store
	// Check tells whether parameters fit a schema.
	Check  func(schema, parameters json.RawMessage) error
	Redact *redact.Redactor // nil for the secrets of the environment

	Stale, Remove time.Duration // 0: [runner.Stale] and [runner.Remove]
	Drain         time.Duration // how long runs may go on when the runner drains; 0 for as long as they take
	Grace         time.Duration // between SIGTERM and SIGKILL; 0 for the usual
	// Insist has the runner wait for as long as another process holds its identity.
	Insist bool
	// Tell is told what happens; nil for nobody. It must not wait.
	Tell   func(Event)
	Logger *slog.Logger
}

// EventKind is the kind of an [Event].
type EventKind string

// Kinds of events.
const (
	Waits      EventKind = "waits"      // another process has the identity, or the server is away
	Registered EventKind = "registered" // and again, after the lease was lost
	LeaseLost  EventKind = "lease_lost"
	RunBegan   EventKind = "run_began"
	RunEnded   EventKind = "run_ended"
	Drains     EventKind = "draining"
	Left       EventKind = "left"
)

// Event is something that happened to a runner.
type Event struct {
	Kind   EventKind
	Text   string
	Lease  runner.Lease
	Run    *run.Input  // of RunBegan and RunEnded
	Result *run.Result // of RunEnded
}

// ID is the identity of a runner by where it is and what it executes, so that it is the same
// at each start.
func ID(c runner.Capabilities) string {
	types := slices.Clone(c.ExecutorTypes)
	slices.Sort(types)
	sum := sha256.Sum256([]byte(c.Hostname + ":" + c.ProjectDir + ":" + strings.Join(types, ",")))
	return "lnch_" + hex.EncodeToString(sum[:])[:12]
}

// MaxSlots bounds the runs that one runner executes at a time.
const MaxSlots = 256

// complete fills in what is not said, and refuses what cannot be.
func (o *Options) complete() error {
	c := &o.Capabilities
	c.ExecutorTypes = slices.Clone(c.ExecutorTypes)
	for _, x := range o.External {
		if slices.Contains(c.ExecutorTypes, x.Type) {
			return fmt.Errorf("executor %s: there is another one of the type %q", x.Path, x.Type)
		}
		c.ExecutorTypes = append(c.ExecutorTypes, x.Type)
	}
	slices.Sort(c.ExecutorTypes)
	c.ExecutorTypes = slices.Compact(c.ExecutorTypes)
	c.Tags = slices.Clone(c.Tags)
	slices.Sort(c.Tags)
	c.Tags = slices.Compact(c.Tags)
	switch {
	case len(c.ExecutorTypes) == 0:
		return errors.New("a runner needs an executor")
	case len(c.Tags) > runner.MaxTags:
		return fmt.Errorf("%d tags: a runner has at most %d", len(c.Tags), runner.MaxTags)
	case c.Slots < 1 || c.Slots > MaxSlots:
		return fmt.Errorf("%d slots: give 1 to %d", c.Slots, MaxSlots)
	case !filepath.IsAbs(c.ProjectDir):
		return fmt.Errorf("project directory %q is not absolute", c.ProjectDir)
	}
	for _, name := range append(slices.Clone(c.Tags), c.ExecutorTypes...) {
		if !run.ValidName(name) {
			return fmt.Errorf("%q can be neither a tag nor an executor's type: give letters, digits, dot, dash and underscore", name)
		}
	}
	if o.ID == "" {
		o.ID = ID(*c)
	}
	if !run.ValidName(o.ID) {
		return fmt.Errorf("%q cannot be a runner's id: give letters, digits, dot, dash and underscore", o.ID)
	}
	if o.Stale <= 0 {
		o.Stale = runner.Stale
	}
	if o.Remove <= 0 {
		o.Remove = runner.Remove
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Tell == nil {
		o.Tell = func(Event) {}
	}
	return nil
}
