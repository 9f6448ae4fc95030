// Package system collects and judges the health of the server, the workers, the data directory and this process.
package system

import (
	"os"
	"runtime"
	"time"

	"acescope/sources/cluster"
)

// System is how the machinery is: engine, workers, sources, calls and this process.
type System struct {
	At      time.Time
	Loading bool // the first reading is under way
	Mode    string
	Address string
	Space   string // the namespace
	Err     string // why the server could not be asked, "" if it could
	Took    time.Duration

	Host       cluster.Host
	Server     ServerInfo
	Attributes []string // of the contract's search attributes those that are missing
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

// ServerInfo is what the server says of itself.
type ServerInfo struct {
	Version  string
	Cluster  string
	Store    string // where it keeps runs
	Search   string // where it keeps what is listed
	Shards   int32
	Answered time.Duration // how long it took to answer
}

// Queue is a task queue and who polls it.
type Queue struct {
	Name    string
	Kind    string // workflow, activity
	Ours    bool   // the contract's queue
	Pollers []Poller
	Backlog int64         // tasks that wait, approximately
	Oldest  time.Duration // how long the oldest waits
	In, Out float64       // tasks a second
	Err     string
}

// Poller is a worker that asks a queue for work.
type Poller struct {
	Identity string
	Last     time.Time // when it asked last
	Rate     float64   // tasks a second that it allows itself
}

// SourceAge is one source of what the console shows, and how fresh that is.
type SourceAge struct {
	Name  string
	OK    bool
	Text  string
	Minor bool      // what is wrong with it is no fault of the machinery
	Since time.Time // when it was read, or when it came into this state
	// Dropped counts what did not fit into a bound.
	Dropped int64
}

// Process is this program.
type Process struct {
	PID        int
	Goroutines int
	Heap       uint64 // bytes of live objects and garbage
	HeapSys    uint64 // bytes that Go holds for it
	RSS        uint64 // bytes in memory, 0 where the system does not tell
	GCs        uint32
	GCPause    time.Duration // in all
	Snapshots  uint64        // of the console's data, made so far
	Started    time.Time
	Screen     cluster.Screen
}

// processStarted is when the program began, as near as it can know.
var processStarted = time.Now()

// ThisProcess reads how this program is.
func ThisProcess() Process {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Process{PID: os.Getpid(), Goroutines: runtime.NumGoroutine(), Heap: m.HeapAlloc, HeapSys: m.HeapSys - m.HeapReleased,
		RSS: cluster.ResidentBytes(), GCs: m.NumGC, GCPause: time.Duration(m.PauseTotalNs), Started: processStarted}
}
