// Package server runs a real Temporal server inside the process, on SQLite in a data directory, and
// lets any number of processes of one user share it. It owns the directory's server files:
// host.lock, serve.lock, endpoint.json, format.json, token, trust.json, port, temporal.db (with its -wal and
// -shm) and logs/server.log. It may import engine/ace, engine/internal, and the Temporal server and SDK.
//
// Hosting: [Join] takes an exclusive lock on the directory and on host.lock. The process that gets it
// hosts, the others attach through endpoint.json. The operating system frees the lock however the process
// ends; an attached [Node] then takes it and starts a server on the same data and, if possible, the same
// port. Two servers never work on one database: a host checks its lock every second, gives it up only when
// its server has stopped, and writes lost files again. A node whose server or directory is lost fails
// ([Node.Failed]) and its process should end.
//
// Order and loss: a state change of a workflow is in SQLite's write-ahead log before the server
// acknowledges it. It survives the end of the process, a kill -9 included; a power cut may lose the
// last moments and leaves the database consistent. Clients from [Node.ClientOptions] find a new
// host; calls in flight during a takeover fail or are retried by the SDK.
//
// Time: the clock of the history service, which owns the timers, never goes back, and task queues are loaded
// again after the machine's clock did. Timeouts of activities wait for heartbeats after the machine's clock
// jumped or the process was stopped. See [ClockStep].
//
// Bounds: waiting for a host is limited by the context and by [Options.StartTimeout], [Node.Close]
// by its context, the log by three files of 10 MB.
//
// Access: callers need the token, which is in a file that only its user can read, and a host proves that
// it knows the token before an attached process sends it. The ports between the server's own services
// require a certificate that exists only in this process's memory. Everything listens on 127.0.0.1.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"acescope/engine/internal/sleep"
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
	// Brief makes an attached node wait for another process to take over when the host ends. It becomes
	// the host if none does within [briefPatience]. Short-lived commands set it.
	Brief bool
	// StartTimeout bounds the wait for a server to answer; 0 means 20 seconds.
	StartTimeout time.Duration
	// Key confirms a database that this process creates; see [CheckTrust].
	Key Key
	// Logger receives messages of the node, such as about a takeover; nil discards them. The
	// server's own log is logs/server.log.
	Logger *slog.Logger

	wall func() time.Time // the machine's clock; nil means time.Now
	last time.Time        // of the last host
	// stopTimeout bounds the wait for the server to stop; 0 means 30 seconds.
	stopTimeout time.Duration
}

const unknownVersion = "unknown"

func (o Options) withDefaults() Options {
	if o.StartTimeout <= 0 {
		o.StartTimeout = 20 * time.Second
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.wall == nil {
		o.wall = time.Now
	}
	o.stopTimeout = cmp.Or(o.stopTimeout, 30*time.Second)
	o.Version = cmp.Or(o.Version, unknownVersion)
	return o
}

const (
	// watchInterval is how often an attached node tries the lock: two system calls.
	watchInterval = 500 * time.Millisecond
	// briefPatience is how long a brief node waits for another process to take over.
	briefPatience = time.Second
	// retryInterval is the pause after a failed takeover.
	retryInterval = 2 * time.Second
)

// Role is the role of a node.
type Role int

// Roles. An attached node can become the host. A host becomes attached only if another process got its lock.
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
	info    fs.FileInfo // of the directory
	token   string
	opts    Options
	lock    *hostLock
	changes chan struct{}
	cancel  context.CancelFunc
	watched chan struct{} // closed when the watcher has ended
	failed  chan struct{} // closed when the node has failed

	mu       sync.Mutex
	host     *host       // nil while attached
	endpoint Endpoint    // the last known endpoint
	read     fs.FileInfo // of endpoint.json at the last reading; only the watcher uses it
	closed   bool
	err      error         // why the node has failed
	stopped  chan struct{} // closed when leave has ended
}

