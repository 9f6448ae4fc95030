//go:build bench

package bench

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
)

// clusterScript is relative to the repository, where docs/dev/bench.sh starts this program.
const clusterScript = "docs/examples/cluster/cluster.sh"

// localCluster is Temporal on PostgreSQL with an S3 store on this machine. It listens on the 16 ports from
// $CLUSTER_PORT (7700).
type localCluster struct {
	*bench
	dir     string
	started []string // environment of the script
	env     []string // environment of clients: address, namespace, store, credentials
}

// openCluster starts the cluster of a directory and stops it at the end of the section. It skips the section
// if a program is missing that Go cannot build; the script builds the others, once.
func (b *bench) openCluster(dir string) *localCluster {
	for _, program := range []string{"openssl", "psql"} {
		if _, err := exec.LookPath(program); err != nil {
			b.skip("%s is missing; Debian: apt-get install openssl postgresql", program)
		}
	}
	c := &localCluster{bench: b, dir: dir}
	bin := os.Getenv("CLUSTER_BIN")
	if bin == "" {
		bin = filepath.Join(b.dir, "bin", "cluster")
	}
	// of versitygw
	c.started = []string{"CLUSTER_DIR=" + dir, "CLUSTER_BIN=" + bin, "LOGFILE=" + c.accessLog()}
	if os.Getenv("CLUSTER_PORT") == "" {
		c.started = append(c.started, "CLUSTER_PORT=7700")
	}
	b.Cleanup(func() { _, _ = c.script("down") })
	must(c.script("down")) // of an interrupted benchmark
	if _, err := c.script("up"); err != nil && strings.Contains(err.Error(), "initdb is missing") {
		b.skip("%v", err)
	} else {
		check(err)
	}
	for line := range strings.Lines(must(c.script("env"))) {
		for _, word := range strings.Fields(strings.TrimPrefix(line, "export ")) {
			c.env = append(c.env, strings.ReplaceAll(word, "'", ""))
		}
	}
	return c
}

