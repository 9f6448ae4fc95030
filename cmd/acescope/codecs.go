package main

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
	"acescope/engine/codec"
)

// codecs are the codec servers of this process: one of the connection, one of files.
type codecs struct {
	mu     sync.Mutex
	used   []*codec.Server
	silent bool // the console says itself what is wrong

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

// warn says in a line for each server that payloads stayed encoded, and why.
func (c *codecs) warn(w io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.used {
		if st := s.Status(); st.Failed > 0 && !c.silent {
			fmt.Fprintf(w, "acescope: the codec server %s left payloads encoded (%d): %s\n", s.Name(), st.Failed, safe(st.Reason))
		}
	}
}

// headersEnv names further headers for the codec server, one NAME=VALUE a line.
const headersEnv = "ACESCOPE_CODEC_HEADERS"

func linesOf(s string) []string {
	return slices.DeleteFunc(strings.Split(s, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
}

// codecEnv is the environment of a process that is to use the same codec server. Secrets
// are in no argument, which others on the machine can read.
func (a *app) codecEnv() []string {
	headers := append(linesOf(os.Getenv(headersEnv)), a.codecHeaders...)
	return append(os.Environ(), "TEMPORAL_CODEC_ENDPOINT="+a.set.CodecEndpoint, "TEMPORAL_CODEC_AUTH="+a.set.CodecAuth,
		headersEnv+"="+strings.Join(headers, "\n"))
}

// codecConfig is the codec server that flags, the environment or the configuration name.
func (a *app) codecConfig() (codec.Config, error) {
	c := codec.Config{Endpoint: a.set.CodecEndpoint, Auth: a.set.CodecAuth}
	for _, h := range append(linesOf(os.Getenv(headersEnv)), a.codecHeaders...) {
		name, value, ok := strings.Cut(h, "=")
		// The value may be a secret and is not repeated.
		if !ok || name == "" || strings.ContainsAny(name+value, "\r\n") || strings.ContainsAny(name, " :") {
			return c, usage("--codec-header is NAME=VALUE, for instance X-Key=…")
		}
		if c.Headers == nil {
			c.Headers = map[string]string{}
		}
		c.Headers[http.CanonicalHeaderKey(name)] = value
	}
	return c, nil
}

// fileCodec is the codec server for histories in files, nil where there is none.
func (a *app) fileCodec() (*codec.Server, error) {
	c := &a.codecs
	c.once.Do(func() {
		config, err := a.codecConfig()
		if err == nil {
			config.Namespace = a.set.Namespace
			c.file, err = engine.CodecServer(config, a.cluster())
		}
		c.err = err
		c.use(c.file)
	})
	return c.file, c.err
}

// readHistories reads the histories of a file as [readHistoryFile] does and decodes their
// payloads. Those that cannot be decoded stay as they are.
func (a *app) readHistories(ctx context.Context, path string) []oneHistory {
	list := readHistoryFile(path)
	s, err := a.fileCodec()
	if err != nil {
		return []oneHistory{{source: path, number: 1, err: err}}
	}
	if s != nil {
		for _, h := range list {
			s.Events(ctx, h.Events)
		}
	}
	return list
}
