package server

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
)

// Headers of the health check by which a host proves that it knows the token, without the caller sending
// it. Otherwise a process of another user that got the port of a dead host would receive the token.
const (
	challengeHeader = "acescope-challenge"
	proofHeader     = "acescope-proof"
)

// answerTimeout bounds the wait for an answer of a live host.
const answerTimeout = 5 * time.Second

// errNotHost means that the process at the endpoint's address is not the host.
var errNotHost = errors.New("another program answers at the host's address")

// proof authenticates a challenge to one host.
func proof(token, challenge, address string, pid int) string {
	mac := hmac.New(sha256.New, []byte(token))
	fmt.Fprintf(mac, "acescope host\n%s\n%s\n%d", challenge, address, pid)
	return hex.EncodeToString(mac.Sum(nil))
}

// proveIdentity answers challenges in the health check.
func proveIdentity(token string, e Endpoint) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any,
		error) {
		challenge := metadata.ValueFromIncomingContext(ctx, challengeHeader)
		if len(challenge) == 1 && info.FullMethod == grpc_health_v1.Health_Check_FullMethodName {
			header := metadata.Pairs(proofHeader, proof(token, challenge[0], e.Address, e.PID))
			if err := grpc.SetHeader(ctx, header); err != nil {
				return nil, err
			}
		}
		return next(ctx, req)
	}
}

// verifyHost returns nil if the process that an endpoint names answers at its address.
func verifyHost(ctx context.Context, e Endpoint, token string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, err := connect(e.Address)
	if err != nil {
		return err
	}
	defer conn.Close()
	challenge := rand.Text()
	var header metadata.MD
	ctx = metadata.AppendToOutgoingContext(ctx, challengeHeader, challenge)
	client := grpc_health_v1.NewHealthClient(conn)
	_, err = client.Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.Header(&header))
	got := header.Get(proofHeader)
	if len(got) == 1 && hmac.Equal([]byte(got[0]), []byte(proof(token, challenge, e.Address, e.PID))) {
		return nil
	}
	if err != nil {
		return err
	}
	return errNotHost
}

// connect returns a connection without credentials.
func connect(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(quickReconnect))
}
