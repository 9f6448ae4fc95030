// Package codectest provides a codec server for tests that encrypts with AES-GCM, puts the key
// ID in the metadata, and can be made to fail. It may import Temporal's SDK only.
package codectest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
)

// Encoding is the encoding of encrypted payloads, and KeyID the metadata with their key ID.
const (
	Encoding = "binary/encrypted"
	KeyID    = "encryption-key-id"
)

// Cipher encrypts payloads with Key and decrypts payloads of Key and the Known keys.
type Cipher struct {
	Key   string
	Known []string
}

func newAEAD(key string) (cipher.AEAD, error) {
	sum := sha256.Sum256([]byte(key))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Encode implements [converter.PayloadCodec].
func (c Cipher) Encode(list []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(list))
	for i, p := range list {
		plain, err := proto.Marshal(p)
		if err != nil {
			return nil, err
		}
		aead, err := newAEAD(c.Key)
		if err != nil {
			return nil, err
		}
		nonce := make([]byte, aead.NonceSize())
		if _, err := rand.Read(nonce); err != nil {
			return nil, err
		}
		out[i] = &commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(Encoding),
			KeyID: []byte(c.Key)},
			Data: aead.Seal(nonce, nonce, plain, nil)}
	}
	return out, nil
}

// Decode implements [converter.PayloadCodec].
func (c Cipher) Decode(list []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(list))
	for i, p := range list {
		if out[i] = p; string(p.GetMetadata()[converter.MetadataEncoding]) != Encoding {
			continue
		}
		key := string(p.GetMetadata()[KeyID])
		if key != c.Key && !slices.Contains(c.Known, key) {
			return nil, fmt.Errorf("unknown key id %q", key)
		}
		aead, err := newAEAD(key)
		if err != nil {
			return nil, err
		}
		n := aead.NonceSize()
		if len(p.GetData()) < n {
			return nil, fmt.Errorf("data too short: %d bytes", len(p.GetData()))
		}
		plain, err := aead.Open(nil, p.GetData()[:n], p.GetData()[n:], nil)
		if err != nil {
			return nil, err
		}
		out[i] = &commonpb.Payload{}
		if err := proto.Unmarshal(plain, out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Server serves a [Cipher] over HTTP.
type Server struct {
	*httptest.Server

	mu       sync.Mutex
	auth     string
	handler  http.HandlerFunc // replaces the codec
	requests int
	last     http.Header
}

// New starts a server; the caller closes it. It requires the Authorization header auth unless it is "".
func New(c Cipher, auth string) *Server {
	s := &Server{auth: auth}
	codec := converter.NewPayloadCodecHTTPHandler(c)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests++
		s.last = r.Header.Clone()
		handler, denied := s.handler, s.auth != "" && r.Header.Get("Authorization") != s.auth
		s.mu.Unlock()
		switch {
		case handler != nil:
			handler(w, r)
		case denied:
			http.Error(w, fmt.Sprintf("authorization %q is not accepted", r.Header.Get("Authorization")),
				http.StatusForbidden)
		default:
			codec.ServeHTTP(w, r)
		}
	}))
	return s
}

// Fail makes fn answer every request. With nil, the codec answers again.
func (s *Server) Fail(fn http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler = fn
}

// Requests returns the number of requests so far and the header of the last one.
func (s *Server) Requests() (int, http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests, s.last
}
