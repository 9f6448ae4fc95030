package server

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
)

// Endpoint is where the server answers and who hosts it, as endpoint.json has it.
type Endpoint struct {
	Address   string    `json:"address"` // host:port of the frontend, on loopback
	Namespace string    `json:"namespace"`
	PID       int       `json:"pid"`
	Started   time.Time `json:"started_at"`
	Version   string    `json:"version"` // acescope version of the host
	Format    int       `json:"format"`  // format version of the data directory
}

// Lookup is the endpoint of the process that hosts a data directory; false where none
// does.
func Lookup(dir string) (Endpoint, bool) { return readEndpoint(dir) }

// Port is the port of Address, 0 if there is none.
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

// readEndpoint reads endpoint.json. It is false when there is none, when it is not
// whole, or when the process it names is not a live one of this user: then its port
// may belong to somebody else by now, who must not be sent the token.
func readEndpoint(dir string) (Endpoint, bool) {
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

func (e Endpoint) write(dir string) error {
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(dir, endpointFile, append(data, '\n'))
}

// remove deletes endpoint.json if it is still this one.
func (e Endpoint) remove(dir string) {
	if have, ok := readEndpoint(dir); ok && have == e {
		os.Remove(filepath.Join(dir, endpointFile))
	}
}

// readPort is the port that a host used last, 0 if unknown.
func readPort(dir string) int {
	data, err := os.ReadFile(filepath.Join(dir, portFile))
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || port < 1 || port > 65535 {
		return 0
	}
	return port
}

// keepPort remembers the port for the next host, so that addresses that people and
// programs noted stay good.
func keepPort(dir string, port int) error {
	if readPort(dir) == port {
		return nil
	}
	return writeFile(dir, portFile, []byte(strconv.Itoa(port)+"\n"))
}
