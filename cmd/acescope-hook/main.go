// Command acescope-hook is called by the hooks of agents: it reads the hook's JSON from standard
// input and appends it to the local spool, from which acescope fetches it. It always prints
// nothing and exits with 0, so it never disturbs the agent. To run within about a millisecond, it
// imports only the spool package and the standard library without fmt and encoding/json.
package main

import (
	"io"
	"os"
	"time"

	"acescope/engine/agents/observe/spool"
)

// inputTimeout bounds the wait for standard input.
const inputTimeout = 10 * time.Second

func main() {
	defer os.Exit(0)
	defer func() { _ = recover() }()
	time.AfterFunc(inputTimeout, func() { os.Exit(0) })
	dir := spool.Dir(os.Getenv)
	if dir == "" || os.Getenv("ACESCOPE_OBSERVE") == "off" || os.Getenv(spool.EnvHook) == "off" {
		return
	}
	payload, kind := read(os.Stdin)
	if len(payload) > 0 {
		_ = spool.Append(dir, kind, spool.WithExperiment(payload, os.Getenv(spool.EnvExperiment)))
	}
}

// read reads the input, truncated to [spool.MaxPayload]. It also reads the rest, so that the
// agent does not write to a closed pipe.
func read(in io.Reader) ([]byte, spool.Kind) {
	data := make([]byte, 0, 16<<10)
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := in.Read(data[len(data):min(cap(data), spool.MaxPayload)])
		data = data[:len(data)+n]
		if err != nil {
			return data, spool.Hook
		}
		if len(data) == spool.MaxPayload {
			break
		}
	}
	kind, rest := spool.Hook, make([]byte, 64<<10)
	for {
		n, err := in.Read(rest)
		if n > 0 {
			kind = spool.HookTruncated
		}
		if err != nil {
			return data, kind
		}
	}
}
