package admin

import (
	"context"
	"os"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/agents/observe/spool"
	"acescope/sources/cluster"
)

// healthDeps returns what the readers of the health need.
func healthDeps(a *cli.App, e *engine.Engine) cluster.Deps {
	dir, _ := a.DataDir()        // the connection exists, so there is a data directory
	cache, _ := cli.TraceCache() // without a state directory, nothing is kept
	return cluster.Deps{
		Client: e.Client, Namespace: e.Namespace(), TaskQueue: e.TaskQueue, Playbooks: e.Books,
		Prompts: e.Prompts, DataDir: dir, Mirror: engine.LogMirror(e),
		Transcripts: engine.TranscriptMirror(e), Spool: spool.Dir(os.Getenv), Artifact: e.Artifacts.Get,
		TraceCache: cache, Version: cli.BuildVersion(),
		Meter: a.Meter, Host: host(e, dir), Agents: a.AgentChecks(),
		Store: func(ctx context.Context) (string, error) { return engine.CheckStore(ctx, e) },
	}
}

// host returns a function that describes the host of the server, which changes at a takeover.
func host(e *engine.Engine, dir string) func() cluster.Host {
	return func() cluster.Host {
		h := cluster.Host{Worker: e.Serves()}
		n := e.Node()
		if n == nil {
			return h
		}
		ep := n.Endpoint()
		h.PID, h.Version, h.Started, h.DataDir, h.Lost = ep.PID, ep.Version, ep.Started, dir, ep.Lost(dir)
		h.Clock = ep.Clock.Warning()
		free, err := e.Free()
		if err != nil {
			h.FreeErr = err.Error()
		}
		h.Free = free
		return h
	}
}
