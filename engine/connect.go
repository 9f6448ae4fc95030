package engine

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"acescope/engine/ace"
	"acescope/engine/internal/loopback"
	"acescope/engine/temporal/codec"
	"acescope/engine/temporal/server"
)

// connect connects to the cluster, or joins the embedded server.
func (e *Engine) connect(ctx context.Context, o Options) error {
	if o.Remote != nil {
		return e.dialRemote(ctx, *o.Remote, o)
	}
	var err error
	if e.Codec, err = codecServer(o.Codec, nil); err != nil {
		return err
	}
	node, err := server.Join(ctx, server.Options{Dir: o.DataDir, Port: o.Port, Version: o.Version,
		Key: o.Key, Brief: !o.Takeover, Logger: o.Logger})
	if err != nil {
		return err
	}
	e.node = node
	e.namespace = ace.DefaultNamespace
	opts := node.ClientOptions()
	opts.Logger = sdklog.NewStructuredLogger(e.log)
	return e.dial(ctx, node.Dial, opts, o)
}

func (e *Engine) dialRemote(ctx context.Context, r Remote, o Options) error {
	profile, err := r.profile()
	if err != nil {
		return err
	}
	opts, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	if err != nil {
		return profileError(r.Profile, err)
	}
	opts.HostPort = cmp.Or(r.Address, opts.HostPort)
	opts.Namespace = cmp.Or(r.Namespace, opts.Namespace, ace.DefaultNamespace)
	if r.APIKey != "" {
		opts.Credentials = client.NewAPIKeyStaticCredentials(r.APIKey)
	}
	if loopback.Names(opts.HostPort) { // on loopback, gzip costs more than it saves
		opts.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	}
	opts.Logger = sdklog.NewStructuredLogger(e.log)
	e.address, e.namespace = opts.HostPort, opts.Namespace
	o.Codec.Namespace = opts.Namespace
	if e.Codec, err = codecServer(o.Codec, &profile); err != nil {
		return err
	}
	if err := e.dial(ctx, client.DialContext, opts, o); err != nil {
		return connectError(ctx, opts, err)
	}
	return nil
}

// CodecServer returns the codec server of a configuration, or of a cluster's profile if the configuration has
// no endpoint, or nil. It is for readers of history files; [Open] creates the codec server of an engine.
func CodecServer(c codec.Config, r *Remote) (*codec.Server, error) {
	var profile *envconfig.ClientConfigProfile
	if r != nil {
		p, err := r.profile()
		if err != nil {
			return nil, err
		}
		profile = &p
		c.Namespace = cmp.Or(c.Namespace, r.Namespace, p.Namespace)
	}
	return codecServer(c, profile)
}

func codecServer(c codec.Config, p *envconfig.ClientConfigProfile) (*codec.Server, error) {
	// The profile's credentials are only for the profile's own codec server.
	if p != nil && p.Codec != nil && (c.Endpoint == "" || c.Endpoint == p.Codec.Endpoint) {
		c.Endpoint = p.Codec.Endpoint
		c.Auth = cmp.Or(c.Auth, p.Codec.Auth)
	}
	if c.Endpoint == "" {
		return nil, nil
	}
	c.Namespace = cmp.Or(c.Namespace, ace.DefaultNamespace)
	s, err := codec.New(c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCodec, err)
	}
	return s, nil
}

// profile reads the profile from the temporal command's configuration and the environment.
func (r Remote) profile() (envconfig.ClientConfigProfile, error) {
	p, err := envconfig.LoadClientConfigProfile(
		envconfig.LoadClientConfigProfileOptions{ConfigFileProfile: r.Profile})
	if err != nil {
		return p, profileError(r.Profile, err)
	}
	return p, nil
}

func profileError(name string, err error) error {
	if name == "" {
		return fmt.Errorf("%w in the environment (TEMPORAL_…) or the temporal command's configuration: %w",
			ErrProfile, err)
	}
	return fmt.Errorf("%w in profile %q of the temporal command's configuration: %w", ErrProfile, name, err)
}

// dialer returns a client that has reached its server.
type dialer func(context.Context, client.Options) (client.Client, error)

// dial connects to the server, and with both a codec server and a worker a second time for the
// worker: a worker must fail on payloads that it cannot decode, readers must not.
func (e *Engine) dial(ctx context.Context, dial dialer, opts client.Options, o Options) (err error) {
	intercept(&opts, escapeHeaders)
	intercept(&opts, localTaskTimes)
	if o.Metrics != nil {
		if opts.MetricsHandler, err = sdkMetrics(o.Metrics); err != nil {
			return err
		}
	}
	if o.ReadOnly {
		intercept(&opts, refuseChanges)
	}
	serving := opts
	if e.Codec != nil {
		intercept(&opts, e.Codec.Intercept)
		intercept(&serving, e.Codec.InterceptWorker)
	}
	intercept(&opts, o.Intercept)
	intercept(&serving, o.Intercept)
	if e.Client, err = dial(ctx, opts); err != nil || e.Codec == nil || !o.Worker {
		return err
	}
	e.serving, err = dial(ctx, serving)
	return err
}

// reading are the prefixes of the names of calls that change nothing.
var reading = []string{"Check", "Count", "Describe", "Get", "List", "Query", "Scan"}

// refuseChanges refuses every call that may change something.
func refuseChanges(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	reads := func(prefix string) bool { return strings.HasPrefix(path.Base(method), prefix) }
	if !slices.ContainsFunc(reading, reads) {
		return status.Error(codes.FailedPrecondition, ErrReadOnly.Error())
	}
	return call(ctx, method, req, reply, cc, opts...)
}

// escapeHeaders escapes header values that gRPC refuses: the SDK sends workflow IDs, which can be in any
// script.
func escapeHeaders(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	headers, _ := metadata.FromOutgoingContext(ctx)
	for _, values := range headers {
		for i, v := range values {
			if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' }) {
				values[i] = url.QueryEscape(v)
			}
		}
	}
	return call(metadata.NewOutgoingContext(ctx, headers), method, req, reply, cc, opts...)
}

// intercept adds an interceptor to a copy of the dial options.
func intercept(o *client.Options, by grpc.UnaryClientInterceptor) {
	if by != nil {
		have := o.ConnectionOptions.DialOptions
		o.ConnectionOptions.DialOptions = append(have[:len(have):len(have)],
			grpc.WithChainUnaryInterceptor(by))
	}
}
