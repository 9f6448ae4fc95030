package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"acescope/engine/ace"
)

// target is no address: the dialer finds the current one at every connection.
const target = "passthrough:///acescope"

// quickReconnect suits loopback, where a server is there or is starting.
var quickReconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 300 * time.Millisecond},
	MinConnectTimeout: 2 * time.Second,
}

var errNoHost = errors.New("no process hosts the server at the moment")

// ClientOptions connect a Temporal client to the server, wherever it runs: the client
// sends the token, and finds the new host after a takeover with no action by its
// user. The caller may set further fields; HostPort, HeadersProvider and
// ConnectionOptions are the node's. Payloads are not compressed, as gzip costs more
// than it saves on loopback.
func (n *Node) ClientOptions() client.Options {
	return client.Options{
		HostPort:        target,
		Namespace:       ace.DefaultNamespace,
		HeadersProvider: tokenHeader(n.token),
		Logger:          sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		ConnectionOptions: client.ConnectionOptions{
			GrpcCompression: &client.GrpcCompressionNone{},
			DialOptions: []grpc.DialOption{
				grpc.WithContextDialer(n.dialHost),
				grpc.WithConnectParams(quickReconnect),
			},
		},
	}
}

// Dial opens a client with [Node.ClientOptions]. The caller closes it.
func (n *Node) Dial(ctx context.Context) (client.Client, error) {
	return client.DialContext(ctx, n.ClientOptions())
}

// dialHost connects to whoever hosts now. The token goes only where endpoint.json,
// which only this user can write, names a live process of this user.
func (n *Node) dialHost(ctx context.Context, _ string) (net.Conn, error) {
	endpoint, ok := n.currentEndpoint()
	if !ok {
		return nil, errNoHost
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", endpoint.Address)
}
