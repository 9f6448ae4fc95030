// Package codectest is a codec server for tests: AES-GCM, with a key id in the metadata,
// and ways to fail. It may import Temporal's SDK only.
package codectest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
)

// Encoding is the encoding of payloads that were encrypted, and KeyID the metadata that
// names their key.
const (
	Encoding = "binary/encrypted"
	KeyID    = "encryption-key-id"
)

// Cipher encrypts payloads with the key of its name and decrypts those of the keys that it
// knows.
type Cipher struct {
	Key   string
	Known []string // besides Key
}

func seal(key string) (cipher.AEAD, error) {
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
		aead, err := seal(c.Key)
		if err != nil {
			return nil, err
		}
		nonce := make([]byte, aead.NonceSize())
		if _, err := rand.Read(nonce); err != nil {
			return nil, err
		}
		out[i] = &commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(Encoding), KeyID: []byte(c.Key)},
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
		if !c.knows(key) {
			return nil, fmt.Errorf("unknown key id %q", key)
		}
		aead, err := seal(key)
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

func (c Cipher) knows(key string) bool {
	for _, k := range c.Known {
		if k == key {
			return true
		}
	}
	return key == c.Key
}

// Server serves a [Cipher] over HTTP.
type Server struct {
	*httptest.Server

	mu       sync.Mutex
	auth     string
	instead  http.HandlerFunc
	requests int
	last     http.Header
}

// New starts a server; the caller closes it. It demands auth, where that is not empty.
func New(c Cipher, auth string) *Server {
	s := &Server{auth: auth}
	codec := converter.NewPayloadCodecHTTPHandler(c)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests++
		s.last = r.Header.Clone()
		instead, denied := s.instead, s.auth != "" && r.Header.Get("Authorization") != s.auth
		s.mu.Unlock()
		switch {
		case instead != nil:
			instead(w, r)
		case denied:
			http.Error(w, fmt.Sprintf("%q does not let you in", r.Header.Get("Authorization")), http.StatusForbidden)
		default:
			codec.ServeHTTP(w, r)
		}
	}))
	return s
}

// Fail answers every request with fn until it is called with nil.
func (s *Server) Fail(fn http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instead = fn
}

// Requests is how many came so far, and the header of the last.
func (s *Server) Requests() (int, http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests, s.last
}
