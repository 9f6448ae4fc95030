package cli

import (
	"context"
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

// codecs are the codec servers of this process: one of the connection, one of files.
type codecs struct {
	mu     sync.Mutex
	used   []*codec.Server
	Silent bool // the console says itself what is wrong

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

// Warn says in a line for each server that payloads stayed encoded, and why.
func (c *codecs) Warn(w io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.used {
		if st := s.Status(); st.Failed > 0 && !c.Silent {
			fmt.Fprintf(w, "acescope: the codec server %s left payloads encoded (%d): %s\n", s.Name(), st.Failed, SafeText(st.Reason))
		}
	}
}

// headersEnv names further headers for the codec server, one NAME=VALUE a line.
const headersEnv = "ACESCOPE_CODEC_HEADERS"

func linesOf(s string) []string {
	return slices.DeleteFunc(strings.Split(s, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
}

// CodecEnv is the environment of a process that is to use the same codec server. Secrets
// are in no argument, which others on the machine can read.
func (a *App) CodecEnv() []string {
	headers := append(linesOf(os.Getenv(headersEnv)), a.CodecHeaders...)
	return append(os.Environ(), "TEMPORAL_CODEC_ENDPOINT="+a.Settings.CodecEndpoint, "TEMPORAL_CODEC_AUTH="+a.Settings.CodecAuth,
		headersEnv+"="+strings.Join(headers, "\n"))
}

// codecConfig is the codec server that flags, the environment or the configuration name.
func (a *App) codecConfig() (codec.Config, error) {
	c := codec.Config{Endpoint: a.Settings.CodecEndpoint, Auth: a.Settings.CodecAuth}
	for _, h := range append(linesOf(os.Getenv(headersEnv)), a.CodecHeaders...) {
		name, value, ok := strings.Cut(h, "=")
		// The value may be a secret and is not repeated.
		if !ok || name == "" || strings.ContainsAny(name+value, "\r\n") || strings.ContainsAny(name, " :") {
			return c, UsageError("--codec-header is NAME=VALUE, for instance X-Key=…")
		}
		if c.Headers == nil {
			c.Headers = map[string]string{}
		}
		c.Headers[http.CanonicalHeaderKey(name)] = value
	}
	return c, nil
}

// FileCodec is the codec server for histories in files, nil where there is none.
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

// ReadHistories reads the histories of a file as [readHistoryFile] does and decodes their
// payloads. Those that cannot be decoded stay as they are.
func (a *App) ReadHistories(ctx context.Context, path string) []RunHistory {
	list := readHistoryFile(path)
	s, err := a.FileCodec()
	if err != nil {
		return []RunHistory{{Source: path, Number: 1, ReadErr: err}}
	}
	if s != nil {
		for _, h := range list {
			s.Events(ctx, h.Events)
		}
	}
	return list
}
