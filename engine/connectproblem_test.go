package engine_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"acescope/engine"
)

// authority is a CA of a test.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// issue returns a certificate for a name that is valid until the time, and its key. Without a CA, it is a
// CA's own.
func (a authority) issue(t *testing.T, name string, until time.Time) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: until,
		BasicConstraintsValid: true, IsCA: a.key == nil}
	parent, signer := c, key
	if a.key != nil {
		parent, signer = a.certificate, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return c, key
}

func newAuthority(t *testing.T) authority {
	c, key := authority{}.issue(t, "test CA", time.Now().Add(time.Hour))
	return authority{c, key}
}

// files writes a certificate and its key.
func files(t *testing.T, c *x509.Certificate, key *ecdsa.PrivateKey) (certFile, keyFile string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: c.Raw}, keyFile: {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// serveTLS serves gRPC with the certificate, or without encryption if that is nil. Clients need a certificate
// of the CA, if that is set.
func serveTLS(t *testing.T, c *x509.Certificate, key *ecdsa.PrivateKey, clients *authority) string {
	t.Helper()
	var options []grpc.ServerOption
	if c != nil {
		config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{c.Raw},
			PrivateKey: key}}}
		if clients != nil {
			config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
			config.ClientCAs.AddCert(clients.certificate)
		}
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(options...)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		s.Stop()
		<-done
	})
	return l.Addr().String()
}

// connected is the answer of a server of [serveTLS], which has no services.
const connected = "unknown service temporal.api"

// TestConnectionProblems checks that each mistake with certificates has its own advice.
func TestConnectionProblems(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	day := 24 * time.Hour
	good, goodKey := ca.issue(t, "localhost", time.Now().Add(day))
	expired, expiredKey := ca.issue(t, "localhost", time.Now().Add(-day))
	caFile, _ := files(t, ca.certificate, ca.key)
	otherCA, _ := files(t, other.certificate, other.key)
	trusting := map[string]string{"TEMPORAL_TLS_SERVER_CA_CERT_PATH": caFile,
		"TEMPORAL_TLS_SERVER_NAME": "localhost"}
	with := func(c *x509.Certificate, key *ecdsa.PrivateKey) map[string]string {
		certFile, keyFile := files(t, c, key)
		return map[string]string{"TEMPORAL_TLS_SERVER_CA_CERT_PATH": caFile,
			"TEMPORAL_TLS_SERVER_NAME":      "localhost",
			"TEMPORAL_TLS_CLIENT_CERT_PATH": certFile, "TEMPORAL_TLS_CLIENT_KEY_PATH": keyFile}
	}
	encrypted := serveTLS(t, good, goodKey, nil)
	mutual := serveTLS(t, good, goodKey, &ca)
	for name, c := range map[string]struct {
		address string
		env     map[string]string
		want    string
	}{
		"right CA": {encrypted, trusting, connected},
		"unknown CA": {encrypted, map[string]string{"TEMPORAL_TLS_SERVER_NAME": "localhost"},
			"set TEMPORAL_TLS_SERVER_CA_CERT_PATH"},
		"wrong CA": {encrypted, map[string]string{"TEMPORAL_TLS_SERVER_CA_CERT_PATH": otherCA,
			"TEMPORAL_TLS_SERVER_NAME": "localhost"}, "is from a CA that is unknown here"},
		"wrong name": {encrypted, map[string]string{"TEMPORAL_TLS_SERVER_CA_CERT_PATH": caFile,
			"TEMPORAL_TLS_SERVER_NAME": "elsewhere"},
			"is for localhost, not for elsewhere; set TEMPORAL_TLS_SERVER_NAME"},
		"expired server": {serveTLS(t, expired, expiredKey, nil), trusting,
			"the server's certificate expired on " +
				expired.NotAfter.UTC().Format(time.DateOnly)},
		"plain to TLS":        {encrypted, nil, "the port expects TLS; set TEMPORAL_TLS=true"},
		"plain to mutual TLS": {mutual, nil, "the port expects TLS"},
		"TLS to plain": {serveTLS(t, nil, nil, nil), trusting,
			"does not speak TLS; set TEMPORAL_TLS=false"},
		"right client": {mutual, with(ca.issue(t, "client", time.Now().Add(day))), connected},
		"no client certificate": {mutual, trusting,
			"requires a certificate of the client; set TEMPORAL_TLS_CLIENT_CERT"},
		"foreign client": {mutual, with(other.issue(t, "client", time.Now().Add(day))),
			"rejects the client's certificate (tls: unknown certificate authority)"},
		"expired client": {mutual, with(ca.issue(t, "client", time.Now().Add(-day))),
			"the client's certificate expired on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			e, err := engine.Open(t.Context(), engine.Options{DataDir: t.TempDir(), LookOnly: true,
				Remote: &engine.Remote{Address: c.address}})
			if err == nil {
				t.Fatal("connected", e.Close(t.Context()))
			}
			if text := err.Error(); !errors.Is(err, engine.ErrUnreachable) || strings.Contains(text, "\n") ||
				!strings.Contains(text, c.want) {
				t.Errorf("%s, want %q", text, c.want)
			}
		})
	}
}
