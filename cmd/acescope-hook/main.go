// Command acescope-hook is what an agent's hooks call: it reads a hook's JSON from standard
// input and leaves it in the local spool, from where acescope fetches it. Whatever happens,
// it prints nothing and exits 0, so that no agent is ever held up or stopped by it. It may
// import the spool's package and the standard library without fmt and encoding/json, which
// would cost a part of its millisecond.
package main

import (
	"io"
	"os"
	"time"

	"acescope/engine/observe/spool"
)

// patience bounds how long standard input is waited for.
const patience = 10 * time.Second

func main() {
	defer os.Exit(0)
	defer func() { _ = recover() }()
	time.AfterFunc(patience, func() { os.Exit(0) })
	dir := spool.Dir(os.Getenv)
	if dir == "" || os.Getenv("ACESCOPE_OBSERVE") == "off" {
		return
	}
	payload, kind := read(os.Stdin)
	if len(payload) > 0 {
		_ = spool.Append(dir, kind, payload)
	}
}

// read reads all of the input, or its beginning where it is too large; the rest is read
// too, so that the agent does not write into a closed pipe.
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
			kind = spool.HookCut
		}
		if err != nil {
			return data, kind
		}
	}
}
