package main

import (
	"context"
	"errors"

	"acescope/engine"
)

// host does what acescope serve does, with a CPU profile of it.
func host(ctx context.Context, s spec) error {
	e, err := engine.Open(ctx, engine.Options{DataDir: s.Dir, Version: "bench", Worker: true})
	if err != nil {
		return err
	}
	env := map[string]string{}
	for _, v := range e.Node().Env() {
		env[v.Name] = v.Value
	}
	err = tell(struct{ Env map[string]string }{env})
	if err == nil {
		var stop func()
		if stop, err = profile(s, s.Name); err == nil {
			<-ctx.Done()
			stop()
		}
	}
	closing, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	return errors.Join(err, e.Close(closing))
}
