package main

import (
	"fmt"
	"net"
	"time"

	"go.temporal.io/sdk/client"
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

const (
	plainNamespace = "plain"
	plainCluster   = "active"
)

// plainServer is Temporal's server embedded the shortest way: four services, SQLite in
// a file, no authorization. It is the measure for acescope's own start.
type plainServer struct {
	server  temporal.Server
	address string
}

func startPlain(file string) (*plainServer, error) {
	ports, err := freePorts(4)
	if err != nil {
		return nil, err
	}
	sql := &config.SQL{PluginName: sqlite.PluginName, DatabaseName: file, ConnectAttributes: map[string]string{
		"mode": "rwc", "journal_mode": "wal", "synchronous": "normal", "busy_timeout": "5000"}}
	if err := schema.SetupSchema(sql); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	namespace, err := schema.NewNamespaceConfig(plainCluster, plainNamespace, false, nil)
	if err != nil {
		return nil, err
	}
	if err := schema.CreateNamespaces(sql, namespace); err != nil {
		return nil, fmt.Errorf("namespace: %w", err)
	}
	cfg, hosts := plainConfig(sql, ports)
	s, err := temporal.NewServer(temporal.WithConfig(cfg), temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts), temporal.WithLogger(log.NewNoopLogger()),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()), temporal.WithCustomMetricsHandler(metrics.NoopMetricsHandler))
	if err != nil {
		return nil, err
	}
	if err := s.Start(); err != nil {
		return nil, err
	}
	p := &plainServer{server: s, address: hostPort(ports[0])}
	return p, p.await()
}

// await returns when the server answers for the namespace.
func (p *plainServer) await() error {
	deadline := time.Now().Add(20 * time.Second)
	for {
		c, err := client.Dial(client.Options{HostPort: p.address, Namespace: plainNamespace, Logger: quietLog{}})
		if err == nil {
			c.Close()
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the plain server does not answer: %w", err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (p *plainServer) stop() error { return p.server.Stop() }

func plainConfig(sql *config.SQL, ports []int) (*config.Config, map[primitives.ServiceName]static.Hosts) {
	services := map[string]config.Service{}
	hosts := map[primitives.ServiceName]static.Hosts{}
	for i, name := range []primitives.ServiceName{primitives.FrontendService, primitives.HistoryService,
		primitives.MatchingService, primitives.WorkerService} {
		services[string(name)] = config.Service{RPC: config.RPC{GRPCPort: ports[i], BindOnIP: "127.0.0.1"}}
		hosts[name] = static.SingleLocalHost(hostPort(ports[i]))
	}
	cfg := &config.Config{
		Services: services,
		Persistence: config.Persistence{DefaultStore: "sqlite", VisibilityStore: "sqlite", NumHistoryShards: 1,
			DataStores: map[string]config.DataStore{"sqlite": {SQL: sql}}},
		ClusterMetadata: &cluster.Config{FailoverVersionIncrement: 10, MasterClusterName: plainCluster, CurrentClusterName: plainCluster,
			ClusterInformation: map[string]cluster.ClusterInformation{
				plainCluster: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: hostPort(ports[0])}}},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		PublicClient:        config.PublicClient{HostPort: hostPort(ports[0])},
	}
	cfg.Archival.History.State, cfg.Archival.Visibility.State = "disabled", "disabled"
	cfg.NamespaceDefaults.Archival.History.State, cfg.NamespaceDefaults.Archival.Visibility.State = "disabled", "disabled"
	return cfg, hosts
}

func hostPort(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// freePorts are ports that nobody listens on; all are held until all are known.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
