package server

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"acescope/engine/ace"
)

// Endpoint is the content of endpoint.json: the address of the server and its host.
type Endpoint struct {
	Address   string    `json:"address"` // host:port of the frontend, on loopback
	Namespace string    `json:"namespace"`
	PID       int       `json:"pid"`
	Started   time.Time `json:"started_at"`
	Version   string    `json:"version"` // acescope version of the host
	Format    int       `json:"format"`  // format version of the data directory
	Clock     ClockStep `json:"clock,omitzero"`
}

// Port returns the port of Address, or 0.
func (e Endpoint) Port() int {
	_, port, err := net.SplitHostPort(e.Address)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(port)
	return n
}

func newEndpoint(port int, version string) Endpoint {
	return Endpoint{
		Address:   loopback(port),
		Namespace: ace.DefaultNamespace,
		PID:       os.Getpid(),
		Started:   time.Now().UTC().Truncate(time.Millisecond),
		Version:   version,
		Format:    formatVersion,
	}
}

// Lookup returns the endpoint of the process that hosts a data directory, from endpoint.json. It
// returns false if the file is missing or damaged, or if it does not name a live process of this
// user: then another program may use the port, which must not receive the token.
func Lookup(dir string) (Endpoint, bool) {
	var e Endpoint
	data, err := os.ReadFile(filepath.Join(dir, endpointFile))
	if err != nil || json.Unmarshal(data, &e) != nil {
		return Endpoint{}, false
	}
	host, _, err := net.SplitHostPort(e.Address)
	if err != nil || !net.ParseIP(host).IsLoopback() || !ownProcess(e.PID) {
		return Endpoint{}, false
	}
	return e, true
}

// remove deletes endpoint.json unless another host has replaced it.
func (e Endpoint) remove(dir string) {
	if have, ok := Lookup(dir); ok && have == e {
		os.Remove(filepath.Join(dir, endpointFile))
	}
}
