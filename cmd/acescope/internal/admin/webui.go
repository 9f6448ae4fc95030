package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/temporal/webui"
	sourceruns "acescope/sources/runs"
)

func WebCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "web [TASK]",
		Short: "Open a run in the Temporal Web UI, or the list of runs",
		Long: "Open a run in the Temporal Web UI, or the list of runs. Prints a link that works once, for\n" +
			"10 minutes, and opens it if standard output is a terminal and this machine has a browser. A\n" +
			"process must serve the Web UI: \"acescope serve --ui\", or a console in which W was pressed. For a\n" +
			"cluster with a Web UI of its own, set its address with --ui-address; that of Temporal Cloud is known.",
		Example: "acescope web finance-1-e1-0042\nacescope web --json | jq -r .url",
		RunE:    func(cmd *cobra.Command, args []string) error { return web(a, cmd.Context(), args) },
	}
}

type WebLine struct {
	URL        string `json:"url" jsonschema:"link; that of acescope's own Web UI works once, for 10 minutes"`
	WorkflowID string `json:"workflow_id,omitempty"`
	RunID      string `json:"run_id,omitempty"`
}

func web(a *cli.App, ctx context.Context, args []string) error {
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	line := WebLine{}
	if len(args) > 0 {
		found, err := sourceruns.Resolve(ctx, e.Client, args[0])
		if err != nil {
			return err
		}
		exec := found.GetWorkflowExecutionInfo().GetExecution()
		line.WorkflowID, line.RunID = exec.GetWorkflowId(), exec.GetRunId()
	}
	line.URL, err = webLink(a, ctx, e, sourceruns.ID{WorkflowID: line.WorkflowID, RunID: line.RunID})
	if errors.Is(err, webui.ErrNotServed) {
		err = fmt.Errorf(`%w of %s: run "acescope serve --ui", or press W in the console`, err, e.DataDir())
	}
	if err != nil {
		return err
	}
	if _, _, ok := cli.Terminal(a.Out); ok && !a.JSON && cli.OpenBrowser(line.URL) {
		return cli.Report(a, line, "opened in the browser: %s", line.URL)
	}
	return cli.Report(a, line, "%s", line.URL)
}

// webLink returns a link to a run's page in the cluster's own Web UI, or in the one that a process serves.
func webLink(a *cli.App, ctx context.Context, e *engine.Engine, of sourceruns.ID) (string, error) {
	page := webui.Page(e.Namespace(), of.WorkflowID, of.RunID)
	if ui := ownWebUI(a, e); ui != "" {
		return webui.Join(ui, page), nil
	}
	return webui.Ask(ctx, e.DataDir(), webNamespace(e), page)
}

// ownWebUI returns the address of the cluster's own Web UI, "" if it is not known.
func ownWebUI(a *cli.App, e *engine.Engine) string {
	if e.Node() != nil {
		return ""
	}
	return cmp.Or(a.Settings.UIAddress, webui.Of(e.Address()))
}

// webPage implements [console.Options].WebPage. A Web UI that acescope serves needs a link that works once.
func (l *Link) webPage(workflowID, runID string) string {
	e, err := l.ready()
	if err != nil {
		return ""
	}
	ui := ownWebUI(l.app, e)
	if ui == "" {
		return ""
	}
	return webui.Join(ui, webui.Page(e.Namespace(), workflowID, runID))
}

// webNamespace names the namespace of an engine. The embedded server has no address of its own, which can
// change.
func webNamespace(e *engine.Engine) webui.Namespace {
	if e.Node() != nil {
		return webui.Namespace{Name: e.Namespace()}
	}
	return webui.Namespace{Cluster: e.Address(), Name: e.Namespace()}
}

// startWeb serves the Web UI of an engine in this process.
func startWeb(a *cli.App, e *engine.Engine, port int) (*webui.Server, error) {
	dir := e.DataDir()
	if !e.Serves() && e.Node() == nil {
		dir = "" // on a cluster, the data directory may not exist
	}
	s, err := webui.Start(webui.Options{Client: e.Client, Of: webNamespace(e), Dir: dir, Port: port,
		ReadOnly: a.Settings.ReadOnly})
	switch {
	case err != nil && port > 0:
		return nil, fmt.Errorf("serve the Web UI on --ui-port %d: %w", port, err)
	case err != nil:
		return nil, fmt.Errorf("serve the Web UI: %w", err)
	}
	return s, nil
}

// ownWeb is the Web UI that this console serves.
type ownWeb struct {
	mu     sync.Mutex
	server *webui.Server // nil until it is needed
	closed bool
}

func (o *ownWeb) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if o.server != nil {
		o.server.Close()
	}
}

// openWeb implements [console.OpenWeb]. Unless another process serves the Web UI, the console does until it
// ends.
func (l *Link) openWeb(ctx context.Context, of sourceruns.ID) (url string, opened bool, err error) {
	err = l.do(func(e *engine.Engine) error {
		url, err = l.webLink(ctx, e, of)
		return err
	})
	return url, err == nil && cli.OpenBrowser(url), err
}

func (l *Link) webLink(ctx context.Context, e *engine.Engine, of sourceruns.ID) (url string, err error) {
	l.web.mu.Lock()
	defer l.web.mu.Unlock()
	if l.web.closed {
		return "", errNotConnected
	}
	if l.web.server == nil {
		if url, err = webLink(l.app, ctx, e, of); !errors.Is(err, webui.ErrNotServed) {
			return url, err
		}
		if l.web.server, err = startWeb(l.app, e, 0); err != nil {
			return "", err
		}
	}
	return l.web.server.Link(webui.Page(e.Namespace(), of.WorkflowID, of.RunID)), nil
}
