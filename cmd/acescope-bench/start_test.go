//go:build bench

package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creack/pty"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	schema "go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
)

// frameTimeout bounds the wait for the first frame.
const frameTimeout = 20 * time.Second

// start measures from exec to the first frame of the console and to the first task.
func start(b *bench) {
	attempts := 4*b.size.runs + 1 // starts are short and vary
	b.compare(attempts, []figure{
		{what: "console, exec to first frame", unit: "ms", target: "≤ 150"},
		{what: "console, CPU until the first frame", unit: "ms"},
	}, func() []float64 {
		dir := b.tempDir()
		began := time.Now()
		t := b.openTerminal(nil, 120, 40, b.acescope, "--data-dir", dir)
		defer t.stop()
		t.await("acescope")
		values := []float64{millis(time.Since(began)), math.NaN()}
		if cpu, err := processCPU(t.cmd.Process.Pid); err == nil {
			values[1] = millis(cpu)
		}
		return values
	}, nil)
	firstTask := func(bare bool) measure {
		return func() []float64 {
			dir := b.tempDir()
			began := time.Now()
			p := b.child(spec{Kind: "first", Bare: bare, Dir: dir})
			var t firstTimes
			p.read(&t)
			p.wait()
			return []float64{millis(t.Acknowledged.Sub(began)), millis(t.Running.Sub(began))}
		}
	}
	b.compare(attempts, []figure{
		{what: "exec to first task started, against a plain embedded server", unit: "ms", target: "≤ 1.3×"},
		{what: "exec to first activity running", unit: "ms"},
	}, firstTask(false), firstTask(true))
}

// terminal is a program in a terminal of its own.
type terminal struct {
	*process
	file  *os.File
	bytes atomic.Int64 // written after the first frame
}

func (b *bench) openTerminal(env []string, columns, rows uint16, name string, args ...string) *terminal {
	ctx, cancel := context.WithCancel(b.ctx)
	cmd := command(ctx, append(env[:len(env):len(env)], "TERM=xterm-256color"), name, args...)
	t := &terminal{process: &process{cmd: cmd, cancel: cancel}}
	t.file = must(pty.StartWithSize(cmd, &pty.Winsize{Cols: columns, Rows: rows}))
	b.Cleanup(t.stop)
	return t
}

// await reads until a text is on the alternate screen; the title, "acescope", is in the first frame. From
// then on the terminal counts what the program writes.
func (t *terminal) await(text string) {
	timeout := time.AfterFunc(frameTimeout, t.cancel)
	defer timeout.Stop()
	var seen []byte
	buf := make([]byte, 1<<14)
	for {
		n, err := t.file.Read(buf)
		seen = append(seen, buf[:n]...)
		at := bytes.Index(seen, []byte("\x1b[?1049h"))
		if at >= 0 && bytes.Contains(seen[at:], []byte(text)) {
			go func() { _, _ = io.Copy(t, t.file) }()
			return
		}
		if err != nil {
			fail("no %q; the terminal has %q: %w", text, seen, err)
		}
	}
}

// Write implements [io.Writer].
func (t *terminal) Write(p []byte) (int, error) {
	t.bytes.Add(int64(len(p)))
	return len(p), nil
}

func (t *terminal) stop() {
	t.process.stop()
	t.file.Close()
}

