package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path"
	"sync"
	"sync/atomic"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"

	"acescope/engine"
)

// Variables of a process of the tests: flowWorkerEnv makes it a [flowWorker], with a configuration as JSON,
// and programsLogEnv names the file to which it adds a line if it is the program acescope of a step.
const (
	flowWorkerEnv  = "FLOW_WORKER"
	programsLogEnv = "ACESCOPE_PROGRAMS_LOG"
)

// programsLog is the file with the names of executed programs in the directory of a run.
const programsLog = "programs.log"

// noteProgram adds this program to the file of executed programs.
func noteProgram() {
	f, err := os.OpenFile(os.Getenv(programsLogEnv), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = io.WriteString(f, "acescope\n")
}

// flowWorker is a process that executes runs until its input is closed. If it is to be killed, it kills
// itself as soon as the server has the result of an operation and no other one is under way.
type flowWorker struct {
	Dir    string
	Killed bool

	open  atomic.Int64 // operations under way
	polls sync.RWMutex // held by the requests for tasks
	dying context.Context
	die   context.CancelFunc // ends the requests for tasks
}

func (w *flowWorker) run(config string) error {
	if err := json.Unmarshal([]byte(config), w); err != nil {
		return err
	}
	w.dying, w.die = context.WithCancel(context.Background())
	o := engine.Options{DataDir: w.Dir, Version: "test", Worker: true, NoRunner: true}
	if w.Killed {
		worker.SetStickyWorkflowCacheSize(0) // or the server waits for the worker that died
		o.Intercept = w.intercept
	}
	e, err := engine.Open(context.Background(), o)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return e.Close(context.Background())
}

func (w *flowWorker) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	call := func() error { return invoke(ctx, method, req, reply, cc, opts...) }
	switch path.Base(method) {
	case "PollWorkflowTaskQueue":
		return w.poll(&ctx, call)
	case "PollActivityTaskQueue":
		err := w.poll(&ctx, call)
		if err == nil && len(reply.(*workflowservice.PollActivityTaskQueueResponse).GetTaskToken()) > 0 {
			w.open.Add(1)
		}
		return err
	case "RespondWorkflowTaskCompleted": // the answer may have operations
		err := call()
		w.open.Add(int64(len(
			reply.(*workflowservice.RespondWorkflowTaskCompletedResponse).GetActivityTasks())))
		return err
	case "RespondActivityTaskFailed":
		w.open.Add(-1)
	case "RespondActivityTaskCompleted":
		if w.open.Add(-1) == 0 {
			w.kill(call)
		}
	}
	return call()
}

// poll requests a task, unless the process is about to be killed.
func (w *flowWorker) poll(ctx *context.Context, call func() error) error {
	w.polls.RLock()
	defer w.polls.RUnlock()
	polling, stop := context.WithCancel(*ctx)
	defer stop()
	defer context.AfterFunc(w.dying, stop)()
	*ctx = polling
	return call()
}

// kill makes the last call of the process. Before it, the process ends its requests for tasks: the server
// would give it the next task, and wait until that times out.
func (w *flowWorker) kill(call func() error) {
	w.die()
	w.polls.Lock()
	err := call()
	if err == nil {
		var self *os.Process
		if self, err = os.FindProcess(os.Getpid()); err == nil {
			err = self.Kill()
		}
	}
	if err != nil {
		panic(err)
	}
	select {}
}
