package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	dc "go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/common/rpc/encryption"
)

const (
	clusterName = "active"
	storeName   = "sqlite"
)

// sqlConfig configures the database of a data directory. Write-ahead logging with
// synchronous=normal syncs at checkpoints: acknowledged writes survive the end of the
// process, and a power cut leaves the database consistent.
func sqlConfig(dir string) *config.SQL {
	path := url.URL{Path: filepath.ToSlash(filepath.Join(dir, databaseFile))}
	return &config.SQL{
		PluginName:   sqlite.PluginName,
		DatabaseName: path.EscapedPath(), // part of a file: URI
		ConnectAttributes: map[string]string{
			"mode":         "rwc",
			"journal_mode": "wal",
			"synchronous":  "normal",
			"busy_timeout": "5000",
			"cache_size":   "-32000", // KiB; the default is 2 MB
			"temp_store":   "memory",
		},
	}
}

// serverConfig configures a cluster of one process with five services, one shard (SQLite has
// one writer), and no archive, metrics or profiler. The internal frontend serves the system's
// workers, so that the authorizer sees only outside calls.
func serverConfig(sql *config.SQL, p ports) *config.Config {
	const disabled = "disabled"
	cfg := &config.Config{
		Services: map[string]config.Service{},
		Persistence: config.Persistence{
			DefaultStore:     storeName,
			VisibilityStore:  storeName,
			NumHistoryShards: 1,
			DataStores:       map[string]config.DataStore{storeName: {SQL: sql}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1,
					RPCAddress: p.address(primitives.FrontendService)},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
	}
	for service, port := range p {
		cfg.Services[string(service)] = config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: "127.0.0.1"}}
	}
	cfg.Archival.History.State = disabled
	cfg.Archival.Visibility.State = disabled
	cfg.NamespaceDefaults.Archival.History.State = disabled
	cfg.NamespaceDefaults.Archival.Visibility.State = disabled
	return cfg
}

// staticHosts gives each service the addresses of the others, so that no membership port is
// needed.
func staticHosts(p ports) map[primitives.ServiceName]static.Hosts {
	hosts := map[primitives.ServiceName]static.Hosts{}
	for service := range p {
		hosts[service] = static.SingleLocalHost(p.address(service))
	}
	return hosts
}

// unlimited is a rate limit that one machine does not reach.
const unlimited = 100_000

// queueWorkers execute the tasks of a queue at the same time.
const queueWorkers = 64