// idle measures the CPU that a server uses without any request, and what consoles use that show the
// overview of the finished demo while no key is pressed.
func idle(b *bench) {
	b.onNewAndFilled(func(dir, what string) {
		b.compare(1, []figure{{what: "acescope serve, " + what, unit: "% of a core"}}, func() []float64 {
			s := b.serve(dir)
			defer s.stop()
			check(sleep(b.ctx, settleTime))
			return []float64{b.cpuShare(s.process, time.Duration(b.size.idleSecs)*time.Second)}
		}, nil)
	})
	dir := b.ensureDemo()
	b.compare(1, []figure{
		{what: "console with the server, after the demo", unit: "% of a core", target: "≤ 0.8"},
		{what: "resident", unit: "MB", target: "≤ 220"},
		{what: "of it without the program's file", unit: "MB"},
		{what: "attached console", unit: "% of a core", target: "≤ 0.5"},
		{what: "resident", unit: "MB", target: "≤ 60"},
		{what: "of it without the program's file", unit: "MB"},
	}, func() []float64 {
		embedded := b.idleConsole(dir)
		s := b.serve(dir)
		defer s.stop()
		return append(embedded, b.idleConsole(dir)...)
	}, nil)
}

// quietTime is how long a console is left alone until it reads less and has returned memory.
const quietTime = 25 * time.Second

// idleConsole returns the CPU share and the resident sizes of a console in which no key is pressed.
func (b *bench) idleConsole(dir string) []float64 {
	t := b.openTerminal(nil, 120, 40, b.acescope, "--data-dir", dir)
	defer t.stop()
	t.await("acescope")
	check(sleep(b.ctx, quietTime))
	cpu := b.cpuShare(t.process, time.Duration(b.size.idleSecs)*time.Second)
	pid := t.cmd.Process.Pid
	return []float64{cpu, statusMB(pid, "VmRSS:"), statusMB(pid, "RssAnon:")}
}

// ensureDemo returns a data directory with the runs of the demo, and creates it once.
func (b *bench) ensureDemo() string {
	dir := filepath.Join(b.dir, "demo-121")
	if exists(dir) {
		return dir
	}
	b.progress("  creating the demo's 121 runs in %s, once", dir)
	tmp := b.tempDir()
	write := func(name string, args ...string) string {
		path := filepath.Join(tmp, name)
		problems := must(command(b.ctx, nil, b.acescope, append([]string{"problems"}, args...)...).Output())
		check(os.WriteFile(path, problems, 0o600))
		return path
	}
	train := write("train.jsonl", "--count", "120", "--seed", "1")
	eval := write("eval.jsonl", "--count", "60", "--seed", "2")
	data := filepath.Join(tmp, "data")
	must(b.run(nil, b.acescope, "run", "--dataset", train, "--eval", eval, "--experiment", "demo",
		"--data-dir", data))
	check(os.Rename(data, dir))
	return dir
}

// console measures an idle console that is attached to an idle server.
func console(b *bench) {
	length := time.Duration(b.size.consoleSecs) * time.Second
	b.onNewAndFilled(func(dir, what string) {
		b.compare(1, []figure{
			{what: fmt.Sprintf("attached and idle for %s, 200×50, %s", length, what), unit: "% of a core",
				target: "≤ 1"},
			{what: "output of the idle console", unit: "bytes/s"},
		}, func() []float64 {
			s := b.serve(dir)
			defer s.stop()
			t := b.openTerminal(nil, 200, 50, b.acescope, "--data-dir", dir)
			defer t.stop()
			t.await("acescope")
			check(sleep(b.ctx, settleTime))
			written := t.bytes.Load()
			cpu := b.cpuShare(t.process, length)
			return []float64{cpu, float64(t.bytes.Load()-written) / length.Seconds()}
		}, nil)
	})
}

// onNewAndFilled calls measure with an empty data directory and with one that has many runs.
func (b *bench) onNewAndFilled(measure func(dir, what string)) {
	measure(b.tempDir(), "new data directory")
	measure(b.ensureFilled(), fmt.Sprintf("%d closed runs", b.size.list))
}

// firstTimes are when a child's first task was acknowledged, and when its first activity ran.
type firstTimes struct {
	Acknowledged time.Time `json:"acknowledged"`
	Running      time.Time `json:"running"`
}

