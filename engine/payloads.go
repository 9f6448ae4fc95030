package engine

import (
	"cmp"
	"context"
	"fmt"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"google.golang.org/grpc"

	"acescope/engine/ace"
	"acescope/engine/codec"
)

// CodecServer is the codec server that a configuration names, or, where it names none, the
// profile of a cluster; nil where there is none. It is for histories in files; [Open]
// makes an engine's own.
func CodecServer(c codec.Config, r *Remote) (*codec.Server, error) {
	var profile *envconfig.ClientConfigProfile
	if r != nil {
		p, err := r.profile()
		if err != nil {
			return nil, err
		}
		profile, c.Namespace = &p, cmp.Or(c.Namespace, r.Namespace, p.Namespace)
	}
	return codecServer(c, profile)
}

func codecServer(c codec.Config, p *envconfig.ClientConfigProfile) (*codec.Server, error) {
	if p != nil && p.Codec != nil {
		// What lets one in to the profile's server is not shown to another one.
		if c.Endpoint == "" || c.Endpoint == p.Codec.Endpoint {
			c.Endpoint, c.Auth = p.Codec.Endpoint, cmp.Or(c.Auth, p.Codec.Auth)
		}
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

// profile reads what the temporal command's configuration and the environment say.
func (r Remote) profile() (envconfig.ClientConfigProfile, error) {
	p, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{ConfigFileProfile: r.Profile})
	if err != nil {
		return p, fmt.Errorf("%w %q in the temporal command's configuration: %w", ErrProfile, r.Profile, err)
	}
	return p, nil
}

// dial connects for looking and, with a worker, a second time for it: who works must not
// go on with payloads that could not be decoded, who looks must.
func (e *Engine) dial(ctx context.Context, opts client.Options, o Options) (err error) {
	serving := opts
	if e.Codec != nil {
		intercept(&opts, e.Codec.Intercept)
		intercept(&serving, e.Codec.InterceptWorker)
	}
	intercept(&opts, o.Intercept)
	intercept(&serving, o.Intercept)
	if e.Client, err = client.DialContext(ctx, opts); err != nil || e.Codec == nil || !o.Worker {
		return err
	}
	e.serving, err = client.DialContext(ctx, serving)
	return err
}

// intercept puts an interceptor behind those of the options, which are not shared.
func intercept(o *client.Options, by grpc.UnaryClientInterceptor) {
	if by != nil {
		have := o.ConnectionOptions.DialOptions
		o.ConnectionOptions.DialOptions = append(have[:len(have):len(have)], grpc.WithChainUnaryInterceptor(by))
	}
}