// dynamicConfig tunes the server for one user, one process and one SQLite file.
var dynamicConfig = dc.StaticClient{
	// The limits protect shared clusters. The limit of visibility calls, 10 a second,
	// is too low for a console.
	dc.FrontendRPS.Key():                                  unlimited,
	dc.FrontendMaxNamespaceRPSPerInstance.Key():           unlimited,
	dc.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): 1000,
	dc.HistoryRPS.Key():                                   unlimited,
	dc.MatchingRPS.Key():                                  unlimited,
	dc.FrontendPersistenceMaxQPS.Key():                    unlimited,
	dc.HistoryPersistenceMaxQPS.Key():                     unlimited,
	dc.MatchingPersistenceMaxQPS.Key():                    unlimited,
	dc.WorkerPersistenceMaxQPS.Key():                      unlimited,

	// Tool calls that wait for a decision, clients that wait for messages, and decisions
	// are updates in flight. The default is 10.
	dc.WorkflowExecutionMaxInFlightUpdates.Key(): 200,
	// Several consoles and commands may query the same run at once. The default is 1.
	dc.MaxBufferedQueryCount.Key(): 100,

	// One process serves every task queue, so partitions of a queue would only
	// forward to each other.
	dc.MatchingNumTaskqueueReadPartitions.Key():  1,
	dc.MatchingNumTaskqueueWritePartitions.Key(): 1,

	// Both are the defaults; acescope's latency depends on them.
	dc.EnableActivityEagerExecution.Key(): true,
	dc.EnableEagerWorkflowStart.Key():     true,

	// The default of 20 reads a second adds up to 50 ms to every step under load.
	dc.TransferProcessorMaxPollRPS.Key(): 200,
	// Every read passes over completed tasks until a checkpoint deletes them. With the
	// default of 30 s that takes a seventh of the load.
	dc.TransferProcessorUpdateAckInterval.Key():   time.Second,
	dc.VisibilityProcessorUpdateAckInterval.Key(): time.Second,

	// The timer queue. SQLite reads all rows before the end of the window, including
	// those of fired timers, until a checkpoint deletes them. With the default of one
	// checkpoint in 30 s, 20,000 such rows make a read take 9 ms, hence the checkpoint
	// every second. Reading rarely instead (MaxPollRPS 2) would process at most 200
	// timers a second, fewer than 20 runs a second create with their timeouts, so that
	// timers fire 45 s late after 2,000 runs. With large batches and 50 reads, timers
	// fire 5 ms late on average and 35 ms at most at 26 runs a second.
	dc.TimerProcessorUpdateAckInterval.Key(): time.Second,
	dc.TimerProcessorMaxPollRPS.Key():        50,
	dc.TimerTaskBatchSize.Key():              1000,
	// How far ahead timers are read. A new timer within this window fires at its end.
	// The default of 1 s allows for clock differences between machines.
	dc.TimerProcessorMaxTimeShift.Key(): 100 * time.Millisecond,

	// Closed runs need this cache until their last timeout fires, a minute or two. The
	// default of 128,000 runs for an hour wastes memory.
	dc.HistoryCacheHostLevelMaxSize.Key(): 1000,
	dc.EventsCacheMaxSizeBytes.Key():      16 << 20,

	// Goroutines of the queues wait for work from the start. The defaults, 512 for each of
	// five pools, take 10 MB of stacks, which each garbage collection scans. SQLite has one
	// writer, and nothing is replicated.
	dc.TimerProcessorSchedulerWorkerCount.Key():                  queueWorkers,
	dc.TransferProcessorSchedulerWorkerCount.Key():               queueWorkers,
	dc.VisibilityProcessorSchedulerWorkerCount.Key():             queueWorkers,
	dc.ReplicationProcessorSchedulerWorkerCount.Key():            1,
	dc.ReplicationLowPriorityProcessorSchedulerWorkerCount.Key(): 1,

	// An idle server should do little. Each of five services reads the namespaces, by default
	// every 2 s; a new namespace is found at once, because an unknown name is looked up.
	dc.NamespaceCacheRefreshInterval.Key(): 5 * time.Second,
	// No metrics are exported.
	dc.MatchingBacklogMetricsEmitInterval.Key():    time.Duration(0),
	dc.PersistenceHealthSignalMetricsEnabled.Key(): false,
	// Only queues of several partitions use these data. With 0, a stopped server's goroutines would spin.
	dc.MatchingEphemeralDataUpdateInterval.Key(): time.Minute,
	// The server's own workers have little to do. Two pollers are the SDK's minimum.
	dc.WorkerScannerMaxConcurrentActivityTaskPollers.Key():     2,
	dc.WorkerScannerMaxConcurrentWorkflowTaskPollers.Key():     2,
	dc.WorkerParentCloseMaxConcurrentActivityTaskPollers.Key(): 2,
	dc.WorkerParentCloseMaxConcurrentWorkflowTaskPollers.Key(): 2,
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

type ports map[primitives.ServiceName]int

func (p ports) address(service primitives.ServiceName) string { return loopback(p[service]) }

// innerServices are the services that only the server itself calls.
var innerServices = []primitives.ServiceName{
	primitives.InternalFrontendService, primitives.HistoryService, primitives.MatchingService,
	primitives.WorkerService,
}

// choosePorts finds free ports. The frontend gets want if that is not 0, or else prefer if it
// is free. All ports stay open until the last is found, so that none is returned twice.
func choosePorts(want, prefer int) (ports, error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	take := func(port int) (int, error) {
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			return 0, err
		}
		held = append(held, l)
		return l.Addr().(*net.TCPAddr).Port, nil
	}
	frontend, err := take(want)
	if err != nil {
		return nil, portError(want, err)
	}
	if want == 0 && prefer != 0 {
		if port, err := take(prefer); err == nil {
			frontend = port
		}
	}
	p := ports{primitives.FrontendService: frontend}
	for _, service := range innerServices {
		if p[service], err = take(0); err != nil {
			return nil, portError(0, err)
		}
	}
	return p, nil
}

func portError(port int, err error) error {
	if port == 0 {
		return fmt.Errorf("no free port on 127.0.0.1: %w", err)
	}
	return failf(ErrPortTaken, err,
		"port %d on 127.0.0.1: %v: choose another with --port, or leave --port out for a free one", port, err)
}

const internalName = "acescope.internal"

// internodeTLS protects the ports between the server's services (history, matching, worker,
// internal frontend), which Temporal's authorizer does not cover, with a certificate for both
// ends whose key never leaves memory. The frontend has no TLS, for clients in other languages,
// and is protected by the token.
func internodeTLS() (encryption.TLSConfigProvider, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: internalName},
		DNSNames:              []string{internalName},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().AddDate(20, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	pair := []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: cert}}
	return &encryption.FixedTLSConfigProvider{
		InternodeServerConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: pair,
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
		},
		InternodeClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: pair,
			RootCAs: pool, ServerName: internalName,
		},
	}, nil
}

// nameBuild sets the build ID of the process's workers, including the server's own. Otherwise
// the SDK computes the MD5 of the program file, which takes about 300 ms, most of the time to
// start the server.
func nameBuild(version string) {
	id := "acescope-" + version
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				id += "-" + s.Value[:12]
			}
		}
	}
	worker.SetBinaryChecksum(id)
}