// firstChild starts a server on an empty data directory and a task there.
func firstChild(ctx context.Context, s spec) {
	running := make(chan time.Time, 1)
	p := &noop{calls: calls, began: sync.OnceFunc(func() { running <- time.Now() })}
	var r runner
	if s.Bare {
		r = openPlain(s, p)
	} else {
		r = openOurs(ctx, s, p)
	}
	defer r.close()
	var t firstTimes
	must(r.start(ctx, 0))
	t.Acknowledged = time.Now()
	select {
	case t.Running = <-running:
		answer(t)
	case <-ctx.Done():
	}
}

const (
	plainNamespace = "plain"
	plainCluster   = "active"
)

// quiet discards what the SDK logs.
var quiet = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))

// openPlain embeds Temporal's server in the shortest way, with a bare worker: four services, SQLite
// in a file, no authorization.
func openPlain(s spec, p *noop) runner {
	// The SDK would compute the checksum of the program, about 300 ms. acescope avoids that, so
	// the comparison would flatter it.
	sdkworker.SetBinaryChecksum("bench")
	ports := freePorts(4)
	sql := &config.SQL{PluginName: sqlite.PluginName, DatabaseName: filepath.Join(s.Dir, "temporal.db"),
		ConnectAttributes: map[string]string{
			"mode": "rwc", "journal_mode": "wal", "synchronous": "normal", "busy_timeout": "5000"}}
	check(schema.SetupSchema(sql))
	namespace := must(schema.NewNamespaceConfig(plainCluster, plainNamespace, false, nil))
	check(schema.CreateNamespaces(sql, namespace))
	cfg, hosts := plainConfig(sql, ports)
	srv := must(temporal.NewServer(temporal.WithConfig(cfg), temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts), temporal.WithLogger(log.NewNoopLogger()),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithCustomMetricsHandler(metrics.NoopMetricsHandler)))
	check(srv.Start())
	o := client.Options{HostPort: hostPort(ports[0]), Namespace: plainNamespace, Logger: quiet}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		c, err := client.Dial(o)
		if err == nil {
			return startBare(c, p, srv.Stop)
		}
		if time.Now().After(end) {
			fail("the plain server does not answer: %w", err)
		}
	}
}

func plainConfig(sql *config.SQL, ports []int) (*config.Config, map[primitives.ServiceName]static.Hosts) {
	services := map[string]config.Service{}
	hosts := map[primitives.ServiceName]static.Hosts{}
	for i, name := range []primitives.ServiceName{primitives.FrontendService, primitives.HistoryService,
		primitives.MatchingService, primitives.WorkerService} {
		services[string(name)] = config.Service{RPC: config.RPC{GRPCPort: ports[i], BindOnIP: "127.0.0.1"}}
		hosts[name] = static.SingleLocalHost(hostPort(ports[i]))
	}
	info := cluster.ClusterInformation{Enabled: true, InitialFailoverVersion: 1,
		RPCAddress: hostPort(ports[0])}
	cfg := &config.Config{
		Services: services,
		Persistence: config.Persistence{DefaultStore: "sqlite", VisibilityStore: "sqlite",
			NumHistoryShards: 1,
			DataStores:       map[string]config.DataStore{"sqlite": {SQL: sql}}},
		ClusterMetadata: &cluster.Config{FailoverVersionIncrement: 10, MasterClusterName: plainCluster,
			CurrentClusterName: plainCluster,
			ClusterInformation: map[string]cluster.ClusterInformation{plainCluster: info}},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		PublicClient:        config.PublicClient{HostPort: hostPort(ports[0])},
	}
	cfg.Archival.History.State, cfg.Archival.Visibility.State = "disabled", "disabled"
	defaults := &cfg.NamespaceDefaults.Archival
	defaults.History.State, defaults.Visibility.State = "disabled", "disabled"
	return cfg, hosts
}

func hostPort(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// freePorts returns ports that nothing listens on. All are held until all are known.
func freePorts(n int) (ports []int) {
	for range n {
		l := must(net.Listen("tcp", "127.0.0.1:0"))
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}
