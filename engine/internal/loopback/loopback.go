// Package loopback serves HTTP to programs and browsers of this machine. It imports the standard library
// only, and every package of engine may import it.
package loopback

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const shutdownTimeout = 3 * time.Second

// Listen opens a loopback port; 0 chooses a free one.
func Listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// CheckHost refuses requests for another host name. Otherwise a web page whose name was changed to resolve to
// this machine could reach a server that only the user can reach. Ports are not compared, because a tunnel
// may have another one.
func CheckHost(r *http.Request) error {
	if !Names(r.Host) {
		return errors.New("the header Host must name this machine: 127.0.0.1 or localhost")
	}
	return nil
}

// Names reports whether a host, with or without a port, is localhost or a loopback address.
func Names(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// Serve sets the bounds of a server and serves until the context ends. Then it waits up to 3 s for the
// requests in progress.
func Serve(ctx context.Context, l net.Listener, server *http.Server) error {
	server.ReadHeaderTimeout, server.IdleTimeout, server.MaxHeaderBytes = 10*time.Second, 2*time.Minute,
		64<<10
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(shutdownCtx); err != nil {
		_ = server.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}