// script runs the script, also after an interrupt, and returns its output.
func (c *localCluster) script(args ...string) (string, error) {
	cmd := command(context.WithoutCancel(c.ctx), c.started, "bash",
		append([]string{clusterScript}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", cmd, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), err
}

func (c *localCluster) value(name string) string {
	for _, v := range c.env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	fail("%s env does not set %s", clusterScript, name)
	return ""
}

// on returns the arguments of a command of acescope on the cluster.
func (c *localCluster) on(dataDir string, args ...string) []string {
	return append(args, "--data-dir", dataDir, "--address", c.value("TEMPORAL_ADDRESS"))
}

func (c *localCluster) accessLog() string { return filepath.Join(c.dir, "s3-access.log") }

// storeCalls returns how many requests the S3 store has answered. Its log has a line for each.
func (c *localCluster) storeCalls() int {
	return bytes.Count(must(os.ReadFile(c.accessLog())), []byte(" s3_"))
}

// serve starts acescope serve with a data directory of its own.
func (c *localCluster) serve() *process {
	store := c.value("ACESCOPE_STORE")
	p := c.start(c.env, c.acescope, c.on(c.tempDir(), "serve", "--json", "--store", store)...)
	var line struct{ Mode string }
	p.read(&line)
	return p
}

// atOnce is how many tasks of an experiment on the cluster run at the same time.
const atOnce = 32

// experiment runs an experiment of the first tasks of a data set and waits for its end. The processes that
// serve the cluster execute it.
func (c *localCluster) experiment(id, dataset string, tasks int) {
	must(c.run(c.env, c.acescope, c.on(c.tempDir(), "run", "--json", "--detach", "--dataset", dataset,
		"--experiment", id, "--limit", strconv.Itoa(tasks), "--parallel", strconv.Itoa(atOnce))...))
	var result ace.ExperimentProgress
	workflow := c.dial().GetWorkflow(c.ctx, ace.ExperimentWorkflowID(id), "")
	check(workflow.Get(c.ctx, &result))
	if closed := result.Epochs[0].Tasks - result.Epochs[0].Failed; closed != tasks {
		fail("experiment %s completed %d of %d tasks", id, closed, tasks)
	}
}

// dial connects to the cluster until the section ends.
func (c *localCluster) dial() client.Client {
	address, namespace := c.value("TEMPORAL_ADDRESS"), c.value("TEMPORAL_NAMESPACE")
	sdk := must(client.Dial(client.Options{HostPort: address, Namespace: namespace, Logger: quiet}))
	c.Cleanup(sdk.Close)
	return sdk
}

// problems writes a data set.
func (c *localCluster) problems(tasks int) string {
	out := must(exec.CommandContext(c.ctx, c.acescope, "problems", "--count", fmt.Sprint(tasks)).Output())
	file := filepath.Join(c.tempDir(), "problems.jsonl")
	check(os.WriteFile(file, out, 0o600))
	return file
}

// clusterTasks compares an experiment on two serving processes with the same on one.
func clusterTasks(b *bench) {
	dir := filepath.Join(b.dir, "cluster-tasks")
	c := b.openCluster(dir)
	b.Cleanup(func() { _, _ = c.script("clean") })
	tasks, dataset, experiments := b.size.tasks, c.problems(b.size.tasks), 0
	on := func(processes int) measure {
		return func() []float64 {
			var serving []*process
			for range processes {
				serving = append(serving, c.serve())
			}
			cpu := func() (total time.Duration) {
				for _, p := range serving {
					total += must(processCPU(p.cmd.Process.Pid))
				}
				return total
			}
			experiments++
			c.experiment(fmt.Sprintf("warmup-%d", experiments), dataset, 2*warmup)
			began, used, calls := time.Now(), cpu(), c.storeCalls()
			c.experiment(fmt.Sprintf("bench-%d", experiments), dataset, tasks)
			seconds := time.Since(began).Seconds()
			used, calls = cpu()-used, c.storeCalls()-calls
			for _, p := range serving {
				p.stop()
			}
			n := float64(tasks)
			return []float64{n / seconds, millis(used) / n, float64(calls) / n}
		}
	}
	what := fmt.Sprintf("experiment of %d tasks, %d at once, two serving processes against one", tasks,
		atOnce)
	b.compare(b.size.runs, []figure{
		{what: what, unit: "tasks/s"},
		{what: "the serving processes", unit: "ms CPU a task", speedup: true},
		{what: "requests to the store", unit: "a task", target: "≤ 3"},
	}, on(2), on(1))
}

// clusterList compares the console and acescope list with temporal workflow list on many runs.
func clusterList(b *bench) {
	b.ensureTemporal()
	count, attempts := b.size.clusterList, 2*b.size.runs+1
	c := b.openFilledCluster(count)
	// measured returns the figures of a command, and the CPU time that it costs the whole machine.
	measured := func(program string, args ...string) measure {
		return func() []float64 {
			before := c.cpu()
			r := b.lines(count, c.env, program, args...)
			return append(r.figures(), millis(r.cpu+c.cpu()-before))
		}
	}
	peer := func(args ...string) measure {
		return measured(b.temporal, append([]string{"workflow", "list"}, args...)...)
	}
	ours := func(args ...string) measure {
		return measured(b.acescope, c.on(b.tempDir(), append([]string{"list"}, args...)...)...)
	}
	b.compare(attempts, []figure{
		{what: fmt.Sprintf("%d runs, console's first rows against temporal workflow list --limit 50", count),
			unit: "ms", target: "≤ 2×"},
	}, func() []float64 {
		dir, began := b.tempDir(), time.Now()
		t := b.openTerminal(c.env, 120, 40, b.acescope, c.on(dir)...)
		defer t.stop()
		must(t.file.WriteString("1")) // from the overview to the list of runs
		t.await(clusterExperiment + "-e1-")
		return []float64{millis(time.Since(began))}
	}, func() []float64 {
		return []float64{b.lines(50, c.env, b.temporal, "workflow", "list", "--limit", "50").untilLast()}
	})
	b.compare(b.size.runs, []figure{
		{what: fmt.Sprintf("%d runs as JSON, start to last line", count), unit: "ms", speedup: true,
			target: "≥ 3×"},
		{what: "start to first line", unit: "ms", speedup: true},
		{what: "user and system CPU", unit: "ms", speedup: true},
		{what: "peak resident", unit: "MB", speedup: true},
		{what: "CPU of client, Temporal and PostgreSQL", unit: "ms", speedup: true},
	}, ours("--json"), peer("-o", "jsonl"))
	b.compare(b.size.runs, []figure{
		{what: fmt.Sprintf("%d runs as a table, start to last line", count), unit: "ms", speedup: true,
			target: "≥ 3×"},
	}, func() []float64 { return ours()()[:1] }, func() []float64 { return peer()()[:1] })
}

// cpu returns the CPU time of the cluster's processes except the store, which lists do not read.
func (c *localCluster) cpu() (total time.Duration) {
	pid := func(file string) string {
		return strings.Fields(string(must(os.ReadFile(filepath.Join(c.dir, file)))))[0]
	}
	postmaster, temporal := pid("postgres/postmaster.pid"), pid("temporal.pid")
	children := must(os.ReadFile("/proc/" + postmaster + "/task/" + postmaster + "/children"))
	for _, pid := range append(strings.Fields(string(children)), postmaster, temporal) {
		total += statCPU(pid)
	}
	return total
}

// statCPU returns the CPU time of a process and of its children that have ended (proc_pid_stat(5)), or 0 if the
// process has ended.
func statCPU(pid string) time.Duration {
	data, _ := os.ReadFile("/proc/" + pid + "/stat")
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0
	}
	var ticks int
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		ticks += must(strconv.Atoi(field))
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

const (
	clusterExperiment = "rows" // whose tasks are in the filled cluster
	clusterOriginals  = 200    // tasks that ran there
)

// copyRuns multiplies the visibility records of closed tasks: other ids, and each copy a minute older. Lists
// and counts of the server read nothing else.
const copyRuns = `
INSERT INTO executions_visibility (namespace_id, run_id, start_time, execution_time, close_time, workflow_id,
  search_attributes, workflow_type_name, status, history_length, memo, encoding, task_queue,
  history_size_bytes, execution_duration, state_transition_count, parent_workflow_id, parent_run_id, root_workflow_id,
  root_run_id, _version)
SELECT namespace_id, gen_random_uuid()::text, start_time - age, execution_time - age, close_time - age,
  workflow_id || suffix,
  replace(search_attributes::text, substr(workflow_id, 5), substr(workflow_id, 5) || suffix)::jsonb,
  workflow_type_name, status, history_length, memo, encoding, task_queue,
  history_size_bytes, execution_duration, state_transition_count, parent_workflow_id, parent_run_id, root_workflow_id,
  root_run_id, _version
FROM executions_visibility,
  (SELECT '-' || n AS suffix, n * interval '1 minute' AS age FROM generate_series(1, %d) n) copies
WHERE workflow_type_name = '` + ace.TaskWorkflow + `';
VACUUM ANALYZE executions_visibility;`

// openFilledCluster starts a cluster with closed runs, and creates them if they are missing: some run, the
// others are copied in the database.
func (b *bench) openFilledCluster(count int) *localCluster {
	dir := filepath.Join(b.dir, fmt.Sprintf("cluster-%d", count))
	complete := filepath.Join(dir, "complete")
	if !exists(complete) && exists(dir) {
		must((&localCluster{bench: b, started: []string{"CLUSTER_DIR=" + dir}}).script("clean"))
	}
	c := b.openCluster(dir)
	if exists(complete) {
		return c
	}
	b.progress("  creating %d closed runs in %s, once", count, dir)
	p := c.serve()
	c.experiment(clusterExperiment, c.problems(clusterOriginals), clusterOriginals)
	p.stop()
	c.psql("temporal_visibility", fmt.Sprintf(copyRuns, count/clusterOriginals-1))
	check(os.WriteFile(complete, nil, 0o600))
	return c
}

// psql runs statements in a database of the cluster.
func (c *localCluster) psql(database, statements string) {
	host, port, _ := net.SplitHostPort(c.value("TEMPORAL_ADDRESS"))
	first := must(strconv.Atoi(port)) // of the cluster's ports
	password := strings.TrimSpace(string(must(os.ReadFile(filepath.Join(c.dir, "secret")))))
	cmd := command(c.ctx, []string{"PGPASSWORD=" + password}, "psql", "-h", host, "-p",
		strconv.Itoa(first+10),
		"-U", "temporal", "-d", database, "-v", "ON_ERROR_STOP=1")
	cmd.Stdin = strings.NewReader(statements)
	if out, err := cmd.CombinedOutput(); err != nil {
		fail("%s: %w: %s", cmd, err, out)
	}
}
