package buckettest

import (
	"cmp"
	"encoding/xml"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"acescope/engine/store/bucket/buckettest/ports"
)

const keyVariable = "AWS_ACCESS_KEY_ID"

// Credentials returns the environment variables with the credentials of [S3]. Existing variables take
// precedence.
func Credentials() map[string]string {
	c := map[string]string{keyVariable: accessKey, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": "us-east-1"}
	for variable, value := range c {
		c[variable] = cmp.Or(os.Getenv(variable), value)
	}
	return c
}

func setCredentials(t *testing.T) {
	for variable, value := range Credentials() {
		t.Setenv(variable, value)
	}
}

// S3 is an S3 store in memory whose faults a test sets. It checks the access key, but no signature.
type S3 struct {
	address string
	release func() // of the port
	key     string // the access key that the store accepts

	mu      sync.Mutex
	server  *http.Server // nil while it is down
	ended   chan struct{}
	objects map[string]object
	fault   Fault
}

type object struct {
	content []byte
	written time.Time
}

// Fault handles a request before the store: it may delay the request, and returns the code of an S3 error to
// answer with, or "".
type Fault func(r *http.Request) (code string)

// NewS3 starts a store. The caller ends it with [S3.Close]. No other server gets its port while it is
// stopped.
func NewS3() (s *S3, err error) {
	s = &S3{key: Credentials()[keyVariable], objects: map[string]object{}}
	if s.address, s.release, err = ports.Reserve(); err != nil {
		return nil, err
	}
	return s, s.Start()
}

// StartS3 starts a store until the test ends. Its clients need [Credentials].
func StartS3(t *testing.T) *S3 {
	t.Helper()
	s, err := NewS3()
	check(t, err)
	t.Cleanup(s.Close)
	return s
}

// URL returns the URL of the store's bucket.
func (s *S3) URL() string { return s3URL(s.address) }

func s3URL(address string) string {
	return "s3://" + name + "?endpoint=http://" + address + "&use_path_style=true&disable_https=true"
}

// Start makes the store answer at its address.
func (s *S3) Start() error {
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		return err
	}
	server, ended := &http.Server{Handler: s}, make(chan struct{})
	s.mu.Lock()
	s.server, s.ended = server, ended
	s.mu.Unlock()
	go func() {
		defer close(ended)
		_ = server.Serve(l)
	}()
	return nil
}

// Stop makes the store unreachable. It keeps its objects.
func (s *S3) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		_ = s.server.Close()
		<-s.ended
		s.server = nil
	}
}

// Close stops the store and gives its port back.
func (s *S3) Close() {
	s.Stop()
	s.release()
}

// Fail sets the fault of later requests; nil ends it.
func (s *S3) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

const wrongKey = "InvalidAccessKeyId"

// Denied is the fault of a store that no longer accepts the credentials.
func Denied(*http.Request) (code string) { return wrongKey }

// statuses holds the HTTP statuses of S3's error codes.
var statuses = map[string]int{"NoSuchKey": http.StatusNotFound, wrongKey: http.StatusForbidden,
	"RequestTimeTooSkewed": http.StatusForbidden,
	"PreconditionFailed":   http.StatusPreconditionFailed, "NotImplemented": http.StatusNotImplemented}

// ServeHTTP answers a request of a client.
func (s *S3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	var code string
	if !strings.Contains(r.Header.Get("Authorization"), " Credential="+s.key+"/") {
		code = wrongKey
	} else if fault != nil {
		code = fault(r)
	}
	if code == "" {
		code = s.answer(w, r)
	}
	if code != "" {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(statuses[code])
		_ = xml.NewEncoder(w).Encode(struct {
			XMLName xml.Name `xml:"Error"`
			Code    string
			Message string
		}{Code: code, Message: "an error of the test"})
	}
}

// answer answers a request, or returns the code of its error.
func (s *S3) answer(w http.ResponseWriter, r *http.Request) (code string) {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return "NotImplemented"
	}
	key := strings.TrimPrefix(r.URL.Path, "/"+name+"/")
	s.mu.Lock()
	defer s.mu.Unlock()
	o, exists := s.objects[key]
	switch {
	case r.Method == http.MethodPut && exists && r.Header.Get("If-None-Match") != "":
		return "PreconditionFailed"
	case r.Method == http.MethodPut:
		s.objects[key] = object{content, time.Now()}
	case r.Method == http.MethodGet && r.URL.Query().Has("list-type"):
		s.list(w, r.URL.Query().Get("prefix"))
	case (r.Method == http.MethodGet || r.Method == http.MethodHead) && exists:
		w.Header().Set("Last-Modified", o.written.UTC().Format(http.TimeFormat))
		_, err = w.Write(o.content)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		return "NoSuchKey"
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	default:
		return "NotImplemented"
	}
	return ""
}

// listing is the answer to ListObjectsV2.
type listing struct {
	XMLName  xml.Name `xml:"ListBucketResult"`
	Contents []listed
}

type listed struct {
	Key          string
	Size         int
	LastModified time.Time
}

func (s *S3) list(w io.Writer, prefix string) {
	var l listing
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if o := s.objects[key]; strings.HasPrefix(key, prefix) {
			l.Contents = append(l.Contents, listed{key, len(o.content), o.written.UTC()})
		}
	}
	_ = xml.NewEncoder(w).Encode(l)
}
