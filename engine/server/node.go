package server

import (
	"context"
	"os"
	"sync"
	"time"
)

const (
	// closeTimeout bounds [Node.Close] when its context has no earlier end.
	closeTimeout = 5 * time.Second
	// watchInterval is how often an attached node tries the lock: two system calls.
	watchInterval = 200 * time.Millisecond
	// retryInterval is the pause after a takeover that failed.
	retryInterval = 2 * time.Second
)

// Role is what a node does for the server.
type Role int

// Roles of a node. An attached node can become the host; a host stays one.
const (
	Attached Role = iota
	Hosting
)

// String is "hosting" or "attached".
func (r Role) String() string {
	if r == Hosting {
		return "hosting"
	}
	return "attached"
}

// Node is this process's part in the server of a data directory. Its methods may be
// called from any goroutine.
type Node struct {
	dir     string
	token   string
	opts    Options
	lock    *hostLock
	changes chan struct{}
	cancel  context.CancelFunc
	watched chan struct{} // closed when the watcher has ended

	mu       sync.Mutex
	host     *host       // nil while attached
	endpoint Endpoint    // last known
	read     os.FileInfo // of the endpoint file that was read last, nil before
	closed   bool
	stopped  chan struct{} // closed when Close has done its work
}

// Join hosts the server of a data directory if no process does, and otherwise
// attaches to the one that does. When several processes join at once, one hosts and
// the others wait for it. The context bounds the start, not the node's life.
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

// join takes the lock and hosts, or waits until the lock's holder answers.
func (n *Node) join(ctx context.Context) error {
	for {
		ok, err := n.lock.try()
		if err != nil {
			return err
		}
		if ok {
			return n.becomeHost(ctx, n.opts)
		}
		if e, ok := readEndpoint(n.dir); ok && answers(ctx, e) {
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
				"data directory %s: another acescope process holds it, but its server does not answer; end that process or choose another with --data-dir", n.dir)
		}
	}
}

// becomeHost starts the server under the lock, which it gives back on failure.
func (n *Node) becomeHost(ctx context.Context, opts Options) error {
	h, err := startHost(ctx, n.dir, n.token, opts)
	if err != nil {
		n.lock.release()
		return err
	}
	n.mu.Lock()
	n.host, n.endpoint = h, h.endpoint
	n.mu.Unlock()
	return nil
}

// Role is what the node does now.
func (n *Node) Role() Role {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.host != nil {
		return Hosting
	}
	return Attached
}

// Endpoint is the last known endpoint; during a takeover it is the former host's.
func (n *Node) Endpoint() Endpoint {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.endpoint
}

// Changes has a value when the role or the endpoint changed since it was last read.
// It holds one; further changes are merged into it.
func (n *Node) Changes() <-chan struct{} { return n.changes }

// Dir is the absolute path of the data directory.
func (n *Node) Dir() string { return n.dir }

// currentEndpoint is where to connect now, false while nobody hosts.
func (n *Node) currentEndpoint() (Endpoint, bool) {
	n.mu.Lock()
	h := n.host
	n.mu.Unlock()
	if h != nil {
		return h.endpoint, true
	}
	return readEndpoint(n.dir)
}

func (n *Node) notify() {
	select {
	case n.changes <- struct{}{}:
	default:
	}
}

// Close leaves the server, or stops it cleanly if this node hosts. It returns the
// context's error when stopping takes longer; stopping goes on then, and the lock is
// held until it is done. Calling it again waits for the first call's work.
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
	n.mu.Lock()
	h := n.host
	n.mu.Unlock()
	if h != nil {
		h.stop()
		n.lock.release()
	}
}
