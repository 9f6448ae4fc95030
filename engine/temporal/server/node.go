// Package server runs a real Temporal server inside the process, on SQLite in a data directory, and
// lets any number of processes of one user share it. It owns the directory's server files:
// host.lock, endpoint.json, format.json, token, port, temporal.db (with its -wal and -shm) and
// logs/server.log. It may import engine/ace, engine/internal/durable, and the Temporal server and SDK.
//
// Hosting: [Join] takes an exclusive lock on host.lock. The process that gets it hosts, the others
// attach through endpoint.json. The operating system frees the lock however the process ends; an
// attached [Node] then takes it and starts a server on the same data and, if possible, the same
// port. Two servers never work on one database.
//
// Order and loss: a state change of a workflow is in SQLite's write-ahead log before the server
// acknowledges it. It survives the end of the process, a kill -9 included; a power cut may lose the
// last moments and leaves the database consistent. Clients from [Node.ClientOptions] find a new
// host; calls in flight during a takeover fail or are retried by the SDK.
//
// Bounds: waiting for a host is limited by the context and by [Options.StartTimeout], [Node.Close]
// by its context and [closeTimeout], the log by three files of 10 MB.
//
// Access: callers need the token, which is in a file that only its user can read. The ports between
// the server's own services require a certificate that exists only in this process's memory.
// Everything listens on 127.0.0.1.
package server

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Options are options for [Join]. Dir is required.
type Options struct {
	// Dir is the data directory. It is created with mode 0700 if it does not exist.
	Dir string
	// Port to listen on when this process hosts; 0 prefers the last port used and falls
	// back to a free one. An attached process ignores it.
	Port int
	// Version of acescope, which is recorded in the files of the data directory.
	Version string
	// NoTakeover keeps an attached node from becoming the host when the host ends.
	// Short-lived commands set it.
	NoTakeover bool
	// StartTimeout bounds the wait for a server to answer; 0 means 20 seconds.
	StartTimeout time.Duration
	// Logger receives messages of the node, such as about a takeover; nil discards them. The
	// server's own log is logs/server.log.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.StartTimeout <= 0 {
		o.StartTimeout = 20 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Version = cmp.Or(o.Version, "unknown")
	return o
}

const (
	// closeTimeout bounds [Node.Close] in addition to its context.
	closeTimeout = 5 * time.Second
	// watchInterval is how often an attached node tries the lock: two system calls.
	watchInterval = 200 * time.Millisecond
	// retryInterval is the pause after a failed takeover.
	retryInterval = 2 * time.Second
)

// Role is the role of a node.
type Role int

// Roles. An attached node can become the host; a host stays the host.
const (
	Attached Role = iota
	Hosting
)

// String returns "hosting" or "attached".
func (r Role) String() string {
	if r == Hosting {
		return "hosting"
	}
	return "attached"
}

// Node is this process's access to the server of a data directory. It is safe for
// concurrent use.
type Node struct {
	dir     string
	token   string
	opts    Options
	lock    *flock.Flock
	changes chan struct{}
	cancel  context.CancelFunc
	watched chan struct{} // closed when the watcher has ended

	mu       sync.Mutex
	host     *host    // nil while attached
	endpoint Endpoint // last known
	closed   bool
	stopped  chan struct{} // closed when the node has left
}

// Join hosts the server of a data directory, or attaches to the process that hosts it.
// When several processes join at once, one hosts and the others wait for it. The context
// bounds the start, not the node's lifetime.
func Join(ctx context.Context, opts Options) (*Node, error) {
	opts = opts.withDefaults()
	dir, err := openDir(opts.Dir)
	if err != nil {
		return nil, err
	}
	token, err := loadToken(dir)
	if err != nil {
		return nil, err
	}
	nameBuild(opts.Version)
	n := &Node{
		dir: dir, token: token, opts: opts, lock: newHostLock(dir),
		changes: make(chan struct{}, 1),
		watched: make(chan struct{}),
		stopped: make(chan struct{}),
	}
	ctx, cancel := context.WithTimeout(ctx, opts.StartTimeout)
	defer cancel()
	if err := n.join(ctx); err != nil {
		return nil, err
	}
	watching, cancelWatch := context.WithCancel(context.Background())
	n.cancel = cancelWatch
	go n.watch(watching)
	return n, nil
}

