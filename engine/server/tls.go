package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"time"

	"go.temporal.io/server/common/rpc/encryption"
)

const internalName = "acescope.internal"

// internodeTLS closes the ports between the server's services (history, matching,
// worker, internal frontend), which Temporal's authorizer does not guard, to every
// other process: both ends show one certificate whose key never leaves memory. The
// frontend stays plain, for clients in other languages; the token guards it.
func internodeTLS() (encryption.TLSConfigProvider, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: internalName},
		DNSNames:              []string{internalName},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().AddDate(20, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	pair := []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: cert}}
	return &encryption.FixedTLSConfigProvider{
		InternodeServerConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: pair,
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
		},
		InternodeClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: pair,
			RootCAs: pool, ServerName: internalName,
		},
	}, nil
}
