// Package cluster reads from one Temporal server: pages of histories, chains of runs, errors by kind. It also
// holds what all readers of a console share: [Deps] and [Link].
package cluster

import (
	"context"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/learning/prompts"
	"acescope/engine/temporal/codec"
	"acescope/engine/temporal/replay"
	"acescope/engine/temporal/replayer"
)

// Deps holds what readers read from.
type Deps struct {
	Client    client.Client
	Namespace string
	TaskQueue string
	// Playbooks stores playbook versions; nil if this machine has no store.
	Playbooks *playbook.Store
	Prompts   *prompts.Store // of phases; nil if this machine has no store
	// NoPlaybooks returns why Playbooks is nil; may be nil.
	NoPlaybooks func() string
	// Artifact reads an artifact of at most limit bytes and checks its hash; nil without an artifact store.
	Artifact func(ctx context.Context, ref ace.Ref, limit int64) ([]byte, error)
	// ArtifactPath returns the file of a local artifact; nil without an artifact store.
	ArtifactPath func(ctx context.Context, ref ace.Ref) (string, error)
	// DataDir is the local data directory, which contains logs.
	DataDir string
	Mirror  Mirror // copies logs of other machines there
	// Transcripts copies transcripts of other machines there.
	Transcripts TranscriptMirror
	// Spool is the directory of observers' records on this machine, or "".
	Spool string
	// TurnLog returns the local file with the live output of an attempt at a session's turn; may be nil.
	TurnLog func(workflowID, runID string, turn int, attempt int32) string
	// TraceCache is the file that keeps what the agents of closed runs did, "" for none; Version is that of the
	// program, whose file another version does not read.
	TraceCache, Version string
	// Codec is the codec server that decodes payloads for Client; may be nil.
	Codec *codec.Server
	// Meter counts the calls to the server; may be nil.
	Meter *Meter
	// Host returns the host of the server and its free space; may be nil.
	Host func() Host
	// Store reads an object of the shared store of the namespace, and returns the store's URL, or "" without
	// a shared store; may be nil.
	Store func(ctx context.Context) (url string, err error)
	// Agents checks which agents can be called on this machine; may be nil.
	Agents func(ctx context.Context) []ToolCheck
	// Screen returns drawing statistics; nil without a screen.
	Screen func() Screen
	// NewVerifier returns a verifier of a batch of histories with the current workflow code, whose programs end
	// with ctx. If strict, differences that Temporal accepts count, too. It is nil if this process has no
	// workflow code.
	NewVerifier func(ctx context.Context, strict bool) Verifier
}

// Verifier verifies histories. It is safe for concurrent use. The user must call Close.
type Verifier interface {
	// Verify verifies a history. stored returns its events with the payloads as the server has them; nil if
	// they are the same.
	Verify(ctx context.Context, events []*historypb.HistoryEvent, stored replayer.Stored) replay.Verdict
	// Unknown returns why this program alone has no verdict on runs of a workflow type, or "".
	Unknown(workflowType string) string
	// Start returns the verdict on a run whose first events show that it cannot be verified.
	Start(events []*historypb.HistoryEvent) (replay.Verdict, bool)
	Close()
}

// Host describes the process and machine that host the server.
type Host struct {
	PID     int       `json:"pid"` // of the host process, 0 for a cluster
	Version string    `json:"version"`
	Started time.Time `json:"started"` // zero if unknown
	DataDir string    `json:"data_dir"`
	Size    int64     `json:"bytes"` // in the data directory
	Files   int       `json:"files"`
	Free    uint64    `json:"free_bytes"` // of the data directory's file system
	FreeErr string    `json:"-"`
	Clock   string    `json:"clock,omitempty"` // what the last step of the clock means for runs
	Worker  bool      `json:"-"`               // this process executes runs
	Partial bool      `json:"-"`               // Size does not count all files
	SizeErr string    `json:"-"`
	Lost    string    `json:"lost,omitempty"` // why the data directory no longer has the host's data
}

// IsZero reports whether no process hosts the server.
func (h Host) IsZero() bool { return h.PID == 0 }

// Severity is how serious a finding or the state of a source is.
type Severity string

// Severities. Info marks something unusable that no setting requires, such as a model server without a key.
const (
	OK      Severity = "ok"
	Info    Severity = "info"
	Warning Severity = "warning"
	Error   Severity = "error"
)

// ErrorUnless returns OK or Error.
func ErrorUnless(ok bool) Severity {
	if ok {
		return OK
	}
	return Error
}

// ToolCheck reports whether an agent's command or a model can be called on this machine.
type ToolCheck struct {
	Name  string   `json:"name"`
	State Severity `json:"state"`
	Text  string   `json:"text"`
}

// Screen holds drawing statistics of the console since its start. PerSecond and Slowest cover the last ten
// seconds.
type Screen struct {
	Frames    uint64
	PerSecond float64
	Slowest   time.Duration // time to draw a frame
	Shown     uint64        // updates
	Skipped   uint64        // updates that were replaced before they were shown
}
