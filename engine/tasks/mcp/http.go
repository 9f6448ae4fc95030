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
	"regexp"
	"runtime"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"acescope/engine/internal/loopback"
	"acescope/engine/store/durable"
)

// Path is the path of the tools on the HTTP server.
const Path = "/mcp"

// MaxRequests bounds the concurrent HTTP requests.
const MaxRequests = 256

// Listen opens a loopback port; 0 chooses a free one.
func Listen(port int) (net.Listener, error) { return loopback.Listen(port) }

// URL returns the URL of the tools on a listener.
func URL(l net.Listener) string { return "http://" + l.Addr().String() + Path }

// ServeHTTP serves clients that have the token until the context ends. Then it ends the waits
// of calls and still writes their answers.
func (s *Server) ServeHTTP(ctx context.Context, l net.Listener, token string) error {
	defer context.AfterFunc(ctx, s.stop)()
	return loopback.Serve(ctx, l, &http.Server{Handler: s.handler(token)})
}

// handler serves requests of this machine with the token, except those of web pages. It is
// stateless: clients continue after a restart of the server, and clients that disappear cost
// nothing.
func (s *Server) handler(token string) http.Handler {
	serve := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.sdk },
		&sdk.StreamableHTTPOptions{Logger: warningsOnly(s.o.Logger), Stateless: true,
			PropagateRequestCancellation: true,
			MaxRequestBodyBytes:          MaxMessage})
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
	if err := loopback.CheckHost(r); err != nil {
		return err
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

var tokenPattern = regexp.MustCompile(`^[A-Za-z0-9._~+/=-]+$`)

// LoadToken reads the token in a file. If the file does not exist, it writes a new token that
// only the owner can read.
func LoadToken(path string) (string, error) {
	token, err := readToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	if err := durable.Create(path, []byte(rand.Text()+rand.Text()+"\n")); err != nil {
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
		return "", fmt.Errorf(
			"%w: others can read %s (mode %04o): chmod 600 it, or delete it to get a new one",
			ErrToken, path, mode.Perm())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if len(token) < 16 || len(token) > 1000 || !tokenPattern.MatchString(token) {
		return "", fmt.Errorf(
			"%w: %s must contain one line of 16 to 1000 letters, digits and ._~+/=-: delete it to get a new one",
			ErrToken, path)
	}
	return token, nil
}