// Join hosts the server of a data directory, or attaches to the process that hosts it.
// When several processes join at once, one hosts and the others wait for it. The context
// bounds the start, not the node's lifetime.
func Join(ctx context.Context, opts Options) (*Node, error) {
	opts = opts.withDefaults()
	dir, err := OpenDir(opts.Dir, opts.Version)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, dirError(dir, err)
	}
	nameBuild(opts.Version)
	n := &Node{
		dir: dir, info: info, opts: opts, lock: newHostLock(dir),
		changes: make(chan struct{}, 1),
		watched: make(chan struct{}),
		failed:  make(chan struct{}),
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

// join takes the lock and hosts, or waits until the host answers.
func (n *Node) join(ctx context.Context) error {
	for {
		ok, err := n.lock.tryLock()
		if err != nil {
			return dirError(n.dir, err)
		}
		if ok {
			return n.becomeHost(ctx, n.opts)
		}
		attached, err := n.attach(ctx)
		if attached || err != nil && !errors.Is(err, errNoHost) {
			return err
		}
		if err := sleep.For(ctx, 5*time.Millisecond); err != nil {
			return n.noAnswer(holder(n.dir), err)
		}
	}
}

// attach attaches to the host. It returns errNoHost if no host answers yet.
func (n *Node) attach(ctx context.Context) (bool, error) {
	e, ok := Lookup(n.dir)
	if !ok {
		return false, errNoHost
	}
	if e.Format != formatVersion {
		return false, failf(ErrVersion, nil,
			"data directory %s: hosted by acescope %s (process %d) with format %d, this version has format "+
				"%d; use that version or another --data-dir",
			n.dir, e.Version, e.PID, e.Format, formatVersion)
	}
	token, err := readToken(n.dir)
	if err == nil {
		err = verifyHost(ctx, e, token)
	}
	switch {
	case err == nil:
		n.token, n.endpoint = token, e
		return true, nil
	case errors.Is(err, ErrDataDir):
		return false, err
	case status.Code(err) == codes.DeadlineExceeded && ctx.Err() == nil:
		if now, ok := Lookup(n.dir); ok && now == e { // otherwise the host has ended meanwhile
			return false, n.noAnswer(e.PID, err)
		}
	}
	return false, errNoHost
}

// noAnswer returns the error for a host that does not answer.
func (n *Node) noAnswer(pid int, err error) error {
	process := "another process"
	if pid != 0 {
		process = fmt.Sprintf("process %d", pid)
	}
	return failf(ErrNoAnswer, err,
		"data directory %s: %s hosts its server but does not answer; if it is stopped, resume it (kill "+
			"-CONT), otherwise end it, or choose another directory with --data-dir",
		n.dir, process)
}

// becomeHost starts the server. If that fails, it releases the lock.
func (n *Node) becomeHost(ctx context.Context, opts Options) error {
	h, err := n.startHost(ctx, opts)
	if err != nil {
		n.lock.unlock()
		return err
	}
	n.mu.Lock()
	n.host, n.endpoint = h, h.endpoint
	n.mu.Unlock()
	return nil
}

func (n *Node) startHost(ctx context.Context, opts Options) (h *host, err error) {
	if opts.last, err = n.lock.claim(); err != nil {
		return nil, dirError(n.dir, err)
	}
	token, err := hostToken(n.dir, n.token)
	if err != nil {
		return nil, err
	}
	n.token = cmp.Or(n.token, token)
	return startHost(ctx, n.dir, token, opts)
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

// Failed is closed when the server or the data directory is lost and the process should end; [Node.Err]
// says why.
func (n *Node) Failed() <-chan struct{} { return n.failed }

// Err returns why the node has failed, or nil.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// currentEndpoint returns the endpoint to connect to, or false if no process hosts.
func (n *Node) currentEndpoint() (Endpoint, bool) {
	if n.Role() == Hosting {
		return n.Endpoint(), true
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
		go func() {
			defer close(n.stopped)
			<-n.watched
			if err := n.stopHost(); err != nil {
				n.opts.Logger.Error("stop the server", "error", err)
			}
		}()
	}
	select {
	case <-n.stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stopHost stops the server of this process, if any, and then releases the lock. A server that does not
// stop keeps the lock until the process ends, because it may still write.
func (n *Node) stopHost() error {
	h := n.ownHost()
	if h == nil {
		return nil
	}
	if !h.stop(n.opts.stopTimeout) {
		return failf(ErrBroken, nil, "the embedded Temporal server did not stop within %s; the data "+
			"directory %s stays locked until this process ends",
			n.opts.stopTimeout, n.dir)
	}
	n.lock.writeTime(h.clock.Now())
	n.lock.unlock()
	n.mu.Lock()
	n.host = nil
	n.mu.Unlock()
	return nil
}

// watch guards the server while this process hosts, and waits to take over while it is attached.
func (n *Node) watch(ctx context.Context) {
	defer close(n.watched)
	for ctx.Err() == nil {
		h := n.ownHost()
		if h == nil {
			if err := n.attend(ctx); err != nil {
				n.fail(err)
				return
			}
			continue
		}
		err := n.guard(ctx, h)
		if ctx.Err() != nil {
			return // Close stops the server
		}
		if err != nil {
			n.fail(err) // first, because a broken server stops slowly
		}
		if stopErr := n.stopHost(); err == nil && stopErr != nil {
			err = stopErr
			n.fail(err)
		}
		if err != nil {
			return
		}
		n.notify()
	}
}

// fail reports that this node can neither host nor attach any more.
func (n *Node) fail(err error) {
	n.mu.Lock()
	n.err = err
	n.mu.Unlock()
	close(n.failed)
}

// attend follows the endpoint of the host and takes over when there is no host. It returns nil when ctx
// ends or this process hosts, and otherwise the reason why it never can.
func (n *Node) attend(ctx context.Context) error {
	hosted := time.Now()
	for {
		if err := sameFile(n.dir, n.info); err != nil {
			return movedError(n.dir, err)
		}
		n.follow()
		wait := watchInterval
		locked, err := n.lock.tryLock()
		switch {
		case err == nil && !locked:
			hosted = time.Now()
		case locked && n.opts.Brief && time.Since(hosted) < briefPatience:
			n.lock.unlock()
		case locked:
			err = n.takeOver(ctx)
			if err == nil || ctx.Err() != nil || errors.Is(err, ErrDatabase) || errors.Is(err, ErrVersion) {
				return err
			}
		}
		if err != nil {
			n.opts.Logger.Error("cannot take over the server; trying again", "error", err)
			wait = retryInterval
		}
		if sleep.For(ctx, wait) != nil {
			return nil
		}
	}
}

// takeOver hosts with the lock that the caller has taken.
func (n *Node) takeOver(ctx context.Context) error {
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

// follow reads the endpoint of the host if its file has been replaced.
func (n *Node) follow() {
	info, err := os.Stat(filepath.Join(n.dir, endpointFile))
	if err != nil || n.read != nil && os.SameFile(n.read, info) && n.read.ModTime().Equal(info.ModTime()) {
		return
	}
	n.read = info
	e, ok := Lookup(n.dir)
	n.mu.Lock()
	defer n.mu.Unlock()
	if ok && e != n.endpoint {
		n.endpoint = e
		n.notify()
	}
}
