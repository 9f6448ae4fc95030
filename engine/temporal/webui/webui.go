// Package webui serves the Temporal Web UI for one namespace on loopback. It is Temporal's own program
// (github.com/temporalio/ui-server), whose pages and settings are served here behind a gate: a browser gets
// in with a link that works once, and then has a cookie.
//
// The API behind the pages calls the server through the process's own client. The client finds the host of an
// embedded server also after a takeover, sends the credentials, and decodes payloads with the codec server,
// so that the browser gets no credentials and needs no codec endpoint.
//
// The UI is part of acescope rather than a program of its own, because it makes the program only 6.3 MB
// larger (196.4 to 202.8 MB) and adds 27 packages to 1,991, which compile in 6 s of processor time. It
// upgrades only github.com/mattn/go-isatty.
//
// Bounds: [maxLinks] links are open, each for [linkLife]; a request has at most [maxBody] bytes.
//
// Access: on Linux, only the user and root get in. On other systems, another user of the machine can get in
// if that user reads a link in the arguments of the command that starts the browser, or if the user of the
// Web UI opens a page that the other user serves on another port of 127.0.0.1, because browsers send the
// cookie to every port of an address.
//
// The package may import engine/store/durable and engine/internal/loopback; only cmd imports it.
package webui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"go.temporal.io/sdk/client"

	"acescope/engine/internal/loopback"
	"acescope/engine/store/durable"
)

// Options configure a server.
type Options struct {
	Client   client.Client // calls the server for the browser
	Of       Namespace
	Dir      string // data directory in which other processes find the server; "": they do not find it
	Port     int    // 0 for a free port
	ReadOnly bool   // refuse calls that change the server's data
}

// Namespace is a namespace of a server.
type Namespace struct {
	Cluster string `json:"cluster,omitempty"` // address, "" for the embedded server of the data directory
	Name    string `json:"namespace"`
}

// Server is a running Web UI.
type Server struct {
	gate *gate
	file string // "" if other processes do not find the server
	own  entry
	stop context.CancelFunc
	done chan struct{}
}

// Start serves the Web UI until Close.
func Start(o Options) (*Server, error) {
	l, err := loopback.Listen(o.Port)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	pages, err := pages(ctx, o)
	if err != nil {
		cancel()
		return nil, errors.Join(err, l.Close())
	}
	gate := newGate(l.Addr().String(), pages)
	s := &Server{gate: gate, own: entry{o.Of, gate.address, gate.secret}, stop: cancel,
		done: make(chan struct{})}
	if o.Dir != "" {
		s.file = filepath.Join(o.Dir, entryFile)
		if err := s.own.write(s.file); err != nil {
			cancel()
			return nil, errors.Join(err, l.Close())
		}
	}
	go func() {
		defer close(s.done)
		// It ends with ctx: nothing else closes the listener.
		_ = loopback.Serve(ctx, l, &http.Server{Handler: gate, ConnContext: gate.connected})
	}()
	return s, nil
}

// Link returns a link that opens a page once. A page is a path such as [Page] returns.
func (s *Server) Link(page string) string { return s.gate.link(page) }

// Close ends the requests in progress and returns after the last one.
func (s *Server) Close() {
	if s.file != "" {
		s.own.remove(s.file)
	}
	s.stop()
	<-s.done
}

// Page returns the path of a run's page, or that of the namespace's list of runs if workflowID is "". An
// empty runID stands for the newest run.
func Page(namespace, workflowID, runID string) string {
	page := "/namespaces/" + url.PathEscape(namespace) + "/workflows"
	for _, part := range []string{workflowID, runID} {
		if part == "" {
			break
		}
		page += "/" + url.PathEscape(part)
	}
	return page
}

// cloudUI is the Web UI of Temporal Cloud.
const cloudUI = "https://cloud.temporal.io"

// Join returns the URL of a page of the Web UI at an address.
func Join(address, page string) string { return strings.TrimRight(address, "/") + page }

// CheckAddress returns an error if the address of a Web UI is invalid.
func CheckAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" ||
		u.Fragment != "" || u.User != nil {
		return errors.New("not the address of a Web UI: write https://host or https://host/path")
	}
	return nil
}

// Of returns the address of the Web UI of Temporal Cloud for a cluster there, otherwise "".
func Of(cluster string) string {
	host, _, _ := strings.Cut(cluster, ":")
	if strings.HasSuffix(host, ".tmprl.cloud") || strings.HasSuffix(host, ".api.temporal.io") {
		return cloudUI
	}
	return ""
}

// entryFile names the process that serves the Web UI of a data directory.
const entryFile = "webui.json"

// entry is the content of entryFile. The secret only allows requesting links, and only while the process
// lives.
type entry struct {
	Namespace
	Address string `json:"address"`
	Secret  string `json:"secret"`
}

func (e entry) write(file string) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return durable.WriteFile(file, filepath.Dir(file), append(data, '\n'), false)
}

func readEntry(file string) (e entry, err error) {
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	return e, err
}

// remove deletes the file unless another process has replaced it.
func (e entry) remove(file string) {
	if have, err := readEntry(file); err == nil && have == e {
		_ = os.Remove(file)
	}
}

// ErrNotServed means that no process serves the Web UI.
var ErrNotServed = errors.New("no process serves the Web UI")

// Ask returns a link that opens a page once, from the process that serves the Web UI of a namespace in a data
// directory.
func Ask(ctx context.Context, dir string, of Namespace, page string) (string, error) {
	e, err := readEntry(filepath.Join(dir, entryFile))
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && e.Namespace != of:
		return "", ErrNotServed
	case err != nil:
		return "", fmt.Errorf("%w: %s: %w", ErrNotServed, entryFile, err)
	}
	return e.ask(ctx, page)
}
