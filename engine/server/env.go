package server

// EnvVar is one variable of an environment.
type EnvVar struct{ Name, Value string }

// Env is what the temporal command and workers in other languages need to reach the
// server: they read these names by the rules of Temporal's environment configuration
// (go.temporal.io/sdk/contrib/envconfig and its siblings). It holds the token. The
// address is good until a takeover that could not keep the port.
func (n *Node) Env() []EnvVar {
	e := n.Endpoint()
	return []EnvVar{
		{"TEMPORAL_ADDRESS", e.Address},
		{"TEMPORAL_NAMESPACE", e.Namespace},
		{"TEMPORAL_TLS", "false"},
		{"TEMPORAL_GRPC_META_AUTHORIZATION", bearer + n.token},
	}
}
