package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/tasks/mcp"
)

type mcpFlags struct {
	http      bool
	port      int
	tokenFile string
	tags      string
	caller    mcp.Caller
}

func McpCommand(a *cli.App) *cobra.Command {
	// Clients keep the port in their configuration, so the default must not change.
	f := mcpFlags{port: 7423, caller: mcp.Caller{Session: os.Getenv(envSession), Run: os.Getenv(envRun)}}
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the actions on runs as tools (Model Context Protocol)",
		Long: `Serves tools to an agent: list_agent_blueprints, start_agent_session, resume_agent_session,
get_agent_session_status, get_agent_session_result, list_agent_sessions and stop_agent_session;
list_approvals and decide_approval for flows.
Without --http it uses standard input and output, for the client that has started it. With --http it
serves all clients on this machine that have the token, until it is interrupted. If no other process
serves the data directory, this one does; run acescope serve beside it so that runs continue when
the client exits.`,
		Example: "claude mcp add acescope -- acescope mcp\nacescope mcp --http --tags external",
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, flag := range []string{"port", "token-file", "json"} {
				if cmd.Flags().Changed(flag) && !f.http {
					return cli.UsageError(
						"--%s needs --http: without it, standard output belongs to the client", flag)
				}
			}
			return serveTools(a, cmd.Context(), f)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.http, "http", false, "serve streamable HTTP on this machine to clients that have the token")
	intVar(fs, &f.port, "port", 0, 65535, "port for --http; 0 chooses a free port")
	fs.StringVar(&f.tokenFile, "token-file", "",
		"file with the token for --http, created if missing (default: mcp-token in the data directory)")
	nameVar(fs, &f.caller.Session, "session",
		"session of the calling agent: the parent of the runs that it starts, which callbacks go to (default $"+
			envSession+")")
	fs.StringVar(&f.tags, "tags", "", "only blueprints with these tags, separated by commas")
	a.AgentDirsFlag(fs)
	requirementFlags(fs, &f.caller.Requirements)
	return cmd
}

type McpLine struct {
	URL       string `json:"url" jsonschema:"URL"`
	TokenFile string `json:"token_file" jsonschema:"file with the token"`
}

func serveTools(a *cli.App, ctx context.Context, f mcpFlags) error {
	f.caller.Tags = mcp.ParseTags(f.tags)
	if err := f.caller.Check(); err != nil {
		return cli.UsageError("$%s or $%s: %w", envSession, envRun, err)
	}
	if f.tokenFile != cli.SafeText(f.tokenFile) {
		return cli.UsageError("--token-file %q: the name has control characters", f.tokenFile)
	}
	if f.http {
		return serveHTTPTools(a, ctx, f)
	}
	// Nothing else may write to standard output, which has the messages to the client.
	stdin, stdout := os.Stdin, os.Stdout
	os.Stdout = os.Stderr
	// Without a handler, this signal ends the process during a write to a client that has exited.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return withToolServer(a, ctx, f.caller, func(s *mcp.Server) error {
		return s.ServeStream(ctx, stdin, neverClosed{stdout})
	})
}

// neverClosed is a writer that ignores Close.
type neverClosed struct{ io.Writer }

func (neverClosed) Close() error { return nil }

func serveHTTPTools(a *cli.App, ctx context.Context, f mcpFlags) error {
	l, err := mcp.Listen(f.port)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d is in use, perhaps by another acescope mcp: "+
			"choose another with --port, or 0 for a free one", f.port)
	}
	if err != nil {
		return err
	}
	defer l.Close()
	if f.tokenFile == "" {
		dir, err := a.OpenDataDir()
		if err != nil {
			return err
		}
		f.tokenFile = filepath.Join(dir, "mcp-token")
	}
	token, err := mcp.LoadToken(f.tokenFile)
	if err != nil {
		return err
	}
	return withToolServer(a, ctx, f.caller, func(s *mcp.Server) error {
		line := McpLine{mcp.URL(l), f.tokenFile}
		if err := cli.Report(a, line, "serving tools at %s; the token is in %s", line.URL,
			line.TokenFile); err != nil {
			return err
		}
		return s.ServeHTTP(ctx, l, token)
	})
}

// withToolServer connects and serves tools until ctx ends. On a data directory this process also serves runs,
// and takes over when the hosting process ends.
func withToolServer(a *cli.App, ctx context.Context, caller mcp.Caller, serve func(*mcp.Server) error) error {
	local := a.Cluster() == nil
	e, err := a.Open(ctx, local)
	if err != nil {
		return err
	}
	log, closeLog, err := cli.OpenLog(e.DataDir(), true)
	if err != nil {
		return err
	}
	defer closeLog()
	service, err := RunService(a, e)
	if err != nil {
		return err
	}
	s := mcp.New(mcp.Options{Service: service, Version: cli.BuildVersion(), Caller: caller,
		Artifacts: e.Artifacts, Approvals: engine.FlowApprovals{Engine: e}, Logger: log})
	defer s.Close()
	if err := serve(s); ctx.Err() == nil {
		return err
	}
	return nil
}
