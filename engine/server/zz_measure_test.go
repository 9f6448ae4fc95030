package server

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

func cpu() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func TestZStart(t *testing.T) {
	dir := t.TempDir()
	for i := 0; i < 4; i++ {
		t0 := time.Now()
		if i == 3 {
			f, _ := os.Create("/tmp/start.pprof")
			pprof.StartCPUProfile(f)
		}
		n, err := Join(context.Background(), Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if i == 3 {
			pprof.StopCPUProfile()
		}
		d1 := time.Since(t0)
		c, err := n.Dial(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		d2 := time.Since(t0)
		_, err = c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{TaskQueue: "q"}, "x")
		fmt.Println("join", d1, "dial", d2, "started", time.Since(t0), err)
		c.Close()
		t0 = time.Now()
		if i == 3 { go func() { time.Sleep(400*time.Millisecond); f, _ := os.Create("/tmp/close.txt"); pprof.Lookup("goroutine").WriteTo(f, 1); f.Close() }() }
		fmt.Println(n.Close(context.Background()), "close", time.Since(t0))
	}
}

func TestZIdle(t *testing.T) {
	n, err := Join(context.Background(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(context.Background())
	time.Sleep(10 * time.Second)
	c := cpu()
	t0 := time.Now()
	f, _ := os.Create("/tmp/idle.pprof")
	pprof.StartCPUProfile(f)
	time.Sleep(25 * time.Second)
	pprof.StopCPUProfile()
	fmt.Printf("idle %.2f%%\n", 100*float64(cpu()-c)/float64(time.Since(t0)))
}

func act(ctx context.Context) error { _ = activity.GetInfo(ctx); return nil }
func timerWF(ctx workflow.Context, d time.Duration) (time.Duration, error) {
	var lag time.Duration
	err := workflow.Sleep(ctx, d)
	return lag, err
}
func wf(ctx workflow.Context) error {
	ch := workflow.GetSignalChannel(ctx, "s")
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	for i := 0; i < 4; i++ {
		if err := workflow.ExecuteActivity(ctx, act).Get(ctx, nil); err != nil {
			return err
		}
	}
	for i := 0; i < 20; i++ {
		ch.Receive(ctx, nil)
	}
	return nil
}

func envInt(k string, d int) int {
	if n, err := strconv.Atoi(os.Getenv(k)); err == nil {
		return n
	}
	return d
}

func TestZLoad(t *testing.T) {
	dir := t.TempDir()
	n, err := Join(context.Background(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(context.Background())
	c, err := n.Dial(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w := worker.New(c, "q", worker.Options{})
	w.RegisterWorkflow(wf)
	w.RegisterWorkflow(timerWF)
	w.RegisterActivity(act)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	total, chunk := envInt("RUNS", 2000), envInt("CHUNK", 500)
	db, _ := sql.Open("sqlite", "file:"+sqlConfig(dir).DatabaseName+"?_pragma=busy_timeout(5000)")
	defer db.Close()
	stop := make(chan struct{})
	var lagMu sync.Mutex
	var lags []time.Duration
	probe := func(d time.Duration) {
		ctx := context.Background()
		r, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: "q"}, timerWF, d)
		if err != nil {
			return
		}
		r.Get(ctx, nil)
		it := c.GetWorkflowHistory(ctx, r.GetID(), r.GetRunID(), false, 0)
		var s time.Time
		for it.HasNext() {
			e, err := it.Next()
			if err != nil {
				return
			}
			if e.GetTimerStartedEventAttributes() != nil {
				s = e.EventTime.AsTime()
			}
			if e.GetTimerFiredEventAttributes() != nil {
				lagMu.Lock()
				lags = append(lags, e.EventTime.AsTime().Sub(s)-d)
				lagMu.Unlock()
			}
		}
	}
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(700 * time.Millisecond):
				go probe(100 * time.Millisecond)
				go probe(3 * time.Second)
			}
		}
	}()
	if os.Getenv("PROF") != "" {
		f, _ := os.Create(os.Getenv("PROF"))
		pprof.StartCPUProfile(f)
		defer pprof.StopCPUProfile()
	}
	for done := 0; done < total; done += chunk {
		t0, c0 := time.Now(), cpu()
		var next atomic.Int64
		var wg sync.WaitGroup
		for g := 0; g < 8; g++ {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for next.Add(1) <= int64(chunk) {
					r, err := c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{TaskQueue: "q"}, wf)
					if err != nil {
						fmt.Println(err)
						continue
					}
					for i := 0; i < 20; i++ {
						if err := c.SignalWorkflow(context.Background(), r.GetID(), r.GetRunID(), "s", i); err != nil {
							fmt.Println(err)
						}
					}
					if err := r.Get(context.Background(), nil); err != nil {
						fmt.Println(err)
					}
				}
			}()
		}
		wg.Wait()
		el, cp := time.Since(t0), cpu()-c0
		var overdue, all int
		nowS := time.Now().UTC().Format("2006-01-02 15:04:05.999999999-07:00")
		db.QueryRow("select count(*), sum(visibility_timestamp < ?) from timer_tasks", nowS).Scan(&all, &overdue)
		var minV string
		db.QueryRow("select min(visibility_timestamp) from timer_tasks").Scan(&minV)
		lagMu.Lock()
		ls := lags
		lags = nil
		lagMu.Unlock()
		var mx, sm time.Duration
		for _, l := range ls {
			sm += l
			mx = max(mx, l)
		}
		if len(ls) > 0 {
			sm /= time.Duration(len(ls))
		}
		fmt.Printf("%d: %.1f runs/s cpu/run %.1f ms; timers %d past %d min %s; lag n=%d mean %v max %v\n", done+chunk, float64(chunk)/el.Seconds(), float64(cp.Milliseconds())/float64(chunk), all, overdue, minV, len(ls), sm, mx)
	}
	close(stop)
	_ = workflowservice.DescribeNamespaceRequest{}
}

