// Package system collects and judges the health of the server, the workers, the data directory and this
// process.
package system

import (
	"os"
	"runtime"
	"time"

	"acescope/engine/agents/observe"
	"acescope/sources/cluster"
)

// System is the health of the server, the workers, the readers and this process.
type System struct {
	At      time.Time `json:"at"`
	Loading bool      `json:"-"` // the first reading is running
	Mode    string    `json:"mode"`
	Address string    `json:"address,omitempty"`
	Space   string    `json:"namespace"`
	Err     string    `json:"error,omitempty"` // why the server did not answer

	Server     ServerInfo   `json:"server,omitzero"`
	Store      StoreInfo    `json:"shared_store,omitzero"` // of the namespace
	Host       cluster.Host `json:"host,omitzero"`
	Attributes []string     `json:"missing_attributes"`
	AttrErr    string       `json:"-"`

	noNamespace bool
	Queues      []Queue `json:"queues"`
	TotalRuns   int64   `json:"runs"`
	OpenRuns    int64   `json:"open"`
	CountErr    string  `json:"-"`

	Spool    *observe.Quarantine `json:"-"` // events that the server refused
	SpoolErr string              `json:"-"`

	Agents  []cluster.ToolCheck `json:"-"`
	Sources []SourceAge         `json:"-"`
	Calls   []cluster.CallStat  `json:"calls"`
	Process Process             `json:"process,omitzero"`
	TookMS  float64             `json:"duration_ms"`
}

// New returns the health of a server that was not read yet. Its lists are never nil, for JSON.
func New(mode, address, namespace string) *System {
	return &System{Mode: mode, Address: address, Space: namespace,
		Attributes: []string{}, Queues: []Queue{}, Calls: []cluster.CallStat{}}
}

// ServerInfo describes the server.
type ServerInfo struct {
	Version    string  `json:"version,omitempty"`
	Cluster    string  `json:"cluster,omitempty"`
	Store      string  `json:"store,omitempty"`      // storage of runs
	Search     string  `json:"visibility,omitempty"` // storage of visibility
	Shards     int32   `json:"shards,omitempty"`
	AnsweredMS float64 `json:"answered_ms"` // time of the response
}

// StoreInfo describes the shared store of the namespace.
type StoreInfo struct {
	URL        string  `json:"url"`         // without secrets
	AnsweredMS float64 `json:"answered_ms"` // time to read an object
	Err        string  `json:"error,omitempty"`
}

// Queue is a task queue and its pollers.
type Queue struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"` // workflow, activity
	Ours     bool     `json:"-"`    // the contract's queue
	Backlog  int64    `json:"backlog"`
	OldestMS float64  `json:"oldest_ms"` // age of the oldest waiting task
	In       float64  `json:"tasks_in_per_second"`
	Out      float64  `json:"tasks_out_per_second"`
	Pollers  []Poller `json:"pollers"`
	// Gone is the newest access of the workers that ended, which are not among Pollers, or zero.
	Gone time.Time `json:"last_access_of_ended,omitzero"`
	Err  string    `json:"error,omitempty"`
}

// Poller is a worker that polls a task queue.
type Poller struct {
	Identity string    `json:"identity"`
	Last     time.Time `json:"last_access"`
	Rate     float64   `json:"rate_per_second"` // its limit of tasks per second
}

// SourceAge is the age of a source of the console.
type SourceAge struct {
	Name  string
	State cluster.Severity
	Text  string
	Since time.Time // when it was read, or when its state changed
	// Dropped is the number of items beyond a bound.
	Dropped int64
}

// Process describes this process.
type Process struct {
	PID        int            `json:"pid"`
	Goroutines int            `json:"goroutines"`
	Heap       uint64         `json:"heap_bytes"`          // of live objects and garbage
	HeapSys    uint64         `json:"heap_held_bytes"`     // reserved for the heap
	RSS        uint64         `json:"rss_bytes,omitempty"` // in memory, 0 if unknown
	GCs        uint32         `json:"collections"`
	GCPause    time.Duration  `json:"-"` // total
	Snapshots  uint64         `json:"-"` // published values of the console
	Started    time.Time      `json:"-"`
	Screen     cluster.Screen `json:"-"`
}

// processStarted approximates the start of the process.
var processStarted = time.Now()

// ThisProcess returns the current state of this process.
func ThisProcess() Process {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Process{PID: os.Getpid(), Goroutines: runtime.NumGoroutine(), Heap: m.HeapAlloc,
		HeapSys: m.HeapSys - m.HeapReleased,
		RSS:     cluster.ResidentBytes(), GCs: m.NumGC, GCPause: time.Duration(m.PauseTotalNs),
		Started: processStarted}
}

// CodecHealth is the health row of the codec server.
const CodecHealth = "codec server"

// ProbeEvery is how often a failed codec server is considered for a retry; it decides itself when to retry.
const ProbeEvery = 500 * time.Millisecond
