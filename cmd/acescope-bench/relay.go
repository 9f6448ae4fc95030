package main

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// answerBytes is more than the server says before its first page of runs: settings and
// capabilities are some hundreds of bytes, a page of 50 runs, compressed, some thousands.
const answerBytes = 2 << 10

// relay passes bytes between a client and the server on loopback and notes when the
// server's first big answer came.
type relay struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup

	mu       sync.Mutex
	answered time.Time
}

func newRelay(ctx context.Context, target string) (*relay, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: l, target: target}
	r.wg.Go(r.accept)
	return r, nil
}

func (r *relay) address() string { return r.listener.Addr().String() }

// close ends the relay and says when the answer came, zero if none did.
func (r *relay) close() time.Time {
	r.listener.Close()
	r.wg.Wait()
	return r.answered
}

func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.wg.Go(func() { r.pass(client) })
	}
}

func (r *relay) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	defer server.Close()
	r.wg.Go(func() {
		_, _ = io.Copy(server, client)
		server.Close()
	})
	_, _ = io.Copy(io.MultiWriter(&counter{relay: r}, client), server)
}

// counter notes when the bytes that passed were enough for an answer.
type counter struct {
	relay *relay
	n     int
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += len(p)
	if c.n >= answerBytes {
		c.relay.mu.Lock()
		if c.relay.answered.IsZero() {
			c.relay.answered = time.Now()
		}
		c.relay.mu.Unlock()
	}
	return len(p), nil
}
