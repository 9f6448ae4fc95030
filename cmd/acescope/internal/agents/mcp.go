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
	"acescope/engine/tasks/runner"
)

// mcpPort is where tools are served over HTTP, unless somebody says otherwise: clients keep
// an address in their configuration, so that it must not change.
const mcpPort = 7423

// mcpAsk is what the command is asked for.
type mcpAsk struct {
	http      bool
	port      int
	tokenFile string
	session   string
	tags      string
	demands   runner.Requirements
}

func McpCommand(a *cli.App) *cobra.Command {
	var f mcpAsk
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the verbs of runs as tools (Model Context Protocol)",
		Long: "Serves tools to an agent: list_agent_blueprints, start_agent_session, resume_agent_session, get_agent_session_status,\n" +
			"get_agent_session_result, list_agent_sessions and stop_agent_session. Without --http it speaks over standard input and\n" +
			"output with the one client that has started it. With --http it serves clients of this machine that have the token,\n" +
			"until it is interrupted. Where nobody else hosts and serves the data directory, it does: acescope serve beside it\n" +
			"keeps runs going when the client ends it.",
		Example: "claude mcp add acescope -- acescope mcp\nacescope mcp --http --tags external",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serveTools(a, cmd.Context(), cmd.Flags().Changed, f)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.http, "http", false, "serve over streamable HTTP, on this machine only, to whoever has the token")
	fs.IntVar(&f.port, "port", mcpPort, "port for --http; 0 is a free one")
	fs.StringVar(&f.tokenFile, "token-file", "", "file of the token for --http, made where it is not there (default mcp-token in the data directory)")
	fs.StringVar(&f.session, "session", os.Getenv(envSession), "the session whose agent calls: the parent of the runs that it starts, which callbacks go to (default $"+envSession+")")
	fs.StringVar(&f.tags, "tags", "", "only blueprints that have these tags, apart by commas")
	a.AgentDirsFlag(fs)
	demandFlags(fs, &f.demands)
	return cmd
}

// McpLine says where tools are served.
type McpLine struct {
	Type      string `json:"type"` // mcp
	URL       string `json:"url"`
	TokenFile string `json:"token_file"`
}

func serveTools(a *cli.App, ctx context.Context, changed func(string) bool, f mcpAsk) error {
	for _, flag := range []string{"port", "token-file", "json"} {
		if changed(flag) && !f.http {
			return cli.UsageError("--%s goes with --http: without it, standard output belongs to the client", flag)
		}
	}
	if f.port < 0 || f.port > 65535 {
		return cli.UsageError("--port %d: give a number from 0 to 65535", f.port)
	}
	caller := mcp.Caller{Session: f.session, Run: os.Getenv(envRun), Tags: mcp.ParseTags(f.tags), Requirements: f.demands}
	if err := caller.Check(); err != nil {
		return cli.UsageError("--session, or $%s: %w", envRun, err)
	}
	if f.http {
		return toolsOverHTTP(a, ctx, f, caller)
	}
	// Whatever prints by mistake must not come between the messages.
	stdin, stdout := os.Stdin, os.Stdout
	os.Stdout = os.Stderr
	// Without somebody to hear it, this signal ends the process in the middle of a write to a
	// client that is gone.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return withTools(a, ctx, caller, func(s *mcp.Server) error {
		if err := s.ServeStream(ctx, stdin, keptOpen{stdout}); ctx.Err() == nil {
			return err
		}
		return nil
	})
}

// keptOpen is a writer that others may close without an effect.
type keptOpen struct{ io.Writer }

func (keptOpen) Close() error { return nil }

func toolsOverHTTP(a *cli.App, ctx context.Context, f mcpAsk, caller mcp.Caller) error {
	l, err := mcp.Listen(f.port)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d is in use, perhaps by another acescope mcp: give --port N, or 0 for a free one", f.port)
	}
	if err != nil {
		return err
	}
	defer l.Close()
	path, token, err := toolToken(a, f.tokenFile)
	if err != nil {
		return err
	}
	return withTools(a, ctx, caller, func(s *mcp.Server) error {
		if err := announceTools(a, McpLine{"mcp", mcp.URL(l), path}); err != nil {
			return err
		}
		if err := s.ServeHTTP(ctx, l, token); ctx.Err() == nil {
			return err
		}
		return nil
	})
}

// toolToken is the token that clients must have, and its file.
func toolToken(a *cli.App, path string) (string, string, error) {
	if path == "" {
		dir, err := a.DataDir()
		if err != nil {
			return "", "", err
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", "", fmt.Errorf("data directory %s: %w", dir, err)
		}
		path = filepath.Join(dir, "mcp-token")
	}
	token, err := mcp.LoadToken(path)
	return path, token, err
}

func announceTools(a *cli.App, l McpLine) error {
	if a.JSON {
		return cli.NewLines(a.Out).Write(l)
	}
	_, err := fmt.Fprintf(a.Out, "tools are served at %s; the token is in %s\n", l.URL, l.TokenFile)
	return err
}

// withTools connects and makes the server of the tools. On a data directory of its own it
// serves runs too, and takes over when the process that hosts ends.
func withTools(a *cli.App, ctx context.Context, caller mcp.Caller, do func(*mcp.Server) error) error {
	dir, err := a.DataDir()
	if err != nil {
		return err
	}
	here := a.Cluster() == nil
	e, done, err := a.Connect(ctx, engine.Options{Worker: here, Takeover: here})
	if err != nil {
		return err
	}
	defer done()
	log, closeLog, err := cli.OpenLog(dir, true)
	if err != nil {
		return err
	}
	defer closeLog()
	verbs, err := RunVerbs(a, e)
	if err != nil {
		return err
	}
	s := mcp.New(mcp.Options{Service: verbs, Version: cli.BuildVersion(), Caller: caller, Artifacts: e.Artifacts, Logger: log})
	defer s.Close()
	return do(s)
}
