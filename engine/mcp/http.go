package mcp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Path is where the tools are served over HTTP.
const Path = "/mcp"

// Bounds of what is served over HTTP.
const (
	MaxRequests = 256 // under way at a time

	headerWithin = 10 * time.Second
	idleWithin   = 2 * time.Minute
	maxHeader    = 64 << 10
	closeWithin  = 3 * time.Second
)

// Listen opens a port of this machine that others cannot reach; 0 is a free one.
func Listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
}

// URL is where a listener of [Listen] is reached.
func URL(l net.Listener) string { return "http://" + l.Addr().String() + Path }

// ServeHTTP serves whoever comes with the token, until the context ends; then it ends the
// waits of calls, and their answers are still written.
func (s *Server) ServeHTTP(ctx context.Context, l net.Listener, token string) error {
	server := &http.Server{Handler: s.handler(token), ReadHeaderTimeout: headerWithin, IdleTimeout: idleWithin, MaxHeaderBytes: maxHeader}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.stop()
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	if err := server.Shutdown(within); err != nil {
		_ = server.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}

// handler lets in who comes from this machine, not by way of a web page, and with the
// token. It keeps no sessions of clients: each request stands for itself, so that clients go
// on when the server was started anew, and those that never say goodbye cost nothing.
func (s *Server) handler(token string) http.Handler {
	serve := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.sdk },
		&sdk.StreamableHTTPOptions{Logger: quiet(s.o.Logger), Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: MaxMessage})
	free := make(chan struct{}, MaxRequests)
	want := sha256.Sum256([]byte("Bearer " + token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := local(r); err != nil {
			s.refuse(w, r, http.StatusForbidden, err.Error())
			return
		}
		// Digests are as long as each other whatever was sent, and are compared in a time
		// that tells nothing.
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="acescope"`)
			s.refuse(w, r, http.StatusUnauthorized, "send the token: header Authorization: Bearer TOKEN; acescope mcp --http says where it is")
			return
		}
		if r.URL.Path != Path {
			s.refuse(w, r, http.StatusNotFound, "there is only "+Path)
			return
		}
		select {
		case free <- struct{}{}:
			defer func() { <-free }()
			serve.ServeHTTP(w, r)
		default:
			s.refuse(w, r, http.StatusServiceUnavailable, fmt.Sprintf("%d requests are under way, which is all that there may be: ask again later", MaxRequests))
		}
	})
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, code int, why string) {
	s.o.Logger.Warn("a request was refused", "status", code, "why", why, "method", r.Method)
	http.Error(w, why, code)
}

// local refuses requests that reach this machine by another name than its own, and those
// that a web page has a browser send: both are how a page in a browser would speak with a
// server that only its user can reach.
func local(r *http.Request) error {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if !loopback(strings.Trim(host, "[]")) {
		return errors.New("the header Host must name this machine: 127.0.0.1 or localhost")
	}
	for _, origin := range r.Header.Values("Origin") {
		if origin != "http://"+r.Host {
			return errors.New("requests of web pages are not taken (header Origin)")
		}
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
