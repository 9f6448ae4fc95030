package cli

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"acescope/engine"
	"acescope/engine/temporal/codec"
)

// codecs are the codec servers of this process, for the connection and for files.
type codecs struct {
	mu     sync.Mutex
	used   []*codec.Server
	Silent bool // the console reports failures itself

	once sync.Once
	file *codec.Server
	err  error
}

func (c *codecs) use(s *codec.Server) {
	if s != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.used = append(c.used, s)
	}
}

// Warn writes a line for each server that could not decode payloads.
func (c *codecs) Warn(w io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.used {
		if st := s.Status(); st.Failed > 0 && !c.Silent {
			fmt.Fprintf(w, "acescope: the codec server %s left payloads encoded (%d): %s\n",
				s.Name(), st.Failed, SafeText(st.Reason))
		}
	}
}

// headersEnv holds further headers for the codec server, one NAME=VALUE per line.
const headersEnv = "ACESCOPE_CODEC_HEADERS"

// CodecEnv returns the environment for a child process that uses the same codec server. Secrets are not
// passed as arguments, which other users of the machine can read.
func (a *App) CodecEnv() []string {
	return append(os.Environ(), "TEMPORAL_CODEC_ENDPOINT="+a.Settings.CodecEndpoint,
		"TEMPORAL_CODEC_AUTH="+a.Settings.CodecAuth, headersEnv+"="+strings.Join(codecHeaders(a.CodecHeaders),
			"\n"))
}

// codecHeaders returns the headers of the environment, then those of flags.
func codecHeaders(flags []string) []string {
	lines := strings.Split(os.Getenv(headersEnv), "\n")
	blank := func(l string) bool { return strings.TrimSpace(l) == "" }
	return append(slices.DeleteFunc(lines, blank), flags...)
}

// codecConfig returns the codec server that flags, the environment or the configuration name.
func (a *App) codecConfig() (codec.Config, error) {
	c := codec.Config{Endpoint: a.Settings.CodecEndpoint, Auth: a.Settings.CodecAuth,
		Headers: map[string]string{}}
	for _, h := range codecHeaders(a.CodecHeaders) {
		name, value, ok := strings.Cut(h, "=")
		// The error does not quote the header, which may hold a secret.
		if !ok || name == "" || strings.ContainsAny(name+value, "\r\n") || strings.ContainsAny(name, " :") {
			return c, UsageError("--codec-header must be NAME=VALUE, for example X-Key=…")
		}
		c.Headers[http.CanonicalHeaderKey(name)] = value
	}
	return c, nil
}

// FileCodec returns the codec server for histories in files, nil if none is configured.
func (a *App) FileCodec() (*codec.Server, error) {
	c := &a.Codecs
	c.once.Do(func() {
		config, err := a.codecConfig()
		if err == nil {
			config.Namespace = a.Settings.Namespace
			c.file, err = engine.CodecServer(config, a.Cluster())
		}
		c.err = err
		c.use(c.file)
	})
	return c.file, c.err
}
