package server

import (
	"time"

	dc "go.temporal.io/server/common/dynamicconfig"
)

// plenty is a rate limit that one user's machine does not reach.
const plenty = 100_000

// dynamicConfig tunes the server for one user, one process and one SQLite file.
func dynamicConfig() dc.StaticClient {
	return dc.StaticClient{
		// The limits protect shared clusters. The visibility one alone, 10 calls a
		// second, would starve a console.
		dc.FrontendRPS.Key():                                  plenty,
		dc.FrontendMaxNamespaceRPSPerInstance.Key():           plenty,
		dc.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): 1000,
		dc.HistoryRPS.Key():                                   plenty,
		dc.MatchingRPS.Key():                                  plenty,
		dc.FrontendPersistenceMaxQPS.Key():                    plenty,
		dc.HistoryPersistenceMaxQPS.Key():                     plenty,
		dc.MatchingPersistenceMaxQPS.Key():                    plenty,
		dc.WorkerPersistenceMaxQPS.Key():                      plenty,

		// A session's tool calls that wait for a person, and those who wait for what it
		// says, are updates under way; a decision is one too. The default is 10.
		dc.WorkflowExecutionMaxInFlightUpdates.Key(): 200,

		// One process serves every task queue, so partitions of a queue would only
		// forward to each other.
		dc.MatchingNumTaskqueueReadPartitions.Key():  1,
		dc.MatchingNumTaskqueueWritePartitions.Key(): 1,

		// Both are the server's defaults; acescope's latency rests on them.
		dc.EnableActivityEagerExecution.Key(): true,
		dc.EnableEagerWorkflowStart.Key():     true,

		// The default of 20 reads a second adds up to 50 ms to every step under load.
		dc.TransferProcessorMaxPollRPS.Key(): 200,
		// Every read walks the tasks that are done until a checkpoint forgets them. With
		// the default of 30 s that walk grows to a seventh of the load.
		dc.TransferProcessorUpdateAckInterval.Key():   time.Second,
		dc.VisibilityProcessorUpdateAckInterval.Key(): time.Second,

		// The timer queue. SQLite answers its read by walking all rows before the end
		// of the window, those of fired timers too, until a checkpoint deletes them:
		// with the default of one in 30 s, 20,000 such rows make a read take 9 ms. So
		// the checkpoint comes every second. Reading rarely instead (MaxPollRPS 2)
		// also saves the time, but then at most 200 timers a second are worked off,
		// fewer than 20 runs a second leave behind (each workflow task and activity
		// sets time-outs), and real timers fire ever later: 45 s late after 2,000
		// runs. Big batches and enough reads keep up: at 26 runs a second timers fire
		// 5 ms late on average and 35 ms at most.
		dc.TimerProcessorUpdateAckInterval.Key(): time.Second,
		dc.TimerProcessorMaxPollRPS.Key():        50,
		dc.TimerTaskBatchSize.Key():              1000,
		// How far ahead timers are read. A new timer within this window fires at its
		// end; the default of 1 s is for clocks that differ between machines.
		dc.TimerProcessorMaxTimeShift.Key(): 100 * time.Millisecond,

		// Closed runs stay in this cache until their last time-out has fired, a minute
		// or two. The default, 128,000 runs for an hour, is memory and garbage
		// collection without use.
		dc.HistoryCacheHostLevelMaxSize.Key(): 1000,
		dc.EventsCacheMaxSizeBytes.Key():      16 << 20,
	}
}
