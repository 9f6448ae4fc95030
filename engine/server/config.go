package server

import (
	"net/url"
	"path/filepath"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
)

const (
	clusterName = "active"
	storeName   = "sqlite"
)

// sqlConfig opens the database of a data directory. Write-ahead logging with
// synchronous=normal syncs at checkpoints: what was acknowledged survives the death
// of the process at any moment, and a power cut leaves the database sound.
func sqlConfig(dir string) *config.SQL {
	path := url.URL{Path: filepath.ToSlash(filepath.Join(dir, databaseFile))}
	return &config.SQL{
		PluginName:   sqlite.PluginName,
		DatabaseName: path.EscapedPath(), // it becomes part of a file: URI
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

func rpcOn(port int) config.Service {
	return config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: "127.0.0.1"}}
}

// serverConfig is a cluster of one: five services in one process, one shard (SQLite
// has one writer), no archive, no metrics, no profiler. The internal frontend serves
// the system's own workers, so that the authorizer sees outside calls only.
func serverConfig(sql *config.SQL, p ports) *config.Config {
	const disabled = "disabled"
	cfg := &config.Config{
		Services: map[string]config.Service{
			string(primitives.FrontendService):         rpcOn(p.frontend),
			string(primitives.InternalFrontendService): rpcOn(p.internal),
			string(primitives.HistoryService):          rpcOn(p.history),
			string(primitives.MatchingService):         rpcOn(p.matching),
			string(primitives.WorkerService):           rpcOn(p.worker),
		},
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
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: loopback(p.frontend)},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
	}
	cfg.Archival.History.State = disabled
	cfg.Archival.Visibility.State = disabled
	cfg.NamespaceDefaults.Archival.History.State = disabled
	cfg.NamespaceDefaults.Archival.Visibility.State = disabled
	return cfg
}

// staticHosts tells each service where the others are, so that no membership port
// is needed.
func staticHosts(p ports) map[primitives.ServiceName]static.Hosts {
	return map[primitives.ServiceName]static.Hosts{
		primitives.FrontendService:         static.SingleLocalHost(loopback(p.frontend)),
		primitives.InternalFrontendService: static.SingleLocalHost(loopback(p.internal)),
		primitives.HistoryService:          static.SingleLocalHost(loopback(p.history)),
		primitives.MatchingService:         static.SingleLocalHost(loopback(p.matching)),
		primitives.WorkerService:           static.SingleLocalHost(loopback(p.worker)),
	}
}
