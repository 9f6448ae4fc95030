// Package cluster reads from one Temporal server: pages of histories, chains of runs, errors by kind. Deps
// holds everything that readers read from.
package cluster

import (
	"context"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/temporal/codec"
	"acescope/engine/temporal/replay"
)

// Deps are what a store reads from.
type Deps struct {
	Client    client.Client
	Namespace string
	TaskQueue string
	// Books is where playbook versions lie, nil where there are none here.
	Books *playbook.Store
	// NoBooks says why there are no playbooks in Books; nil where that needs no saying.
	NoBooks func() string
	// Artifact reads an artifact of at most limit bytes and checks it against the
	// reference; nil where there are none here.
	Artifact func(ref ace.Ref, limit int64) ([]byte, error)
	// ArtifactPath is the file of an artifact that is here; nil where there are none.
	ArtifactPath func(ref ace.Ref) (string, error)
	// DataDir is the local data directory: its logs can be followed.
	DataDir string
	// TurnLog is the file that holds, on this machine, what an attempt at a turn of a session
	// says, as it is written; nil where there are none.
	TurnLog func(workflowID, runID string, turn int, attempt int32) string
	// Codec is the codec server that the client reads payloads through, nil where there is
	// none.
	Codec *codec.Server
	// Meter counts the calls to the server, nil where nobody counts.
	Meter *Meter
	// Host says who hosts the server and how much room is left; nil where nobody knows.
	Host func() Host
	// Agents looks which agents can be called here; nil where nobody calls any.
	Agents func(ctx context.Context) []AgentCheck
	// Screen counts what is drawn, nil where nothing is.
	Screen func() Screen
	// Verify replays a history with today's workflow code, strictly or as Temporal judges;
	// nil where there is none here.
	Verify func(ctx context.Context, events []*historypb.HistoryEvent, strict bool) replay.Verdict
}

// Host is what this process knows of where the server runs.
type Host struct {
	PID     int       // of the process that hosts, 0 for a cluster
	Version string    // acescope's, of that process
	Started time.Time // zero where unknown
	DataDir string
	Free    uint64 // bytes left on the data directory's file system
	FreeErr string
	Worker  bool  // this process serves runs
	Size    int64 // bytes in the data directory
	Files   int
	Partial bool // there are more files than were counted
	SizeErr string
}

// AgentCheck says whether an agent's command line can be called on this machine.
type AgentCheck struct {
	Name string
	OK   bool
	Text string
}

// Screen is what the console drew since it began. PerSecond and Slowest are of the last
// ten seconds.
type Screen struct {
	Frames    uint64
	PerSecond float64
	Slowest   time.Duration // to draw a frame
	Shown     uint64        // snapshots
	Skipped   uint64        // snapshots that a newer one replaced before they were shown
}
