package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/server/common/authorization"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"

	"acescope/engine/ace"
	"acescope/engine/internal/sleep"
)

// target is a placeholder: the dialer looks up the address for every connection.
const target = "passthrough:///acescope"

// quickReconnect retries quickly, which suits loopback.
var quickReconnect = grpc.ConnectParams{
	Backoff: backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
		MaxDelay: 300 * time.Millisecond},
	MinConnectTimeout: answerTimeout,
}

var errNoHost = errors.New("no process hosts the server")

// ClientOptions returns options that connect a Temporal client to the current host. The client
// sends the token and finds the new host after a takeover. The caller may set fields other
// than HostPort, HeadersProvider and ConnectionOptions. Payloads are not compressed, because
// gzip costs more than it saves on loopback.
func (n *Node) ClientOptions() client.Options {
	return client.Options{
		HostPort:        target,
		Namespace:       ace.DefaultNamespace,
		HeadersProvider: tokenHeader(n.token),
		Logger:          sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		ConnectionOptions: client.ConnectionOptions{
			GetSystemInfoTimeout: n.opts.StartTimeout, // a takeover may come between Join and the first call
			GrpcCompression:      &client.GrpcCompressionNone{},
			DialOptions: []grpc.DialOption{
				grpc.WithContextDialer(n.dialHost),
				grpc.WithConnectParams(quickReconnect),
			},
		},
	}
}

// Dial returns a client with options from [Node.ClientOptions]. The SDK asks the server for its capabilities
// once, so Dial tries again if the host ends meanwhile, until another process hosts, at most for
// [Options.StartTimeout]. The caller closes the client.
func (n *Node) Dial(ctx context.Context, o client.Options) (client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, n.opts.StartTimeout)
	defer cancel()
	for {
		c, err := client.DialContext(ctx, o)
		switch serviceerror.ToStatus(err).Code() {
		case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
		default:
			return c, err
		}
		select {
		case <-n.failed:
			return nil, n.Err()
		default:
		}
		if err := sleep.For(ctx, 20*time.Millisecond); err != nil {
			return nil, n.noAnswer(holder(n.dir), err)
		}
	}
}

// dialHost connects to the current host. The host proves its identity before the connection carries
// the token. It does so on a second connection, after the first is open: a host keeps its port from its
// start to its end, so the first connection leads to the same process.
func (n *Node) dialHost(ctx context.Context, _ string) (net.Conn, error) {
	endpoint, ok := n.currentEndpoint()
	if !ok {
		return nil, errNoHost
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", endpoint.Address)
	if err != nil || n.Role() == Hosting {
		return conn, err
	}
	if err := verifyHost(ctx, endpoint, n.token); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// EnvVar is an environment variable.
type EnvVar struct{ Name, Value string }

// Env returns the variables with which the temporal command and workers in other languages
// reach the server, by Temporal's environment configuration
// (go.temporal.io/sdk/contrib/envconfig). They include the token. The address stays valid
// unless a takeover cannot keep the port.
func (n *Node) Env() []EnvVar {
	e := n.Endpoint()
	return []EnvVar{
		{"TEMPORAL_ADDRESS", e.Address},
		{"TEMPORAL_NAMESPACE", e.Namespace},
		{"TEMPORAL_TLS", "false"},
		{"TEMPORAL_GRPC_META_AUTHORIZATION", bearer + n.token},
	}
}

const bearer = "Bearer "

// errNoToken means that the host has not written the token yet.
var errNoToken = errors.New("no token")

// readToken reads the access token: 32 bytes in hexadecimal. It rejects a token that other users could
// have read.
func readToken(dir string) (string, error) {
	path := filepath.Join(dir, tokenFile)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errNoToken
	}
	if err != nil {
		return "", dirError(dir, err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return "", failf(ErrDataDir, nil,
			"token %s has mode %04o, so other users may have read it: stop acescope, delete the file and "+
				"start again to create a new one",
			path, info.Mode().Perm())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", dirError(dir, err)
	}
	token := strings.TrimSpace(string(data))
	if raw, err := hex.DecodeString(token); err != nil || len(raw) != 32 {
		return "", failf(ErrDataDir, err, "token %s is damaged: stop acescope, delete the file and start "+
			"again to create a new one", path)
	}
	return token, nil
}

// hostToken returns the token for a process that is about to host. An attached process, which knows the
// token, keeps it even if the file has changed, because the other attached processes keep it too.
func hostToken(dir, known string) (string, error) {
	token, err := readToken(dir)
	if known == "" && !errors.Is(err, errNoToken) {
		return token, err
	}
	if known == "" {
		raw := make([]byte, 32)
		rand.Read(raw)
		known = hex.EncodeToString(raw)
	}
	return known, keepToken(dir, known)
}

// keepToken writes the token unless the file has it.
func keepToken(dir, token string) error {
	if have, err := readToken(dir); err == nil && have == token {
		return nil
	}
	return writeFile(dir, tokenFile, []byte(token+"\n"))
}

// tokenAuth authorizes calls that carry the token. It implements both parts of Temporal's
// authorization: mapping a caller to claims, and checking them.
type tokenAuth struct{ want [sha256.Size]byte }

// GetClaims gives callers with the token the administrator role and others no role. It compares
// hashes in constant time.
func (a *tokenAuth) GetClaims(info *authorization.AuthInfo) (*authorization.Claims, error) {
	token, _ := strings.CutPrefix(info.AuthToken, bearer)
	got := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(got[:], a.want[:]) != 1 {
		return &authorization.Claims{}, nil
	}
	return &authorization.Claims{System: authorization.RoleAdmin}, nil
}

// Authorize allows administrators every call and other callers only the health check. The
// server's own workers use the internal frontend, whose claims the server sets and whose port
// requires a certificate.
func (a *tokenAuth) Authorize(
	_ context.Context, claims *authorization.Claims, target *authorization.CallTarget,
) (authorization.Result, error) {
	if claims != nil && claims.System&authorization.RoleAdmin != 0 {
		return authorization.Result{Decision: authorization.DecisionAllow}, nil
	}
	if target.APIName == "/grpc.health.v1.Health/Check" {
		return authorization.Result{Decision: authorization.DecisionAllow}, nil
	}
	return authorization.Result{
		Decision: authorization.DecisionDeny,
		Reason:   "this server requires its user's token; acescope serve --print-env shows how to send it",
	}, nil
}

// tokenHeader adds the token to every call of a client.
type tokenHeader string

// GetHeaders implements the SDK's HeadersProvider.
func (t tokenHeader) GetHeaders(context.Context) (map[string]string, error) {
	return map[string]string{"authorization": bearer + string(t)}, nil
}
