package server

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"time"
)

// watch runs while the node is attached: it notices a new host's endpoint and, if it
// may, takes over when nobody hosts any more.
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
	ok, err := n.lock.try()
	if err != nil || !ok {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, n.opts.StartTimeout)
	defer cancel()
	opts := n.opts
	opts.Port = 0 // clients know the former host's port, so that one is preferred
	if err := n.becomeHost(ctx, opts); err != nil {
		return err
	}
	n.opts.Logger.Info("took over the server", "address", n.Endpoint().Address)
	n.notify()
	return nil
}

// follow keeps up with the endpoint of another process that hosts.
func (n *Node) follow() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.host != nil {
		return
	}
	info, err := os.Stat(filepath.Join(n.dir, endpointFile))
	if err != nil || n.read != nil && os.SameFile(info, n.read) && info.ModTime().Equal(n.read.ModTime()) {
		return
	}
	if e, ok := readEndpoint(n.dir); ok {
		if n.read = info; e != n.endpoint {
			n.endpoint = e
			n.notify()
		}
	}
}

// answers reports whether something listens at the endpoint.
func answers(ctx context.Context, e Endpoint) bool {
	d := net.Dialer{Timeout: time.Second}
	conn, err := d.DialContext(ctx, "tcp", e.Address)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// pause waits, or gives the context's error.
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