func (n *Node) tryLock() (bool, error) {
	ok, err := n.lock.TryLock()
	if err != nil {
		return false, dirError(n.dir, err)
	}
	return ok, nil
}

// join takes the lock and hosts, or waits until the host answers.
func (n *Node) join(ctx context.Context) error {
	for {
		ok, err := n.tryLock()
		if err != nil {
			return err
		}
		if ok {
			return n.becomeHost(ctx, n.opts)
		}
		if e, ok := Lookup(n.dir); ok && answers(ctx, e) {
			if e.Format != formatVersion {
				return failf(ErrVersion, nil,
					"data directory %s: hosted by acescope %s (process %d) with format %d, this version has format %d; use that version or another --data-dir",
					n.dir, e.Version, e.PID, e.Format, formatVersion)
			}
			n.endpoint = e
			return nil
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return failf(ErrNoAnswer, err,
				"data directory %s: another acescope process uses it, but its server does not answer; end that process or choose another with --data-dir", n.dir)
		}
	}
}

// becomeHost starts the server. If that fails, it releases the lock.
func (n *Node) becomeHost(ctx context.Context, opts Options) error {
	h, err := startHost(ctx, n.dir, n.token, opts)
	if err != nil {
		n.lock.Close()
		return err
	}
	n.mu.Lock()
	n.host, n.endpoint = h, h.endpoint
	n.mu.Unlock()
	return nil
}

// Role returns the current role.
func (n *Node) Role() Role {
	if n.ownHost() != nil {
		return Hosting
	}
	return Attached
}

// ownHost returns the server of this process, or nil while attached.
func (n *Node) ownHost() *host {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.host
}

// Endpoint returns the last known endpoint, which during a takeover is the former host's.
func (n *Node) Endpoint() Endpoint {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.endpoint
}

// Changes receives a value after a change of the role or the endpoint. Further changes are
// merged into it.
func (n *Node) Changes() <-chan struct{} { return n.changes }

// Dir returns the absolute path of the data directory.
func (n *Node) Dir() string { return n.dir }

// currentEndpoint returns the endpoint to connect to, or false if no process hosts.
func (n *Node) currentEndpoint() (Endpoint, bool) {
	if h := n.ownHost(); h != nil {
		return h.endpoint, true
	}
	return Lookup(n.dir)
}

func (n *Node) notify() {
	select {
	case n.changes <- struct{}{}:
	default:
	}
}

// Close detaches from the server, or stops it if this node hosts. If the context ends first,
// Close returns its error while stopping continues with the lock held. Further calls wait for
// the first.
func (n *Node) Close(ctx context.Context) error {
	n.mu.Lock()
	first := !n.closed
	n.closed = true
	n.mu.Unlock()
	if first {
		n.cancel()
		go n.leave()
	}
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	select {
	case <-n.stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *Node) leave() {
	defer close(n.stopped)
	<-n.watched
	if h := n.ownHost(); h != nil {
		h.stop()
		n.lock.Close()
	}
}

// watch runs while the node is attached. It follows the endpoint of the host and takes over
// when there is no host, unless NoTakeover is set.
func (n *Node) watch(ctx context.Context) {
	defer close(n.watched)
	for n.Role() == Attached {
		wait := watchInterval
		if !n.opts.NoTakeover {
			if err := n.takeOver(ctx); err != nil && ctx.Err() == nil {
				n.opts.Logger.Error("taking over the server failed, trying again", "error", err)
				wait = retryInterval
			}
		}
		n.follow()
		if pause(ctx, wait) != nil {
			return
		}
	}
}

// takeOver hosts if the lock is free.
func (n *Node) takeOver(ctx context.Context) error {
	ok, err := n.tryLock()
	if err != nil || !ok {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, n.opts.StartTimeout)
	defer cancel()
	opts := n.opts
	opts.Port = 0 // prefer the port of the former host, which clients know
	if err := n.becomeHost(ctx, opts); err != nil {
		return err
	}
	n.opts.Logger.Info("took over the server", "address", n.Endpoint().Address)
	n.notify()
	return nil
}

// follow reads the endpoint of the host.
func (n *Node) follow() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e, ok := Lookup(n.dir); ok && n.host == nil && e != n.endpoint {
		n.endpoint = e
		n.notify()
	}
}

func answers(ctx context.Context, e Endpoint) bool {
	d := net.Dialer{Timeout: time.Second}
	conn, err := d.DialContext(ctx, "tcp", e.Address)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
