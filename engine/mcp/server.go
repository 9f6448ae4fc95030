package mcp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"acescope/engine/ace"
	"acescope/engine/run"
)

// Bounds, see the package's rules.
const (
	MaxResult  = 50_000
	MaxWait    = 600 * time.Second
	MaxMessage = 4 << 20
)

// progressEvery is how often a client that asked for it hears of a run that it waits for.
const progressEvery = 5 * time.Second

// Artifacts is where texts lie that are too long for a result.
type Artifacts interface {
	Open(ace.Ref) (io.ReadCloser, error)
	Path(ace.Ref) (string, error) // of its file
}

// Options say what a [Server] serves.
type Options struct {
	Verbs   run.Verbs
	Version string
	Caller  Caller // of every call, unless its headers say otherwise
	// Artifacts is nil where those of the runs are not on this machine.
	Artifacts Artifacts
	Wait      time.Duration // that a call waits for a run at most; 0: MaxWait
	Progress  time.Duration // between two notices of progress; 0: every five seconds
	Logger    *slog.Logger
}

// Server serves tools. It is safe for concurrent use.
type Server struct {
	o    Options
	sdk  *sdk.Server
	bye  context.Context // ends when no call may wait any longer
	stop context.CancelFunc
}

// instructions are what a client may tell its model of the tools as a whole.
const instructions = "These tools start and follow runs of agents and of deterministic programs, both described by blueprints. " +
	"list_agent_blueprints shows what there is: an agent takes a prompt, a deterministic program takes parameters that fit its schema. " +
	"start_agent_session waits for the result with execution_mode sync; with async_poll it answers at once, and get_agent_session_status and " +
	"get_agent_session_result ask later; with async_callback the session that you are is told when the run ends. Runs survive the end of this connection."

// New makes a server. Close ends the waits of its calls.
func New(o Options) *Server {
	o.Wait, o.Progress = cmp.Or(o.Wait, MaxWait), cmp.Or(o.Progress, progressEvery)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{o: o}
	s.bye, s.stop = context.WithCancel(context.Background())
	s.sdk = sdk.NewServer(&sdk.Implementation{Name: "acescope", Title: "acescope", Version: o.Version},
		&sdk.ServerOptions{Instructions: instructions, Logger: quiet(o.Logger), Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}})
	s.addTools()
	return s
}

// Close ends the waits of calls; their runs go on.
func (s *Server) Close() { s.stop() }

// ServeStream speaks with one client, a message a line, until it closes its side or the
// context ends.
func (s *Server) ServeStream(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	err := s.serve(ctx, &sdk.IOTransport{Reader: in, Writer: out, MaxLineLength: MaxMessage})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (s *Server) serve(ctx context.Context, t sdk.Transport) error {
	defer context.AfterFunc(ctx, s.stop)()
	err := s.sdk.Run(ctx, t)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
