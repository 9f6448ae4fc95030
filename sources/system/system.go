// Package system collects and judges the health of the server, the workers, the data directory and this
// process.
package system

import (
	"os"
	"runtime"
	"time"

	"acescope/sources/cluster"
)

// System is the health of the server, the workers, the readers and this process.
type System struct {
	At      time.Time
	Loading bool // the first reading is running
	Mode    string
	Address string
	Space   string // namespace
	Err     string // why the server did not answer
	Took    time.Duration

	Host       cluster.Host
	Server     ServerInfo
	Attributes []string // missing search attributes of the contract
	AttrErr    string
	Queues     []Queue
	OpenRuns   int64
	TotalRuns  int64
	CountErr   string

	Agents  []cluster.AgentCheck
	Sources []SourceAge
	Calls   []cluster.CallStat
	Process Process
}

// ServerInfo describes the server.
type ServerInfo struct {
	Version  string
	Cluster  string
	Store    string // storage of runs
	Search   string // storage of visibility
	Shards   int32
	Answered time.Duration // time of the response
}

// Queue is a task queue and its pollers.
type Queue struct {
	Name    string
	Kind    string // workflow, activity
	Ours    bool   // the contract's queue
	Pollers []Poller
	Backlog int64         // approximate number of waiting tasks
	Oldest  time.Duration // age of the oldest waiting task
	In, Out float64       // tasks per second
	Err     string
}

// Poller is a worker that polls a task queue.
type Poller struct {
	Identity string
	Last     time.Time // last poll
	Rate     float64   // its limit of tasks per second
}

// SourceAge is the age of a source of the console.
type SourceAge struct {
	Name  string
	OK    bool
	Text  string
	Minor bool      // its problem is not a health problem
	Since time.Time // when it was read, or when its state changed
	// Dropped is the number of items beyond a bound.
	Dropped int64
}

// Process describes this process.
type Process struct {
	PID        int
	Goroutines int
	Heap       uint64 // bytes of live objects and garbage
	HeapSys    uint64 // bytes reserved for the heap
	RSS        uint64 // bytes in memory, 0 if unknown
	GCs        uint32
	GCPause    time.Duration // total
	Snapshots  uint64        // published values of the console
	Started    time.Time
	Screen     cluster.Screen
}

// processStarted approximates the start of the process.
var processStarted = time.Now()

// ThisProcess returns the current state of this process.
func ThisProcess() Process {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Process{PID: os.Getpid(), Goroutines: runtime.NumGoroutine(), Heap: m.HeapAlloc, HeapSys: m.HeapSys - m.HeapReleased,
		RSS: cluster.ResidentBytes(), GCs: m.NumGC, GCPause: time.Duration(m.PauseTotalNs), Started: processStarted}
}

// CodecHealth is the health row of the codec server.
const CodecHealth = "codec server"

// ProbeEvery is how often a failed codec server is considered for a retry; it decides itself when to retry.
const ProbeEvery = 500 * time.Millisecond
