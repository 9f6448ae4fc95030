package server

import (
	"log/slog"
	"time"
)

// Options say where and how to host or attach. Dir is required.
type Options struct {
	// Dir is the data directory. It is made, with mode 0700, when it does not exist.
	Dir string
	// Port to listen on when this process hosts; 0 prefers the port that was used
	// last and falls back to a free one. An attached process ignores it.
	Port int
	// Version of acescope, for the files that tell other processes who wrote them.
	Version string
	// NoTakeover keeps an attached node from becoming the host when the host goes.
	// It is for commands that are about to end anyway.
	NoTakeover bool
	// StartTimeout bounds the wait for a server to answer; 0 means 20 seconds.
	StartTimeout time.Duration
	// Logger receives the few things the node itself has to say, such as a takeover.
	// Nil discards them. The server's own log goes to logs/server.log.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.StartTimeout <= 0 {
		o.StartTimeout = 20 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Version == "" {
		o.Version = "unknown"
	}
	return o
}
