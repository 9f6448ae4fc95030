package mcp

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"acescope/engine/ace"
	"acescope/engine/tasks/run"
)

// Bounds; see the package documentation.
const (
	MaxResult  = 50_000
	MaxWait    = 600 * time.Second
	MaxMessage = 4 << 20

	maxLine  = 2_000 // characters of an error
	maxQuote = 120   // characters of a value in an error
)

// Artifacts reads the texts that are too long for a result.
type Artifacts interface {
	Open(context.Context, ace.Ref) (io.ReadCloser, error)
	Path(context.Context, ace.Ref) (string, error) // of its file
}

// Options configure a [Server].
type Options struct {
	Service   run.Service
	Version   string
	Caller    Caller        // of every call, unless the headers override it
	Artifacts Artifacts     // nil if they are on another machine
	Approvals Approvals     // of flows
	Wait      time.Duration // for a run, at most; 0: MaxWait
	Progress  time.Duration // between progress notifications; 0: 5 seconds
	Logger    *slog.Logger
}

// Server serves tools. It is safe for concurrent use.
type Server struct {
	o    Options
	sdk  *sdk.Server
	life context.Context // ends the waits of all calls
	stop context.CancelFunc
}

// instructions describe the tools as a whole for the client's model.
const instructions = "These tools start and follow runs of agents and of deterministic programs, both described by blueprints. " +
	"list_agent_blueprints lists the blueprints: an agent takes a prompt, a deterministic program takes parameters that match its schema. " +
	"start_agent_session waits for the result with execution_mode sync; with async_poll it returns immediately, and " +
	"get_agent_session_status and get_agent_session_result return the rest later; with async_callback your own session gets a message " +
	"when the run ends. Runs continue after this connection is closed. list_approvals and decide_approval are for flows, " +
	"workflows of steps that wait for a user's decision."

// New returns a server. Close ends the waits of its calls.
func New(o Options) *Server {
	o.Wait = cmp.Or(o.Wait, MaxWait)
	o.Progress = cmp.Or(o.Progress, 5*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	s := &Server{o: o}
	s.life, s.stop = context.WithCancel(context.Background())
	s.sdk = sdk.NewServer(&sdk.Implementation{Name: "acescope", Title: "acescope", Version: o.Version},
		&sdk.ServerOptions{Instructions: instructions, Logger: warningsOnly(o.Logger),
			Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}})
	s.addTools()
	return s
}

// Close ends the waits of calls; their runs continue.
func (s *Server) Close() { s.stop() }

// ServeStream serves one client with one message per line, until it closes the stream or the
// context ends. A line that is not a message is answered with an error.
func (s *Server) ServeStream(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	in, out = messageLines(in, out)
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

// warningsOnly returns a logger without the SDK's several lines per request.
func warningsOnly(l *slog.Logger) *slog.Logger { return slog.New(warningHandler{l.Handler()}) }

type warningHandler struct{ slog.Handler }

func (h warningHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

func (h warningHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warningHandler{h.Handler.WithAttrs(attrs)}
}

func (h warningHandler) WithGroup(name string) slog.Handler {
	return warningHandler{h.Handler.WithGroup(name)}
}

// call is a call of a tool.
type call struct {
	req    *sdk.CallToolRequest
	caller Caller
}

// by identifies the client in the history.
func (c call) by() string {
	name := ""
	if p := c.req.Session.InitializeParams(); p != nil && p.ClientInfo != nil {
		name = p.ClientInfo.Name
	} else if c.req.Extra != nil {
		name, _, _ = strings.Cut(c.req.Extra.Header.Get("User-Agent"), " ")
	}
	return strings.TrimSpace("mcp " + truncate(oneLine(name), maxQuote))
}

//go:embed tools.json
var toolsJSON []byte

func (s *Server) addTools() {
	addTool(s, "list_agent_blueprints", s.blueprints)
	addTool(s, "start_agent_session", s.start)
	addTool(s, "resume_agent_session", s.resume)
	addTool(s, "get_agent_session_status", s.status)
	addTool(s, "get_agent_session_result", s.result)
	addTool(s, "list_agent_sessions", s.list)
	addTool(s, "stop_agent_session", s.stopRun)
	addTool(s, "list_approvals", s.approvals)
	addTool(s, "decide_approval", s.decide)
}

// inputSchema returns the schema of a tool's arguments.
func inputSchema(tool string) json.RawMessage {
	return json.RawMessage(gjson.GetBytes(toolsJSON, `#(name=="`+tool+`").inputSchema`).Raw)
}

// addTool adds a tool of tools.json, whose arguments are of type In. Errors of the handler are
// tool errors.
func addTool[In any](s *Server, name string, handle func(context.Context, call, In) (any, error)) {
	t := &sdk.Tool{}
	if err := json.Unmarshal([]byte(gjson.GetBytes(toolsJSON, `#(name=="`+name+`")`).Raw), t); err != nil {
		panic(err) // the file is part of the program
	}
	t.InputSchema = inputSchema(name)
	args := newDecoder(inputSchema(name))
	invoke := func(ctx context.Context, req *sdk.CallToolRequest) (any, error) {
		var in In
		if err := args.decode(req.Params.Arguments, &in); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", run.ErrBadRequest, t.Name, err)
		}
		caller, err := s.caller(req)
		if err != nil {
			return nil, err
		}
		return handle(ctx, call{req, caller}, in)
	}
	s.sdk.AddTool(t, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		out, err := invoke(ctx, req)
		if err != nil {
			s.logError(t.Name, err)
			text := &sdk.TextContent{Text: oneLine(run.ErrorText(err))}
			return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{text}}, nil
		}
		data, err := json.Marshal(out)
		if err != nil {
			return nil, err
		}
		// Some clients only read texts.
		return &sdk.CallToolResult{StructuredContent: json.RawMessage(data),
			Content: []sdk.Content{&sdk.TextContent{Text: string(data)}}}, nil
	})
}

// logError logs errors of the server. Mistakes of the caller are not logged, since their errors may quote
// arguments.
func (s *Server) logError(tool string, err error) {
	for _, expected := range []error{run.ErrBadRequest, run.ErrNoBlueprint, run.ErrNotFound, run.ErrOver,
		context.Canceled} {
		if errors.Is(err, expected) {
			return
		}
	}
	s.o.Logger.Warn("a tool failed", "tool", tool, "error", oneLine(err.Error()))
}

// oneLine returns a text as one bounded line without control characters.
func oneLine(s string) string {
	isSpace := func(r rune) bool {
		return r <= ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029'
	}
	return truncate(strings.Join(strings.FieldsFunc(s, isSpace), " "), maxLine)
}

// truncate truncates a text to a number of characters.
func truncate(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// quote quotes a value of the caller for an error.
func quote(s string) string { return truncate(fmt.Sprintf("%q", s), maxQuote) }
