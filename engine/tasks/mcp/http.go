package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Path is the path of the tools on the HTTP server.
const Path = "/mcp"

// MaxRequests bounds the concurrent HTTP requests.
const MaxRequests = 256

const shutdownTimeout = 3 * time.Second

// Listen opens a loopback port; 0 chooses a free one.
func Listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
}

// URL returns the URL of the tools on a listener.
func URL(l net.Listener) string { return "http://" + l.Addr().String() + Path }

// ServeHTTP serves clients that have the token until the context ends. Then it ends the waits
// of calls and still writes their answers.
func (s *Server) ServeHTTP(ctx context.Context, l net.Listener, token string) error {
	server := &http.Server{Handler: s.handler(token), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.stop()
	shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(shutdownCtx); err != nil {
		_ = server.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}

// handler serves requests of this machine with the token, except those of web pages. It is
// stateless: clients continue after a restart of the server, and clients that disappear cost
// nothing.
func (s *Server) handler(token string) http.Handler {
	serve := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.sdk },
		&sdk.StreamableHTTPOptions{Logger: warningsOnly(s.o.Logger), Stateless: true, PropagateRequestCancellation: true,
			MaxRequestBodyBytes: MaxMessage})
	slots := make(chan struct{}, MaxRequests)
	want := sha256.Sum256([]byte("Bearer " + token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := checkOrigin(r); err != nil {
			s.refuse(w, r, http.StatusForbidden, err.Error())
			return
		}
		// Digests have equal lengths, so that the comparison takes constant time.
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="acescope"`)
			s.refuse(w, r, http.StatusUnauthorized,
				"send the token: header Authorization: Bearer TOKEN; acescope mcp --http prints the path of its file")
			return
		}
		if r.URL.Path != Path {
			s.refuse(w, r, http.StatusNotFound, "the only path is "+Path)
			return
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			serve.ServeHTTP(w, r)
		default:
			s.refuse(w, r, http.StatusServiceUnavailable,
				fmt.Sprintf("%d requests are in progress, the maximum: try again later", MaxRequests))
		}
	})
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, code int, why string) {
	s.o.Logger.Warn("a request was refused", "status", code, "why", why, "method", r.Method)
	http.Error(w, why, code)
}

// checkOrigin refuses requests for another host name and requests of web pages. With both, a
// page in a browser could reach a server that only the user can reach.
func checkOrigin(r *http.Request) error {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	if !strings.EqualFold(host, "localhost") && (ip == nil || !ip.IsLoopback()) {
		return errors.New("the header Host must name this machine: 127.0.0.1 or localhost")
	}
	for _, origin := range r.Header.Values("Origin") {
		if origin != "http://"+r.Host {
			return errors.New("requests of web pages are refused (header Origin)")
		}
	}
	return nil
}

// ErrToken means that a file does not contain a valid token.
var ErrToken = errors.New("no usable token")

var tokenPattern = regexp.MustCompile(`^[A-Za-z0-9._~+/=-]{16,1000}$`)

// LoadToken reads the token in a file. If the file does not exist, it writes a new token that
// only the owner can read.
func LoadToken(path string) (string, error) {
	token, err := readToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	if err := writeToken(path); err != nil {
		return "", fmt.Errorf("write the token file: %w", err)
	}
	return readToken(path)
}

func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return "", fmt.Errorf("%w: %s is not a regular file", ErrToken, path)
	case mode.Perm()&0o077 != 0 && runtime.GOOS != "windows":
		return "", fmt.Errorf("%w: others can read %s (mode %04o): chmod 600 it, or delete it to get a new one",
			ErrToken, path, mode.Perm())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if !tokenPattern.MatchString(token) {
		return "", fmt.Errorf("%w: %s must contain one line of 16 to 1000 letters, digits and ._~+/=-: delete it to get a new one",
			ErrToken, path)
	}
	return token, nil
}

// writeToken writes a new token, unless another process writes one first.
func writeToken(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".token-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(rand.Text() + rand.Text() + "\n")
	if err = errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
