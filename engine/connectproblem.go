package engine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// CredentialsAdvice is the advice if a cluster denies access.
const CredentialsAdvice = "set its API key or token: --api-key, TEMPORAL_API_KEY or " +
	"TEMPORAL_GRPC_META_AUTHORIZATION"

// connectError returns the error of a failed connection to a cluster, with its cause and what to do.
func connectError(ctx context.Context, o client.Options, err error) error {
	advice := "check --address and that the cluster is running"
	if isError[*serviceerror.PermissionDenied](err) || status.Code(err) == codes.Unauthenticated {
		advice = CredentialsAdvice
	} else if problem := tlsProblem(ctx, o.HostPort, o.ConnectionOptions.TLS); problem != "" {
		return fmt.Errorf("%w: %s: %s", ErrUnreachable, o.HostPort, problem)
	}
	return fmt.Errorf("%w: %s: %w; %s", ErrUnreachable, o.HostPort, err, advice)
}

// probeTimeout bounds the connection of tlsProblem.
const probeTimeout = 3 * time.Second

// tlsProblem connects once more to find out why a connection failed, because gRPC returns the cause as text
// only. It returns the problem with the encryption or the certificates, or "".
func tlsProblem(ctx context.Context, address string, config *tls.Config) string {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	plain := config == nil
	if plain {
		config = &tls.Config{InsecureSkipVerify: true} // nothing is sent
	}
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err == nil {
		// The server may reject the client's certificate after the handshake, or it sends its settings.
		end, _ := ctx.Deadline()
		_ = conn.SetReadDeadline(end)
		_, err = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}
	rejection := "" // the TLS alert that the server sent
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		rejection = op.Err.Error()
	}
	if plain {
		if err == nil || rejection != "" {
			return "the port expects TLS; set TEMPORAL_TLS=true"
		}
		return ""
	}
	if rejection != "" {
		return clientCertificateProblem(rejection, config)
	}
	return serverCertificateProblem(err)
}

const setClientCertificate = "set TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH"

func clientCertificateProblem(rejection string, config *tls.Config) string {
	if len(config.Certificates) == 0 {
		return "the cluster requires a certificate of the client; " + setClientCertificate
	}
	leaf, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
	if err == nil && time.Now().After(leaf.NotAfter) {
		return fmt.Sprintf("the client's certificate expired on %s; %s", leaf.NotAfter.Format(time.DateOnly),
			setClientCertificate)
	}
	return fmt.Sprintf("the cluster rejects the client's certificate (%s); %s to those of a CA that the "+
		"cluster trusts", rejection, setClientCertificate)
}

func serverCertificateProblem(err error) string {
	var foreign x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	var noTLS tls.RecordHeaderError
	switch {
	case errors.As(err, &noTLS):
		return "the port does not speak TLS; set TEMPORAL_TLS=false"
	case errors.As(err, &foreign):
		return "the server's certificate is from a CA that is unknown here; " +
			"set TEMPORAL_TLS_SERVER_CA_CERT_PATH to the certificate of the cluster's CA"
	case errors.As(err, &name):
		return fmt.Sprintf("the server's certificate is for %s, not for %s; set TEMPORAL_TLS_SERVER_NAME",
			strings.Join(names(name.Certificate), ", "), name.Host)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		if from := invalid.Cert.NotBefore; time.Now().Before(from) {
			return fmt.Sprintf("the server's certificate is valid from %s on; check this machine's clock",
				from.Format(time.DateOnly))
		}
		return fmt.Sprintf("the server's certificate expired on %s; the cluster needs a new one",
			invalid.Cert.NotAfter.Format(time.DateOnly))
	}
	return ""
}

// names returns the names that a certificate is valid for.
func names(c *x509.Certificate) []string {
	all := c.DNSNames
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	return all
}
